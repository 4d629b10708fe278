/* Locks: a mutex, one that does not nest, a read-write lock, and several mutexes as one. */
package holdfast.curator;

import holdfast.lines.Arguments;
import holdfast.lines.Lines;
import java.util.Arrays;
import java.util.List;
import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.TimeUnit;
import org.apache.curator.framework.CuratorFramework;
import org.apache.curator.framework.recipes.locks.InterProcessLock;
import org.apache.curator.framework.recipes.locks.InterProcessMultiLock;
import org.apache.curator.framework.recipes.locks.InterProcessMutex;
import org.apache.curator.framework.recipes.locks.InterProcessReadWriteLock;
import org.apache.curator.framework.recipes.locks.InterProcessSemaphoreMutex;
import org.apache.curator.framework.recipes.locks.Revoker;

/** The name of multi is "PATH,PATH…". Locks of one name are one object, which the threads share. */
final class Locks implements Lines.Calls {
    static final List<String> KINDS = List.of("mutex", "semaphore_mutex", "read", "write", "multi");

    private final CuratorFramework client;
    private final Events events;
    private final Map<String, InterProcessLock> locks = new ConcurrentHashMap<>();
    private final Map<String, InterProcessReadWriteLock> pairs = new ConcurrentHashMap<>();

    Locks(CuratorFramework client, Events events) {
        this.client = client;
        this.events = events;
    }

    InterProcessLock lock(String kind, String name) {
        return locks.computeIfAbsent(kind + " " + name, key -> make(kind, name));
    }

    @Override
    public Object call(String verb, String kind, String name, Arguments args) throws Exception {
        InterProcessLock lock = lock(kind, name);
        switch (verb) {
            case "lock":
                lock.acquire();
                return "";
            case "try":
                return lock.acquire(args.number(0), TimeUnit.MILLISECONDS);
            case "unlock":
                lock.release();
                return "";
            case "held":
                return isHeld(lock);
            default:
                return callMutex(verb, kind, name, (InterProcessMutex) lock);
        }
    }

    /* Nodes are full paths, in their order; those of a read-write lock are of the one kind only. */
    private Object callMutex(String verb, String kind, String name, InterProcessMutex mutex)
            throws Exception {
        switch (verb) {
            case "nodes":
                return String.join(" ", mutex.getParticipantNodes());
            case "node":
                return node(mutex);
            case "token":
                return client.checkExists().forPath(node(mutex)).getCzxid();
            case "revocable":
                Events.History asked = events.of(kind, name);
                mutex.makeRevocable(which -> asked.add("revoke"));
                return "";
            case "revoke":
                Revoker.attemptRevoke(client, mutex.getParticipantNodes().iterator().next());
                return "";
            default:
                throw new IllegalArgumentException(verb);
        }
    }

    /* By this thread, where the kind knows of threads. */
    private static boolean isHeld(InterProcessLock lock) {
        return lock instanceof InterProcessMutex mutex
                ? mutex.isOwnedByCurrentThread()
                : lock.isAcquiredInThisProcess();
    }

    /* The thread's own. */
    private static String node(InterProcessMutex mutex) {
        if (mutex instanceof InterProcessReadWriteLock.ReadLock read) {
            return read.getLockPath();
        }
        if (mutex instanceof InterProcessReadWriteLock.WriteLock write) {
            return write.getLockPath();
        }
        return ((OpenMutex) mutex).getLockPath();
    }

    private InterProcessLock make(String kind, String name) {
        String path = Name.withoutTag(name);
        switch (kind) {
            case "mutex":
                return new OpenMutex(client, path);
            case "semaphore_mutex":
                return new InterProcessSemaphoreMutex(client, path);
            case "read":
                return pair(name).readLock();
            case "write":
                return pair(name).writeLock();
            case "multi":
                return new InterProcessMultiLock(client, Arrays.asList(path.split(",")));
            default:
                throw new IllegalArgumentException("no lock is named " + kind);
        }
    }

    private InterProcessReadWriteLock pair(String name) {
        String path = Name.withoutTag(name);
        return pairs.computeIfAbsent(name, key -> new InterProcessReadWriteLock(client, path));
    }

    /* A mutex that shows the path of its node. */
    private static final class OpenMutex extends InterProcessMutex {
        OpenMutex(CuratorFramework client, String path) {
            super(client, path);
        }

        @Override
        public String getLockPath() {
            return super.getLockPath();
        }
    }
}
