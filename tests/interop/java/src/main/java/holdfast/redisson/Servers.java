/* The servers of one URL, as Redisson is configured for them. */
package holdfast.redisson;

import java.util.Arrays;
import java.util.Locale;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import org.redisson.config.BaseMasterSlaveServersConfig;
import org.redisson.config.ClusterServersConfig;
import org.redisson.config.Config;
import org.redisson.config.ReplicatedServersConfig;
import org.redisson.config.SentinelServersConfig;
import org.redisson.config.ShardedSubscriptionMode;

/**
 * The URL is one of Holdfast's: redis://host:port, redis://host:port,host:port for replicated servers,
 * redis+sentinel://host:port,host:port/master, or redis+cluster://host:port,host:port?sharded=off.
 */
final class Servers {
    /* How often Redisson looks for masters and slots that have moved. */
    private static final int SCAN_MS = 1000;

    private static final Pattern URL =
            Pattern.compile("redis(\\+\\w+)?://([^/?]+)(?:/(\\w+))?(?:\\?sharded=(\\w+))?");

    private final String scheme;
    private final String[] addresses;
    private final String master;
    private final String sharded;

    Servers(String url) {
        Matcher parts = URL.matcher(url);
        if (!parts.matches()) {
            throw new IllegalArgumentException(url);
        }
        scheme = parts.group(1) == null ? "" : parts.group(1);
        addresses = Arrays.stream(parts.group(2).split(",")).map(host -> "redis://" + host).toArray(String[]::new);
        master = parts.group(3);
        sharded = parts.group(4) == null ? "auto" : parts.group(4);
    }

    /* Of the first address. */
    int port() {
        return Integer.parseInt(addresses[0].substring(addresses[0].lastIndexOf(':') + 1));
    }

    /* Few connections, so that the process starts soon. */
    void configure(Config config) {
        if (scheme.equals("+cluster")) {
            useCluster(config.useClusterServers());
        } else if (scheme.equals("+sentinel")) {
            useSentinels(config.useSentinelServers());
        } else if (addresses.length > 1) {
            useReplicated(config.useReplicatedServers());
        } else {
            config.useSingleServer()
                    .setAddress(addresses[0])
                    .setConnectionMinimumIdleSize(2)
                    .setConnectionPoolSize(24);
        }
    }

    private void useCluster(ClusterServersConfig servers) {
        servers.addNodeAddress(addresses)
                .setShardedSubscriptionMode(ShardedSubscriptionMode.valueOf(sharded.toUpperCase(Locale.ROOT)))
                .setScanInterval(SCAN_MS);
        limitConnections(servers);
    }

    private void useSentinels(SentinelServersConfig servers) {
        servers.addSentinelAddress(addresses).setMasterName(master).setScanInterval(SCAN_MS);
        limitConnections(servers);
    }

    private void useReplicated(ReplicatedServersConfig servers) {
        servers.addNodeAddress(addresses).setScanInterval(SCAN_MS);
        limitConnections(servers);
    }

    private static void limitConnections(BaseMasterSlaveServersConfig<?> servers) {
        servers.setMasterConnectionMinimumIdleSize(2);
        servers.setMasterConnectionPoolSize(24);
        servers.setSlaveConnectionMinimumIdleSize(1);
        servers.setSlaveConnectionPoolSize(24);
    }
}
