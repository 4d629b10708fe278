"""What is measured: each row of the tables, and how its program is built and called."""
import hashlib
import os
import shutil
import subprocess

REDISSON_4 = os.environ.get("REDISSON_4", "4.7.0")
REDISSON_3 = os.environ.get("REDISSON_3", "3.52.0")
JAVA = ["java", "-XX:ActiveProcessorCount=1", "-XX:+UseSerialGC"]


class Missing(Exception):
    """A tool that is needed to build a peer is missing, or the build failed."""


class Row:
    """One row of the tables: a program with its options."""

    def __init__(self, key, title, program, options=(), group="peer", server="redis", is_jvm=False,
                 is_async=False, warm_seconds=0.5, base=None, settings="", is_compared=False, copies=1):
        self.key, self.title, self.program, self.options = key, title, program, list(options)
        # limit, holdfast, redisson, peer, zookeeper (Holdfast on ZooKeeper), or deployed (on several servers)
        self.group = group
        self.server = server  # redis, zookeeper, or one of deployments.KINDS
        self.base = base or key  # the row that this is a variant of
        self.settings = settings  # follows the server's URL
        self.is_jvm = is_jvm
        self.is_async = is_async  # its threads are tasks of one thread, so this is also its asynchronous form
        self.warm_seconds = warm_seconds  # before the first figure
        # Goals compare Holdfast with it, or it is Holdfast or a limit; the others run in fewer rounds.
        self.is_compared = is_compared or group not in ("peer", "redisson")
        self.copies = copies  # processes that take turns, a round each
        self.version = None
        self.argv = None
        self.skipped = None  # why it is left out

    def __repr__(self):
        return self.key


def redisson(key, version, pools, title, **others):
    return Row(key, f"Redisson {version}, {title}", f"redisson-{version}", ["--pools", pools],
               **{"group": "redisson", "is_jvm": True, "warm_seconds": 2, **others})


def replicated(base, version, pools, title):
    return redisson(base + "-replica", version, pools, f"{title} (replica)", group="deployed", server="replica",
                    base=base)


# A compiler at run time makes each process differently fast for as long as it lives. One process would therefore be
# one draw, however many rounds it runs.
DRAWS = {"is_compared": True, "copies": 10}

ROWS = [
    Row("bare", "bare loop in C", "limits", ["own"], group="limit"),
    Row("pipelined", "pipelined loop in C", "limits", ["pipelined"], group="limit"),
    Row("move", "one script moves the hold, in C", "limits", ["move"], group="limit"),
    Row("holdfast", "Holdfast", "holdfast", group="holdfast"),
    redisson("redisson4-small", REDISSON_4, "small", "small pools", **DRAWS),
    redisson("redisson4", REDISSON_4, "default", "defaults", **DRAWS),
    redisson("redisson3-small", REDISSON_3, "small", "small pools"),
    redisson("redisson3", REDISSON_3, "default", "defaults"),
    Row("rslock", "rslock (Rust)", "rust", is_async=True, is_compared=True),
    Row("redsync-redigo", "redsync, redigo (Go)", "go", ["redsync-redigo"]),
    Row("redsync-goredis", "redsync, go-redis (Go)", "go", ["redsync-goredis"]),
    Row("redislock", "bsm/redislock (Go)", "go", ["redislock"]),
    Row("redis-py", "redis-py, hiredis (Python)", "python", warm_seconds=1),
    Row("redis-semaphore", "redis-semaphore (Node)", "node", ["redis-semaphore"], is_async=True, warm_seconds=3),
    Row("redlock", "redlock (Node)", "node", ["redlock"], is_async=True, warm_seconds=3),
    Row("curator", "Curator (ZooKeeper)", "curator", server="zookeeper", is_jvm=True, warm_seconds=2, **DRAWS),
    Row("holdfast-zk", "Holdfast (ZooKeeper)", "holdfast", group="zookeeper", server="zookeeper"),
    Row("zookeeper", "bare loop in C (ZooKeeper)", "zookeeper", group="limit", server="zookeeper"),
    Row("holdfast-cluster", "Holdfast (Cluster)", "holdfast", group="deployed", server="cluster", base="holdfast"),
    Row("holdfast-replica", "Holdfast, replicas=1 (replica)", "holdfast", group="deployed", server="replica",
        base="holdfast", settings="?replicas=1"),
    # It sends the scripts that the row before has brought to these servers.
    Row("durable", "pipelined loop in C, one WAIT (replica)", "limits", ["durable"], group="deployed",
        server="replica", base="bare"),
    replicated("redisson4-small", REDISSON_4, "small", "small pools"),
    replicated("redisson4", REDISSON_4, "default", "defaults"),
    replicated("redisson3-small", REDISSON_3, "small", "small pools"),
]


def checksum(folders):
    """The checksum of all files in the folders, so that a changed program is built again."""
    total = hashlib.sha1()
    for folder in folders:
        for path, names, files in sorted(os.walk(folder)):
            names.sort()
            for name in sorted(files):
                full = os.path.join(path, name)
                total.update(os.path.relpath(full, folder).encode())
                with open(full, "rb") as file:
                    total.update(file.read())
    return total.hexdigest()[:12]


def need_tools(*names):
    absent = [name for name in names if not shutil.which(name)]
    if absent:
        raise Missing(f"{' and '.join(absent)} not found")


def run_tool(argv, folder=None, environment=None):
    done = subprocess.run(argv, cwd=folder, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                          env={**os.environ, **(environment or {})}, check=False)
    if done.returncode:
        lines = [line for line in done.stdout.decode(errors="replace").splitlines() if line.strip()]
        raise Missing(f"{os.path.basename(argv[0])} failed: {' / '.join(lines[-3:])[:400]}")


class Builder:
    """Builds the programs of the rows, each once."""

    def __init__(self, bench, programs, cache, say):
        self.sources = os.path.join(bench, "peers")
        self.bench = bench
        self.programs = programs  # where the C programs are
        self.cache = cache
        self.say = say
        self.built = {}

    def resolve(self, row):
        """Fills in how to call the row's program, or why it cannot be called."""
        if row.program not in self.built:
            try:
                self.built[row.program] = self.build(row.program)
            except Missing as error:
                self.built[row.program] = error
        result = self.built[row.program]
        if isinstance(result, Missing):
            row.skipped = str(result)
        else:
            row.argv = result + row.options

    def build(self, program):
        family, _, version = program.partition("-")
        return getattr(self, "build_" + family)(*([version] if version else []))

    def once(self, name, folders, make):
        """Calls make with a folder to build in, unless the same sources were built before."""
        for folder in folders:
            if not os.path.isdir(folder) or not os.listdir(folder):
                raise Missing(f"{os.path.relpath(folder, self.bench)} is empty")
        target = os.path.join(self.cache, f"{name}-{checksum(folders)}")
        done = os.path.join(target, "built")
        if not os.path.exists(done):
            self.say(f"building the program for {name}")
            shutil.rmtree(target, ignore_errors=True)
            os.makedirs(target)
            make(target)
            with open(done, "w", encoding="utf-8"):
                pass
        return target

    def source(self, name):
        return os.path.join(self.sources, name)

    def program(self, name):
        path = os.path.join(self.programs, name)
        if not os.path.exists(path):
            raise Missing(f"{path} has not been built; run make all")
        return [path]

    def build_limits(self):
        return self.program("limits")

    def build_holdfast(self):
        return self.program("holdfast")

    def build_java(self, name, main, definitions, label):
        need_tools("java", "mvn")

        def make(target):
            run_tool(["mvn", "-q", "-B", "-f", os.path.join(self.source(name), "pom.xml"), *definitions,
                      f"-Dpeer.build={target}", f"-DoutputDirectory={target}/lib", "compile",
                      "dependency:copy-dependencies"])

        target = self.once(label, [self.source(name), self.source("java-common")], make)
        java = [shutil.which("java"), *JAVA[1:]]
        return [*java, "-cp", f"{target}/classes:{target}/lib/*", "holdfast.bench." + main]

    def build_redisson(self, version):
        return self.build_java("redisson", "RedissonPeer", [f"-Dredisson.version={version}"], f"redisson-{version}")

    def build_curator(self):
        return self.build_java("curator", "CuratorPeer", [], "curator")

    def build_rust(self):
        need_tools("cargo")

        def make(target):
            run_tool(["cargo", "build", "--quiet", "--release", "--locked", "--manifest-path",
                      os.path.join(self.source("rust"), "Cargo.toml"), "--target-dir", target])

        return [os.path.join(self.once("rslock", [self.source("rust")], make), "release", "rslock-peer")]

    def build_go(self):
        need_tools("go")

        def make(target):
            run_tool(["go", "build", "-mod=readonly", "-o", os.path.join(target, "peer"), "."], self.source("go"))

        return [os.path.join(self.once("go", [self.source("go")], make), "peer")]

    def build_python(self):
        need_tools("python3")

        def make(target):
            run_tool(["python3", "-m", "venv", os.path.join(target, "venv")])
            run_tool([os.path.join(target, "venv/bin/python"), "-m", "pip", "install", "-q",
                      "--disable-pip-version-check", "-r", os.path.join(self.source("python"), "requirements.txt")])

        target = self.once("redis-py", [self.source("python")], make)
        return [os.path.join(target, "venv/bin/python"), "-B", os.path.join(self.source("python"), "peer.py")]

    def build_node(self):
        need_tools("node", "npm")

        def make(target):
            shutil.copytree(self.source("node"), target, dirs_exist_ok=True)
            run_tool(["npm", "ci", "--silent", "--no-audit", "--no-fund"], target)

        return [shutil.which("node"), os.path.join(self.once("node", [self.source("node")], make), "peer.js")]

    def build_zookeeper(self):
        if not os.path.exists(os.path.join(self.programs, "zk_limits")):
            raise Missing("zk_limits has not been built; it needs libzookeeper-mt-dev")
        return self.program("zk_limits")
