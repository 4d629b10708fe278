/* Runs workers side by side, each in its thread, from one moment to another. */
package holdfast.bench;

import java.util.List;
import java.util.concurrent.CyclicBarrier;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.ExecutorCompletionService;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;

final class Crew {
    interface Worker {
        /* What the clock must not see: once through the work, so that connections are there. */
        void prepare() throws Exception;

        /* Works until the end; only what is done before it counts. */
        void work(long startAt, long endAt) throws Exception;
    }

    private final List<? extends Worker> workers;
    private final CyclicBarrier start;
    private final long durationNs;
    private long startAt;

    private Crew(List<? extends Worker> workers, double seconds) {
        this.workers = workers;
        durationNs = (long) (seconds * 1e9);
        start = new CyclicBarrier(workers.size(), () -> startAt = System.nanoTime());
    }

    /* Throws what the first failed worker threw. Others may then be blocked for ever. */
    static void run(List<? extends Worker> workers, double seconds) throws Exception {
        new Crew(workers, seconds).run();
    }

    private void run() throws Exception {
        ExecutorService threads = Executors.newFixedThreadPool(workers.size());
        ExecutorCompletionService<Void> ended = new ExecutorCompletionService<>(threads);
        for (Worker worker : workers) {
            ended.submit(() -> run(worker));
        }
        for (int i = 0; i < workers.size(); i++) {
            try {
                ended.take().get();
            } catch (ExecutionException failed) {
                throw failed.getCause() instanceof Exception cause ? cause : failed;
            }
        }
        threads.shutdown();
    }

    private Void run(Worker worker) throws Exception {
        worker.prepare();
        start.await();
        worker.work(startAt, startAt + durationNs);
        return null;
    }
}
