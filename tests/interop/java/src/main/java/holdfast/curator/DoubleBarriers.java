/* Barriers that a number of members pass together, on the way in and on the way out. */
package holdfast.curator;

import holdfast.lines.Arguments;
import holdfast.lines.Lines;
import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.TimeUnit;
import org.apache.curator.framework.CuratorFramework;
import org.apache.curator.framework.recipes.barriers.DistributedDoubleBarrier;

/** The name is "PATH:MEMBERS". An object is one member; "#TAG" makes more of them in one process. */
final class DoubleBarriers implements Lines.Calls {
    private final CuratorFramework client;
    private final Map<String, DistributedDoubleBarrier> members = new ConcurrentHashMap<>();

    DoubleBarriers(CuratorFramework client) {
        this.client = client;
    }

    /* A wait below 0 has no end. */
    @Override
    public Object call(String verb, String kind, String name, Arguments args) throws Exception {
        DistributedDoubleBarrier member = members.computeIfAbsent(name, key -> make(Name.parse(name)));
        long waitMs = args.number(0) < 0 ? Integer.MAX_VALUE : args.number(0);
        switch (verb) {
            case "enter":
                return member.enter(waitMs, TimeUnit.MILLISECONDS);
            case "leave":
                return member.leave(waitMs, TimeUnit.MILLISECONDS);
            default:
                throw new IllegalArgumentException(verb);
        }
    }

    private DistributedDoubleBarrier make(Name name) {
        return new DistributedDoubleBarrier(client, name.path(), name.number());
    }
}
