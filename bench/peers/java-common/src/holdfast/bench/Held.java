/* Takes many locks and lets the library keep them alive. */
package holdfast.bench;

import com.sun.management.OperatingSystemMXBean;
import java.io.IOException;
import java.lang.management.ManagementFactory;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import java.util.stream.IntStream;

final class Held {
    private static final OperatingSystemMXBean PROCESS =
            (OperatingSystemMXBean) ManagementFactory.getOperatingSystemMXBean();

    private Held() {}

    /* The runnable is called when all locks are held. */
    static Answer run(Library library, int count, double seconds, String name, Runnable keeping) throws Exception {
        long heap = usedHeap();
        List<Mutex> mutexes = IntStream.range(0, count).mapToObj(i -> library.plain(name + ":" + i)).toList();
        long before = System.nanoTime();
        for (Mutex mutex : mutexes) {
            mutex.lock();
        }
        double takeSeconds = (System.nanoTime() - before) / 1e9;
        heap = usedHeap() - heap;

        keeping.run();
        long cpu = PROCESS.getProcessCpuTime();
        before = System.nanoTime();
        Thread.sleep((long) (seconds * 1e3));
        double keepSeconds = (System.nanoTime() - before) / 1e9;
        cpu = PROCESS.getProcessCpuTime() - cpu;

        long rss = residentKb();
        long lost = release(mutexes);
        return new Answer()
                .add("held", count)
                .add("lost", lost)
                .add("seconds", keepSeconds)
                .add("cpu", cpu / 1e9)
                .add("bytes_per_lock", (double) heap / count)
                .add("take_seconds", takeSeconds)
                .add("rss_kb", rss);
    }

    /* Counts first and releases then, so that no lock is lost while others are being released. */
    private static long release(List<Mutex> mutexes) throws Exception {
        boolean[] held = new boolean[mutexes.size()];
        long lost = 0;
        for (int i = 0; i < held.length; i++) {
            held[i] = mutexes.get(i).isHeld();
            lost += held[i] ? 0 : 1;
        }
        for (int i = 0; i < held.length; i++) {
            if (held[i]) {
                mutexes.get(i).unlock();
            }
        }
        return lost;
    }

    private static long usedHeap() {
        System.gc();
        return Runtime.getRuntime().totalMemory() - Runtime.getRuntime().freeMemory();
    }

    private static long residentKb() throws IOException {
        for (String line : Files.readAllLines(Path.of("/proc/self/status"))) {
            if (line.startsWith("VmRSS:")) {
                return Long.parseLong(line.replaceAll("[^0-9]", ""));
            }
        }
        throw new IOException("no VmRSS");
    }
}
