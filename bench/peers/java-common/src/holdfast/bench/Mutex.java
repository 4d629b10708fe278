/* A lock of the measured library. */
package holdfast.bench;

interface Mutex {
    void lock() throws Exception;

    void unlock() throws Exception;

    /* Whether the calling thread still holds it, according to what the library gets from the server. */
    boolean isHeld() throws Exception;
}
