/* All threads read-lock one lock, and write-lock it now and then. */
package holdfast.bench;

import java.util.SplittableRandom;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.stream.IntStream;

final class Shared {
    private static final int WRITE_PERCENT = 5;
    private static final int WRITER = -1;

    private final Library.SharedMutex mutex;

    /* How many readers are inside, or WRITER. */
    private final AtomicInteger inside = new AtomicInteger();

    private Shared(Library.SharedMutex mutex) {
        this.mutex = mutex;
    }

    static Answer run(Library library, int threads, double seconds, String name) throws Exception {
        Shared shared = new Shared(library.shared(name));
        var workers = IntStream.range(0, threads).mapToObj(i -> shared.new Worker(i)).toList();
        Crew.run(workers, seconds);
        Totals reads = new Totals();
        Totals writes = new Totals();
        for (Worker worker : workers) {
            reads.addAll(worker.reads);
            writes.addAll(worker.writes);
        }
        return new Answer()
                .add("operations", reads.count + writes.count)
                .add("reads", reads.count)
                .add("writes", writes.count)
                .add("seconds", seconds)
                .add("read_p50", reads.wait.percentile(50))
                .add("read_p99", reads.wait.percentile(99))
                .add("write_p50", writes.wait.percentile(50))
                .add("write_p99", writes.wait.percentile(99));
    }

    private static final class Totals {
        long count;
        final Histogram wait = new Histogram();

        void addAll(Totals other) {
            count += other.count;
            wait.addAll(other.wait);
        }
    }

    private final class Worker implements Crew.Worker {
        private final SplittableRandom random;
        private final Totals reads = new Totals();
        private final Totals writes = new Totals();

        Worker(int index) {
            random = new SplittableRandom(index);
        }

        @Override
        public void prepare() throws Exception {
            read();
        }

        /* A wait that is not over at the end counts until then. */
        @Override
        public void work(long startAt, long endAt) throws Exception {
            long before = System.nanoTime();
            while (before < endAt) {
                boolean writes = random.nextInt(100) < WRITE_PERCENT;
                long grantedAt = writes ? write() : read();
                long after = System.nanoTime();
                Totals totals = writes ? this.writes : reads;
                totals.wait.add(Math.min(grantedAt, endAt) - before);
                totals.count += after < endAt ? 1 : 0;
                before = after;
            }
        }

        private long read() throws Exception {
            mutex.read().lock();
            long grantedAt = System.nanoTime();
            if (inside.getAndIncrement() < 0) {
                throw new TwoHoldersException();
            }
            inside.getAndDecrement();
            mutex.read().unlock();
            return grantedAt;
        }

        private long write() throws Exception {
            mutex.write().lock();
            long grantedAt = System.nanoTime();
            if (!inside.compareAndSet(0, WRITER) || !inside.compareAndSet(WRITER, 0)) {
                throw new TwoHoldersException();
            }
            mutex.write().unlock();
            return grantedAt;
        }
    }
}
