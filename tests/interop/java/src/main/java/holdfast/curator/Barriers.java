/* Barriers that hold all clients up until one removes them. */
package holdfast.curator;

import holdfast.lines.Arguments;
import holdfast.lines.Lines;
import java.util.concurrent.TimeUnit;
import org.apache.curator.framework.CuratorFramework;
import org.apache.curator.framework.recipes.barriers.DistributedBarrier;

/** An object that one thread waits on cannot be removed by another, so every call has its own. */
final class Barriers implements Lines.Calls {
    private final CuratorFramework client;

    Barriers(CuratorFramework client) {
        this.client = client;
    }

    @Override
    public Object call(String verb, String kind, String name, Arguments args) throws Exception {
        DistributedBarrier barrier = new DistributedBarrier(client, name);
        switch (verb) {
            case "set":
                barrier.setBarrier();
                return "";
            case "remove":
                barrier.removeBarrier();
                return "";
            case "await":
                return await(barrier, args.number(0));
            default:
                throw new IllegalArgumentException(verb);
        }
    }

    /* A wait below 0 has no end. */
    private static boolean await(DistributedBarrier barrier, long waitMs) throws Exception {
        if (waitMs < 0) {
            barrier.waitOnBarrier();
            return true;
        }
        return barrier.waitOnBarrier(waitMs, TimeUnit.MILLISECONDS);
    }
}
