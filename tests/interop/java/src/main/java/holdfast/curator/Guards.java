/* How a thread comes into what a lock or a semaphore guards, and out of it again. */
package holdfast.curator;

import java.util.concurrent.ThreadLocalRandom;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.locks.LockSupport;
import org.apache.curator.framework.recipes.locks.InterProcessLock;
import org.apache.curator.framework.recipes.locks.InterProcessSemaphoreV2;
import org.apache.curator.framework.recipes.locks.Lease;

final class Guards {
    interface Leave {
        void run() throws Exception;
    }

    /* Enters, and returns how to leave; null if it did not get in. */
    interface Guard {
        Leave enter(long waitMs) throws Exception;
    }

    private final Locks locks;
    private final Semaphores semaphores;

    Guards(Locks locks, Semaphores semaphores) {
        this.locks = locks;
        this.semaphores = semaphores;
    }

    /* The kind "none" lets everybody in. */
    Guard of(String kind, String name) {
        switch (kind) {
            case "none":
                return waitMs -> () -> {};
            case "semaphore":
                return guard(semaphores.semaphore(name));
            default:
                return guard(locks.lock(kind, name));
        }
    }

    private static Guard guard(InterProcessLock lock) {
        return waitMs -> lock.acquire(waitMs, TimeUnit.MILLISECONDS) ? lock::release : null;
    }

    private static Guard guard(InterProcessSemaphoreV2 semaphore) {
        return waitMs -> {
            Lease lease = semaphore.acquire(waitMs, TimeUnit.MILLISECONDS);
            return lease == null ? null : () -> semaphore.returnLease(lease);
        };
    }

    /** A wait of 0 has no end. */
    static long forWait(long waitMs) {
        return waitMs > 0 ? waitMs : Integer.MAX_VALUE;
    }

    /** Pauses once in a while, for a random time up to this one, so that others have the lock to themselves. */
    static void rest(long mostMs) {
        if (mostMs > 0 && ThreadLocalRandom.current().nextInt(16) == 0) {
            linger(mostMs * 1000);
        }
    }

    /** Pauses for a random time up to this one. */
    static void linger(long mostUs) {
        if (mostUs > 0) {
            LockSupport.parkNanos(ThreadLocalRandom.current().nextLong(mostUs * 1000));
        }
    }
}
