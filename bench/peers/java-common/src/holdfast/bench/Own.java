/* Each thread locks and unlocks a lock of its own. */
package holdfast.bench;

import java.util.stream.IntStream;

final class Own implements Crew.Worker {
    private final Mutex mutex;
    private final Histogram latency = new Histogram();
    private long pairs;

    private Own(Mutex mutex) {
        this.mutex = mutex;
    }

    static Answer run(Library library, int threads, double seconds, String name) throws Exception {
        var workers = IntStream.range(0, threads).mapToObj(i -> new Own(library.plain(name + ":" + i))).toList();
        Crew.run(workers, seconds);
        Histogram latency = new Histogram();
        long pairs = 0;
        for (Own worker : workers) {
            latency.addAll(worker.latency);
            pairs += worker.pairs;
        }
        return answer(pairs, seconds, latency);
    }

    static Answer answer(long pairs, double seconds, Histogram latency) {
        return new Answer()
                .add("pairs", pairs)
                .add("seconds", seconds)
                .add("p50", latency.percentile(50))
                .add("p99", latency.percentile(99))
                .add("p999", latency.percentile(99.9));
    }

    @Override
    public void prepare() throws Exception {
        mutex.lock();
        mutex.unlock();
    }

    @Override
    public void work(long startAt, long endAt) throws Exception {
        long before = System.nanoTime();
        while (before < endAt) {
            mutex.lock();
            mutex.unlock();
            long after = System.nanoTime();
            if (after < endAt) {
                latency.add(after - before);
                pairs++;
            }
            before = after;
        }
    }
}
