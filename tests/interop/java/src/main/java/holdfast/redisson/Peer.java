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
 * Started with the URLs of its servers, separated by spaces, the watchdog's lease and the time after which
 * fair waiters count as dead. All locks except red locks live on the servers of the first URL.
 */
public final class Peer {
    private Peer() {}

    public static void main(String[] args) throws IOException {
        String[] urls = args[0].split(" ");
        List<RedissonClient> clients = new ArrayList<>();
        for (String url : urls) {
            clients.add(Redisson.create(config(url, Long.parseLong(args[1]), Long.parseLong(args[2]))));
        }
        int port = new Servers(urls[0]).port();
        Lines.serve(clients.get(0).getId(), () -> new Worker(clients, port));
    }

    /* Values are plain text, which groups need. */
    private static Config config(String url, long watchdogMs, long fairWaitMs) {
        Config config = new Config();
        config.setCodec(StringCodec.INSTANCE);
        config.setLockWatchdogTimeout(watchdogMs);
        config.setFairLockWaitTimeout(fairWaitMs);
        config.setThreads(4);
        config.setNettyThreads(4);
        new Servers(url).configure(config);
        return config;
    }
}
