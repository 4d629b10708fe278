/* Numbers that all clients see. */
package holdfast.curator;

import holdfast.lines.Arguments;
import holdfast.lines.Lines;
import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;
import org.apache.curator.framework.CuratorFramework;
import org.apache.curator.framework.recipes.shared.SharedCount;
import org.apache.curator.framework.recipes.shared.SharedCountListener;
import org.apache.curator.framework.recipes.shared.SharedCountReader;
import org.apache.curator.framework.state.ConnectionState;

/** Its events are the numbers that it was notified of. */
final class SharedCounts implements Lines.Calls {
    private final CuratorFramework client;
    private final Events events;
    private final Map<String, SharedCount> counts = new ConcurrentHashMap<>();

    SharedCounts(CuratorFramework client, Events events) {
        this.client = client;
        this.events = events;
    }

    SharedCount started(String name) {
        SharedCount count = counts.get(name);
        if (count == null) {
            throw new IllegalStateException("the count at " + name + " was not started");
        }
        return count;
    }

    /* What get answers is what Curator knows, not always what is on the server by now. */
    @Override
    public Object call(String verb, String kind, String name, Arguments args) throws Exception {
        switch (verb) {
            case "start":
                start(name, args.integer(0));
                return "";
            case "get":
                return started(name).getCount();
            case "version":
                return started(name).getVersionedValue().getVersion();
            case "set":
                started(name).setCount(args.integer(0));
                return "";
            case "try":
                return started(name).trySetCount(started(name).getVersionedValue(), args.integer(0));
            case "close":
                started(name).close();
                counts.remove(name);
                return "";
            default:
                throw new IllegalArgumentException(verb);
        }
    }

    private void start(String name, int seed) throws Exception {
        SharedCount count = new SharedCount(client, Name.withoutTag(name), seed);
        count.addListener(new Listener(events.of("shared_count", name)));
        count.start();
        counts.put(name, count);
    }

    private record Listener(Events.History history) implements SharedCountListener {
        @Override
        public void countHasChanged(SharedCountReader count, int number) {
            history.add(Integer.toString(number));
        }

        @Override
        public void stateChanged(CuratorFramework source, ConnectionState state) {}
    }
}
