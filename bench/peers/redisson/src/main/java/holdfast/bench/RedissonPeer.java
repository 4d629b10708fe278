/* Measures Redisson. */
package holdfast.bench;

import java.util.Set;
import java.util.concurrent.CompletionStage;
import org.redisson.Redisson;
import org.redisson.api.RLock;
import org.redisson.api.RReadWriteLock;
import org.redisson.api.RedissonClient;
import org.redisson.config.Config;
import org.redisson.config.SingleServerConfig;

/**
 * With "--pools small" there are few threads and connections; otherwise their number is Redisson's default.
 */
public final class RedissonPeer implements Library {
    private final RedissonClient client;

    private RedissonPeer(RedissonClient client) {
        this.client = client;
    }

    public static void main(String[] words) {
        Peer.main(words, Set.of("--pools", "--processes"), RedissonPeer::connect);
    }

    private static Library connect(Arguments arguments) {
        Config config = new Config();
        SingleServerConfig server = config.useSingleServer().setAddress(arguments.url());
        String pools = arguments.option("--pools", "default");
        if (pools.equals("small")) {
            config.setThreads(2).setNettyThreads(2);
            server.setConnectionPoolSize(16).setConnectionMinimumIdleSize(2);
        } else if (!pools.equals("default")) {
            throw new IllegalArgumentException("no pools named " + pools);
        }
        return new RedissonPeer(Redisson.create(config));
    }

    @Override
    public String name() {
        return "Redisson";
    }

    @Override
    public String version() {
        return Peer.version(Redisson.class, "org.redisson", "redisson");
    }

    @Override
    public void settle() {
        client.getKeys().count();
    }

    @Override
    public Mutex plain(String name) {
        return mutex(client.getLock(name));
    }

    @Override
    public Mutex fair(String name) {
        return mutex(client.getFairLock(name));
    }

    @Override
    public SharedMutex shared(String name) {
        RReadWriteLock lock = client.getReadWriteLock(name);
        return new SharedMutex(mutex(lock.readLock()), mutex(lock.writeLock()));
    }

    @Override
    public AsyncMutex async(String name, long owner) {
        RLock lock = client.getLock(name);
        return new AsyncMutex() {
            @Override
            public CompletionStage<Void> lock() {
                return lock.lockAsync(owner);
            }

            @Override
            public CompletionStage<Void> unlock() {
                return lock.unlockAsync(owner);
            }
        };
    }

    private static Mutex mutex(RLock lock) {
        return new Mutex() {
            @Override
            public void lock() {
                lock.lock();
            }

            @Override
            public void unlock() {
                lock.unlock();
            }

            @Override
            public boolean isHeld() {
                return lock.isHeldByCurrentThread();
            }
        };
    }
}
