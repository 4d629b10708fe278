/* Counts under a lock: a number on the server that nothing but the lock protects. */
package holdfast.redisson;

import java.io.BufferedInputStream;
import java.io.IOException;
import java.io.InputStream;
import java.net.Socket;
import java.nio.charset.StandardCharsets;
import java.util.concurrent.TimeUnit;
import org.redisson.api.RLock;
import org.redisson.api.RPermitExpirableSemaphore;
import org.redisson.api.RSemaphore;
import org.redisson.client.RedisTimeoutException;

final class Counter {
    /*
     * Long enough never to end. Without a lease Redisson starts a timer at every lock, and those of
     * thousands of rounds would renew all at once.
     */
    private static final long LEASE_MS = 30000;

    /* After this many rounds it steps aside, so that the others get in. */
    private static final int STINT = 10;

    private final Objects objects;
    private final int port;
    private Socket socket;
    private InputStream input;

    Counter(Objects objects, int port) {
        this.objects = objects;
        this.port = port;
    }

    /* What is done around one round: enters, and returns how to leave; null if it did not get in. */
    private interface Guard {
        Runnable enter() throws Exception;
    }

    /**
     * Adds one to the key in each round, as a read and a write. Readers read twice instead. Waits no
     * longer than waitMs each time, if that is more than 0, and leaves the round out otherwise.
     * Returns how many rounds it did, and in how many a reader saw the number change.
     */
    String count(String kind, String name, String key, long rounds, long waitMs) throws Exception {
        connect();
        Guard guard = waitMs > 0 ? impatientGuard(objects.lock(kind, name), waitMs) : guard(kind, name);
        long done = 0;
        long torn = 0;
        for (long i = 0; i < rounds; i++) {
            Runnable leave = enter(guard);
            if (leave != null) {
                torn += countOnce(key, kind.equals("read")) ? 0 : 1;
                done++;
                leave.run();
            }
            if (i % STINT == STINT - 1) {
                Thread.sleep(2);
            }
        }
        return done + " " + torn;
    }

    /*
     * Redisson's own book of subscriptions jams now and then, and the wait ends with an exception
     * before anything was taken. That has nothing to do with locks: it waits again.
     */
    private static Runnable enter(Guard guard) throws Exception {
        for (int jams = 0; ; jams++) {
            try {
                return guard.enter();
            } catch (RedisTimeoutException e) {
                if (jams == 3 || !String.valueOf(e.getMessage()).contains("subscription lock")) {
                    throw e;
                }
            }
        }
    }

    private boolean countOnce(String key, boolean onlyReads) throws IOException {
        long number = get(key);
        if (onlyReads) {
            return get(key) == number;
        }
        ask("SET", key, Long.toString(number + 1));
        return true;
    }

    private static Guard impatientGuard(RLock lock, long waitMs) {
        return () -> lock.tryLock(waitMs, LEASE_MS, TimeUnit.MILLISECONDS) ? lock::unlock : null;
    }

    private Guard guard(String kind, String name) {
        switch (kind) {
            case "none":
                return () -> () -> {};
            case "semaphore":
                return semaphoreGuard(objects.semaphore(name));
            case "permits":
                return permitGuard(objects.permits(name));
            case "spin":
                return lockGuard(objects.hastySpin(name));
            default:
                return lockGuard(objects.lock(kind, name));
        }
    }

    private static Guard lockGuard(RLock lock) {
        return () -> {
            lock.lock(LEASE_MS, TimeUnit.MILLISECONDS);
            return lock::unlock;
        };
    }

    private static Guard semaphoreGuard(RSemaphore semaphore) {
        return () -> {
            semaphore.acquire();
            return semaphore::release;
        };
    }

    private static Guard permitGuard(RPermitExpirableSemaphore permits) {
        return () -> {
            String id = permits.acquire(LEASE_MS, TimeUnit.MILLISECONDS);
            return () -> permits.release(id);
        };
    }

    private void connect() throws IOException {
        if (socket == null) {
            socket = new Socket("127.0.0.1", port);
            socket.setTcpNoDelay(true);
            input = new BufferedInputStream(socket.getInputStream());
        }
    }

    private long get(String key) throws IOException {
        String text = ask("GET", key);
        return text == null ? 0 : Long.parseLong(text);
    }

    /* One command; the answer is a status, or a short text or null. */
    private String ask(String... words) throws IOException {
        StringBuilder command = new StringBuilder("*" + words.length + "\r\n");
        for (String word : words) {
            command.append("$").append(word.length()).append("\r\n").append(word).append("\r\n");
        }
        socket.getOutputStream().write(command.toString().getBytes(StandardCharsets.US_ASCII));
        String line = readLine();
        if (line.startsWith("-")) {
            throw new IOException(line);
        }
        return line.equals("$-1") ? null : line.startsWith("$") ? readLine() : line;
    }

    private String readLine() throws IOException {
        StringBuilder line = new StringBuilder();
        for (int c = input.read(); c != '\n'; c = input.read()) {
            if (c < 0) {
                throw new IOException("the server has closed the connection");
            }
            if (c != '\r') {
                line.append((char) c);
            }
        }
        return line.toString();
    }
}
