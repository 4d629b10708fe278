"""holdfast top in a pseudo-terminal, whose screen pyte reads: top_screens.py HOLDFAST [STORY...]

A story is a function below whose name is a sentence. Each has a Redis server of its own, except those
about a Cluster, Sentinels and ZooKeeper, which share one deployment of each.
"""
import fcntl
import os
import pty
import re
import select
import shutil
import signal
import socket
import struct
import subprocess
import sys
import tempfile
import termios
import time

import pyte

sys.dont_write_bytecode = True
from deployment import Deployment  # noqa: E402

JAVA = "0f2b6c1e-6f0a-4a3e-9a51-7b8f6c1d2e3a"
SOON = 45  # seconds; only a broken test waits that long, or a busy machine
HOSTILE = [
    b"esc\x1b[2J\x1b[1;1HPWNED",
    b"line\rCR\nLF",
    b"</script><b>'\"\\",
    b"bad\xff\xfe utf8",
    "wide-\u6f22\u5b57-\u202ertl\u200b-e\u0301".encode(),
    b"long-" + b"x" * 500,
]


# Starts a program as a shell starts a job: only then does SIGTSTP stop it.
JOB = """
import os, signal, sys
child = os.fork()
if child:
    sys.exit(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
signal.signal(signal.SIGTTOU, signal.SIG_IGN)
os.setpgid(0, 0)
os.tcsetpgrp(0, os.getpgid(0))
signal.signal(signal.SIGTTOU, signal.SIG_DFL)
os.execv(sys.argv[1], sys.argv[1:])
"""


class Server:
    """A Redis server on a free port of this host, and one connection to it."""

    def __init__(self):
        self.dir = tempfile.mkdtemp(prefix="hf-top-")
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            self.port = free.getsockname()[1]
        self.url = f"redis://127.0.0.1:{self.port}"
        program = os.environ.get("HF_TEST_SERVER") or shutil.which("redis-server") or "valkey-server"
        self.process = subprocess.Popen(
            [program, "--port", str(self.port), "--bind", "127.0.0.1", "--save", "", "--dir", self.dir],
            stdout=subprocess.DEVNULL)
        wait_until(self.connect, "the server starts")

    def connect(self):
        try:
            self.socket = socket.create_connection(("127.0.0.1", self.port), timeout=SOON)
            self.file = self.socket.makefile("rwb")
            return self.command("PING") == b"PONG"
        except OSError:
            return False

    def command(self, *words):
        words = [w if isinstance(w, bytes) else str(w).encode() for w in words]
        self.file.write(b"*%d\r\n" % len(words) + b"".join(b"$%d\r\n%s\r\n" % (len(w), w) for w in words))
        self.file.flush()
        return self.reply()

    def reply(self):
        line = self.file.readline()
        kind, text = line[:1], line[1:-2]
        if kind == b"-":
            raise RuntimeError(text.decode())
        if kind == b"$":
            return None if text == b"-1" else self.file.read(int(text) + 2)[:-2]
        if kind == b"*":
            return [self.reply() for _ in range(int(text))]
        return int(text) if kind == b":" else text

    def hold(self, name, owner=JAVA + ":7", ttl_ms=30000):
        self.command("HSET", name, owner, 1)
        self.command("PEXPIRE", name, ttl_ms)

    def close(self):
        self.process.send_signal(signal.SIGCONT)
        self.process.kill()
        self.process.wait()
        shutil.rmtree(self.dir)


class Run:
    """holdfast run without a command: it holds the lock until its input ends."""

    def __init__(self, url, name, *options, history=False):
        env = {**os.environ, "HOLDFAST_URL": url + ("?history=yes" if history else ""), "HOME": "/nonexistent"}
        self.process = subprocess.Popen([HOLDFAST, "run", *options, name], stdin=subprocess.PIPE,
                                        stderr=subprocess.DEVNULL, env=env)

    def release(self):
        self.process.stdin.close()
        return self.process.wait()

    def close(self):
        self.process.kill()
        self.release()


class Top:
    """holdfast top on a terminal of its own."""

    def __init__(self, server, *words, size=(80, 24), term="xterm-256color", env=None, job=False):
        columns, rows = size
        self.screen = pyte.Screen(columns, rows)
        self.stream = pyte.ByteStream(self.screen)
        self.raw = b""
        self.status = None
        variables = {"PATH": os.environ["PATH"], "TERM": term, "HOLDFAST_URL": server.url, "LC_ALL": "C.UTF-8",
                     "HOME": "/nonexistent", **(env or {})}
        for name in ("ASAN_OPTIONS", "TSAN_OPTIONS", "UBSAN_OPTIONS", "LSAN_OPTIONS"):
            if name in os.environ:
                variables[name] = os.environ[name]
        # The terminal has its size before the program starts.
        self.fd, inner = pty.openpty()
        fcntl.ioctl(inner, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))
        self.before = termios.tcgetattr(inner)
        self.inner = inner
        leader = [sys.executable, "-c", JOB] if job else []
        self.process = subprocess.Popen([*leader, HOLDFAST, "top", *words], stdin=inner, stdout=inner, stderr=inner,
                                        env=variables, preexec_fn=self.take_terminal)

    def take_terminal(self):
        os.setsid()
        fcntl.ioctl(0, termios.TIOCSCTTY, 0)

    def job_pid(self):
        leader = self.process.pid
        return int(open(f"/proc/{leader}/task/{leader}/children", encoding="ascii").read())

    def resize(self, columns, rows):
        self.screen.resize(rows, columns)
        fcntl.ioctl(self.fd, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))

    def read(self):
        while select.select([self.fd], [], [], 0.02)[0]:
            try:
                data = os.read(self.fd, 65536)
            except OSError:
                return
            if not data:
                return
            self.raw += data
            # pyte does not know two sequences of private modes with intermediate bytes, and would show their rest.
            self.stream.feed(data.replace(b"\x1b[>4;m", b""))

    def lines(self):
        self.read()
        return [line.rstrip() for line in self.screen.display]

    def shows(self, text):
        return any(text in line for line in self.lines())

    def expect(self, text):
        wait_until(lambda: self.shows(text), f"the screen shows {text!r}", self)

    def expect_match(self, pattern):
        wait_until(lambda: any(re.search(pattern, line) for line in self.lines()), f"the screen shows {pattern!r}", self)

    def expect_not(self, text):
        wait_until(lambda: not self.shows(text), f"the screen does not show {text!r}", self)

    def type(self, text):
        os.write(self.fd, text.encode())

    def wait(self):
        def has_ended():
            self.read()
            return self.process.poll() is not None
        wait_until(has_ended, "the program ends", self)
        self.read()
        return self.process.returncode

    def expect_restored(self):
        """The screen before is back, and the terminal has the modes that it had."""
        assert termios.tcgetattr(self.inner) == self.before, "the modes of the terminal are not restored"
        if b"\x1b[?1049h" in self.raw:
            assert self.raw.rfind(b"\x1b[?1049l") > self.raw.rfind(b"\x1b[?1049h"), "the alternate screen stays"
        hidden, shown = self.raw.rfind(b"\x1b[?25l"), max(self.raw.rfind(b"\x1b[?25h"), self.raw.rfind(b"\x1b[?12l"))
        assert hidden <= shown, "the cursor stays hidden"

    def close(self):
        if self.process.poll() is None:
            self.process.kill()
            self.process.wait()
        os.close(self.fd)
        os.close(self.inner)


def wait_until(condition, what, top=None):
    ends = time.monotonic() + SOON
    while not condition():
        if time.monotonic() > ends:
            shown = "\n".join(top.lines()) if top else ""
            raise AssertionError(f"not in time: {what}\n{shown}")
        time.sleep(0.02)


def quit_top(top):
    top.type("q")
    assert top.wait() == 0, top.raw[-3000:].decode(errors="replace")
    top.expect_restored()
    top.close()


# ---- the table ----

def table_fits_every_size(server):
    server.hold("orders:42")
    for size in [(80, 24), (40, 10), (200, 50), (20, 5)]:
        top = Top(server, size=size)
        top.expect("orders:42")
        lines = top.lines()
        assert lines[0].startswith("holdfast "), lines
        assert lines[2].startswith("NAME"), lines
        assert lines[3].startswith("orders:42"), lines
        assert "keys" in lines[-1], lines
        quit_top(top)


def every_column_is_shown_on_a_usual_screen(server):
    server.hold("orders:42")
    top = Top(server)
    top.expect("orders:42")
    titles, row = top.lines()[2], top.lines()[3]
    for title in ["NAME", "KIND", "HELD", "TTL", "WAIT", "HOLDER", "STATE"]:
        assert title in titles, titles
    for cell in ["reentrant", "0f2b6c1e..:7", "held"]:
        assert cell in row, row
    top.expect("1 held  0 waited for  0 at risk")
    quit_top(top)


def resized_terminal_is_redrawn(server):
    server.hold("orders:42")
    top = Top(server)
    top.expect("reentrant")
    top.resize(40, 10)
    top.expect_not("reentrant")
    wait_until(lambda: "keys" in top.lines()[9], "the last line has moved", top)
    top.resize(120, 30)
    top.expect("reentrant")
    wait_until(lambda: "quit" in top.lines()[29], "the last line has moved", top)
    quit_top(top)


def waited_for_comes_before_old(server):
    server.hold("aaa")
    server.hold("zzz")
    listener = socket.create_connection(("127.0.0.1", server.port))
    listener.sendall(b"SUBSCRIBE redisson_lock__channel:{zzz}\r\n")
    top = Top(server)
    wait_until(lambda: top.lines()[3].startswith("zzz") and top.lines()[4].startswith("aaa"), "the order", top)
    top.expect("2 held  1 waited for")
    top.type("s")
    wait_until(lambda: top.lines()[3].startswith("aaa"), "the order of names", top)
    top.expect("order: name")
    quit_top(top)
    listener.close()


def state_follows_the_ttl(server):
    server.hold("renewed", ttl_ms=6000)
    top = Top(server, "-d", "200ms")
    top.expect("renewed")

    def is_renewing():
        server.command("PEXPIRE", "renewed", 6000)
        return top.shows("renewing")
    wait_until(is_renewing, "its state is renewing", top)
    top.expect("AT RISK")
    top.expect("No locks.")
    quit_top(top)


def filter_leaves_what_contains_it(server):
    server.hold("orders:42")
    server.hold("imports")
    top = Top(server)
    top.expect("imports")
    top.type("/ORD")
    top.expect_not("imports")
    top.expect("orders:42")
    top.type("\r")
    top.expect("filter: ORD")
    top.type("\x1b")
    top.expect("imports")
    quit_top(top)


def paused_screen_does_not_change(server):
    server.hold("first")
    top = Top(server, "-d", "200ms")
    top.expect("first")
    top.type("p")
    top.expect("PAUSED")
    server.hold("second")
    time.sleep(1.5)
    assert not top.shows("second")
    top.type("p")
    top.expect("second")
    quit_top(top)


def keys_are_explained(server):
    top = Top(server)
    top.expect("No locks.")
    top.type("?")
    top.expect("show only names that contain a text")
    top.type(" ")
    top.expect("No locks.")
    quit_top(top)


# ---- one lock ----

def page_of_a_lock_has_all_parties(server):
    for i in range(3):
        server.command("HSET", "shared", f"{JAVA}:{i}", 1)
    server.command("HSET", "shared", "mode", "read")
    server.command("PEXPIRE", "shared", 60000)
    server.command("SET", "holdfast_holder:{shared}:" + JAVA + ":1", "read\nweb-17\n4711 1 60000\nbackup.sh")
    top = Top(server)
    top.expect("shared")
    top.type("\r")
    top.expect("HOLDERS")
    top.expect("web-17 4711 backup.sh")
    top.expect("0f2b6c1e..:2")
    top.type("\x1b")
    top.expect("NAME")
    quit_top(top)


def page_of_a_lock_has_its_history(server):
    Run(server.url, "nightly", history=True).release()
    killed = Run(server.url, "nightly", "--lease", "1", history=True)
    wait_until(lambda: server.command("EXISTS", "nightly") == 1, "the lock is held")
    killed.close()
    holder = Run(server.url, "nightly", history=True)
    wait_until(lambda: server.command("XLEN", "holdfast_history") == 4, "the third grant")
    for size in [(80, 24), (40, 24)]:
        top = Top(server, "-d", "200ms", size=size)
        top.expect("nightly")
        top.type("\r")
        top.expect("3  ENDED AGO")
        lines = top.lines()
        first = next(i for i, line in enumerate(lines) if "ENDED AGO" in line) + 1
        for line, word in zip(lines[first:], ["held", "inferred", "released"]):
            assert word in line and ("<=" in line) == (word == "inferred"), lines
        assert size[0] == 40 or str(killed.process.pid) in lines[first + 1], lines
        quit_top(top)
    top = Top(server, "-d", "200ms")
    top.expect("nightly")
    top.type("\r")
    top.expect("held  ")
    holder.release()
    wait_until(lambda: sum("released" in line for line in top.lines()) == 2, "the end is shown", top)
    quit_top(top)


def lock_without_a_history_says_what_it_takes(server):
    server.hold("orders:42")
    top = Top(server)
    top.expect("orders:42")
    top.type("\r")
    top.expect("No history: clients keep one if their URL says history=yes.")
    server.command("SET", "holdfast_history", "mine")
    top.expect("History: ")
    server.command("DEL", "holdfast_history")
    top.expect("No history")
    quit_top(top)


def hostile_texts_of_a_history_stay_in_their_lines(server):
    server.hold("orders:42")
    for i, text in enumerate(HOSTILE):
        server.command("XADD", "holdfast_history", f"{i + 1}-1", "e", "g", "n", "orders:42", "o", b"o" + text, "k", "fair",
                       "w", "1", "h", text, "p", "1", "x", text)
    top = Top(server)
    top.expect("orders:42")
    top.type("\r")
    top.expect("6  ENDED AGO")
    lines = top.lines()
    assert lines[0].startswith("holdfast ") and "back" in lines[-1], lines
    assert sum("inferred" in line for line in lines) == 6, lines
    quit_top(top)


# ---- unlock ----

def unlock_needs_the_whole_name(server):
    server.hold("orders:42")
    top = Top(server)
    top.expect("orders:42")
    for typed in ["orders:4", "", "orders:422", "yes"]:
        top.type("u")
        top.expect("Type the whole name")
        top.type(typed + "\r")
        top.expect("that is not the whole name")
        assert server.command("EXISTS", "orders:42") == 1
    top.type("u")
    top.expect("held by 0f2b6c1e..:7")
    top.type("\x1b")
    top.expect_not("Type the whole name")
    assert server.command("EXISTS", "orders:42") == 1
    top.type("uorders:42\r")
    top.expect("unlocked: orders:42")
    assert server.command("EXISTS", "orders:42") == 0
    quit_top(top)


def read_only_refuses_to_unlock(server):
    server.hold("orders:42")
    top = Top(server, "--read-only")
    top.expect("orders:42")
    assert not top.shows("u unlock")
    top.type("u")
    top.expect("--read-only")
    top.type("orders:42\r")
    time.sleep(0.5)
    assert server.command("EXISTS", "orders:42") == 1
    top.close()


def revoke_is_for_zookeeper(server):
    server.hold("orders:42")
    top = Top(server)
    top.expect("orders:42")
    top.type("r")
    top.expect("ZooKeeper only")
    quit_top(top)


# ---- names and terminals ----

def hostile_names_stay_in_their_cells(server):
    for name in HOSTILE:
        server.hold(name)
    for size in [(80, 24), (40, 12), (200, 30)]:
        top = Top(server, "-s", "name", size=size)
        top.expect("6 held")
        wait_until(lambda: sum(line != "" for line in top.lines()[3:9]) == 6, "all rows", top)
        lines = top.lines()
        assert lines[0].startswith("holdfast ") and lines[2].startswith("NAME"), lines
        assert "keys" in lines[-1] and not any(lines[9:-1]), lines
        held = lines[2].index("HELD")
        for y in range(3, 9):
            # A wide character has its data in the first of its two cells.
            cells = "".join(top.screen.buffer[y][x].data or "" for x in range(held - 4, size[0]))
            assert "PWNED" not in cells and "xxx" not in cells, cells
            assert cells.split()[0] in ("-", ">1.0s") or cells.split()[0].startswith(">"), cells
        top.type("\r")
        top.expect("Kind")
        quit_top(top)


def hostile_name_is_unlocked_as_it_is_shown(server):
    server.hold(b"esc\x1b[2J")
    top = Top(server)
    top.expect("esc\\x1b[2J")
    top.type("uesc\\x1b[2J\r")
    top.expect("unlocked")
    refused = top.shows("not unlocked")
    assert server.command("EXISTS", b"esc\x1b[2J") == (1 if refused else 0)
    quit_top(top)


def no_color_is_respected(server):
    server.hold("orders:41")
    server.hold("orders:42")
    listener = socket.create_connection(("127.0.0.1", server.port))
    listener.sendall(b"SUBSCRIBE redisson_lock__channel:{orders:42}\r\n")

    def colours(env):
        top = Top(server, "-s", "name", env=env)  # the first row is selected, and has no colour
        top.expect("1 waited for")
        wait_until(lambda: top.lines()[4].startswith("orders:42"), "the row", top)
        found = {top.screen.buffer[y][x].fg for y in range(24) for x in range(80)}
        quit_top(top)
        return found
    assert colours({"NO_COLOR": "1"}) == {"default"}
    assert "brown" in colours({})
    listener.close()


def old_terminals_work(server):
    server.hold("orders:42")
    for term in ["vt100", "linux", "screen"]:
        top = Top(server, term=term)
        top.expect("orders:42")
        quit_top(top)
    top = Top(server, env={"LC_ALL": "C"})
    top.expect("orders:42")
    assert all(byte < 128 for byte in top.raw), top.raw
    quit_top(top)


def terminal_without_cursor_gets_one_snapshot(server):
    server.hold("orders:42")
    for term in ["dumb", "unknown-terminal", ""]:
        top = Top(server, term=term, size=(200, 24))
        assert top.wait() == 0
        assert top.shows("cannot show a live view") and top.shows("orders:42"), top.lines()
        assert b"\x1b" not in top.raw, top.raw
        top.close()


def pipe_gets_one_snapshot(server):
    for name in HOSTILE:
        server.hold(name)
    env = {**os.environ, "HOLDFAST_URL": server.url, "LC_ALL": "C.UTF-8"}
    for words in [["top"], ["top", "--once"], ["top", "--once", "-s", "name"]]:
        done = subprocess.run([HOLDFAST, *words], env=env, capture_output=True, timeout=SOON, check=True)
        assert done.stdout.count(b"\n") == 8, done.stdout
        assert b"\x1b" not in done.stdout and b"6 held" in done.stdout, done.stdout
    done = subprocess.run([HOLDFAST, "top", "long*"], env=env, capture_output=True, timeout=SOON, check=True)
    assert done.stdout.count(b"\n") == 3, done.stdout


# ---- ends ----

def signals_restore_the_screen(server):
    for number in [signal.SIGINT, signal.SIGTERM, signal.SIGHUP]:
        top = Top(server)
        top.expect("No locks.")
        top.process.send_signal(number)
        assert top.wait() == -number
        top.expect_restored()
        top.close()


def is_stopped(pid):
    with open(f"/proc/{pid}/stat", encoding="ascii") as stat:
        return stat.read().rsplit(")", 1)[1].split()[0] == "T"


def stopped_program_continues(server):
    top = Top(server, "-d", "200ms", job=True)
    top.expect("No locks.")
    pid = top.job_pid()
    for stop in [signal.SIGSTOP, signal.SIGTSTP]:
        os.kill(pid, stop)
        wait_until(lambda: is_stopped(pid), "the program stops", top)
        top.read()
        if stop == signal.SIGTSTP:
            top.expect_restored()
        # Somebody else writes on the terminal meanwhile.
        top.stream.feed(b"\x1b[H\x1b[2J$ fg\r\n")
        server.hold(f"after-{stop}")
        os.kill(pid, signal.SIGCONT)
        top.expect(f"after-{stop}")
        top.expect("NAME")
        top.expect_not("$ fg")
    quit_top(top)


def lost_server_is_said_until_it_is_back(server):
    server.hold("orders:42", ttl_ms=600000)
    top = Top(server, "-d", "200ms")
    top.expect("orders:42")
    server.process.send_signal(signal.SIGSTOP)
    top.expect_match(r"server unreachable for ([3-9]|\d\d) s")
    assert top.shows("orders:42")
    server.process.send_signal(signal.SIGCONT)
    top.expect_not("unreachable")
    # The time of the outage is not time that the server has worked, so what comes next is shown soon.
    server.hold("after")
    top.expect("2 held")
    quit_top(top)


def lost_server_does_not_keep_it_from_ending(server):
    top = Top(server, "-d", "200ms")
    top.expect("No locks.")
    server.process.send_signal(signal.SIGSTOP)
    top.expect("unreachable")
    began = time.monotonic()
    top.type("q")
    assert top.wait() == 0
    assert time.monotonic() - began < 5
    top.expect_restored()
    top.close()


def missing_rights_are_said(server):
    server.hold("waited")
    server.hold("quiet")
    server.command("ACL", "SETUSER", "few", "on", ">pw", "~*", "&*", "+@all", "-scan")
    server.url = server.url.replace("//", "//few:pw@")
    listener = socket.create_connection(("127.0.0.1", server.port))
    listener.sendall(b"SUBSCRIBE redisson_lock__channel:{waited}\r\n")
    top = Top(server, size=(120, 24))
    top.expect("only those waited for")
    top.expect("waited ")
    assert not top.shows("quiet")
    assert b"pw@" not in open(f"/proc/{top.process.pid}/cmdline", "rb").read()
    quit_top(top)
    listener.close()


def bad_arguments_are_64(server):
    for words in [["-d", "0"], ["-d", "x"], ["a", "b"], ["-s", "size"], ["--nonsense"]]:
        top = Top(server, *words)
        assert top.wait() == 64, words
        assert b"\x1b" not in top.raw
        top.close()


# ---- several servers ----

def locks_of_all_masters_are_shown(cluster):
    names = [f"lock-{i}" for i in range(8)]
    runs = [Run(cluster.url, name, history=True) for name in names]
    top = Top(cluster, "-s", "name", size=(100, 24))
    top.expect("8 held")
    top.expect("3 masters")
    lines = top.lines()
    assert [line.split()[0] for line in lines[3:11]] == names, lines
    top.type("\r")
    top.expect("1  ENDED AGO")
    top.type("u")
    top.expect("Type the whole name")
    top.type(names[0] + "\r")
    top.expect("unlocked: " + names[0])
    top.expect("1  ENDED AGO")
    top.type("\x1b")
    top.expect("7 held")
    quit_top(top)
    env = {**os.environ, "HOLDFAST_URL": cluster.url, "LC_ALL": "C.UTF-8"}
    done = subprocess.run([HOLDFAST, "top", "--once"], env=env, capture_output=True, timeout=SOON, check=True)
    assert done.stdout.count(b"\n") == 2 + 7 and b"3 masters" in done.stdout, done.stdout
    for run in runs:
        run.release()


def lost_cluster_is_said_until_it_is_back(cluster):
    run = Run(cluster.url, "orders:42", "--lease", "60")
    expect_lost_and_back(cluster)
    run.close()


def failover_is_waited_for_and_shown(sentinel):
    run = Run(sentinel.url, "orders:42", "--lease", "120")
    top = Top(sentinel, "-d", "200ms")
    top.expect("orders:42")
    wait_until(lambda: "127.0.0.1:" in top.lines()[0], "the address", top)
    before = top.lines()[0].split("127.0.0.1:")[1].split()[0]
    # Only when the replicas answer again can one of them replace the master.
    sentinel.order("freeze")
    sentinel.order("kill")
    top.expect("server unreachable for ")
    assert top.shows("orders:42")
    sentinel.order("thaw")
    top.expect_not("unreachable")
    wait_until(lambda: f"127.0.0.1:{before}" not in top.lines()[0], "another address", top)
    top.expect("1 held")
    top.type("\r")
    top.expect("HOLDERS")
    quit_top(top)
    run.close()


def revoke_asks_the_holder(zookeeper):
    run = Run(zookeeper.url, "orders:42", "--revocable")
    top = Top(zookeeper, "-d", "200ms")
    top.expect("no expiry")
    top.expect("r revoke")
    top.type("\r")
    top.expect("History: there is no history on ZooKeeper")
    top.type("r")
    top.expect("Ask the holder to release this lock?")
    top.type("n")
    top.expect("q quit")
    assert run.process.poll() is None
    top.type("ry")
    top.expect("asked the holder to release it: orders:42")
    assert run.process.wait(SOON) == 80
    top.expect("Nobody holds this lock")
    quit_top(top)
    run.close()


def lost_zookeeper_is_said_until_it_is_back(zookeeper):
    run = Run(zookeeper.url, "orders:42")
    expect_lost_and_back(zookeeper)
    run.close()


def expect_lost_and_back(deployment):
    top = Top(deployment, "-d", "200ms")
    top.expect("orders:42")
    deployment.order("freeze")
    top.expect("server unreachable for ")
    assert top.shows("orders:42")
    deployment.order("thaw")
    top.expect_not("unreachable")
    top.expect("1 held")
    quit_top(top)


def stories_with(argument):
    """The functions that have just this argument."""
    return [story for story in globals().values() if getattr(story, "__code__", None)
            and story.__code__.co_argcount == 1 and story.__code__.co_varnames[0] == argument]


def play(story, server):
    """Returns whether it failed."""
    try:
        story(server)
        print(f"ok      {story.__name__}", flush=True)
        return False
    except Exception as error:  # a story that breaks must not hide the others
        print(f"FAILED  {story.__name__}: {type(error).__name__}: {error}", flush=True)
        return True


def play_alone(story):
    server = Server()
    try:
        return play(story, server)
    finally:
        server.close()


def play_on(kind, stories):
    deployment = Deployment(HOLDFAST, kind) if stories else None
    try:
        if stories and not deployment.url:
            print(f"skipped {kind}: it cannot be started here", flush=True)
            return 0
        return sum(play(story, deployment) for story in stories)
    finally:
        if deployment:
            deployment.close()


def main():
    def wanted(argument):
        return [story for story in stories_with(argument) if not sys.argv[2:] or story.__name__ in sys.argv[2:]]
    failed = sum(play_alone(story) for story in wanted("server"))
    for kind in ["cluster", "sentinel", "zookeeper"]:
        failed += play_on(kind, wanted(kind))
    return 1 if failed else 0


HOLDFAST = sys.argv[1]
if __name__ == "__main__":
    sys.exit(main())
