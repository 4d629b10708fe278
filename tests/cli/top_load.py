"""What holdfast top costs the server and this host: top_load.py HOLDFAST [KEYS [LOCKS]]

With a million keys the server must not spend more than 5 % of its time on it, by its own count. With 100 000 locks top
must not use more than 10 % of a processor, nor more than 50 MiB.
"""
import os
import re
import sys
import time

sys.dont_write_bytecode = True
from top_screens import JAVA, Server, Top, quit_top  # noqa: E402

SECONDS = 20
MOST_SERVER_PERCENT = 5
MOST_CPU_PERCENT = 10
MOST_KIB = 50 * 1024
WALK_SECONDS = 900  # until a walk over all locks is complete

# Commands that a script calls are counted on their own too, and must not be counted twice.
SENT = re.compile(rb"cmdstat_(eval|evalsha|ping|client\|\w+|hello|script\|\w+|info):.*?usec=(\d+)")


def fill(server, count, script):
    for first in range(0, count, 50000):
        server.command("EVAL", script, 0, first, min(count, first + 50000) - 1, JAVA)


def server_us(server):
    return sum(int(usec) for _, usec in SENT.findall(server.command("INFO", "commandstats")))


def let_run(top, seconds):
    ends = time.monotonic() + seconds
    while time.monotonic() < ends:
        top.read()
        time.sleep(0.1)


def cpu_seconds(pid):
    with open(f"/proc/{pid}/stat", encoding="ascii") as stat:
        fields = stat.read().rsplit(")", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def resident_kib(pid):
    with open(f"/proc/{pid}/status", encoding="ascii") as status:
        return int(re.search(r"VmHWM:\s+(\d+)", status.read()).group(1))


def measure(server, top, what, most_percent):
    let_run(top, 2)
    server.command("CONFIG", "RESETSTAT")
    began, cpu = time.monotonic(), cpu_seconds(top.process.pid)
    let_run(top, SECONDS)
    worked = server_us(server) / 1e6
    took = time.monotonic() - began
    cpu = cpu_seconds(top.process.pid) - cpu
    print(f"{what}: server {100 * worked / took:.2f} % of the time, top {100 * cpu / took:.2f} % of a processor, "
          f"{resident_kib(top.process.pid) / 1024:.1f} MiB", flush=True)
    assert worked > 0, "the server has counted nothing"
    assert 100 * worked / took <= most_percent
    assert 100 * cpu / took <= MOST_CPU_PERCENT
    assert resident_kib(top.process.pid) <= MOST_KIB


def main():
    keys = int(sys.argv[2]) if len(sys.argv) > 2 else 1000000
    locks = int(sys.argv[3]) if len(sys.argv) > 3 else 100000
    server = Server()
    try:
        fill(server, keys, "for i = ARGV[1], ARGV[2] do redis.call('set', 'other-' .. i, i) end")
        server.hold("the-only-one", ttl_ms=3600000)
        top = Top(server)
        measure(server, top, f"{keys} keys", MOST_SERVER_PERCENT)
        quit_top(top)
        server.command("FLUSHALL")
        fill(server, locks, "for i = ARGV[1], ARGV[2] do redis.call('hset', 'lock-' .. i, ARGV[3] .. ':' .. i, 1) "
                            "redis.call('pexpire', 'lock-' .. i, 3600000) end")
        top = Top(server)
        measure(server, top, f"{locks} locks, in the first walk", MOST_SERVER_PERCENT)
        ends = time.monotonic() + WALK_SECONDS
        while not top.shows(f"{locks} held") and time.monotonic() < ends:
            let_run(top, 1)
        assert top.shows(f"{locks} held"), top.lines()[:3]
        measure(server, top, f"{locks} locks, all of them known", MOST_SERVER_PERCENT)
        quit_top(top)
    finally:
        server.close()


main()
