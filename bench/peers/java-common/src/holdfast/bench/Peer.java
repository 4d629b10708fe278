/* The process that the harness drives line by line. */
package holdfast.bench;

import java.io.BufferedReader;
import java.io.IOException;
import java.io.InputStream;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.nio.charset.StandardCharsets;
import java.util.Properties;
import java.util.Set;

final class Peer {
    interface Connector {
        Library connect(Arguments arguments) throws Exception;
    }

    private final Library library;
    private final Board board;
    private final PrintStream output;

    private Peer(Library library, Board board, PrintStream output) {
        this.library = library;
        this.board = board;
        this.output = output;
    }

    /* Exits without closing anything: a failed command may have left threads that never end. */
    static void main(String[] words, Set<String> options, Connector connector) {
        PrintStream output = System.out;
        System.setOut(System.err);
        try {
            Arguments arguments = new Arguments(words, options);
            Library library = connector.connect(arguments);
            if (arguments.starts()) {
                start(library, arguments.name(), output);
            } else {
                new Peer(library, new Board(arguments.board()), output).obey();
            }
            Runtime.getRuntime().halt(0);
        } catch (Exception error) {
            error.printStackTrace();
            say(output, new Answer().add("error", text(error)).toString());
            Runtime.getRuntime().halt(1);
        }
    }

    /* The version in the Maven metadata of a library's jar. */
    static String version(Class<?> library, String group, String artifact) {
        Properties properties = new Properties();
        try (InputStream file =
                library.getResourceAsStream("/META-INF/maven/" + group + "/" + artifact + "/pom.properties")) {
            properties.load(file);
        } catch (IOException error) {
            throw new IllegalStateException(error);
        }
        return properties.getProperty("version");
    }

    private static void start(Library library, String name, PrintStream output) throws Exception {
        library.plain(name).lock();
        say(output, "held");
        System.in.read();
    }

    private void obey() throws Exception {
        say(output, new Answer()
                .add("ready", true)
                .add("peer", library.name())
                .add("version", library.version())
                .toString());
        BufferedReader input = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        for (String line = input.readLine(); line != null && !line.equals("quit"); line = input.readLine()) {
            library.settle();
            say(output, answer(line.split(" ")).toString());
        }
    }

    private Answer answer(String[] words) throws Exception {
        try {
            return words[0].equals("warm")
                    ? warm(Double.parseDouble(words[1]), words[2])
                    : call(words[0], Integer.parseInt(words[1]), Double.parseDouble(words[2]), words[3]);
        } catch (UnsupportedOperationException why) {
            return new Answer().add("unsupported", why.getMessage());
        }
    }

    private Answer call(String verb, int count, double seconds, String name) throws Exception {
        switch (verb) {
            case "own":
                return Own.run(library, count, seconds, name);
            case "async":
                return Async.run(library, count, seconds, name);
            case "hand":
                return Hand.plain(library, board, count, seconds, name);
            case "fair":
                return Hand.fair(library, board, count, seconds, name);
            case "rw":
                return Shared.run(library, count, seconds, name);
            case "held":
                return Held.run(library, count, seconds, name,
                        () -> say(output, new Answer().add("keeping", true).toString()));
            default:
                throw new IllegalArgumentException("no command named " + verb);
        }
    }

    private Answer warm(double seconds, String name) throws Exception {
        Own.run(library, 1, seconds / 2, name);
        Own.run(library, 8, seconds / 2, name);
        return new Answer();
    }

    private static void say(PrintStream output, String line) {
        output.println(line);
        output.flush();
    }

    private static String text(Exception error) {
        return error instanceof TwoHoldersException ? error.getMessage() : error.toString();
    }
}
