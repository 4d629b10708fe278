/* Measures Redisson. */
package holdfast.bench;

import java.util.Set;
import java.util.concurrent.CompletionStage;
import org.redisson.Redisson;
import org.redisson.api.RLock;
import org.redisson.api.RReadWriteLock;
import org.redisson.api.RedissonClient;
import org.redisson.config.Config;
import org.redisson.config.ReplicatedServersConfig;
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
        String pools = arguments.option("--pools", "default");
        if (!pools.equals("small") && !pools.equals("default")) {
            throw new IllegalArgumentException("no pools named " + pools);
        }
        boolean isSmall = pools.equals("small");
        if (isSmall) {
            config.setThreads(2).setNettyThreads(2);
        }
        if (arguments.url().contains(",")) {
            useReplicated(config.useReplicatedServers(), arguments.url(), isSmall);
        } else {
            useSingle(config.useSingleServer(), arguments.url(), isSmall);
        }
        return new RedissonPeer(Redisson.create(config));
    }

    private static void useSingle(SingleServerConfig server, String url, boolean isSmall) {
        server.setAddress(url);
        if (isSmall) {
            server.setConnectionPoolSize(16).setConnectionMinimumIdleSize(2);
        }
    }

    /* The URL redis://host:port,host:port names a master and its replicas. */
    private static void useReplicated(ReplicatedServersConfig servers, String url, boolean isSmall) {
        servers.addNodeAddress(url.replace(",", ",redis://").split(","));
        if (isSmall) {
            servers.setMasterConnectionPoolSize(16).setMasterConnectionMinimumIdleSize(2);
            servers.setSlaveConnectionPoolSize(16).setSlaveConnectionMinimumIdleSize(2);
        }
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
