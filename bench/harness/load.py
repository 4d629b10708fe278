"""Foreign load: what other processes took of the measured cores, and which runs to repeat because of it."""
import time

LIMIT = 0.05  # the share of the cores' time above which a run counts as disturbed
GRAIN_SECONDS = 0.02  # the kernel counts idle time in hundredths of a second
MOST_REPEATS = 3  # of one run
PATIENCE_SECONDS = 3  # for a quiet moment before a repeat
SAMPLE_SECONDS = 0.2
TICKS_PER_SECOND = 100  # of /proc/stat, on all architectures with Linux's usual USER_HZ


def parse_idle(text, cores):
    """The seconds for which these cores have been idle, by the text of /proc/stat."""
    ticks = 0
    for line in text.splitlines():
        name, *fields = line.split()
        if name.startswith("cpu") and name[3:].isdigit() and int(name[3:]) in cores:
            ticks += int(fields[3]) + int(fields[4])  # idle and waiting for a disk
    return ticks / TICKS_PER_SECOND


def read_idle(cores):
    with open("/proc/stat", encoding="ascii") as stat:
        return parse_idle(stat.read(), cores)


def foreign_share(seconds, cores, idle, own):
    """The share of the cores' time that was neither idle nor ours. Time that a hypervisor took counts as foreign."""
    return min(1.0, max(0.0, 1 - (idle + own) / (seconds * cores)))


def is_disturbed(share, seconds):
    return share > LIMIT + GRAIN_SECONDS / seconds


def should_repeat(share, seconds, repeats, left_seconds):
    """Whether to measure again, after this many repeats and with this much time left for more."""
    return is_disturbed(share, seconds) and repeats < MOST_REPEATS and left_seconds > 0


class Meter:
    """Measures the foreign load of these cores from its creation on."""

    def __init__(self, cores, read_own):
        self.cores, self.read_own = cores, read_own
        self.began_at, self.idle, self.own = time.monotonic(), read_idle(cores), read_own()

    def share(self):
        seconds = time.monotonic() - self.began_at
        return foreign_share(seconds, len(self.cores), read_idle(self.cores) - self.idle, self.read_own() - self.own)


class Watch:
    """Repeats disturbed runs as long as there is time for it, and counts them."""

    def __init__(self):
        self.left_seconds = 0
        self.runs = self.repeats = self.disturbed = 0

    def allow(self, seconds):
        self.left_seconds = seconds

    def measure(self, seconds, run, new_meter):
        """Calls run() until it was quiet, and returns the answer with the least foreign load."""
        best, repeats = None, 0
        while True:
            began_at = time.monotonic()
            answer = run()
            if best is None or answer.get("foreign", 0) < best.get("foreign", 0):
                best = answer
            if not should_repeat(answer.get("foreign", 0), seconds, repeats, self.left_seconds):
                break
            repeats += 1
            self.wait_for_quiet(new_meter)
            self.left_seconds -= time.monotonic() - began_at
        self.runs += 1
        self.repeats += repeats
        self.disturbed += is_disturbed(best.get("foreign", 0), seconds)
        return best

    @staticmethod
    def wait_for_quiet(new_meter):
        give_up_at = time.monotonic() + PATIENCE_SECONDS
        while time.monotonic() < give_up_at:
            meter = new_meter()
            time.sleep(SAMPLE_SECONDS)
            if not is_disturbed(meter.share(), SAMPLE_SECONDS):
                return

    def as_dict(self):
        return {"runs": self.runs, "repeats": self.repeats, "disturbed": self.disturbed}


def describe(counts):
    """One sentence about the load."""
    if not counts["repeats"] and not counts["disturbed"]:
        return "no run was disturbed by other processes"
    return (f"of {counts['runs']} runs, {counts['disturbed']} were disturbed by other processes (more than "
            f"{LIMIT:.0%} of a core), even after {counts['repeats']} repeats")
