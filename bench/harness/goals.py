"""The goals of Holdfast as data: what each compares, and how its value is computed."""
from .figures import TWO_CORES, Figure

REDISSON = ["redisson"]
OTHERS = ["redisson", "peer"]


def held_ratio(figures, count, metric):
    """Holdfast's value as a ratio to that of the Redisson that takes least."""
    mine = figures.held_figure("holdfast", count, metric)
    theirs = [(figures.held_figure(row, count, metric), row) for row in figures.titles
              if figures.groups[row] == "redisson"]
    theirs = [(figure.median, row) for figure, row in theirs if figure]
    if not mine or not theirs:
        return None
    least, row = min(theirs)
    return Figure([mine.low / least, mine.median / least, mine.high / least], figures.titles[row])


def after_use(figures, row):
    """Renewal scripts after use of other locks, as a ratio to those without."""
    used, fresh = (figures.held_figure(row, 1000, "renewal_scripts", is_used) for is_used in (True, False))
    if not used or not fresh or not fresh.median:
        return None
    return Figure([used.low / fresh.median, used.median / fresh.median, used.high / fresh.median])


def held_answer(figures, count, read):
    entry = figures.held("holdfast", count)
    value = read(entry) if entry else None
    return None if value is None else Figure([value])


def start_to_best(figures):
    others = [(figures.start_figure(row), row) for row in figures.titles if figures.groups[row] in OTHERS]
    others = [(figure.median, row) for figure, row in others if figure]
    return figures.start_ratio("holdfast", min(others)[1]) if others else None


# Workload, what, comparison, bound, value. The value is compared as it is printed, with two decimals.
GOALS = [
    (1, "one thread: pairs, compared with the bare loop", ">=", 0.91, lambda f: f.to_bare("own-1", "holdfast")),
    (1, "one thread: pairs, compared with the best peer", ">=", 1.0, lambda f: f.to_best("own-1", OTHERS)),
    (1, "one thread: pairs, compared with Redisson", ">=", 2.7, lambda f: f.to_best("own-1", REDISSON)),
    (1, "one thread, 1 ms each way: pairs, compared with the bare loop", ">=", 0.98,
     lambda f: f.to_bare("delay-1-own-1", "holdfast")),
    (1, "one thread, 1 ms each way: pairs, compared with the best peer", ">=", 1.0,
     lambda f: f.to_best("delay-1-own-1", OTHERS)),
    (2, "16 threads: pairs, compared with the bare loop", ">=", 2.1, lambda f: f.to_bare("own-16", "holdfast")),
    (2, "64 threads: pairs, compared with the bare loop", ">=", 2.5, lambda f: f.to_bare("own-64", "holdfast")),
    (2, "64 threads, one core each: pairs, compared with the bare loop", ">=", 2.0,
     lambda f: f.to_bare("own-64", "holdfast", "one core each")),
    (2, "16 threads: pairs, compared with rslock", ">=", 0.95, lambda f: f.ratio("own-16", "holdfast", "rslock")),
    (2, "64 threads: pairs, compared with rslock", ">=", 0.95, lambda f: f.ratio("own-64", "holdfast", "rslock")),
    (2, "16 threads: pairs, compared with Redisson", ">=", 5, lambda f: f.to_best("own-16", REDISSON)),
    (2, "64 threads: pairs, compared with Redisson", ">=", 5, lambda f: f.to_best("own-64", REDISSON)),
    (2, "asynchronous: pairs, compared with the pipelined loop", ">=", 0.9,
     lambda f: f.to_bare("async-64", "holdfast")),
    (2, "asynchronous: pairs, compared with rslock", ">=", 1.7, lambda f: f.ratio("async-64", "holdfast", "rslock")),
    (3, "8 threads: grants, compared with bare pairs", ">=", 1.4, lambda f: f.to_bare("hand-8", "holdfast")),
    (3, "8 threads: commands per grant", "<=", 1.2, lambda f: f.figure("hand-8", "holdfast", "commands")),
    (3, "8 threads: share of grants that are changes", ">=", 0.9,
     lambda f: f.figure("hand-8", "holdfast", "changes_share")),
    (3, "8 threads: grants, compared with Redisson", ">=", 7, lambda f: f.to_best("hand-8", REDISSON)),
    (3, "8 threads: changes, compared with Redisson", ">=", 14,
     lambda f: f.to_best("hand-8", REDISSON, "changes_rate")),
    (3, "8 threads, 1 ms each way: round trips per grant", "<=", 1.2,
     lambda f: f.figure("delay-1-hand-8", "holdfast", "round_trips")),
    (3, "8 threads, 1 ms each way: grants, compared with Redisson", ">=", 1.6,
     lambda f: f.to_best("delay-1-hand-8", REDISSON)),
    (3, "8 processes of 4 threads: commands per grant", "<=", 6,
     lambda f: f.figure("hand-8x4", "holdfast", "commands")),
    (3, "8 processes of 4 threads: grants, compared with Redisson", ">=", 3, lambda f: f.to_best("hand-8x4", REDISSON)),
    (4, "fair, 8 threads: commands per grant", "<=", 4, lambda f: f.figure("fair-8", "holdfast", "commands")),
    (4, "fair, 8 threads: grants, compared with Redisson", ">=", 4, lambda f: f.to_best("fair-8", REDISSON)),
    (5, "read-write: operations, compared with Redisson", ">=", 4, lambda f: f.to_best("rw-16", REDISSON)),
    (5, "read-write: writers' p50, compared with Redisson", "<=", 0.2,
     lambda f: f.to_best("rw-16", REDISSON, "write_p50", lowest=True)),
    (6, "100 000 held locks: bytes of memory each", "<=", 512,
     lambda f: held_answer(f, 100000, lambda entry: entry["answer"].get("bytes_per_lock"))),
    (6, "100 000 held locks: renewal lag p99.9 in seconds", "<", 2.5,
     lambda f: held_answer(f, 100000, lambda entry: entry["lag_ms"]["p999"] / 1000)),
    (6, "100 000 held locks: lost", "<=", 0,
     lambda f: held_answer(f, 100000, lambda entry: entry["answer"]["lost"] + entry["keys_gone"])),
    (6, "10 000 held locks: client CPU, compared with Redisson", "<=", 0.25,
     lambda f: held_ratio(f, 10000, "client_cpu")),
    (6, "1 000 held locks: renewals after use, compared with those without", "<=", 1.1,
     lambda f: after_use(f, "holdfast")),
    (7, "start to first lock: time, compared with the bare program", "<=", 2,
     lambda f: f.start_ratio("holdfast", "bare")),
    (7, "start to first lock: time, compared with the fastest peer", "<=", 1, start_to_best),
    (8, "server time per pair, compared with the bare scripts", "<=", 1.05,
     lambda f: f.ratio("own-1", "holdfast", "bare", "server_us")),
    (8, "server time per pair, compared with Redisson", "<=", 0.6,
     lambda f: f.to_best("own-1", REDISSON, "server_us", lowest=True)),
    (1, "ZooKeeper, one thread: pairs, compared with Curator", ">=", 1.3,
     lambda f: f.ratio("own-1", "holdfast-zk", "curator")),
    (1, "ZooKeeper, one thread: pairs, compared with the bare loop on ZooKeeper", ">=", 1.0,
     lambda f: f.ratio("own-1", "holdfast-zk", "zookeeper")),
    (2, "ZooKeeper, 16 threads: pairs, compared with Curator", ">=", 1.3,
     lambda f: f.ratio("own-16", "holdfast-zk", "curator")),
    (3, "ZooKeeper, 8 threads: grants, compared with Curator", ">=", 2,
     lambda f: f.ratio("hand-8", "holdfast-zk", "curator")),
    (3, "ZooKeeper, 32 threads: grants, compared with Curator", ">=", 2,
     lambda f: f.ratio("hand-32", "holdfast-zk", "curator")),
    (7, "ZooKeeper, start to first lock: time, compared with Curator", "<=", 0.1,
     lambda f: f.start_ratio("holdfast-zk", "curator")),
    (10, "Cluster, one thread: pairs, compared with one server", ">=", 0.95,
     lambda f: f.to_one_server("cluster-own-1", "holdfast-cluster")),
    (10, "Cluster, 64 threads on two cores: pairs, compared with one server", ">=", 0.8,
     lambda f: f.to_one_server("cluster-own-64", "holdfast-cluster", mode=TWO_CORES)),
    (10, "Cluster, 8 threads on one lock: grants, compared with the lowest round on one server", ">=", 1,
     lambda f: f.to_lowest("cluster-hand-8", "holdfast-cluster", "holdfast")),
    (11, "replicas=1, one thread: pairs, compared with Redisson", ">=", 3,
     lambda f: f.to_deployed_redisson("replica-own-1")),
    (11, "replicas=1, 64 threads: pairs, compared with Redisson", ">=", 8,
     lambda f: f.to_deployed_redisson("replica-own-64")),
]


def is_reached(value, comparison, bound):
    value = round(value, 2)
    return {">=": value >= bound, "<=": value <= bound, "<": value < bound}[comparison]


def check_goals(figures, works):
    """All goals of these workloads, and all others that were measured. A goal without a value was not measured."""
    checked = []
    for work, text, comparison, bound, compute in GOALS:
        figure = compute(figures)
        if work not in works and not figure:
            continue
        checked.append({"work": work, "goal": text, "comparison": comparison, "bound": bound,
                        "reached": figure.as_dict() if figure else None,
                        "is_ok": is_reached(figure.median, comparison, bound) if figure else None})
    return checked
