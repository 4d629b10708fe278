/* Counts under a lock: a number in a node or a file that nothing but the lock protects. */
package holdfast.curator;

import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.NoSuchFileException;
import java.nio.file.Path;
import java.util.concurrent.TimeUnit;
import org.apache.curator.framework.CuratorFramework;
import org.apache.curator.framework.recipes.locks.InterProcessLock;
import org.apache.curator.framework.recipes.locks.InterProcessSemaphoreV2;
import org.apache.curator.framework.recipes.locks.Lease;
import org.apache.zookeeper.KeeperException.NoNodeException;

final class Counter {
    private static final String FILE = "file:";

    private final CuratorFramework client;
    private final Locks locks;
    private final Semaphores semaphores;

    Counter(CuratorFramework client, Locks locks, Semaphores semaphores) {
        this.client = client;
        this.locks = locks;
        this.semaphores = semaphores;
    }

    private interface Leave {
        void run() throws Exception;
    }

    /* What is done around one round: enters, and returns how to leave; null if it did not get in. */
    private interface Guard {
        Leave enter(long waitMs) throws Exception;
    }

    /* A number in decimal digits; what does not exist is 0. */
    private interface Cell {
        long get() throws Exception;

        void set(long number) throws Exception;
    }

    /**
     * Adds one to the key so many times, as a read and a write. The key is the path of a node, or
     * "file:" and that of a file. Readers read twice instead. Waits no longer than waitMs each time, if
     * that is more than 0, and leaves the round out otherwise. Returns how many rounds it did, and in
     * how many a reader saw the number change.
     */
    String count(String kind, String name, String key, long rounds, long waitMs) throws Exception {
        Guard guard = guard(kind, name);
        Cell cell = cell(key);
        long wait = waitMs > 0 ? waitMs : Integer.MAX_VALUE;
        long done = 0;
        long torn = 0;
        for (long i = 0; i < rounds; i++) {
            Leave leave = guard.enter(wait);
            if (leave != null) {
                torn += countOnce(cell, kind.equals("read")) ? 0 : 1;
                done++;
                leave.run();
            }
        }
        return done + " " + torn;
    }

    private static boolean countOnce(Cell cell, boolean onlyReads) throws Exception {
        long number = cell.get();
        if (onlyReads) {
            return cell.get() == number;
        }
        cell.set(number + 1);
        return true;
    }

    private Cell cell(String key) {
        return key.startsWith(FILE)
                ? new FileCell(Path.of(key.substring(FILE.length())))
                : new NodeCell(client, key);
    }

    private Guard guard(String kind, String name) {
        switch (kind) {
            case "none":
                return waitMs -> () -> {};
            case "semaphore":
                return semaphoreGuard(semaphores.semaphore(name));
            default:
                InterProcessLock lock = locks.lock(kind, name);
                return waitMs -> lock.acquire(waitMs, TimeUnit.MILLISECONDS) ? lock::release : null;
        }
    }

    private static Guard semaphoreGuard(InterProcessSemaphoreV2 semaphore) {
        return waitMs -> {
            Lease lease = semaphore.acquire(waitMs, TimeUnit.MILLISECONDS);
            return lease == null ? null : () -> semaphore.returnLease(lease);
        };
    }

    private record NodeCell(CuratorFramework client, String path) implements Cell {
        @Override
        public long get() throws Exception {
            try {
                return Long.parseLong(new String(client.getData().forPath(path), StandardCharsets.US_ASCII));
            } catch (NoNodeException e) {
                return 0;
            }
        }

        @Override
        public void set(long number) throws Exception {
            byte[] text = Long.toString(number).getBytes(StandardCharsets.US_ASCII);
            try {
                client.setData().forPath(path, text);
            } catch (NoNodeException e) {
                client.create().creatingParentContainersIfNeeded().forPath(path, text);
            }
        }
    }

    private record FileCell(Path path) implements Cell {
        @Override
        public long get() throws IOException {
            try {
                return Long.parseLong(Files.readString(path).strip());
            } catch (NoSuchFileException e) {
                return 0;
            }
        }

        @Override
        public void set(long number) throws IOException {
            Files.writeString(path, Long.toString(number));
        }
    }
}
