/* What the peer does for a line, whichever thread asks. */
package holdfast.curator;

import holdfast.lines.Arguments;
import holdfast.lines.Lines;
import java.util.HashMap;
import java.util.Map;
import org.apache.curator.framework.CuratorFramework;

/**
 * An object is made when a line names it first, and stays. Verbs of every kind:
 * <ul>
 * <li>events: the events that its listeners received, in order
 * <li>await_events COUNT WAIT_MS: whether they received at least COUNT events
 * <li>count KEY ROUNDS WAIT_MS [PAUSE_MS]: see Counter
 * <li>crowd FILE ROUNDS WAIT_MS LINGER_US: see Crowd
 * </ul>
 */
final class Calls implements Lines.Calls {
    private final Map<String, Lines.Calls> kinds = new HashMap<>();
    private final Events events;
    private final Counter counter;
    private final Crowd crowd;

    Calls(CuratorFramework client, String servers, Events events) {
        this.events = events;
        Locks locks = new Locks(client, events);
        SharedCounts counts = new SharedCounts(client, events);
        Semaphores semaphores = new Semaphores(client, counts);
        Guards guards = new Guards(locks, semaphores);
        counter = new Counter(client, guards);
        crowd = new Crowd(guards);
        for (String kind : Locks.KINDS) {
            kinds.put(kind, locks);
        }
        kinds.put("semaphore", semaphores);
        kinds.put("shared_count", counts);
        kinds.put("barrier", new Barriers(client));
        kinds.put("double_barrier", new DoubleBarriers(client));
        kinds.put("latch", new Latches(client, events));
        kinds.put("selector", new Selectors(client, events));
        kinds.put("node", new Nodes(client));
        kinds.put("client", new Session(client, servers));
    }

    @Override
    public Object call(String verb, String kind, String name, Arguments args) throws Exception {
        switch (verb) {
            case "supports":
                return kinds.containsKey(kind);
            case "events":
                return events.of(kind, name);
            case "await_events":
                return events.of(kind, name).await(args.number(0), args.number(1));
            case "count":
                return counter.count(
                        kind, name, args.text(0), args.number(1), args.number(2), pauseMs(args));
            case "crowd":
                return crowd.visit(
                        kind, name, args.text(0), args.number(1), args.number(2), args.number(3));
            default:
                return family(kind).call(verb, kind, name, args);
        }
    }

    /* May be left out. */
    private static long pauseMs(Arguments args) {
        return args.texts(3).isEmpty() ? 0 : args.number(3);
    }

    private Lines.Calls family(String kind) {
        Lines.Calls family = kinds.get(kind);
        if (family == null) {
            throw new IllegalArgumentException("no kind is named " + kind);
        }
        return family;
    }
}
