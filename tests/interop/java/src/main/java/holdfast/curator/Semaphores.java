/* Semaphores, with a fixed number of permits or with one that lies in a shared count. */
package holdfast.curator;

import holdfast.lines.Arguments;
import holdfast.lines.Lines;
import java.util.Collection;
import java.util.List;
import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.TimeUnit;
import java.util.stream.Collectors;
import org.apache.curator.framework.CuratorFramework;
import org.apache.curator.framework.recipes.locks.InterProcessSemaphoreV2;
import org.apache.curator.framework.recipes.locks.Lease;

/** The name is "PATH:PERMITS", or "PATH:COUNTPATH" with a shared_count that has been started. */
final class Semaphores implements Lines.Calls {
    private final CuratorFramework client;
    private final SharedCounts counts;
    private final Map<String, InterProcessSemaphoreV2> semaphores = new ConcurrentHashMap<>();
    private final Map<String, Lease> leases = new ConcurrentHashMap<>();

    Semaphores(CuratorFramework client, SharedCounts counts) {
        this.client = client;
        this.counts = counts;
    }

    InterProcessSemaphoreV2 semaphore(String name) {
        return semaphores.computeIfAbsent(name, key -> make(Name.parse(name)));
    }

    /* Leases go in and out by the names of their nodes; none come out if the time had run out. */
    @Override
    public Object call(String verb, String kind, String name, Arguments args) throws Exception {
        InterProcessSemaphoreV2 semaphore = semaphore(name);
        switch (verb) {
            case "acquire":
                return remember(name, acquire(semaphore, args.integer(0), args.number(1)));
            case "release":
                for (String node : args.texts(0)) {
                    semaphore.returnLease(forget(name, node));
                }
                return "";
            case "nodes":
                return String.join(" ", semaphore.getParticipantNodes());
            default:
                throw new IllegalArgumentException(verb);
        }
    }

    /* A wait below 0 has no end. */
    private static Collection<Lease> acquire(InterProcessSemaphoreV2 semaphore, int permits, long waitMs)
            throws Exception {
        return waitMs < 0
                ? semaphore.acquire(permits)
                : semaphore.acquire(permits, waitMs, TimeUnit.MILLISECONDS);
    }

    private String remember(String name, Collection<Lease> taken) {
        Collection<Lease> found = taken == null ? List.of() : taken;
        found.forEach(lease -> leases.put(name + " " + lease.getNodeName(), lease));
        return found.stream().map(Lease::getNodeName).collect(Collectors.joining(" "));
    }

    private Lease forget(String name, String node) {
        Lease lease = leases.remove(name + " " + node);
        if (lease == null) {
            throw new IllegalArgumentException("no lease is named " + node);
        }
        return lease;
    }

    private InterProcessSemaphoreV2 make(Name name) {
        return name.argument().startsWith("/")
                ? new InterProcessSemaphoreV2(client, name.path(), counts.started(name.argument()))
                : new InterProcessSemaphoreV2(client, name.path(), name.number());
    }
}
