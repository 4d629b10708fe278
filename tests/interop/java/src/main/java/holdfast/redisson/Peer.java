/* A Redisson process that a test drives line by line. */
package holdfast.redisson;

import holdfast.lines.Lines;
import java.io.IOException;
import java.util.ArrayList;
import java.util.List;
import org.redisson.Redisson;
import org.redisson.api.RedissonClient;
import org.redisson.client.codec.StringCodec;
import org.redisson.config.Config;

/**
 * Started with the ports of its servers, apart by commas, the watchdog's lease and the time after which
 * fair waiters count as dead. All but red locks live on the first server.
 */
public final class Peer {
    private Peer() {}

    public static void main(String[] args) throws IOException {
        String[] ports = args[0].split(",");
        List<RedissonClient> clients = new ArrayList<>();
        for (String port : ports) {
            clients.add(Redisson.create(config(port, Long.parseLong(args[1]), Long.parseLong(args[2]))));
        }
        int port = Integer.parseInt(ports[0]);
        Lines.serve(clients.get(0).getId(), () -> new Worker(clients, port));
    }

    /* Values are plain text, which groups need; few connections, so that the process starts soon. */
    private static Config config(String port, long watchdogMs, long fairWaitMs) {
        Config config = new Config();
        config.setCodec(StringCodec.INSTANCE);
        config.setLockWatchdogTimeout(watchdogMs);
        config.setFairLockWaitTimeout(fairWaitMs);
        config.setThreads(4);
        config.setNettyThreads(4);
        config.useSingleServer()
                .setAddress("redis://127.0.0.1:" + port)
                .setConnectionMinimumIdleSize(2)
                .setConnectionPoolSize(24);
        return config;
    }
}
