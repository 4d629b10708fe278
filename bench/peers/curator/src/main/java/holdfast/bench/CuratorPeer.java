/* Measures Curator, on ZooKeeper. */
package holdfast.bench;

import java.util.Set;
import org.apache.curator.framework.CuratorFramework;
import org.apache.curator.framework.CuratorFrameworkFactory;
import org.apache.curator.framework.recipes.locks.InterProcessMutex;
import org.apache.curator.framework.recipes.locks.InterProcessReadWriteLock;
import org.apache.curator.retry.ExponentialBackoffRetry;

/** One session for all locks. Each lock is fair. */
public final class CuratorPeer implements Library {
    private static final String SCHEME = "zk://";
    private static final int RETRY_MS = 1000;
    private static final int RETRIES = 3;

    private final CuratorFramework client;

    private CuratorPeer(CuratorFramework client) {
        this.client = client;
    }

    public static void main(String[] words) {
        Peer.main(words, Set.of("--processes"), CuratorPeer::connect);
    }

    private static Library connect(Arguments arguments) throws InterruptedException {
        if (!arguments.url().startsWith(SCHEME)) {
            throw new IllegalArgumentException("not a ZooKeeper: " + arguments.url());
        }
        CuratorFramework client = CuratorFrameworkFactory.newClient(
                arguments.url().substring(SCHEME.length()), new ExponentialBackoffRetry(RETRY_MS, RETRIES));
        client.start();
        client.blockUntilConnected();
        return new CuratorPeer(client);
    }

    @Override
    public String name() {
        return "Curator";
    }

    @Override
    public String version() {
        return Peer.version(InterProcessMutex.class, "org.apache.curator", "curator-recipes");
    }

    /* Notices a session that expired while the process was stopped, and opens another one. */
    @Override
    public void settle() throws Exception {
        client.checkExists().forPath("/");
    }

    @Override
    public Mutex plain(String name) {
        return mutex(new InterProcessMutex(client, path(name)));
    }

    @Override
    public Mutex fair(String name) {
        return plain(name);
    }

    @Override
    public SharedMutex shared(String name) {
        InterProcessReadWriteLock lock = new InterProcessReadWriteLock(client, path(name));
        return new SharedMutex(mutex(lock.readLock()), mutex(lock.writeLock()));
    }

    @Override
    public AsyncMutex async(String name, long owner) {
        throw new UnsupportedOperationException("Curator's locks have no asynchronous form");
    }

    private static String path(String name) {
        return "/" + name;
    }

    private static Mutex mutex(InterProcessMutex mutex) {
        return new Mutex() {
            @Override
            public void lock() throws Exception {
                mutex.acquire();
            }

            @Override
            public void unlock() throws Exception {
                mutex.release();
            }

            /* Curator itself never notices that its node is gone, so this asks the server. */
            @Override
            public boolean isHeld() throws Exception {
                return mutex.isOwnedByCurrentThread() && !mutex.getParticipantNodes().isEmpty();
            }
        };
    }
}
