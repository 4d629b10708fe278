"""The servers of a run: Redis or Valkey, ZooKeeper, and the proxy that adds latency."""
import glob
import os
import shutil
import socket
import statistics
import time

from . import processes

# Commands that set up a connection are not part of locking, and the harness itself sends some of them.
SET_UP = {"auth", "client", "command", "config", "dbsize", "hello", "info", "monitor", "readonly", "script", "select"}

SAMPLE_SCRIPT = """
local now = redis.call('time')
local left = {now[1] * 1000 + math.floor(now[2] / 1000)}
for i = 1, #KEYS do left[i + 1] = redis.call('pttl', KEYS[i]) end
return left
"""


def find_free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def wait_for(what, check, patience=20):
    give_up_at = time.monotonic() + patience
    while not check():
        if time.monotonic() > give_up_at:
            raise processes.PeerError(f"{what} did not start")
        time.sleep(0.02)


class Connection:
    """A plain connection to a Redis server."""

    def __init__(self, port):
        self.socket = socket.create_connection(("127.0.0.1", port))
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.file = self.socket.makefile("rb")

    def call(self, *words):
        self.socket.sendall(encode(words))
        return self.read_reply()

    def read_reply(self):
        line = self.file.readline()
        if not line:
            raise processes.PeerError("the server closed the connection")
        kind, rest = line[:1], line[1:-2]
        if kind == b"-":
            raise processes.PeerError("server: " + rest.decode())
        if kind == b":":
            return int(rest)
        if kind == b"$":
            return None if rest == b"-1" else self.file.read(int(rest) + 2)[:-2].decode()
        if kind == b"*":
            return [self.read_reply() for _ in range(int(rest))]
        return rest.decode()

    def close(self):
        self.file.close()
        self.socket.close()


def encode(words):
    words = [str(word).encode() for word in words]
    return b"*%d\r\n" % len(words) + b"".join(b"$%d\r\n%s\r\n" % (len(word), word) for word in words)


class Monitor:
    """Counts which commands clients sent and which ran inside scripts."""

    def __init__(self, port):
        self.connection = Connection(port)
        self.connection.call("MONITOR")
        self.rest = b""
        self.top_level, self.nested = {}, {}

    def fileno(self):
        return self.connection.socket.fileno()

    def read(self):
        lines = (self.rest + self.connection.socket.recv(1 << 20)).split(b"\r\n")
        self.rest = lines.pop()
        for line in lines:
            begin = line.find(b'] "')
            name = line[begin + 3:line.find(b'"', begin + 3)].decode(errors="replace").lower()
            counts = self.nested if line[:begin].endswith(b" lua") else self.top_level
            counts[name] = counts.get(name, 0) + 1

    def close(self):
        self.connection.close()

    def shares(self):
        """For each command, the share of its calls that clients sent."""
        names = set(self.top_level) | set(self.nested)
        return {name: self.top_level.get(name, 0) / (self.top_level.get(name, 0) + self.nested.get(name, 0))
                for name in names}


class RedisServer:
    def __init__(self, cores, log, directory, options=(), port=None):
        self.port = port or find_free_port()
        self.url = f"redis://127.0.0.1:{self.port}"
        program = os.environ.get("HF_TEST_SERVER") or "redis-server"
        self.process = processes.Process(
            [program, "--port", str(self.port), "--bind", "127.0.0.1", "--save", "", "--appendonly", "no",
             "--dir", directory, "--daemonize", "no", *options], cores, log)
        wait_for(program, self.answers)
        self.connection = Connection(self.port)
        self.version = self.read_version()
        self.cpu_before = 0

    def answers(self):
        if self.process.child.poll() is not None:
            raise processes.PeerError("the server exited at once")
        try:
            Connection(self.port).close()
            return True
        except OSError:
            return False

    def info(self, section):
        lines = self.connection.call("INFO", section).splitlines()
        return dict(line.split(":", 1) for line in lines if ":" in line)

    def read_version(self):
        info = self.info("server")
        return f"Valkey {info['valkey_version']}" if "valkey_version" in info else f"Redis {info['redis_version']}"

    def begin(self):
        """Starts counting."""
        self.connection.call("CONFIG", "RESETSTAT")
        self.cpu_before = processes.cpu_seconds(self.process.pid)

    def read_counts(self):
        """What was counted since begin()."""
        cpu = processes.cpu_seconds(self.process.pid) - self.cpu_before
        stats, commands = self.info("stats"), {}
        for key, text in self.info("commandstats").items():
            name = key[len("cmdstat_"):].split("|")[0].lower()
            if name in SET_UP:
                continue
            fields = dict(field.split("=") for field in text.split(","))
            before = commands.get(name, (0, 0))
            commands[name] = (before[0] + int(fields["calls"]), before[1] + int(fields["usec"]))
        return {"cpu": cpu, "commands": commands, "bytes_in": int(stats["total_net_input_bytes"]),
                "bytes_out": int(stats["total_net_output_bytes"])}

    def sample_expiry(self, keys):
        """The server's time in ms, and for each key its time to live in ms, negative if the key does not exist."""
        now, *left = self.connection.call("EVAL", SAMPLE_SCRIPT, len(keys), *keys)
        return now, left

    def pin(self, cores):
        self.process.pin(cores)

    def end(self):
        self.connection.close()
        self.process.end()


def measure_ping_ms(port, count=20):
    """The median round trip of PING."""
    connection, times = Connection(port), []
    for _ in range(count):
        begin = time.perf_counter()
        connection.call("PING")
        times.append((time.perf_counter() - begin) * 1000)
    connection.close()
    return statistics.median(times)


class DelayProxy:
    """bench/delay in front of a server."""

    def __init__(self, program, port, cores, log):
        self.process = processes.Process([program, str(port)], cores, log)
        self.port = self.process.read_answer(5)["port"]
        self.url = f"redis://127.0.0.1:{self.port}"

    def set_ms(self, milliseconds):
        self.process.ask(str(round(milliseconds * 1000)), 5)

    def ping_ms(self):
        return measure_ping_ms(self.port)

    def end(self):
        self.process.end()


def find_zookeeper(folders):
    """The class path of a ZooKeeper server, from the Debian package or from jars that Maven fetched."""
    packaged = "/usr/share/java/zookeeper.jar"
    if os.path.exists(packaged):
        return packaged
    for folder in folders:
        if all(glob.glob(os.path.join(folder, name)) for name in ("zookeeper-3*.jar", "metrics-core*.jar", "snappy*.jar")):
            return os.path.join(folder, "*")
    return None


class ZooKeeperServer:
    def __init__(self, class_path, cores, log, directory):
        self.port = find_free_port()
        self.url = f"zk://127.0.0.1:{self.port}"
        home = os.path.join(directory, "zookeeper")
        os.makedirs(os.path.join(home, "data"))
        config = os.path.join(home, "zoo.cfg")
        with open(config, "w", encoding="utf-8") as file:
            file.write(self.config(home))
        self.process = processes.Process(
            ["java", "-Xmx512m", "-XX:+UseSerialGC", "-XX:ActiveProcessorCount=1",
             "-Dzookeeper.jmx.log4j.disable=true", "-cp", class_path,
             "org.apache.zookeeper.server.quorum.QuorumPeerMain", config], cores, log)
        wait_for("ZooKeeper", lambda: "Mode:" in self.four_letters("srvr"))
        self.version = self.four_letters("srvr").split("version: ")[1].split("-")[0].split(",")[0]

    def config(self, home):
        # Sessions must outlive the time for which a client is stopped while others are measured.
        return "\n".join([
            "tickTime=2000", f"dataDir={home}/data", f"clientPort={self.port}", "clientPortAddress=127.0.0.1",
            "admin.enableServer=false", "4lw.commands.whitelist=*", "maxClientCnxns=0",
            "minSessionTimeout=7200000", "maxSessionTimeout=7200000", ""])

    def four_letters(self, word):
        try:
            with socket.create_connection(("127.0.0.1", self.port), 2) as connection:
                connection.sendall(word.encode())
                return connection.makefile("r").read()
        except OSError:
            return ""

    def pin(self, cores):
        self.process.pin(cores)

    def begin(self):
        pass

    def read_counts(self):
        return None

    def end(self):
        self.process.end()


def has_java():
    return shutil.which("java") is not None
