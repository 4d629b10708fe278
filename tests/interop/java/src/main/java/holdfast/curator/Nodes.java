/* Nodes themselves, to read and to change by hand. */
package holdfast.curator;

import holdfast.lines.Arguments;
import holdfast.lines.Lines;
import java.nio.charset.StandardCharsets;
import java.util.HexFormat;
import java.util.List;
import java.util.stream.Collectors;
import org.apache.curator.framework.CuratorFramework;
import org.apache.curator.framework.recipes.locks.Revoker;
import org.apache.zookeeper.CreateMode;
import org.apache.zookeeper.data.Stat;

final class Nodes implements Lines.Calls {
    private final CuratorFramework client;

    Nodes(CuratorFramework client) {
        this.client = client;
    }

    @Override
    public Object call(String verb, String kind, String path, Arguments args) throws Exception {
        switch (verb) {
            case "create":
                CreateMode mode = CreateMode.valueOf(args.text(0).toUpperCase());
                return client.create().withMode(mode).forPath(path, data(args.texts(1)));
            case "set":
                return client.setData().forPath(path, data(args.texts(0))).getVersion();
            case "get":
                return new String(client.getData().forPath(path), StandardCharsets.UTF_8);
            case "hex":
                return HexFormat.of().formatHex(client.getData().forPath(path));
            case "children":
                return client.getChildren().forPath(path).stream().sorted().collect(Collectors.joining(" "));
            case "exists":
                return client.checkExists().forPath(path) != null;
            case "stat":
                return describe(client.checkExists().forPath(path));
            case "delete":
                client.delete().forPath(path);
                return "";
            case "revoke":
                Revoker.attemptRevoke(client, path);
                return "";
            default:
                throw new IllegalArgumentException(verb);
        }
    }

    private static byte[] data(List<String> words) {
        return String.join(" ", words).getBytes(StandardCharsets.UTF_8);
    }

    /* "CZXID OWNER VERSION", or nothing for no node. */
    private static String describe(Stat stat) {
        return stat == null ? "" : stat.getCzxid() + " " + stat.getEphemeralOwner() + " " + stat.getVersion();
    }
}
