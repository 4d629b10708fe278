"""The running peers of one run: each started once, stopped while others are measured, measured in turns."""
import os
import sys
import time

from . import deployments, load, processes, servers

ANSWER_SECONDS = 40  # how much longer than the measured time an answer may take
WARM_SECONDS = 0.3  # right before each figure
JVM_WARM_FIRST = ["fair 8 0.8", "rw 16 0.8"]
JVM_WARM_UP = ["own 1 1.2", "own 16 0.8", "hand 8 1.2"]  # again and again
JVM_WARM_SECONDS = (10, 35)  # shortest and longest, until the compiler has little to do
JVM_COMPILING = 0.1  # cores; with less there is little to compile
JVM_WARM_ESTIMATE = 18
CROWD_JVM_WARM_SECONDS = (20, 80)  # eight of them at once
CROWD_JVM_WARM_ESTIMATE = 50
DROP_AFTER = 4  # failures, after which a peer is left out


def say(text):
    print(f"bench: {text}", file=sys.stderr, flush=True)


def wait_for_compiler(pids, seconds, work):
    """Runs work() until little is compiled: before that, code is slow and shares its core with the compiler."""
    def compiled():
        return sum(processes.compiler_seconds(pid) for pid in pids)

    shortest, longest = seconds
    began_at = time.monotonic()
    while time.monotonic() - began_at < longest:
        before, cycle_at = compiled(), time.monotonic()
        work()
        now = time.monotonic()
        if (compiled() - before) / (now - cycle_at) < JVM_COMPILING and now - began_at > shortest:
            return


class Machine:
    """Which core is used for what."""

    def __init__(self):
        allowed = sorted(os.sched_getaffinity(0))
        self.measured = {allowed[-1]}
        self.second = {allowed[-2]} if len(allowed) > 1 else None
        self.elsewhere = self.second or self.measured  # for everything that is not measured

    def modes(self):
        return ["one core", "one core each", "two cores"] if self.second else ["one core"]

    def client_cores(self, mode):
        return {"one core": self.measured, "one core each": self.second, "two cores": self.all()}[mode]

    def server_cores(self, mode):
        return self.all() if mode == "two cores" else self.measured

    def used_cores(self, mode):
        return self.client_cores(mode) | self.server_cores(mode)

    def all(self):
        return self.measured | self.elsewhere


class Names:
    """A fresh prefix for lock names each time. All have the same length, since names are sent over the wire."""

    def __init__(self):
        self.count = 0

    def next(self):
        self.count += 1
        return f"bench-{self.count:06d}"


class Board:
    """The file that all processes that compete for one lock share."""

    def __init__(self, directory, name):
        self.path = os.path.join(directory, "board-" + name)
        self.clear()

    def clear(self):
        with open(self.path, "r+b" if os.path.exists(self.path) else "w+b") as file:
            file.write(bytes(16))


class Session:
    """Servers, names and running peers."""

    def __init__(self, machine, directory, log):
        self.machine, self.directory, self.log = machine, directory, log
        self.names = Names()
        self.mode = "one core"
        self.redis = servers.RedisServer(machine.measured, log, directory)
        self.zookeeper = None
        self.deployments = {}  # the running ones, by the name that rows have for them
        self.pair_file = os.path.join(directory, "pair")
        self.failures = {}
        self.casts = []
        self.watch = load.Watch()

    def new_meter(self):
        """Measures what others take of the cores that are measured now."""
        cores = self.machine.used_cores(self.mode)
        return load.Meter(cores, lambda: processes.own_seconds(cores))

    def server_of(self, row):
        if row.server in self.deployments:
            return self.deployments[row.server]
        return self.zookeeper if row.server == "zookeeper" else self.redis

    def start_deployment(self, kind):
        deployment = deployments.KINDS[kind](self.machine.measured, self.log, self.directory)
        self.deployments[kind] = deployment
        deployment.start()

    def end_deployment(self, kind):
        self.deployments.pop(kind).end()

    def start_zookeeper(self, class_path):
        self.zookeeper = servers.ZooKeeperServer(class_path, self.machine.measured, self.log, self.directory)

    def learn_pair(self, argv):
        """Records what the library sends, because the bare loops send the same."""
        done = processes.subprocess.run([*argv, "--learn", self.redis.url], stdout=processes.subprocess.PIPE,
                                        stderr=self.log, check=False, timeout=20)
        if done.returncode:
            raise processes.PeerError("Holdfast could not record what it sends (--learn failed)")
        with open(self.pair_file, "wb") as file:
            file.write(done.stdout)

    def argv_of(self, row):
        if row.program != "limits" or row.key == "move":
            return row.argv
        program, *options = row.argv
        return [program, "--pair", self.pair_file, *options]

    def start_argv_of(self, row, name):
        """How to call a row so that it only takes one lock."""
        argv = self.argv_of(row)
        if row.program == "limits":
            argv = argv[:-1]
        return [*argv, "--start", self.server_of(row).url, name]

    def spawn(self, row, url, board, options=()):
        process = processes.Process([*self.argv_of(row), *options, url, board.path],
                                    self.machine.client_cores(self.mode), self.log)
        process.name = row.title
        row.version = process.read_answer(60).get("version")
        return process

    def warm_up(self, row, process):
        """Warms up before the first figure, on all cores, since some runtimes compile at that time."""
        process.pin(self.machine.all())
        process.ask(f"warm {row.warm_seconds} {self.names.next()}", row.warm_seconds + ANSWER_SECONDS)
        if row.is_jvm:
            self.warm_up_jvm(process)
        process.pin(self.machine.client_cores(self.mode))

    def warm_up_jvm(self, process):
        def ask(commands):
            for command in commands:
                process.ask(f"{command} {self.names.next()}", ANSWER_SECONDS)

        ask(JVM_WARM_FIRST)
        wait_for_compiler([process.pid], JVM_WARM_SECONDS, lambda: ask(JVM_WARM_UP))

    def note_failure(self, row, error):
        """Prints what went wrong, and leaves the row out if it has failed too often."""
        say(f"{row.title}: {error}")
        self.failures[row.key] = self.failures.get(row.key, 0) + 1
        if self.failures[row.key] >= DROP_AFTER:
            row.skipped = f"failed {DROP_AFTER} times, most recently: {error}"
            say(f"{row.title}: left out from here on")

    def set_mode(self, mode):
        self.mode = mode
        for server in (self.redis, *self.deployments.values()):
            server.pin(self.machine.server_cores(mode))
        for cast in self.casts:
            cast.pin(self.machine.client_cores(mode))


class Cast:
    """The processes of each row, all on the same servers, or through the same proxy."""

    def __init__(self, session, url=None, copies=1):
        self.session, self.url = session, url
        self.copies = copies  # of a row, at most
        self.running = {}  # by row and copy
        session.casts.append(self)

    def copies_of(self, row):
        return min(row.copies, self.copies)

    def start(self, row):
        for copy in range(self.copies_of(row)):
            self.start_copy(row, copy)

    def start_copy(self, row, copy):
        """Starts a process, warms it up and stops it."""
        board = Board(self.session.directory, f"{row.key}-{copy}-{len(self.session.casts)}")
        process = self.session.spawn(row, (self.url or self.session.server_of(row).url) + row.settings, board)
        self.running[row.key, copy] = (process, board)
        self.session.warm_up(row, process)
        process.pause()

    def drop(self, row):
        for copy in range(self.copies_of(row)):
            process, _ = self.running.pop((row.key, copy), (None, None))
            if process:
                process.end()

    def pin(self, cores):
        for process, _ in self.running.values():
            process.pin(cores)

    def end(self):
        for process, _ in self.running.values():
            process.end()
        self.running = {}
        self.session.casts.remove(self)

    def measure(self, row, command, seconds, monitor=None, number=0):
        """Measures one figure of this round: the peer's answer, and the cost for server and client."""
        session, copy = self.session, number % self.copies_of(row)
        if (row.key, copy) not in self.running:
            self.start_copy(row, copy)
        process, board = self.running[row.key, copy]
        server = session.server_of(row)
        process.resume()
        process.ask(f"warm {WARM_SECONDS} {session.names.next()}", WARM_SECONDS + ANSWER_SECONDS)
        board.clear()
        others = {monitor: monitor.read} if monitor else None
        server.begin()
        meter = session.new_meter()
        client_cpu = processes.cpu_seconds(process.pid)
        answer = process.ask(f"{command} {seconds} {session.names.next()}", seconds + ANSWER_SECONDS, others)
        client_cpu = processes.cpu_seconds(process.pid) - client_cpu
        foreign = meter.share()
        counts = server.read_counts()
        process.pause()
        return {**answer, "client_cpu": client_cpu, "server": counts, "foreign": foreign}


class Crowd:
    """Several processes of one row that compete for one lock."""

    def __init__(self, session, row, count):
        self.session, self.row, self.count = session, row, count
        self.board = Board(session.directory, f"{row.key}-crowd")
        self.members = []

    def start(self):
        """Starts all processes and warms them up on all cores, since several runtimes compile at once."""
        # Only runtimes that cannot map the board need to know the number of processes.
        options = ["--processes", str(self.count)] if self.row.program == "node" else []
        for _ in range(self.count):
            self.members.append(self.session.spawn(self.row, self.session.redis.url, self.board, options))
        machine = self.session.machine
        self.pin(machine.all())
        self.warm_up()
        self.pin(machine.client_cores(self.session.mode))
        self.pause()

    def warm_up(self):
        def cycle():
            self.warm(2)
            self.contend("hand 4", 2)

        if self.row.is_jvm:
            wait_for_compiler([member.pid for member in self.members], CROWD_JVM_WARM_SECONDS, cycle)
        else:
            cycle()

    def warm(self, seconds):
        """Lets each process use locks of its own."""
        self.ask_all([f"warm {seconds} {self.session.names.next()}" for _ in self.members], seconds)

    def contend(self, command, seconds, others=None):
        """Lets all processes compete for the same lock."""
        return self.ask_all([f"{command} {seconds} {self.session.names.next()}"] * len(self.members), seconds, others)

    def ask_all(self, lines, seconds, others=None):
        for member, line in zip(self.members, lines):
            member.send(line)
        return [member.read_answer(seconds + 3 * ANSWER_SECONDS, others) for member in self.members]

    def pin(self, cores):
        for member in self.members:
            member.pin(cores)

    def pause(self):
        for member in self.members:
            member.pause()

    def end(self):
        for member in self.members:
            member.end()

    def measure(self, threads, seconds, monitor=None):
        for member in self.members:
            member.resume()
        self.warm(WARM_SECONDS)
        self.board.clear()
        cpu = self.read_cpu()
        self.session.redis.begin()
        meter = self.session.new_meter()
        answers = self.contend(f"hand {threads}", seconds, {monitor: monitor.read} if monitor else None)
        foreign = meter.share()
        counts = self.session.redis.read_counts()
        cpu = self.read_cpu() - cpu
        self.pause()
        return {**add_up(answers), "client_cpu": cpu, "server": counts, "foreign": foreign}

    def read_cpu(self):
        return sum(processes.cpu_seconds(member.pid) for member in self.members)


def add_up(answers):
    """Adds the counts. For times it takes the median, and for the longest wait the maximum."""
    def middle(key):
        known = sorted(answer[key] for answer in answers if answer.get(key) is not None)
        return known[len(known) // 2] if known else None

    changes = [answer["changes"] for answer in answers]
    return {"grants": sum(answer["grants"] for answer in answers),
            "changes": None if None in changes else sum(changes),
            "seconds": max(answer["seconds"] for answer in answers),
            "gap_p50": middle("gap_p50"), "gap_p99": middle("gap_p99"), "wait_p50": middle("wait_p50"),
            "wait_max": max(answer["wait_max"] for answer in answers)}
