/* Leader latches. */
package holdfast.curator;

import holdfast.lines.Arguments;
import holdfast.lines.Lines;
import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.TimeUnit;
import java.util.stream.Collectors;
import org.apache.curator.framework.CuratorFramework;
import org.apache.curator.framework.recipes.leader.LeaderLatch;
import org.apache.curator.framework.recipes.leader.LeaderLatchListener;
import org.apache.curator.framework.recipes.leader.Participant;

/** Events are "leader" and "lost". An object is one participant; "#TAG" makes more of them. */
final class Latches implements Lines.Calls {
    private final CuratorFramework client;
    private final Events events;
    private final Map<String, LeaderLatch> latches = new ConcurrentHashMap<>();

    Latches(CuratorFramework client, Events events) {
        this.client = client;
        this.events = events;
    }

    @Override
    public Object call(String verb, String kind, String name, Arguments args) throws Exception {
        if (verb.equals("start")) {
            start(name, args);
            return "";
        }
        LeaderLatch latch = started(name);
        switch (verb) {
            case "leader":
                return latch.hasLeadership();
            case "await":
                return latch.await(args.number(0), TimeUnit.MILLISECONDS);
            case "who":
                return latch.getLeader().getId();
            case "ids":
                return latch.getParticipants().stream()
                        .map(Participant::getId)
                        .collect(Collectors.joining(" "));
            case "node":
                return latch.getOurPath();
            case "token":
                return client.checkExists().forPath(latch.getOurPath()).getCzxid();
            case "close":
                latch.close();
                latches.remove(name);
                return "";
            default:
                throw new IllegalArgumentException(verb);
        }
    }

    /* The id may be left out. */
    private void start(String name, Arguments args) throws Exception {
        String id = String.join(" ", args.texts(0));
        LeaderLatch latch = new LeaderLatch(client, Name.withoutTag(name), id);
        Events.History history = events.of("latch", name);
        latch.addListener(new LeaderLatchListener() {
            @Override
            public void isLeader() {
                history.add("leader");
            }

            @Override
            public void notLeader() {
                history.add("lost");
            }
        });
        latches.put(name, latch);
        latch.start();
    }

    private LeaderLatch started(String name) {
        LeaderLatch latch = latches.get(name);
        if (latch == null) {
            throw new IllegalStateException("the latch at " + name + " was not started");
        }
        return latch;
    }
}
