/* A lock of the measured library. */
package holdfast.bench;

interface Mutex {
    void lock() throws Exception;

    void unlock() throws Exception;

    /* Whether the calling thread still holds it, as far as the library can tell by asking the server. */
    boolean isHeld() throws Exception;
}
