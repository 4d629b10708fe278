/* What one thread of the peer does for its lines. */
package holdfast.redisson;

import holdfast.lines.Arguments;
import holdfast.lines.Lines;
import java.util.List;
import java.util.concurrent.TimeUnit;
import org.redisson.api.RCountDownLatch;
import org.redisson.api.RFencedLock;
import org.redisson.api.RLock;
import org.redisson.api.RPermitExpirableSemaphore;
import org.redisson.api.RSemaphore;
import org.redisson.api.RedissonClient;

final class Worker implements Lines.Calls {
    private static final TimeUnit MS = TimeUnit.MILLISECONDS;

    private final Objects objects;
    private final Counter counter;

    Worker(List<RedissonClient> clients, int port) {
        objects = new Objects(clients);
        counter = new Counter(objects, port);
    }

    @Override
    public Object call(String verb, String kind, String name, Arguments args) throws Exception {
        if (verb.equals("supports")) {
            return objects.supports(kind);
        }
        if (verb.equals("count")) {
            return counter.count(kind, name, args.text(0), args.number(1), args.number(2));
        }
        if (verb.equals("believe")) {
            return believe(objects.lock(kind, name), args);
        }
        switch (kind) {
            case "semaphore":
                return callSemaphore(verb, objects.semaphore(name), args);
            case "permits":
                return callPermits(verb, objects.permits(name), args);
            case "latch":
                return callLatch(verb, objects.latch(name), args);
            default:
                return callLock(verb, objects.lock(kind, name), args);
        }
    }

    /* The file, the places and sizes in it, and what Believer needs. */
    private static Object believe(RLock lock, Arguments args) throws Exception {
        Believer believer =
                new Believer(lock, args.number(3), args.number(4), args.number(5), args.number(6), args.number(7));
        return believer.believe(args.text(0), args.number(1), args.number(2));
    }

    /* A lease of 0 is the watchdog's. */
    private static Object callLock(String verb, RLock lock, Arguments args) throws Exception {
        switch (verb) {
            case "lock":
                lock.lock(args.number(0) > 0 ? args.number(0) : -1, MS);
                return "";
            case "try":
                return lock.tryLock(args.number(0), args.number(1) > 0 ? args.number(1) : -1, MS);
            case "unlock":
                lock.unlock();
                return "";
            case "force":
                return lock.forceUnlock();
            case "locked":
                return lock.isLocked();
            case "held":
                return lock.isHeldByCurrentThread();
            case "holds":
                return lock.getHoldCount();
            case "ttl":
                return lock.remainTimeToLive();
            case "token":
                return ((RFencedLock) lock).getToken();
            case "locktoken":
                return ((RFencedLock) lock).lockAndGetToken();
            default:
                throw new IllegalArgumentException(verb);
        }
    }

    /* A wait below 0 has no end. */
    private static Object callSemaphore(String verb, RSemaphore semaphore, Arguments args) throws Exception {
        switch (verb) {
            case "acquire":
                if (args.number(1) < 0) {
                    semaphore.acquire(args.integer(0));
                    return true;
                }
                return semaphore.tryAcquire(args.integer(0), args.number(1), MS);
            case "release":
                semaphore.release(args.integer(0));
                return "";
            case "set":
                return semaphore.trySetPermits(args.integer(0));
            case "add":
                semaphore.addPermits(args.integer(0));
                return "";
            case "drain":
                return semaphore.drainPermits();
            case "available":
                return semaphore.availablePermits();
            default:
                throw new IllegalArgumentException(verb);
        }
    }

    /* A lease of 0 has no end; so has a wait below 0. Ids go in and out, apart by spaces. */
    private static Object callPermits(String verb, RPermitExpirableSemaphore permits, Arguments args)
            throws Exception {
        switch (verb) {
            case "acquire":
                return join(acquire(permits, args.integer(0), args.number(1), args.number(2)));
            case "release":
                permits.release(args.texts(0));
                return "";
            case "extend":
                return permits.updateLeaseTime(args.text(0), args.number(1), MS);
            case "lease":
                return permits.getLeaseTime(args.text(0));
            case "set":
                return permits.trySetPermits(args.integer(0));
            case "reset":
                permits.setPermits(args.integer(0));
                return "";
            case "add":
                permits.addPermits(args.integer(0));
                return "";
            case "available":
                return permits.availablePermits();
            case "acquired":
                return permits.acquiredPermits();
            case "total":
                return permits.getPermits();
            default:
                throw new IllegalArgumentException(verb);
        }
    }

    private static List<String> acquire(RPermitExpirableSemaphore permits, int n, long waitMs, long leaseMs)
            throws InterruptedException {
        long lease = leaseMs > 0 ? leaseMs : -1;
        return waitMs < 0 ? permits.acquire(n, lease, MS) : permits.tryAcquire(n, waitMs, lease, MS);
    }

    private static String join(List<String> ids) {
        return ids == null ? "" : String.join(" ", ids);
    }

    private static Object callLatch(String verb, RCountDownLatch latch, Arguments args) throws Exception {
        switch (verb) {
            case "set":
                return latch.trySetCount(args.number(0));
            case "down":
                latch.countDown();
                return "";
            case "left":
                return latch.getCount();
            case "await":
                return latch.await(args.number(0), MS);
            case "delete":
                return latch.delete();
            default:
                throw new IllegalArgumentException(verb);
        }
    }
}
