/* The measured library, connected to its server. */
package holdfast.bench;

interface Library {
    String name();

    String version();

    /* Called before each command: the process may have been stopped for minutes. */
    void settle() throws Exception;

    Mutex plain(String name);

    Mutex fair(String name);

    SharedMutex shared(String name);

    /* The owner distinguishes holders of one process, since threads play no part in it. */
    AsyncMutex async(String name, long owner);

    /* A read-write lock, by its two sides. */
    record SharedMutex(Mutex read, Mutex write) {}
}
