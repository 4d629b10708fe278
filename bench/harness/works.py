"""The workloads: what is measured, in which order, and about how long that takes."""
import os
import select
import signal
import time

from . import deployments, held, processes, servers
from .session import CROWD_JVM_WARM_ESTIMATE, JVM_WARM_ESTIMATE, WARM_SECONDS, Cast, Crowd, say

OVERHEAD_SECONDS = 0.15  # for each figure, besides its own time and the warm-up
MONITOR_SECONDS = 0.25
CROWD_PROCESSES, CROWD_THREADS = 8, 4
CROWD_ROWS = ["holdfast", "rslock", "redislock", "redis-py"]  # and the best Redisson
DELAYS_MS = [1, 10]
DELAY_ROWS = ["bare", "move", "holdfast", "redisson4", "redisson4-small", "rslock", "redislock", "redis-semaphore"]
STARTS, JVM_STARTS = 15, 5
START_SECONDS = 60  # a start that takes longer has failed
PEER_ROUNDS = 5  # of rows that no goal compares with
QUICK_ROWS = ["bare", "pipelined", "move", "holdfast", "redisson4-small"]


class Item:
    """One thing to measure: a command that every row gets."""

    def __init__(self, work, kind, count, title, in_second_mode=False):
        self.work, self.kind, self.count, self.title = work, kind, count, title
        self.key = f"{kind}-{count}"
        self.in_second_mode = in_second_mode

    def command_for(self, row):
        """The command for the row, or None if the row does not take part."""
        if row.key == "bare":
            # Contended locks are compared with one thread that locks and unlocks a free lock.
            return f"own {self.count if self.kind == 'own' else 1}" if self.kind != "async" else None
        if row.key == "pipelined":
            return f"{self.kind} {self.count}" if self.kind in ("own", "async") and self.count > 1 else None
        if row.key == "zookeeper":
            return f"own {self.count}" if self.kind == "own" else None
        if row.key == "move":
            return f"{self.kind} {self.count}" if self.kind == "hand" else None
        if self.kind == "async" and row.is_async:
            return f"own {self.count}"
        return f"{self.kind} {self.count}"


ITEMS = [
    Item(1, "own", 1, "one thread, free lock", True),
    Item(2, "own", 16, "16 threads, a lock each"),
    Item(2, "own", 64, "64 threads, a lock each", True),
    Item(2, "async", 64, "asynchronous, 64 in flight from one thread"),
    Item(3, "hand", 2, "one lock, 2 threads"),
    Item(3, "hand", 8, "one lock, 8 threads", True),
    Item(3, "hand", 32, "one lock, 32 threads"),
    Item(4, "fair", 2, "fair lock, 2 threads"),
    Item(4, "fair", 8, "fair lock, 8 threads"),
    Item(4, "fair", 32, "fair lock, 32 threads"),
    Item(5, "rw", 16, "read-write lock, 16 threads, 5 % writes"),
]
DELAY_ITEMS = [item for item in ITEMS if item.key in ("own-1", "own-16", "hand-8")]
# Workloads on several servers. The same on one server runs in the same rounds.
DEPLOYED_WORKS = {"cluster": 10, "replica": 11}
DEPLOYED_ITEMS = {
    "cluster": [(Item(10, "own", 1, "one thread on a Cluster"), "one core"),
                (Item(10, "hand", 8, "one lock on a Cluster, 8 threads"), "one core"),
                (Item(10, "own", 64, "64 threads on a Cluster"), "two cores")],
    "replica": [(Item(11, "own", 1, "one thread, a replica acknowledges"), "one core"),
                (Item(11, "own", 64, "64 threads, a replica acknowledges"), "one core")],
}
CROWD_TITLE = f"one lock, {CROWD_PROCESSES} processes of {CROWD_THREADS} threads"
# Only these two have fair locks, read-write locks and a watchdog.
RICH_GROUPS = ("holdfast", "redisson")


def warm_up_seconds(row):
    return row.warm_seconds + (JVM_WARM_ESTIMATE if row.is_jvm else 0.3)


class Step:
    """A part of the run whose time can be estimated."""

    def __init__(self, work, title, seconds, run):
        self.work, self.title, self.seconds, self.run = work, title, seconds, run


class Works:
    """All steps of one run, and their results."""

    def __init__(self, session, rows, options, progress, programs):
        self.session, self.rows, self.options, self.progress = session, rows, options, progress
        self.programs = programs
        self.cast = Cast(session, copies=1 if options.quick else options.rounds)
        self.proxy = self.delayed = None  # the peers that use the proxy
        self.runs, self.held, self.starts, self.pings = [], [], [], []
        self.notes = {}  # (item, row): why there is no figure
        self.shares = {}  # item: row: command: share of its calls that clients made

    # ---- the plan ----

    def live_rows(self, keys=None):
        return [row for row in self.rows if not row.skipped and row.group != "deployed" and
                (keys is None or row.key in keys)]

    def deployed_rows(self, kind):
        return [row for row in self.rows if not row.skipped and (row.key == "holdfast" or row.server == kind)]

    def rows_for(self, item, keys=None):
        return [row for row in self.live_rows(keys) if item.command_for(row) and self.takes_part(item, row)]

    def takes_part(self, item, row):
        rich = item.kind not in ("fair", "rw", "held") or row.group in RICH_GROUPS
        return rich or row.key in ("bare", "curator", "holdfast-zk")

    def plan(self):
        """The steps in order."""
        one, each = self.options.modes.get("one core"), self.options.modes.get("one core each")
        steps = [self.plan_start_up()] if set(self.options.works) & {1, 2, 3, 4, 5} else []
        if one:
            steps += [self.plan_item(item, "one core") for item in ITEMS]
            steps += [self.plan_crowd(), self.plan_starts(), *self.plan_delays()]
            for kind in deployments.KINDS:
                steps += self.plan_deployment(kind)
        if each:
            steps += [self.plan_item(item, "one core each") for item in ITEMS if item.in_second_mode]
        if one:
            steps += self.plan_held()
        return [step for step in steps if step and (step.work == 0 or step.work in self.options.works)]

    def rounds_of(self, row):
        return self.options.rounds if row.is_compared else min(self.options.rounds, PEER_ROUNDS)

    def take_turns(self, rows):
        """The rows of all rounds. Each round begins with another row, so that none gains by its place."""
        for number in range(self.options.rounds):
            first = number % len(rows)
            for row in rows[first:] + rows[:first]:
                if number < self.rounds_of(row):
                    self.progress.detail(f"round {number + 1} of {self.rounds_of(row)}, {row.title}")
                    yield number, row

    def figure_seconds(self, row, monitored=True):
        seconds = self.options.seconds + WARM_SECONDS + OVERHEAD_SECONDS + (0.2 if row.is_jvm else 0)
        sample = MONITOR_SECONDS + WARM_SECONDS + OVERHEAD_SECONDS if monitored and row.server == "redis" else 0
        return seconds * self.rounds_of(row) + sample

    def plan_start_up(self):
        seconds = sum(warm_up_seconds(row) * self.cast.copies_of(row) for row in self.live_rows())
        return Step(0, "starting the peers and warming them up", seconds, self.start_up)

    def plan_item(self, item, mode):
        seconds = sum(self.figure_seconds(row, mode == "one core") for row in self.rows_for(item))
        return Step(item.work, f"{mode}: {item.title}", seconds, lambda: self.run_item(item, mode))

    def plan_crowd(self):
        rows = self.crowd_rows()
        figure = self.crowd_seconds() + WARM_SECONDS + 0.7
        seconds = sum(figure * (self.options.rounds + 1) + (CROWD_JVM_WARM_ESTIMATE + 10 if row.is_jvm else 6)
                      for row in rows)
        return Step(3, f"one core: {CROWD_TITLE}", seconds, self.run_crowds)

    def plan_starts(self):
        if self.options.quick:
            return None
        seconds = sum(JVM_STARTS * 1.3 if row.is_jvm else STARTS * 0.06 for row in self.live_rows())
        return Step(7, "one core: start of a process", seconds, self.run_starts)

    def plan_delays(self):
        if self.options.quick:
            return []
        rows = self.live_rows(DELAY_ROWS)
        warm = sum(warm_up_seconds(row) for row in rows)
        steps = [Step(9, "starting the peers that use the proxy", warm, self.start_delayed)]
        for delay in DELAYS_MS:
            for item in DELAY_ITEMS:
                seconds = sum(self.figure_seconds(row, False) for row in self.rows_for(item, DELAY_ROWS))
                steps.append(Step(9, f"{delay} ms each way: {item.title}", seconds,
                                  lambda delay=delay, item=item: self.run_delayed(delay, item)))
        return steps

    def plan_deployment(self, kind):
        work, rows = DEPLOYED_WORKS[kind], self.deployed_rows(kind)
        items = [(item, mode) for item, mode in DEPLOYED_ITEMS[kind] if self.has_cores(work, item, mode)]
        seconds = sum(self.figure_seconds(row, False) for row in rows)
        warm = sum(warm_up_seconds(row) for row in rows)
        return [Step(work, f"starting the {kind} and its peers", warm, lambda: self.start_deployed(kind)),
                *(Step(work, f"{mode}: {item.title}", seconds,
                       lambda item=item, mode=mode: self.run_deployed(kind, item, mode)) for item, mode in items),
                Step(work, f"ending the {kind}", 0, lambda: self.end_deployed(kind))]

    def has_cores(self, work, item, mode):
        if mode in self.session.machine.modes():
            return True
        if work in self.options.works:
            say(f"{item.title}: left out, because this machine has one core")
        return False

    def plan_held(self):
        if self.options.quick:
            return []
        return [Step(6, "held locks: " + ", ".join(str(entry) for entry in batch), held.batch_seconds(batch),
                     lambda batch=batch: self.run_held(batch))
                for batch in held.plan_batches(self.live_rows(), self.session.machine)]

    # ---- one figure after the other ----

    def start_up(self):
        for row in self.live_rows():
            self.progress.detail(row.title)
            self.start_row(row)

    def start_row(self, row):
        try:
            self.cast.start(row)
        except processes.PeerError as error:
            self.cast.drop(row)
            row.skipped = str(error)
            say(f"{row.title}: left out: {error}")

    def run_item(self, item, mode):
        if self.session.mode != mode:
            self.session.set_mode(mode)
        rows = self.rows_for(item)
        for number, row in self.take_turns(rows):
            self.add_figure(self.cast, mode, item, row, number, self.options.seconds)
        if mode == "one core":
            for row in rows:
                self.progress.detail(f"commands of {row.title}")
                self.sample_commands(item, row)

    def add_figure(self, cast, mode, item, row, number, seconds, extra=None, prefix=""):
        key = prefix + item.key
        if row.skipped or (key, row.key) in self.notes:
            return
        try:
            answer = self.session.watch.measure(
                seconds, lambda: cast.measure(row, item.command_for(row), seconds, number=number),
                self.session.new_meter)
        except processes.PeerError as error:
            cast.drop(row)
            self.session.note_failure(row, error)
            return
        if "unsupported" in answer:
            self.notes[key, row.key] = answer["unsupported"]
            return
        self.runs.append({"mode": mode, "item": key, "row": row.key, "round": number, **(extra or {}), **answer})

    def sample_commands(self, item, row):
        """One more short run under MONITOR, because the server also counts the commands inside scripts."""
        if row.server != "redis" or row.skipped or (item.key, row.key) in self.notes:
            return
        monitor = servers.Monitor(self.session.redis.port)
        try:
            self.cast.measure(row, item.command_for(row), MONITOR_SECONDS, monitor)
            self.shares.setdefault(item.key, {})[row.key] = monitor.shares()
        except processes.PeerError as error:
            self.cast.drop(row)
            self.session.note_failure(row, error)
        finally:
            monitor.close()

    # ---- many processes ----

    def best_redisson(self):
        """The row with the most grants so far, or the first if there are none."""
        rows = [row for row in self.live_rows() if row.group == "redisson" and row.is_compared]
        grants = {row.key: [run["grants"] for run in self.runs if run["row"] == row.key and run["item"] == "hand-8"]
                  for row in rows}
        return max(rows, key=lambda row: sorted(grants[row.key] or [0])[len(grants[row.key]) // 2], default=None)

    def crowd_rows(self):
        # Eight processes, each with its compiler, take too long to warm up for a quick run.
        best = None if self.options.quick else self.best_redisson()
        return [row for row in self.live_rows() if row.key in CROWD_ROWS or row is best]

    def crowd_seconds(self):
        """Twice the usual time: some peers do not count grants after the end, which would weigh too much otherwise."""
        return 2 * self.options.seconds

    def run_crowds(self):
        self.session.set_mode("one core")
        crowds = []
        for row in self.crowd_rows():
            self.progress.detail(f"starting {CROWD_PROCESSES} processes of {row.title}")
            crowd = Crowd(self.session, row, CROWD_PROCESSES)
            try:
                crowd.start()
                crowds.append(crowd)
            except processes.PeerError as error:
                crowd.end()
                self.session.note_failure(row, error)
        item = Item(3, "hand", f"{CROWD_PROCESSES}x{CROWD_THREADS}", CROWD_TITLE)
        bare = next(row for row in self.rows if row.key == "bare")
        for number in range(self.options.rounds):
            self.add_figure(self.cast, "one core", item, bare, number, self.options.seconds)
            for crowd in list(crowds):
                self.progress.detail(f"round {number + 1} of {self.options.rounds}, {crowd.row.title}")
                self.add_crowd_figure(crowds, crowd, item, number)
        for crowd in list(crowds):
            self.sample_crowd(crowds, crowd, item)
        for crowd in crowds:
            crowd.end()

    def add_crowd_figure(self, crowds, crowd, item, number):
        try:
            seconds = self.crowd_seconds()
            answer = self.session.watch.measure(seconds, lambda: crowd.measure(CROWD_THREADS, seconds),
                                                self.session.new_meter)
            self.runs.append({"mode": "one core", "item": item.key, "row": crowd.row.key, "round": number, **answer})
        except processes.PeerError as error:
            self.end_crowd(crowds, crowd, error)

    def sample_crowd(self, crowds, crowd, item):
        monitor = servers.Monitor(self.session.redis.port)
        try:
            crowd.measure(CROWD_THREADS, 2 * MONITOR_SECONDS, monitor)
            self.shares.setdefault(item.key, {})[crowd.row.key] = monitor.shares()
        except processes.PeerError as error:
            self.end_crowd(crowds, crowd, error)
        finally:
            monitor.close()

    def end_crowd(self, crowds, crowd, error):
        crowd.end()
        crowds.remove(crowd)
        self.session.note_failure(crowd.row, error)

    # ---- starting ----

    def run_starts(self):
        self.session.set_mode("one core")
        for number in range(STARTS):
            for row in self.live_rows():
                if row.group == "limit" and row.key not in ("bare", "zookeeper"):
                    continue
                if row.is_jvm and number >= JVM_STARTS:
                    continue
                self.progress.detail(f"start {number + 1}, {row.title}")
                try:
                    self.starts.append({"row": row.key, "round": number, **self.start_once(row)})
                except (processes.PeerError, OSError) as error:
                    self.session.note_failure(row, error)

    def start_once(self, row):
        """Measures from before the process exists to its first lock, with the fastest way to start a process."""
        argv = self.session.start_argv_of(row, self.session.names.next())
        child_input, to_child = os.pipe()
        from_child, child_output = os.pipe()
        actions = [(os.POSIX_SPAWN_DUP2, child_input, 0), (os.POSIX_SPAWN_DUP2, child_output, 1),
                   (os.POSIX_SPAWN_DUP2, self.session.log.fileno(), 2)]
        processes.pin_self(self.session.machine.measured)
        began_at = time.perf_counter()
        child = os.posix_spawn(argv[0], argv, os.environ, file_actions=actions)
        os.close(child_output)
        try:
            with os.fdopen(from_child, "rb") as output:
                line = output.readline() if select.select([output], [], [], START_SECONDS)[0] else b""
                seconds = time.perf_counter() - began_at
                if line != b"held\n":
                    raise processes.PeerError(f"--start printed {line!r}")
                return {"ms": seconds * 1000, "rss_kib": processes.status_kib(child, "VmRSS"),
                        "peak_kib": processes.status_kib(child, "VmHWM")}
        finally:
            os.kill(child, signal.SIGKILL)
            os.close(child_input)
            os.close(to_child)
            os.waitpid(child, 0)
            processes.pin_self(self.session.machine.elsewhere)

    # ---- added latency ----

    def start_delayed(self):
        self.session.set_mode("one core")
        self.proxy = servers.DelayProxy(os.path.join(self.programs, "delay"), self.session.redis.port,
                                        self.session.machine.elsewhere, self.session.log)
        self.delayed = Cast(self.session, self.proxy.url)
        for row in self.live_rows(DELAY_ROWS):
            self.progress.detail(row.title)
            try:
                self.delayed.start(row)
            except processes.PeerError as error:
                self.delayed.drop(row)
                self.session.note_failure(row, error)

    def run_delayed(self, delay, item):
        if not self.delayed:
            return
        self.proxy.set_ms(delay)
        seconds = self.options.seconds * (1.5 if delay >= 10 else 1)
        pings = []
        for number, row in self.take_turns(self.rows_for(item, DELAY_ROWS)):
            if number == len(pings):
                pings.append(self.proxy.ping_ms())
                self.pings.append({"delay_ms": delay, "item": item.key, "round": number, "ms": pings[-1]})
            self.add_figure(self.delayed, "one core", item, row, number, seconds, {"ping_ms": pings[number]},
                            f"delay-{delay}-")
        if delay == DELAYS_MS[-1] and item is DELAY_ITEMS[-1]:
            self.delayed.end()
            self.proxy.end()

    # ---- several servers ----

    def start_deployed(self, kind):
        self.session.set_mode("one core")
        try:
            self.session.start_deployment(kind)
        except (processes.PeerError, OSError) as error:
            self.leave_out(kind, error)
            return
        for row in self.deployed_rows(kind):
            self.progress.detail(row.title)
            if (row.key, 0) not in self.cast.running:
                self.start_row(row)

    def leave_out(self, kind, error):
        for row in self.rows:
            if row.server == kind and not row.skipped:
                row.skipped = str(error)
                say(f"{row.title}: left out: {error}")

    def run_deployed(self, kind, item, mode):
        rows = self.deployed_rows(kind)
        if len(rows) < 2:
            return
        self.session.set_mode(mode)
        for number, row in self.take_turns(rows):
            self.add_figure(self.cast, mode, item, row, number, self.options.seconds, prefix=f"{kind}-")

    def end_deployed(self, kind):
        for row in self.rows:
            if row.server == kind:
                self.cast.drop(row)
        self.session.end_deployment(kind)
        self.session.set_mode("one core")

    # ---- held locks ----

    def run_held(self, batch):
        self.session.set_mode("one core")
        try:
            self.held += held.run_batch(self.session, batch, self.progress)
        except processes.PeerError as error:
            say(f"held locks: {error}")
            for entry in batch:
                self.notes[f"held-{entry.count}", entry.row.key] = str(error)
