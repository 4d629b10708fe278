/* The events that listeners received from Curator, for tests to read and wait for. */
package holdfast.curator;

import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;
import org.apache.curator.framework.CuratorFramework;

final class Events {
    /* The events of one object in their order, each a word. */
    static final class History {
        private final List<String> words = new ArrayList<>();

        synchronized void add(String word) {
            words.add(word);
            notifyAll();
        }

        /* Whether this many events have happened since the start, or do within the time. */
        synchronized boolean await(long count, long waitMs) throws InterruptedException {
            long endsAt = System.nanoTime() + waitMs * 1_000_000;
            while (words.size() < count) {
                long leftMs = (endsAt - System.nanoTime()) / 1_000_000;
                if (leftMs <= 0) {
                    return false;
                }
                wait(leftMs);
            }
            return true;
        }

        @Override
        public synchronized String toString() {
            return String.join(" ", words);
        }
    }

    private final Map<String, History> histories = new ConcurrentHashMap<>();

    History of(String kind, String name) {
        return histories.computeIfAbsent(kind + " " + name, key -> new History());
    }

    /* The states of the connection are the events of "client any". */
    void listenTo(CuratorFramework client) {
        History states = of("client", "any");
        client.getConnectionStateListenable()
                .addListener((source, state) -> states.add(state.name().toLowerCase()));
    }
}
