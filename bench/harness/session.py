"""The running peers of one run: started once, stopped while others are measured, asked in turn."""
import os
import sys

from . import processes, servers

ANSWER_SECONDS = 40  # how much longer than asked for an answer may take
WARM_SECONDS = 0.3  # right before each figure
JVM_WARM_UP = ["own 16 2", "hand 8 2.5", "fair 8 1", "rw 16 1"]  # and first a plain warm-up, see Row
DROP_AFTER = 4  # failures of a peer


def say(text):
    print(f"bench: {text}", file=sys.stderr, flush=True)


class Machine:
    """Which core is whose."""

    def __init__(self):
        allowed = sorted(os.sched_getaffinity(0))
        self.measured = {allowed[-1]}
        self.second = {allowed[-2]} if len(allowed) > 1 else None
        self.elsewhere = self.second or self.measured  # for what is not measured

    def modes(self):
        return ["one core", "one core each"] if self.second else ["one core"]

    def client_cores(self, mode):
        return self.measured if mode == "one core" else self.second


class Names:
    """A fresh prefix for lock names each time, all of one length since names go over the wire."""

    def __init__(self):
        self.count = 0

    def next(self):
        self.count += 1
        return f"bench-{self.count:06d}"


class Board:
    """The file that all processes on one lock share."""

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
        self.pair_file = os.path.join(directory, "pair")
        self.failures = {}
        self.casts = []

    def server_of(self, row):
        return self.zookeeper if row.server == "zookeeper" else self.redis

    def start_zookeeper(self, class_path):
        self.zookeeper = servers.ZooKeeperServer(class_path, self.machine.measured, self.log, self.directory)

    def learn_pair(self, argv):
        """The bare loops send what the library sends; it says what that is."""
        done = processes.subprocess.run([*argv, "--learn", self.redis.url], stdout=processes.subprocess.PIPE,
                                        stderr=self.log, check=False, timeout=20)
        if done.returncode:
            raise processes.PeerError("Holdfast could not show what it sends")
        with open(self.pair_file, "wb") as file:
            file.write(done.stdout)

    def argv_of(self, row):
        if row.program != "limits" or row.key == "move":
            return row.argv
        program, *options = row.argv
        return [program, "--pair", self.pair_file, *options]

    def start_argv_of(self, row, name):
        """How a row is called that only takes one lock."""
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
        """What comes before the first figure."""
        process.ask(f"warm {row.warm_seconds} {self.names.next()}", row.warm_seconds + ANSWER_SECONDS)
        for command in JVM_WARM_UP if row.is_jvm else []:
            process.ask(f"{command} {self.names.next()}", ANSWER_SECONDS)

    def note_failure(self, row, error):
        """Says what went wrong, and gives the row up if that was not the first time."""
        say(f"{row.title}: {error}")
        self.failures[row.key] = self.failures.get(row.key, 0) + 1
        if self.failures[row.key] >= DROP_AFTER:
            row.skipped = f"failed {DROP_AFTER} times, at last: {error}"
            say(f"{row.title}: left out from here on")

    def set_mode(self, mode):
        self.mode = mode
        for cast in self.casts:
            cast.pin(self.machine.client_cores(mode))


class Cast:
    """One process for each row, all on the same servers, or through the same proxy."""

    def __init__(self, session, url=None):
        self.session, self.url = session, url
        self.running = {}
        session.casts.append(self)

    def start(self, row):
        """The row's process, warmed up and stopped."""
        board = Board(self.session.directory, f"{row.key}-{len(self.session.casts)}")
        process = self.session.spawn(row, self.url or self.session.server_of(row).url, board)
        self.running[row.key] = (process, board)
        self.session.warm_up(row, process)
        process.pause()

    def drop(self, row):
        process, _ = self.running.pop(row.key, (None, None))
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

    def measure(self, row, command, seconds, monitor=None):
        """One figure: the peer's answer, and what server and client spent on it."""
        session = self.session
        if row.key not in self.running:
            self.start(row)
        process, board = self.running[row.key]
        server = session.server_of(row)
        process.resume()
        process.ask(f"warm {WARM_SECONDS} {session.names.next()}", WARM_SECONDS + ANSWER_SECONDS)
        board.clear()
        others = {monitor: monitor.read} if monitor else None
        server.begin()
        client_cpu = processes.cpu_seconds(process.pid)
        answer = process.ask(f"{command} {seconds} {session.names.next()}", seconds + ANSWER_SECONDS, others)
        client_cpu = processes.cpu_seconds(process.pid) - client_cpu
        counts = server.read_counts()
        process.pause()
        return {**answer, "client_cpu": client_cpu, "server": counts}


class Crowd:
    """Several processes of one row on one lock."""

    def __init__(self, session, row, count):
        self.session, self.row = session, row
        self.board = Board(session.directory, f"{row.key}-crowd")
        self.members = [session.spawn(row, session.redis.url, self.board, ["--processes", str(count)])
                        if row.key != "holdfast" else session.spawn(row, session.redis.url, self.board)
                        for _ in range(count)]

    def ask_all(self, command, seconds, others=None):
        for member in self.members:
            member.send(f"{command} {seconds} {self.session.names.next() if command == 'warm' else self.name}")
        return [member.read_answer(seconds + 3 * ANSWER_SECONDS, others) for member in self.members]

    def warm_up(self):
        """On all cores there are, since several runtimes compile at once."""
        everywhere = self.session.machine.measured | self.session.machine.elsewhere
        self.pin(everywhere)
        self.name = self.session.names.next()
        self.ask_all("warm", 12 if self.row.is_jvm else 2)
        self.ask_all("hand 4", 3 if self.row.is_jvm else 1)
        self.pin(self.session.machine.client_cores(self.session.mode))
        self.pause()

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
        self.ask_all("warm", WARM_SECONDS)
        self.board.clear()
        self.name = self.session.names.next()
        cpu = self.read_cpu()
        self.session.redis.begin()
        others = {monitor: monitor.read} if monitor else None
        answers = self.ask_all(f"hand {threads}", seconds, others)
        counts = self.session.redis.read_counts()
        cpu = self.read_cpu() - cpu
        self.pause()
        return {**add_up(answers), "client_cpu": cpu, "server": counts}

    def read_cpu(self):
        return sum(processes.cpu_seconds(member.pid) for member in self.members)


def add_up(answers):
    """Counts are added; of the times the middle one stands for all, of the longest the longest."""
    def middle(key):
        known = sorted(answer[key] for answer in answers if answer.get(key) is not None)
        return known[len(known) // 2] if known else None

    changes = [answer["changes"] for answer in answers]
    return {"grants": sum(answer["grants"] for answer in answers),
            "changes": None if None in changes else sum(changes),
            "seconds": max(answer["seconds"] for answer in answers),
            "gap_p50": middle("gap_p50"), "gap_p99": middle("gap_p99"), "wait_p50": middle("wait_p50"),
            "wait_max": max(answer["wait_max"] for answer in answers)}
