"""Child processes: started on chosen cores, stopped while others are measured, and always terminated."""
import ctypes
import json
import os
import select
import signal
import subprocess
import time

PR_SET_PDEATHSIG = 1
LIBC = ctypes.CDLL(None)
RUNNING = []


class PeerError(Exception):
    """A process did not do what it was asked to do."""


def pin_self(cores):
    os.sched_setaffinity(0, cores)


def own_seconds(cores):
    """The CPU time of the harness and of all its processes that are confined to these cores."""
    total = time.process_time() if os.sched_getaffinity(0) <= cores else 0
    for process in RUNNING:
        if process.cores <= cores:
            try:
                total += cpu_seconds(process.pid)
            except OSError:
                pass  # it has exited, which the next answer from it reports
    return total


def cpu_seconds(pid):
    """The CPU time of all threads of a process, to the nanosecond."""
    return time.clock_gettime((~pid << 3) | 2)


def compiler_seconds(pid):
    """The CPU time of the compiler threads of a JVM."""
    total = 0
    for thread in os.listdir(f"/proc/{pid}/task"):
        try:
            with open(f"/proc/{pid}/task/{thread}/comm", encoding="utf-8") as comm:
                name = comm.read()
            with open(f"/proc/{pid}/task/{thread}/schedstat", encoding="utf-8") as times:
                total += int(times.read().split()[0]) if "CompilerThre" in name else 0
        except (FileNotFoundError, ProcessLookupError):
            pass
    return total / 1e9


def status_kib(pid, field):
    """A line of /proc/PID/status, in KiB."""
    with open(f"/proc/{pid}/status", encoding="utf-8") as status:
        for line in status:
            if line.startswith(field + ":"):
                return int(line.split()[1])
    return None


class Process:
    """A program that reads commands and prints answers line by line."""

    def __init__(self, argv, cores, log, environment=None):
        def prepare():
            LIBC.prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
            os.sched_setaffinity(0, cores)

        # In a session of its own, so that Ctrl-C only reaches the harness, which then ends the process.
        self.child = subprocess.Popen(argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=log,
                                      bufsize=0, start_new_session=True, preexec_fn=prepare,
                                      env={**os.environ, **(environment or {})})
        self.name = os.path.basename(argv[0])
        self.cores = cores
        self.buffer = b""
        RUNNING.append(self)

    @property
    def pid(self):
        return self.child.pid

    def pin(self, cores):
        """Moves all threads. A thread that starts in the meantime is moved in the next pass."""
        moved = set()
        self.cores = cores
        while True:
            threads = {int(name) for name in os.listdir(f"/proc/{self.pid}/task")} - moved
            if not threads:
                return
            for thread in threads:
                try:
                    os.sched_setaffinity(thread, cores)
                except ProcessLookupError:
                    pass
            moved |= threads

    def pause(self):
        self.child.send_signal(signal.SIGSTOP)

    def resume(self):
        self.child.send_signal(signal.SIGCONT)

    def send(self, line):
        try:
            self.child.stdin.write(line.encode() + b"\n")
        except BrokenPipeError as error:
            raise PeerError(f"{self.name} has exited") from error

    def read_line(self, timeout, others=None):
        """Returns the next answer. Until it arrives, input of the others is passed to their functions."""
        others = others or {}
        give_up_at = time.monotonic() + timeout
        while b"\n" not in self.buffer:
            left = give_up_at - time.monotonic()
            if left <= 0:
                raise PeerError(f"{self.name} did not answer within {timeout:.0f} s")
            ready, _, _ = select.select([self.child.stdout, *others], [], [], left)
            for source in ready:
                if source is not self.child.stdout:
                    others[source]()
                    continue
                data = os.read(source.fileno(), 65536)
                if not data:
                    raise PeerError(f"{self.name} exited with status {self.child.wait()}")
                self.buffer += data
        line, self.buffer = self.buffer.split(b"\n", 1)
        return line.decode()

    def read_answer(self, timeout, others=None):
        line = self.read_line(timeout, others)
        try:
            answer = json.loads(line)
        except ValueError as error:
            raise PeerError(f"{self.name} printed something that is not JSON: {line[:200]}") from error
        if "error" in answer:
            raise PeerError(f"{self.name}: {answer['error']}")
        return answer

    def ask(self, line, timeout, others=None):
        self.send(line)
        return self.read_answer(timeout, others)

    def end(self, patience=0):
        """Ends the process: by closing its input if there is time, otherwise at once."""
        if self in RUNNING:
            RUNNING.remove(self)
        if self.child.poll() is None and patience:
            self.child.stdin.close()
            try:
                self.child.wait(patience)
            except subprocess.TimeoutExpired:
                pass
        if self.child.poll() is None:
            self.child.kill()
        self.child.wait()
        for pipe in (self.child.stdin, self.child.stdout):
            try:
                pipe.close()
            except BrokenPipeError:
                pass


def end_all():
    for process in list(RUNNING):
        process.end()
