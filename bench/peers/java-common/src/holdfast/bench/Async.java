/* Many locks in flight: each is a chain of completions, all started by one thread. */
package holdfast.bench;

import java.util.concurrent.CompletableFuture;
import java.util.stream.IntStream;

final class Async {
    private final AsyncMutex mutex;
    private final CompletableFuture<Void> ended = new CompletableFuture<>();
    private final Histogram latency = new Histogram();
    private long pairs;
    private long endAt;
    private long before;

    private Async(AsyncMutex mutex) {
        this.mutex = mutex;
    }

    static Answer run(Library library, int count, double seconds, String name) throws Exception {
        var chains =
                IntStream.range(0, count).mapToObj(i -> new Async(library.async(name + ":" + i, i + 1))).toList();
        for (Async chain : chains) {
            chain.prepare().get();
        }
        long endAt = System.nanoTime() + (long) (seconds * 1e9);
        chains.forEach(chain -> chain.start(endAt));
        Histogram latency = new Histogram();
        long pairs = 0;
        for (Async chain : chains) {
            chain.ended.get();
            latency.addAll(chain.latency);
            pairs += chain.pairs;
        }
        return Own.answer(pairs, seconds, latency);
    }

    private CompletableFuture<Void> prepare() {
        return mutex.lock().thenCompose(locked -> mutex.unlock()).toCompletableFuture();
    }

    private void start(long endAt) {
        this.endAt = endAt;
        before = System.nanoTime();
        lock();
    }

    private void lock() {
        mutex.lock().whenComplete((locked, error) -> {
            if (error != null) {
                ended.completeExceptionally(error);
            } else {
                unlock();
            }
        });
    }

    private void unlock() {
        mutex.unlock().whenComplete((unlocked, error) -> {
            if (error != null) {
                ended.completeExceptionally(error);
            } else {
                count();
            }
        });
    }

    private void count() {
        long after = System.nanoTime();
        if (after >= endAt) {
            ended.complete(null);
            return;
        }
        latency.add(after - before);
        pairs++;
        before = after;
        lock();
    }
}
