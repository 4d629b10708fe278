/* The peer's session with its servers. */
package holdfast.curator;

import holdfast.lines.Arguments;
import holdfast.lines.Lines;
import java.util.concurrent.CountDownLatch;
import org.apache.curator.framework.CuratorFramework;
import org.apache.zookeeper.Watcher;
import org.apache.zookeeper.ZooKeeper;

/** Events of "client any" are the states of the connection: connected, suspended, reconnected, lost. */
final class Session implements Lines.Calls {
    private final CuratorFramework client;
    private final String servers;

    Session(CuratorFramework client, String servers) {
        this.client = client;
        this.servers = servers;
    }

    @Override
    public Object call(String verb, String kind, String name, Arguments args) throws Exception {
        switch (verb) {
            case "session":
                return handle().getSessionId();
            case "timeout":
                return handle().getSessionTimeout();
            case "expire":
                expire(handle());
                return "";
            case "close":
                client.close();
                return "";
            case "die":
                Runtime.getRuntime().halt(1);
                return "";
            default:
                throw new IllegalArgumentException(verb);
        }
    }

    private ZooKeeper handle() throws Exception {
        return client.getZookeeperClient().getZooKeeper();
    }

    /* A second handle of the same session closes it, and so the server ends it at once. */
    private void expire(ZooKeeper mine) throws Exception {
        CountDownLatch connected = new CountDownLatch(1);
        Watcher watcher = event -> {
            if (event.getState() == Watcher.Event.KeeperState.SyncConnected) {
                connected.countDown();
            }
        };
        ZooKeeper twin = new ZooKeeper(
                servers, mine.getSessionTimeout(), watcher, mine.getSessionId(), mine.getSessionPasswd());
        connected.await();
        twin.close();
    }
}
