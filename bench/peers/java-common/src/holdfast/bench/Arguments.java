/* The command line: [OPTION VALUE]... [--start] URL BOARD, with the name of a lock for BOARD after --start. */
package holdfast.bench;

import java.util.HashMap;
import java.util.Map;
import java.util.Set;

final class Arguments {
    private final Map<String, String> options = new HashMap<>();
    private final boolean starts;
    private final String url;
    private final String last;

    Arguments(String[] words, Set<String> known) {
        int i = 0;
        while (i + 1 < words.length && known.contains(words[i])) {
            options.put(words[i], words[i + 1]);
            i += 2;
        }
        starts = i < words.length && words[i].equals("--start");
        i += starts ? 1 : 0;
        if (i + 2 != words.length) {
            throw new IllegalArgumentException("bad command line: " + String.join(" ", words));
        }
        url = words[i];
        last = words[i + 1];
    }

    String option(String name, String otherwise) {
        return options.getOrDefault(name, otherwise);
    }

    /* Whether only the start is measured. */
    boolean starts() {
        return starts;
    }

    String url() {
        return url;
    }

    String board() {
        return last;
    }

    String name() {
        return last;
    }
}
