/* A Redisson process that a test drives line by line. */
package holdfast;

import java.io.BufferedReader;
import java.io.IOException;
import java.io.InputStreamReader;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import org.redisson.Redisson;
import org.redisson.api.RedissonClient;
import org.redisson.client.codec.StringCodec;
import org.redisson.config.Config;

/**
 * Started with the ports of its servers, apart by commas, the watchdog's lease and the time after which
 * fair waiters count as dead. All but red locks live on the first server.
 *
 * <p>A line in is "THREAD VERB KIND NAME ARGUMENT…". Each thread does its own lines in order, so one that
 * blocks does not block the others. When the call has ended the answer is "THREAD ok MS VALUE" or
 * "THREAD error MS EXCEPTION MESSAGE", where MS is how long it took. The process ends with its input.
 */
public final class Peer {
    private Peer() {}

    public static void main(String[] args) throws IOException {
        String[] ports = args[0].split(",");
        List<RedissonClient> clients = new ArrayList<>();
        for (String port : ports) {
            clients.add(Redisson.create(config(port, Long.parseLong(args[1]), Long.parseLong(args[2]))));
        }
        say("ready ok 0 " + clients.get(0).getId());
        obey(clients, Integer.parseInt(ports[0]));
        Runtime.getRuntime().halt(0);
    }

    private static void obey(List<RedissonClient> clients, int port) throws IOException {
        BufferedReader input = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        Map<String, Worker> workers = new HashMap<>();
        for (String line = input.readLine(); line != null; line = input.readLine()) {
            String[] words = line.split(" ");
            workers.computeIfAbsent(words[0], name -> new Worker(clients, port)).submit(words);
        }
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

    /* One line at a time, whole. */
    static synchronized void say(String line) {
        System.out.println(line);
        System.out.flush();
    }
}
