/* Leader selectors, each of which leads until it is asked to yield. */
package holdfast.curator;

import holdfast.lines.Arguments;
import holdfast.lines.Lines;
import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.Semaphore;
import java.util.stream.Collectors;
import org.apache.curator.framework.CuratorFramework;
import org.apache.curator.framework.recipes.leader.LeaderSelector;
import org.apache.curator.framework.recipes.leader.LeaderSelectorListenerAdapter;
import org.apache.curator.framework.recipes.leader.Participant;

/** Events are "leader" and "over", in turns. An object is one participant; "#TAG" makes more of them. */
final class Selectors implements Lines.Calls {
    private final CuratorFramework client;
    private final Events events;
    private final Map<String, Candidate> candidates = new ConcurrentHashMap<>();

    Selectors(CuratorFramework client, Events events) {
        this.client = client;
        this.events = events;
    }

    @Override
    public Object call(String verb, String kind, String name, Arguments args) throws Exception {
        if (verb.equals("start")) {
            start(name, args);
            return "";
        }
        Candidate candidate = started(name);
        LeaderSelector selector = candidate.selector;
        switch (verb) {
            case "leader":
                return selector.hasLeadership();
            case "yield":
                candidate.yieldOnce();
                return "";
            case "requeue":
                return selector.requeue();
            case "interrupt":
                selector.interruptLeadership();
                return "";
            case "who":
                return selector.getLeader().getId();
            case "ids":
                return selector.getParticipants().stream()
                        .map(Participant::getId)
                        .collect(Collectors.joining(" "));
            case "close":
                selector.close();
                candidates.remove(name);
                return "";
            default:
                throw new IllegalArgumentException(verb);
        }
    }

    /* "start ID" runs once; "start ID again" queues again whenever its turn is over. */
    private void start(String name, Arguments args) {
        Candidate candidate = new Candidate(client, Name.withoutTag(name), events.of("selector", name));
        candidate.selector.setId(args.text(0));
        if (args.texts(1).contains("again")) {
            candidate.selector.autoRequeue();
        }
        candidates.put(name, candidate);
        candidate.selector.start();
    }

    private Candidate started(String name) {
        Candidate candidate = candidates.get(name);
        if (candidate == null) {
            throw new IllegalStateException("the selector at " + name + " was not started");
        }
        return candidate;
    }

    private static final class Candidate extends LeaderSelectorListenerAdapter {
        private final LeaderSelector selector;
        private final Events.History history;
        private final Semaphore yields = new Semaphore(0);

        Candidate(CuratorFramework client, String path, Events.History history) {
            this.history = history;
            selector = new LeaderSelector(client, path, this);
        }

        @Override
        public void takeLeadership(CuratorFramework client) throws InterruptedException {
            history.add("leader");
            try {
                yields.acquire();
            } finally {
                history.add("over");
            }
        }

        void yieldOnce() {
            if (!selector.hasLeadership()) {
                throw new IllegalStateException("not the leader");
            }
            yields.release();
        }
    }
}
