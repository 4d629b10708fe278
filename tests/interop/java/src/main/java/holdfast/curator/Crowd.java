/* How many are inside at once: numbers in a file that all processes have in their memory. */
package holdfast.curator;

import java.io.IOException;
import java.lang.invoke.MethodHandles;
import java.lang.invoke.VarHandle;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.channels.FileChannel;
import java.nio.file.Path;
import java.nio.file.StandardOpenOption;

/**
 * The file holds three integers of four bytes in the machine's order: how many are inside now, how many
 * visits there were, and on which side the latest visitor was, where 2 is ours.
 */
final class Crowd {
    private static final VarHandle NUMBER =
            MethodHandles.byteBufferViewVarHandle(int[].class, ByteOrder.nativeOrder());

    private static final int INSIDE = 0;
    private static final int VISITS = 4;
    private static final int SIDE = 8;
    private static final int SIZE = 12;

    private static final int JAVA = 2;

    private final Guards guards;

    Crowd(Guards guards) {
        this.guards = guards;
    }

    /**
     * Goes in and out once per round, and stays on either side for a random time up to lingerUs. Returns
     * how many times it was inside, and how many were inside at most when it came.
     */
    String visit(String kind, String name, String file, long rounds, long waitMs, long lingerUs)
            throws Exception {
        Guards.Guard guard = guards.of(kind, name);
        ByteBuffer numbers = map(Path.of(file));
        long done = 0;
        int most = 0;
        for (long i = 0; i < rounds; i++) {
            Guards.Leave leave = guard.enter(Guards.forWait(waitMs));
            if (leave != null) {
                most = Math.max(most, stay(numbers, lingerUs));
                done++;
                leave.run();
            }
            Guards.linger(lingerUs);
        }
        return done + " " + most;
    }

    private static int stay(ByteBuffer numbers, long lingerUs) {
        int inside = (int) NUMBER.getAndAdd(numbers, INSIDE, 1) + 1;
        NUMBER.getAndAdd(numbers, VISITS, 1);
        NUMBER.setVolatile(numbers, SIDE, JAVA);
        Guards.linger(lingerUs);
        int left = (int) NUMBER.getAndAdd(numbers, INSIDE, -1);
        return Math.max(inside, left);
    }

    private static ByteBuffer map(Path path) throws IOException {
        try (FileChannel file =
                FileChannel.open(path, StandardOpenOption.READ, StandardOpenOption.WRITE)) {
            return file.map(FileChannel.MapMode.READ_WRITE, 0, SIZE).order(ByteOrder.nativeOrder());
        }
    }
}
