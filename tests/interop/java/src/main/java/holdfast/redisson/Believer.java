/*
 * Takes a lock again and again, and records in a file that it shares with C when it believes that
 * it holds it.
 */
package holdfast.redisson;

import java.io.IOException;
import java.nio.ByteOrder;
import java.nio.MappedByteBuffer;
import java.nio.channels.FileChannel;
import java.nio.file.Path;
import java.nio.file.StandardOpenOption;
import java.util.concurrent.ThreadLocalRandom;
import java.util.concurrent.TimeUnit;
import org.redisson.api.RFencedLock;
import org.redisson.api.RLock;

/** The layout of the file is that of tests/support/beliefs.h. */
final class Believer {
    /* Fields of struct belief. */
    private static final int SIZE = 152;
    private static final int NAME = 0;
    private static final int GRANTED_AT = 8;
    private static final int VALID_UNTIL = 16;
    private static final int ENDED_AT = 24;
    private static final int END = 32;
    private static final int REPORTED_AT = 40;
    private static final int TOKEN = 48;
    private static final int IS_COUNTED = 56;
    private static final int IDENTITY = 88;

    private static final long RELEASED = 1;
    private static final long LOST = 2;
    private static final long UNKNOWN = 3;

    /* Short waits, so that a thread that Redisson has left without a message asks again. */
    private static final long WAIT_MS = 1000;

    private final RLock lock;
    private final long name;
    private final long leaseMs;
    private final long clockUs;
    private final long counterAt;
    private final long most;
    private MappedByteBuffer head;
    private MappedByteBuffer notes;
    private long token; // of the present hold
    private int count;

    /** The clock is what must be added to Java's to get CLOCK_BOOTTIME; places and times are those of C. */
    Believer(RLock lock, long name, long leaseMs, long clockUs, long counterAt, long most) {
        this.lock = lock;
        this.name = name;
        this.leaseMs = leaseMs;
        this.clockUs = clockUs;
        this.counterAt = counterAt;
        this.most = most;
    }

    /** Runs until the file says that it is over. Returns how many times the lock was granted. */
    int believe(String path, long headSize, long notesAt) throws Exception {
        try (FileChannel file =
                FileChannel.open(Path.of(path), StandardOpenOption.READ, StandardOpenOption.WRITE)) {
            head = map(file, 0, headSize);
            notes = map(file, notesAt, 8 + most * SIZE);
        }
        while (head.getLong(0) == 0 && count < most) {
            if (enter()) {
                hold();
            } else {
                Thread.sleep(5);
            }
        }
        return count;
    }

    private static MappedByteBuffer map(FileChannel file, long at, long size) throws IOException {
        MappedByteBuffer bytes = file.map(FileChannel.MapMode.READ_WRITE, at, size);
        bytes.order(ByteOrder.nativeOrder());
        return bytes;
    }

    private long now() {
        return System.nanoTime() / 1000 + clockUs;
    }

    /* Redisson throws while a master is being replaced. What it may have taken expires with its lease. */
    private boolean enter() throws InterruptedException {
        try {
            return tryEnter();
        } catch (InterruptedException error) {
            throw error;
        } catch (Exception error) {
            return false;
        }
    }

    private boolean tryEnter() throws InterruptedException {
        if (!(lock instanceof RFencedLock)) {
            return lock.tryLock(WAIT_MS, leaseMs, TimeUnit.MILLISECONDS);
        }
        Long granted = ((RFencedLock) lock).tryLockAndGetToken(WAIT_MS, leaseMs, TimeUnit.MILLISECONDS);
        token = granted == null ? 0 : granted;
        return granted != null;
    }

    /* Redisson does not know a valid-until, and believes until the unlock. */
    private void hold() throws InterruptedException {
        long grantedAt = now();
        int at = 8 + count * SIZE;
        notes.putLong(at + NAME, name);
        notes.putLong(at + GRANTED_AT, grantedAt);
        notes.putLong(at + VALID_UNTIL, Long.MAX_VALUE);
        notes.putLong(at + TOKEN, token);
        byte[] identity = "Java".getBytes();
        for (int i = 0; i < identity.length; i++) {
            notes.put(at + IDENTITY + i, identity[i]);
        }
        long counter = head.getLong((int) counterAt);
        Thread.sleep(ThreadLocalRandom.current().nextInt(20));
        head.putLong((int) counterAt, counter + 1);
        notes.putLong(at + IS_COUNTED, 1);
        long endedAt = now();
        notes.putLong(at + ENDED_AT, endedAt);
        notes.putLong(at + REPORTED_AT, endedAt);
        notes.putLong(at + END, leave());
        notes.putLong(0, ++count);
    }

    private long leave() {
        try {
            lock.unlock();
            return RELEASED;
        } catch (IllegalMonitorStateException error) {
            return LOST;
        } catch (Exception error) {
            return UNKNOWN;
        }
    }
}
