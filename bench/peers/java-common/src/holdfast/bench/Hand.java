/* All threads, and perhaps those of other processes, compete for one lock. */
package holdfast.bench;

import java.util.concurrent.atomic.AtomicLong;
import java.util.stream.IntStream;

final class Hand {
    private static final int IDENTITIES = 1000;

    private final Mutex mutex;
    private final Board board;
    private final AtomicLong tickets = new AtomicLong();

    /* The ticket of the last grant in this process. Only the holder of the lock touches it. */
    private long lastTicket = -1;

    private Hand(Mutex mutex, Board board) {
        this.mutex = mutex;
        this.board = board;
    }

    static Answer plain(Library library, Board board, int threads, double seconds, String name) throws Exception {
        Hand hand = new Hand(library.plain(name), board);
        return hand.run(threads, seconds).answer(seconds);
    }

    static Answer fair(Library library, Board board, int threads, double seconds, String name) throws Exception {
        Hand hand = new Hand(library.fair(name), board);
        Totals totals = hand.run(threads, seconds);
        return totals.answer(seconds).add("order_kept", totals.orderKept());
    }

    private Totals run(int threads, double seconds) throws Exception {
        long process = ProcessHandle.current().pid() * IDENTITIES;
        var workers = IntStream.range(0, threads).mapToObj(i -> new Worker(process + i)).toList();
        Crew.run(workers, seconds);
        Totals totals = new Totals();
        for (Worker worker : workers) {
            totals.addAll(worker.totals);
        }
        return totals;
    }

    private static final class Totals {
        long grants;
        long changes;
        long inOrder;
        final Histogram gap = new Histogram();
        final Histogram wait = new Histogram();

        void addAll(Totals other) {
            grants += other.grants;
            changes += other.changes;
            inOrder += other.inOrder;
            gap.addAll(other.gap);
            wait.addAll(other.wait);
        }

        Double orderKept() {
            return grants == 0 ? null : (double) inOrder / grants;
        }

        Answer answer(double seconds) {
            return new Answer()
                    .add("grants", grants)
                    .add("changes", changes)
                    .add("seconds", seconds)
                    .add("gap_p50", gap.percentile(50))
                    .add("gap_p99", gap.percentile(99))
                    .add("wait_p50", wait.percentile(50))
                    .add("wait_max", wait.max());
        }
    }

    private final class Worker implements Crew.Worker {
        private final long me;
        private final Totals totals = new Totals();

        Worker(long me) {
            this.me = me;
        }

        @Override
        public void prepare() throws Exception {
            turn(0, 0);
        }

        /* A wait that is not over at the end counts until then. */
        @Override
        public void work(long startAt, long endAt) throws Exception {
            for (long askedAt = System.nanoTime(); askedAt < endAt; askedAt = System.nanoTime()) {
                long grantedAt = turn(startAt, endAt);
                totals.wait.add(Math.min(grantedAt, endAt) - askedAt);
            }
        }

        /* Takes the lock once and returns when it was granted. */
        private long turn(long startAt, long endAt) throws Exception {
            long ticket = tickets.getAndIncrement();
            mutex.lock();
            long grantedAt = System.nanoTime();
            board.checkFree(grantedAt);
            if (grantedAt < endAt) {
                count(ticket, grantedAt, startAt);
            }
            lastTicket = ticket;
            board.enter(me);
            board.leave(me, System.nanoTime());
            mutex.unlock();
            return grantedAt;
        }

        /* A release before the start says nothing about the time between two holders. */
        private void count(long ticket, long grantedAt, long startAt) {
            totals.grants++;
            totals.inOrder += ticket > lastTicket ? 1 : 0;
            if (board.holder() != me && board.releasedAt() >= startAt) {
                totals.changes++;
                totals.gap.add(grantedAt - board.releasedAt());
            }
        }
    }
}
