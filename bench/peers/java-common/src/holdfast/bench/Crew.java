/* Runs workers side by side, each in its own thread, for a given time. */
package holdfast.bench;

import java.util.List;
import java.util.concurrent.CyclicBarrier;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.ExecutorCompletionService;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;

final class Crew {
    interface Worker {
        /* Runs the work once before the clock starts, so that connections are established. */
        void prepare() throws Exception;

        /* Works until the end. Only what is done before the end counts. */
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
