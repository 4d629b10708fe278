/* A Curator process that a test drives line by line. */
package holdfast.curator;

import holdfast.lines.Lines;
import java.nio.charset.StandardCharsets;
import java.util.List;
import java.util.concurrent.TimeUnit;
import org.apache.curator.framework.CuratorFramework;
import org.apache.curator.framework.CuratorFrameworkFactory;
import org.apache.curator.framework.api.ACLProvider;
import org.apache.curator.retry.RetryUntilElapsed;
import org.apache.zookeeper.ZooDefs;
import org.apache.zookeeper.data.ACL;

/**
 * Started with a connect string, the session's time, a namespace and digest's "user:password", the last
 * two of which may be empty. All threads share one session and its objects.
 */
public final class Peer {
    /* A fail-over must not end a call, and a test must not wait for ever. */
    private static final int RETRY_MS = 30000;
    private static final int PAUSE_MS = 100;

    private static final int CONNECT_MS = 15000;

    private Peer() {}

    public static void main(String[] args) throws Exception {
        CuratorFramework client = build(args[0], Integer.parseInt(args[1]), args[2], args[3]);
        Events events = new Events();
        events.listenTo(client);
        client.start();
        if (!client.blockUntilConnected(CONNECT_MS, TimeUnit.MILLISECONDS)) {
            throw new IllegalStateException("no server answers at " + args[0]);
        }
        Calls calls = new Calls(client, args[0], events);
        long session = client.getZookeeperClient().getZooKeeper().getSessionId();
        Lines.serve(Long.toString(session), () -> calls);
    }

    /* The tracker would find the servers' own addresses, and go past a test's proxy. */
    private static CuratorFramework build(
            String servers, int sessionMs, String namespace, String credentials) {
        CuratorFrameworkFactory.Builder builder = CuratorFrameworkFactory.builder()
                .connectString(servers)
                .ensembleTracker(false)
                .sessionTimeoutMs(sessionMs)
                .connectionTimeoutMs(CONNECT_MS)
                .retryPolicy(new RetryUntilElapsed(RETRY_MS, PAUSE_MS));
        if (!namespace.isEmpty()) {
            builder.namespace(namespace);
        }
        if (!credentials.isEmpty()) {
            builder.authorization("digest", credentials.getBytes(StandardCharsets.UTF_8));
            builder.aclProvider(new CreatorOnly());
        }
        return builder.build();
    }

    private static final class CreatorOnly implements ACLProvider {
        @Override
        public List<ACL> getDefaultAcl() {
            return ZooDefs.Ids.CREATOR_ALL_ACL;
        }

        @Override
        public List<ACL> getAclForPath(String path) {
            return ZooDefs.Ids.CREATOR_ALL_ACL;
        }
    }
}
