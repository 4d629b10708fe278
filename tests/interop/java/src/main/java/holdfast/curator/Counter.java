/* Counts under a lock: a number in a node or a file that nothing but the lock protects. */
package holdfast.curator;

import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.NoSuchFileException;
import java.nio.file.Path;
import org.apache.curator.framework.CuratorFramework;
import org.apache.zookeeper.KeeperException.NoNodeException;

final class Counter {
    private static final String FILE = "file:";

    private final CuratorFramework client;
    private final Guards guards;

    Counter(CuratorFramework client, Guards guards) {
        this.client = client;
        this.guards = guards;
    }

    /* A number in decimal digits; what does not exist is 0. */
    private interface Cell {
        long get() throws Exception;

        void set(long number) throws Exception;
    }

    /**
     * Adds one to the key in each round, as a read and a write. The key is the path of a node, or
     * "file:" and that of a file. Readers read twice instead. Waits no longer than waitMs each time, if
     * that is more than 0, and leaves the round out otherwise. Pauses between two rounds now
     * and then, up to pauseMs. Returns how many rounds it did, and in how many a reader saw the number
     * change.
     */
    String count(String kind, String name, String key, long rounds, long waitMs, long pauseMs)
            throws Exception {
        Guards.Guard guard = guards.of(kind, name);
        Cell cell = cell(key);
        long done = 0;
        long torn = 0;
        for (long i = 0; i < rounds; i++) {
            Guards.Leave leave = guard.enter(Guards.forWait(waitMs));
            if (leave != null) {
                torn += countOnce(cell, kind.equals("read")) ? 0 : 1;
                done++;
                leave.run();
            }
            Guards.rest(pauseMs);
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
