/* The file in which the holder of a contended lock leaves its mark for the next one, in whatever process. */
package holdfast.bench;

import java.io.IOException;
import java.lang.invoke.MethodHandles;
import java.lang.invoke.VarHandle;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.channels.FileChannel;
import java.nio.file.Path;
import java.nio.file.StandardOpenOption;

final class Board {
    private static final VarHandle LONG =
            MethodHandles.byteBufferViewVarHandle(long[].class, ByteOrder.nativeOrder());
    private static final int HOLDER = 0;
    private static final int RELEASED_AT = 8;
    private static final int SIZE = 16;

    private final ByteBuffer memory;

    Board(String path) throws IOException {
        try (FileChannel file =
                FileChannel.open(Path.of(path), StandardOpenOption.READ, StandardOpenOption.WRITE)) {
            memory = file.map(FileChannel.MapMode.READ_WRITE, 0, SIZE);
        }
    }

    /* The present or last holder of the lock; 0 before there was one. */
    long holder() {
        return get(HOLDER);
    }

    /* When the last holder released it, by System.nanoTime (CLOCK_MONOTONIC); 0 while the lock is held. */
    long releasedAt() {
        return get(RELEASED_AT);
    }

    /* The last holder must have released the lock before the next one was granted. */
    void checkFree(long grantedAt) throws TwoHoldersException {
        if (holder() != 0 && (releasedAt() == 0 || releasedAt() > grantedAt)) {
            throw new TwoHoldersException();
        }
    }

    void enter(long who) {
        set(HOLDER, who);
        set(RELEASED_AT, 0);
    }

    void leave(long who, long now) throws TwoHoldersException {
        if (holder() != who || releasedAt() != 0) {
            throw new TwoHoldersException();
        }
        set(RELEASED_AT, now);
    }

    private long get(int offset) {
        return (long) LONG.getAcquire(memory, offset);
    }

    private void set(int offset, long value) {
        LONG.setRelease(memory, offset, value);
    }
}
