"""Benchmark peer: the Lock of redis-py with hiredis, one thread for each, all settings at their defaults."""

import asyncio
import json
import math
import mmap
import os
import queue
import sys
import threading
import time

import redis
import redis.asyncio

USAGE = "usage: peer.py [--processes N] (URL BOARD | --start URL NAME)"

# A thread keeps the interpreter while it holds the lock, so it would hardly notice a second holder.
# One grant in this many lets the others run.
YIELD_EVERY = 64

now = time.monotonic_ns


class Board:
    """The shared memory in which competing processes note who held the lock last."""

    def __init__(self, path):
        with open(path, "r+b") as file:
            self.words = memoryview(mmap.mmap(file.fileno(), 16)).cast("q")

    def enter(self, me):
        """Note the new holder, and return the last one with the time of its release."""
        last = self.words[0], self.words[1]
        self.words[0] = me
        return last

    def is_mine(self, me):
        """Return whether nobody else has entered since."""
        return self.words[0] == me

    def leave(self):
        self.words[1] = now()


class Span:
    """When a workload began and when it is to end, in nanoseconds."""

    def __init__(self, seconds):
        self.begin = now()
        self.until = self.begin + int(seconds * 1e9)


def quantile(values, fraction):
    """The microseconds below which this fraction of the sorted values lies."""
    if not values:
        return None
    return round(values[max(math.ceil(len(values) * fraction) - 1, 0)] / 1000, 1)


def run_threads(count, seconds, work):
    """Run work(i, span) in threads that start together. Return the span and the result of each."""
    spans = [queue.SimpleQueue() for _ in range(count)]
    results = queue.SimpleQueue()

    def run(i):
        try:
            results.put((work(i, spans[i].get()), None))
        except Exception as failure:
            results.put((None, failure))

    for i in range(count):
        threading.Thread(target=run, args=(i,), daemon=True).start()
    span = Span(seconds)
    for waiting in spans:
        waiting.put(span)
    returned = []
    for _ in range(count):
        result, failure = results.get()
        if failure:
            raise failure
        returned.append(result)
    return span, returned


def connect(client, count):
    """Open this many connections, which the pool then keeps."""
    pool = client.connection_pool
    for connection in [pool.get_connection() for _ in range(count)]:
        pool.release(connection)


def describe_pairs(span, latencies):
    seconds = (now() - span.begin) / 1e9
    latencies.sort()
    return {
        "pairs": len(latencies),
        "seconds": round(seconds, 6),
        "p50": quantile(latencies, 0.5),
        "p99": quantile(latencies, 0.99),
        "p999": quantile(latencies, 0.999),
    }


def own(client, threads, seconds, name):
    connect(client, threads)
    locks = [client.lock(f"{name}:{i}") for i in range(threads)]

    def use_own_lock(i, span):
        lock, latencies = locks[i], []
        before = now()
        while before < span.until:
            lock.acquire()
            lock.release()
            after = now()
            latencies.append(after - before)
            before = after
        return latencies

    span, latencies = run_threads(threads, seconds, use_own_lock)
    return describe_pairs(span, sum(latencies, []))


def warm(client, seconds, name):
    own(client, 1, seconds / 2, name)
    own(client, 8, seconds / 2, name)
    return {}


async def own_asynchronously(url, count, seconds, name):
    async with redis.asyncio.Redis.from_url(url) as client:
        pool = client.connection_pool
        for connection in [await pool.get_connection() for _ in range(count)]:
            await pool.release(connection)
        locks = [client.lock(f"{name}:{i}") for i in range(count)]
        latencies = []

        async def use_own_lock(lock, span):
            before = now()
            while before < span.until:
                await lock.acquire()
                await lock.release()
                after = now()
                latencies.append(after - before)
                before = after

        span = Span(seconds)
        await asyncio.gather(*(use_own_lock(lock, span) for lock in locks))
        return describe_pairs(span, latencies)


class Rival:
    """One of the threads that compete for one lock, and what it has counted."""

    def __init__(self, lock, board, i):
        self.lock = lock
        self.board = board
        self.me = os.getpid() * 1000 + i
        self.grants = 0
        self.gaps = []
        self.waits = []

    def note(self, span, asked_at, granted_at):
        """Count a grant if it arrived in time. A wait that is not over at the end counts until then."""
        last, released_at = self.board.enter(self.me)
        self.waits.append(min(granted_at, span.until) - asked_at)
        if granted_at >= span.until:
            return
        self.grants += 1
        if last != self.me and released_at >= span.begin:
            self.gaps.append(granted_at - released_at)

    def compete(self, span):
        asked_at = now()
        while asked_at < span.until:
            self.lock.acquire()
            self.note(span, asked_at, now())
            if self.grants % YIELD_EVERY == 0:
                time.sleep(0)
            if not self.board.is_mine(self.me):
                raise RuntimeError("two holders")
            self.board.leave()
            self.lock.release()
            asked_at = now()


def hand(client, board, threads, seconds, name):
    connect(client, threads)
    rivals = [Rival(client.lock(name), board, i) for i in range(threads)]
    span, _ = run_threads(threads, seconds, lambda i, span: rivals[i].compete(span))
    gaps = sorted(gap for rival in rivals for gap in rival.gaps)
    waits = sorted(wait for rival in rivals for wait in rival.waits)
    return {
        "grants": sum(rival.grants for rival in rivals),
        "changes": len(gaps),
        "seconds": round((span.until - span.begin) / 1e9, 6),
        "gap_p50": quantile(gaps, 0.5),
        "gap_p99": quantile(gaps, 0.99),
        "wait_p50": quantile(waits, 0.5),
        "wait_max": quantile(waits, 1),
    }


def answer(url, client, board, line):
    match line.split():
        case ["warm", seconds, name]:
            return warm(client, float(seconds), name)
        case ["own", threads, seconds, name]:
            return own(client, int(threads), float(seconds), name)
        case ["async", count, seconds, name]:
            return asyncio.run(own_asynchronously(url, int(count), float(seconds), name))
        case ["hand", threads, seconds, name]:
            return hand(client, board, int(threads), float(seconds), name)
        case ["held", *_]:
            return {
                "unsupported": "no watchdog: by default a lock never expires, and one that does is extended by hand"
            }
        case ["fair", *_]:
            return {"unsupported": "no fair lock"}
        case ["rw", *_]:
            return {"unsupported": "no read-write lock"}
    raise ValueError(f"unknown command: {line}")


def say(value):
    print(json.dumps(value), flush=True)


def serve(url, path):
    board = Board(path)
    client = redis.Redis.from_url(url)
    client.ping()
    say({"ready": True, "peer": "redis-py", "version": redis.__version__})
    for line in sys.stdin:
        if line.strip() == "quit":
            break
        say(answer(url, client, board, line.strip()))


def start_only(url, name):
    """Take one lock as soon as possible, then wait for a byte of input."""
    redis.Redis.from_url(url).lock(name).acquire()
    print("held", flush=True)
    os.read(0, 1)
    os._exit(0)


def main(arguments):
    if "--processes" in arguments:
        # The board is shared between processes, so their number does not matter here.
        at = arguments.index("--processes")
        del arguments[at : at + 2]
    work = serve
    if "--start" in arguments:
        arguments.remove("--start")
        work = start_only
    if len(arguments) != 2:
        sys.exit(USAGE)
    try:
        work(*arguments)
    except Exception as failure:
        say({"error": str(failure) or type(failure).__name__})
        # Threads that still wait for the lock must not keep the process alive.
        os._exit(1)


if __name__ == "__main__":
    main(sys.argv[1:])
