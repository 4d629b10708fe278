/* Counts durations in nanoseconds; a percentile is exact to 1 %. For one thread at a time. */
package holdfast.bench;

final class Histogram {
    /* Each power of two has 64 steps of equal width. */
    private static final int STEP_BITS = 6;
    private static final int STEPS = 1 << STEP_BITS;

    private final long[] counts = new long[(Long.SIZE - STEP_BITS) * STEPS];
    private long total;
    private long max;

    void add(long ns) {
        counts[index(ns)]++;
        total++;
        max = Math.max(max, ns);
    }

    void addAll(Histogram other) {
        for (int i = 0; i < counts.length; i++) {
            counts[i] += other.counts[i];
        }
        total += other.total;
        max = Math.max(max, other.max);
    }

    /* In microseconds; null when nothing was counted. */
    Double percentile(double percent) {
        if (total == 0) {
            return null;
        }
        long left = Math.max(1, (long) Math.ceil(total * percent / 100));
        int i = 0;
        while ((left -= counts[i]) > 0) {
            i++;
        }
        return Math.min(middle(i), max) / 1e3;
    }

    /* In microseconds; null when nothing was counted. */
    Double max() {
        return total == 0 ? null : max / 1e3;
    }

    private static int index(long ns) {
        int shift = Math.max(0, Long.SIZE - STEP_BITS - 1 - Long.numberOfLeadingZeros(ns | 1));
        return shift * STEPS + (int) (ns >>> shift);
    }

    private static double middle(int index) {
        int shift = Math.max(0, index / STEPS - 1);
        long low = (long) (index - shift * STEPS) << shift;
        return low + (double) ((1L << shift) - 1) / 2;
    }
}
