"""Shows the progress: on a terminal one line that is redrawn, elsewhere a line for each step."""
import shutil
import sys
import time


def clock(seconds):
    return f"{int(seconds) // 60}:{int(seconds) % 60:02d}"


class Progress:
    def __init__(self):
        self.is_terminal = sys.stderr.isatty()
        self.began_at = time.monotonic()
        self.planned = self.done = 0
        self.title, self.step_seconds, self.step_began_at = "", 0, self.began_at

    def plan(self, seconds):
        self.planned = seconds

    def elapsed(self):
        return time.monotonic() - self.began_at

    def estimate(self):
        """The expected time of the whole run: finished steps as measured, the others as planned."""
        in_step = time.monotonic() - self.step_began_at
        return self.elapsed() + max(0, self.step_seconds - in_step) + self.planned - self.done

    def begin(self, title, seconds):
        self.title, self.step_seconds, self.step_began_at = title, seconds, time.monotonic()
        self.done += seconds
        if not self.is_terminal:
            print(f"[{clock(self.elapsed())} of about {clock(self.estimate())}] {title}", file=sys.stderr, flush=True)

    def detail(self, text):
        if self.is_terminal:
            line = f"[{clock(self.elapsed())} of about {clock(self.estimate())}] {self.title} – {text}"
            print("\r\033[K" + line[:shutil.get_terminal_size().columns - 1], end="", file=sys.stderr, flush=True)

    def clear(self):
        if self.is_terminal:
            print("\r\033[K", end="", file=sys.stderr, flush=True)
