/* The Redisson objects of one thread, by kind and name. */
package holdfast.redisson;

import java.util.Arrays;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import org.redisson.api.LockOptions;
import org.redisson.api.RCountDownLatch;
import org.redisson.api.RLock;
import org.redisson.api.RPermitExpirableSemaphore;
import org.redisson.api.RSemaphore;
import org.redisson.api.RedissonClient;

/** A lock is kept from one line to the next, for a Redisson lock remembers its lease. */
final class Objects {
    private final List<RedissonClient> clients;
    private final RedissonClient redisson;
    private final Map<String, RLock> locks = new HashMap<>();

    Objects(List<RedissonClient> clients) {
        this.clients = clients;
        redisson = clients.get(0);
    }

    /* Whether this version of Redisson has the kind. */
    boolean supports(String kind) {
        try {
            make(kind, "any");
            return true;
        } catch (UnsupportedOperationException error) {
            return false;
        }
    }

    RLock lock(String kind, String name) {
        return locks.computeIfAbsent(kind + " " + name, key -> make(kind, name));
    }

    /* A spin lock that asks again within a few milliseconds, or one party would count all alone. */
    RLock hastySpin(String name) {
        return redisson.getSpinLock(name, new LockOptions.ExponentialBackOff().maxDelay(4));
    }

    RSemaphore semaphore(String name) {
        return redisson.getSemaphore(name);
    }

    RPermitExpirableSemaphore permits(String name) {
        return redisson.getPermitExpirableSemaphore(name);
    }

    RCountDownLatch latch(String name) {
        return redisson.getCountDownLatch(name);
    }

    private RLock make(String kind, String name) {
        switch (kind) {
            case "reentrant":
                return redisson.getLock(name);
            case "fair":
                return redisson.getFairLock(name);
            case "read":
                return redisson.getReadWriteLock(name).readLock();
            case "write":
                return redisson.getReadWriteLock(name).writeLock();
            case "fenced":
                return redisson.getFencedLock(name);
            case "spin":
                return redisson.getSpinLock(name);
            case "simple":
                return makeNewer("getNonReentrantLock", name);
            case "simple_fair":
                return makeNewer("getNonReentrantFairLock", name);
            case "group":
                return makeGroup(name);
            case "multi":
                return makeMulti(name);
            case "red":
                return makeRed(name);
            case "last":
                return clients.get(clients.size() - 1).getLock(name);
            default:
                throw new IllegalArgumentException("no kind is named " + kind);
        }
    }

    /* Kinds that older versions do not have are called by name. */
    private RLock makeNewer(String method, String name) {
        try {
            return (RLock) RedissonClient.class.getMethod(method, String.class).invoke(redisson, name);
        } catch (ReflectiveOperationException error) {
            throw new UnsupportedOperationException(method);
        }
    }

    /* The name is "GROUP/VALUE,VALUE…". */
    private RLock makeGroup(String name) {
        String[] parts = name.split("/");
        Object[] values = parts.length > 1 ? parts[1].split(",") : new Object[] {"any"};
        return redisson.getMultiLock(parts[0], Arrays.asList(values));
    }

    /* The name is "NAME,NAME…", each a reentrant lock. */
    private RLock makeMulti(String name) {
        return redisson.getMultiLock(
                Arrays.stream(name.split(",")).map(redisson::getLock).toArray(RLock[]::new));
    }

    /* One lock of that name on each server. */
    @SuppressWarnings("deprecation")
    private RLock makeRed(String name) {
        return redisson.getRedLock(
                clients.stream().map(client -> client.getLock(name)).toArray(RLock[]::new));
    }
}
