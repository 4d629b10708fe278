"""Held locks: what the watchdog costs, and whether it renews in time."""
import random
import time

from . import processes, servers
from .session import ANSWER_SECONDS, Board

LEASE_MS = 30000
INTERVAL_MS = LEASE_MS // 3  # between two renewals
WINDOWS = 5  # each lasts one such interval
SAMPLES_PER_WINDOW = 3
SAMPLE_KEYS = 2000
SPARE_SECONDS = 12  # until all entries of a batch have taken their locks
USE_BEFORE_PAIRS = 1000
PREFIX = "bench:held:locks:of:orders"  # with a number after it, a name of at most 32 bytes
COUNTS = {"holdfast": [1000, 10000, 100000], "redisson4-small": [1000, 10000], "redisson3-small": [10000]}


class Entry:
    """A row that keeps this many locks, perhaps after it has used others."""

    def __init__(self, row, count, is_used=False):
        self.row, self.count, self.is_used = row, count, is_used

    def __str__(self):
        return f"{self.row.title} {self.count}" + (" after use" if self.is_used else "")


def plan_batches(rows, machine):
    """Which entries run side by side, each on its own server and, if there are two cores, on its own core."""
    entries = {row.key: [Entry(row, count) for count in COUNTS[row.key]] for row in rows if row.key in COUNTS}
    for row in rows:
        if row.key in ("holdfast", "redisson4-small"):
            entries[row.key].insert(0, Entry(row, 1000, True))
    ours = [entry for entry in entries.pop("holdfast", [])][::-1]
    theirs = sorted((entry for some in entries.values() for entry in some),
                    key=lambda entry: (-entry.count, entry.is_used))
    if not machine.second:
        return [[entry] for entry in ours + theirs]
    batches = []
    while ours or theirs:
        batches.append(([ours.pop(0)] if ours else []) + ([theirs.pop(0)] if theirs else []))
    return batches


def batch_seconds(batch):
    return WINDOWS * INTERVAL_MS / 1000 + SPARE_SECONDS + 3 + sum(entry.count for entry in batch) / 10000


class Keeping:
    """One entry while its locks are kept."""

    def __init__(self, session, entry, cores):
        self.session, self.entry = session, entry
        self.server = servers.RedisServer(cores, session.log, session.directory)
        board = Board(session.directory, f"{entry.row.key}-{entry.count}-{entry.is_used}")
        self.process = session.spawn(entry.row, self.server.url, board)
        self.process.pin(cores)
        self.pairs_before = self.use_locks() if entry.is_used else 0
        count = min(SAMPLE_KEYS, entry.count)
        self.keys = [f"{PREFIX}:{i}" for i in random.Random(1).sample(range(entry.count), count)]
        self.expiry = {}  # the expiry of each key, on the server's clock
        self.lags, self.windows, self.gone = [], [], set()

    def use_locks(self):
        pairs = 0
        while pairs < USE_BEFORE_PAIRS:
            pairs += self.process.ask(f"own 1 0.1 {self.session.names.next()}", ANSWER_SECONDS)["pairs"]
        return pairs

    def begin(self, seconds):
        """Returns when all locks are held."""
        self.process.ask(f"held {self.entry.count} {seconds} {PREFIX}", 3 * ANSWER_SECONDS)
        self.ends_at = time.monotonic() + seconds

    def has_time(self):
        """Whether the locks are held for another window."""
        return time.monotonic() + INTERVAL_MS / 1000 + 0.5 < self.ends_at

    def begin_window(self):
        self.server.begin()
        self.began_at = time.monotonic()
        self.cpu = processes.cpu_seconds(self.process.pid)

    def end_window(self):
        cpu = processes.cpu_seconds(self.process.pid) - self.cpu
        seconds = time.monotonic() - self.began_at
        counts = self.server.read_counts()
        scripts = counts["commands"].get("evalsha", (0, 0))[0]
        self.windows.append({"client_cpu": cpu / seconds, "server_cpu": counts["cpu"] / seconds,
                             "renewal_scripts": scripts / seconds, "seconds": seconds})

    def sample(self):
        """A renewal moves the expiry by the time since the previous renewal, whenever it is noticed."""
        now, left = self.server.sample_expiry(self.keys)
        for key, ms in zip(self.keys, left):
            if ms < 0:
                self.gone.add(key)
                continue
            before = self.expiry.get(key)
            if before is not None and now + ms > before + 50:
                self.lags.append(max(0, now + ms - before - INTERVAL_MS))
            self.expiry[key] = now + ms
        self.sampled_at = now

    def finish(self):
        answer = self.process.read_answer(SPARE_SECONDS + 3 * ANSWER_SECONDS)
        overdue = (self.sampled_at + LEASE_MS - INTERVAL_MS - expiry for expiry in self.expiry.values())
        self.lags = sorted(self.lags + [lag for lag in overdue if lag > 0])

        def lag(part):
            return self.lags[min(len(self.lags) - 1, int(part * len(self.lags)))] if self.lags else None

        return {"row": self.entry.row.key, "count": self.entry.count, "pairs_before": self.pairs_before,
                "answer": answer, "windows": self.windows, "renewals_seen": len(self.lags),
                "lag_ms": {"p50": lag(0.5), "p99": lag(0.99), "p999": lag(0.999), "max": lag(1)},
                "keys_gone": len(self.gone)}

    def end(self):
        self.process.end()
        self.server.end()


def run_window(keepings):
    for keeping in keepings:
        keeping.begin_window()
    began_at = time.monotonic()
    for sample in range(1, SAMPLES_PER_WINDOW + 1):
        time.sleep(max(0, began_at + sample * INTERVAL_MS / 1000 / SAMPLES_PER_WINDOW - time.monotonic()))
        for keeping in keepings:
            keeping.sample()
    for keeping in keepings:
        keeping.end_window()


def run_windows(keepings, progress):
    """On a busy machine, an entry that took its locks early may not have time for all windows."""
    for number in range(WINDOWS):
        progress.detail(f"interval {number + 1} of {WINDOWS}")
        run_window([keeping for keeping in keepings if keeping.has_time()])


def run_batch(session, batch, progress):
    """Keeps all entries of the batch at the same time."""
    cores = [session.machine.measured, session.machine.elsewhere]
    keepings = []
    try:
        for index, entry in enumerate(batch):
            progress.detail(f"starting {entry}")
            keepings.append(Keeping(session, entry, cores[index % 2]))
        # Entries that take their locks quickly come last, so that they do not wait for others.
        for keeping in reversed(keepings):
            progress.detail(f"{keeping.entry}: taking the locks")
            keeping.begin(WINDOWS * INTERVAL_MS / 1000 + SPARE_SECONDS)
            keeping.sample()
        run_windows(keepings, progress)
        progress.detail("waiting for the end")
        return [keeping.finish() for keeping in keepings]
    finally:
        for keeping in keepings:
            keeping.end()
