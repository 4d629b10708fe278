/* How a test and a Java process talk: lines in, and an answer out for each. */
package holdfast.lines;

import java.io.BufferedReader;
import java.io.IOException;
import java.io.InputStreamReader;
import java.nio.charset.StandardCharsets;
import java.util.HashMap;
import java.util.Map;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.TimeUnit;
import java.util.function.Supplier;

/**
 * A line in is "THREAD VERB KIND NAME ARGUMENT…". Each thread does its own lines in order, so one that
 * blocks does not block the others. When the call has ended the answer is "THREAD ok MS VALUE" or
 * "THREAD error MS EXCEPTION MESSAGE", where MS is how long it took. The process ends with its input.
 */
public final class Lines {
    /** What a thread does for a line; the answer's text is the result's. */
    public interface Calls {
        Object call(String verb, String kind, String name, Arguments args) throws Exception;
    }

    private Lines() {}

    /** Says that the process is ready, and who it is; then obeys. Every thread has calls of its own. */
    public static void serve(String identity, Supplier<Calls> newCalls) throws IOException {
        say("ready ok 0 " + identity);
        obey(newCalls);
        Runtime.getRuntime().halt(0);
    }

    private static void obey(Supplier<Calls> newCalls) throws IOException {
        BufferedReader input = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        Map<String, Worker> workers = new HashMap<>();
        for (String line = input.readLine(); line != null; line = input.readLine()) {
            String[] words = line.split(" ");
            workers.computeIfAbsent(words[0], name -> new Worker(newCalls.get())).submit(words);
        }
    }

    /* One line at a time, whole. */
    private static synchronized void say(String line) {
        System.out.println(line);
        System.out.flush();
    }

    /* One thread, which does the lines that name it. */
    private static final class Worker {
        private final ExecutorService thread = Executors.newSingleThreadExecutor();
        private final Calls calls;

        Worker(Calls calls) {
            this.calls = calls;
        }

        void submit(String[] words) {
            thread.submit(() -> answer(words));
        }

        private void answer(String[] words) {
            long start = System.nanoTime();
            String outcome;
            String text;
            try {
                text = String.valueOf(calls.call(words[1], words[2], words[3], new Arguments(words)));
                outcome = "ok";
            } catch (Throwable error) {
                text = error.getClass().getSimpleName() + " " + error.getMessage();
                outcome = "error";
            }
            long took = TimeUnit.NANOSECONDS.toMillis(System.nanoTime() - start);
            say(words[0] + " " + outcome + " " + took + " " + text.replaceAll("\\s+", " "));
        }
    }
}
