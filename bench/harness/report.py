"""Writes the results: tables in Markdown for people, everything in JSON for programs."""
import json
import os

from .figures import ONE_CORE, TWO_CORES, Figure, Figures
from .goals import check_goals
from .held import INTERVAL_MS
from .load import describe
from .works import PEER_ROUNDS

EACH = "one core each"


def spread(figure, digits=2, factor=1):
    """The median, followed by the lowest and the highest value."""
    if figure is None:
        return "–"
    median, low, high = (f"{value * factor:.{digits}f}" for value in (figure.median, figure.low, figure.high))
    return median if low == high else f"{median} ({low}–{high})"


def small(figure):
    """The same for values that may be far below one."""
    if figure is None:
        return "–"
    median, low, high = (f"{value:.2f}" if value >= 0.1 else f"{value:.2g}"
                         for value in (figure.median, figure.low, figure.high))
    return median if low == high else f"{median} ({low}–{high})"


def middle(figure, digits=0, factor=1):
    return "–" if figure is None else f"{figure.median * factor:.{digits}f}"


def table(head, rows):
    lines = ["| " + " | ".join(head) + " |", "|" + "---|" * len(head)]
    return "\n".join(lines + ["| " + " | ".join(row) + " |" for row in rows])


class Report:
    """All tables of one run."""

    def __init__(self, results):
        self.results = results
        self.figures = Figures(results)
        self.works = results["options"]["works"]
        self.goals = check_goals(self.figures, self.works)

    def title(self, row):
        is_ours = row in ("holdfast", "holdfast-cluster", "holdfast-replica")
        return f"**{self.figures.titles[row]}**" if is_ours else self.figures.titles[row]

    def sorted_rows(self, items, mode=ONE_CORE, metric="rate"):
        """The rows with a figure for any of these items, sorted by the first of them, fastest first."""
        items = [items] if isinstance(items, str) else items
        rows = [row for row in self.figures.titles if any(row in self.figures.rows(item, mode) for item in items)]

        def speed(row):
            figures = [self.figures.figure(item, row, metric, mode) for item in items]
            return tuple(-(figure.median if figure else 0) for figure in figures)

        return sorted(rows, key=speed)

    # ---- the workloads ----

    def goals_table(self):
        rows = []
        is_part = self.results["options"]["is_part"]
        for goal in self.goals:
            if is_part and not goal["reached"]:
                continue
            reached, text, against = goal["reached"], "not measured", ""
            if reached:
                text, against = spread(Figure.from_dict(reached)), reached.get("against", "")
            sign = {">=": "≥", "<=": "≤", "<": "<"}[goal["comparison"]]
            verdict = {True: "ok", False: "**missed**", None: "–"}[goal["is_ok"]]
            rows.append([str(goal["work"]), goal["goal"], against, f"{sign} {goal['bound']:g}", text, verdict])
        return table(["workload", "goal", "compared with", "bound", "measured", ""], rows)

    def work_1(self):
        f = self.figures
        rows = [[self.title(row), spread(f.to_bare("own-1", row)), spread(f.to_bare("own-1", row, EACH)),
                 *(middle(f.figure("own-1", row, metric)) for metric in ("p50", "p99", "p999"))]
                for row in self.sorted_rows("own-1")]
        return ("One thread locks and unlocks a free lock. Pairs per second, as a ratio to the bare loop.\n\n" +
                table(["", "one core", EACH, "p50 µs", "p99 µs", "p99.9 µs"], rows))

    def work_2(self):
        f = self.figures
        rows = [[self.title(row), *(spread(f.to_bare(item, row, mode)) for item, mode in
                                    (("own-16", ONE_CORE), ("own-64", ONE_CORE), ("own-64", EACH)))]
                for row in self.sorted_rows(["own-64", "own-16"])]
        text = ("Each thread has its own lock. Pairs per second, as a ratio to the bare loop with as many threads.\n\n" +
                table(["", "16 threads, one core", "64 threads, one core", f"64 threads, {EACH}"], rows))
        rows = [[self.title(row), spread(f.to_bare("async-64", row)), middle(f.figure("async-64", row, "client_cpu_us"), 1)]
                for row in self.sorted_rows("async-64")]
        return (text + "\n\nAsynchronous: 64 locks in flight from one thread, one core. Ratio to the pipelined loop.\n\n" +
                table(["", "pairs", "client CPU µs per pair"], rows))

    def contest_table(self, item, is_fair=False, mode=ONE_CORE):
        f = self.figures
        head = ["", "grants", "changes", "share of changes", "gap p50 ms", "gap p99 ms", "longest wait ms",
                "commands per grant"] + (["in order"] if is_fair else [])
        rows = []
        for row in self.sorted_rows(item, mode):
            if row == "bare":
                continue
            rows.append([self.title(row), spread(f.to_bare(item, row, mode)),
                         small(f.to_bare(item, row, mode, "changes_rate")),
                         middle(f.figure(item, row, "changes_share", mode), 3),
                         middle(f.figure(item, row, "gap_p50", mode), 3, 0.001),
                         middle(f.figure(item, row, "gap_p99", mode), 3, 0.001),
                         middle(f.figure(item, row, "wait_max", mode), 1, 0.001),
                         spread(f.figure(item, row, "commands", mode))] +
                        ([middle(f.figure(item, row, "order_kept", mode), 2)] if is_fair else []))
        return table(head, rows)

    def contest_parts(self, parts, is_fair=False):
        return "\n\n".join(f"{title}:\n\n{self.contest_table(item, is_fair, mode)}" for item, title, mode in parts
                           if self.figures.rows(item, mode))

    def work_3(self):
        text = ("All threads want the same lock. Grants and changes per second, as a ratio to pairs of the bare loop with one "
                "thread. A *change* is a grant to another thread than the last one: libraries that poll let one thread "
                "take the lock again and again while the others sleep, so their grants without changes mean nothing. A *gap* is "
                "the time from just before a release to the next holder's grant; only changes are counted.\n\n")
        return text + self.contest_parts(
            [(f"hand-{threads}", f"{threads} threads of one process", ONE_CORE) for threads in (2, 8, 32)] +
            [("hand-8x4", "8 processes of 4 threads each", ONE_CORE), ("hand-8", f"8 threads, {EACH}", EACH)])

    def work_4(self):
        text = ("The same with the fair lock. *In order*: the share of grants in the order of the requests.\n\n")
        return text + self.contest_parts(
            [(f"fair-{threads}", f"{threads} threads of one process", ONE_CORE) for threads in (2, 8, 32)], True)

    def work_5(self):
        f = self.figures
        rows = [[self.title(row), spread(f.to_bare("rw-16", row)),
                 *(middle(f.figure("rw-16", row, metric), 2, 0.001)
                   for metric in ("read_p50", "read_p99", "write_p50", "write_p99")),
                 spread(f.figure("rw-16", row, "commands"))]
                for row in self.sorted_rows("rw-16") if row != "bare"]
        return ("16 threads on one read-write lock, 5 % of the operations are writes. Operations per second, as a ratio to pairs of the bare "
                "loop with one thread; times to acquire.\n\n" +
                table(["", "operations", "read p50 ms", "read p99 ms", "write p50 ms", "write p99 ms", "commands each"], rows))

    def work_6(self):
        f, rows = self.figures, []
        for entry in self.results["held"]:
            key = (entry["row"], entry["count"])
            used = entry["pairs_before"] > 0
            answer, lag = entry["answer"], entry["lag_ms"]["p999"]
            rows.append([self.title(entry["row"]), f"{entry['count']:,}".replace(",", " "),
                         f"after {entry['pairs_before']} pairs" if used else "none",
                         spread(f.held_figure(*key, "client_cpu", used), 2, 1000),
                         spread(f.held_figure(*key, "server_cpu", used), 2, 1000),
                         spread(f.held_figure(*key, "renewal_scripts", used), 1),
                         f"{answer['bytes_per_lock']:.0f}" if answer.get("bytes_per_lock") is not None else "–",
                         "–" if lag is None or used else f"{lag:.0f}", str(answer["lost"] + entry["keys_gone"])])
        rows.sort(key=lambda row: (row[2] != "none", len(row[1]), row[1]))
        return (f"Locks that are taken once and then renewed by the watchdog. One run each; the spread is over its "
                f"five intervals of {INTERVAL_MS // 1000} s, in each of which every lock is renewed once. CPU in milliseconds per second.\n\n" +
                table(["", "locks", "use before", "client CPU", "server CPU", "renewal scripts per s",
                       "bytes per lock", "lag p99.9 ms", "lost"], rows))

    def work_7(self):
        f = self.figures
        rows = [row for row in f.titles if f.start_figure(row)]
        rows.sort(key=lambda row: f.start_figure(row).median)
        return ("The time from before the process exists until it holds its first lock, and its resident memory at that point.\n\n" +
                table(["", "time, ratio to the bare program", "ms", "resident MB"],
                      [[self.title(row), spread(f.start_ratio(row, "bare"), 1), spread(f.start_figure(row), 1),
                        middle(f.start_figure(row, "rss_kib"), 1, 1 / 1024)] for row in rows]))

    def work_8(self):
        f = self.figures
        rows = [row for row in self.sorted_rows("own-1") if f.figure("own-1", row, "server_us")]
        rows.sort(key=lambda row: f.figure("own-1", row, "server_us").median)
        return ("What one pair costs with one thread (the runs of workload 1). *Server time* is the time spent in commands, as the "
                "server counts it; *server CPU* includes all its system calls. Libraries that use a plain SET are not "
                "reentrant, which costs the server less.\n\n" +
                table(["", "server time, ratio to the bare scripts", "µs", "server CPU µs", "client CPU µs", "commands",
                       "bytes to server", "bytes back"],
                      [[self.title(row), spread(f.ratio("own-1", row, "bare", "server_us")),
                        *(middle(f.figure("own-1", row, metric), digits) for metric, digits in
                          (("server_us", 1), ("server_cpu_us", 1), ("client_cpu_us", 1), ("commands", 2),
                           ("bytes_in", 0), ("bytes_out", 0)))] for row in rows]))

    def work_9(self):
        parts = []
        for delay in sorted({ping["delay_ms"] for ping in self.results["pings"]}):
            pings = [ping["ms"] for ping in self.results["pings"] if ping["delay_ms"] == delay]
            items = [f"delay-{delay}-{item}" for item in ("own-1", "own-16", "hand-8")]
            f = self.figures
            rows = [[self.title(row), *(spread(f.to_bare(item, row)) if row != "bare" or "hand" not in item else "–"
                                        for item in items),
                     *(middle(f.figure(items[2], row, metric), 2) if row != "bare" else "–"
                       for metric in ("changes_share", "round_trips"))]
                    for row in self.sorted_rows([items[2], items[0]])]
            parts.append(f"{delay} ms each way (PING takes {sorted(pings)[len(pings) // 2]:.2f} ms):\n\n" + table(
                ["", "1 thread", "16 threads, a lock each", "8 threads, one lock", "share of changes",
                 "round trips per grant"], rows))
        return ("Workloads 1 to 3 through a proxy that delays everything, one core. Ratios to the bare loop with as many threads; "
                "for the one lock, to the bare loop with one thread.\n\n" + "\n\n".join(parts))

    def deployed_table(self, columns, limit=None):
        """Columns for the rate of each item, for its ratio to the limit if there is one, and for the CPU time."""
        f, rows, limited = self.figures, [], columns if limit else []
        for row in self.sorted_rows([item for item, _, _ in columns]):
            rows.append([self.title(row), *(spread(f.to_one_server(item, row, mode=mode)) for item, _, mode in columns),
                         *(spread(f.ratio(item, row, limit, mode=mode)) for item, _, mode in limited),
                         *(" / ".join(middle(f.figure(item, row, metric, mode), 1) for item, _, mode in columns)
                           for metric in ("client_cpu_us", "server_cpu_us"))])
        return table(["", *(title for _, title, _ in columns),
                      *(f"{title}, of the limit" for _, title, _ in limited), "client CPU µs each", "server CPU µs each"], rows)

    def work_10(self):
        return ("Holdfast on a Cluster of three masters. Pairs or grants per second, as a ratio to Holdfast on one server in "
                "the same round. All processes share one core, or two.\n\n" + self.deployed_table([
                    ("cluster-own-1", "1 thread, one core", ONE_CORE),
                    ("cluster-hand-8", "8 threads, one lock, one core", ONE_CORE),
                    ("cluster-own-64", f"64 threads, {TWO_CORES}", TWO_CORES)]))

    def work_11(self):
        return ("A lock counts once a replica has acknowledged it. Client, master and replica share one core. Pairs per second, "
                "as a ratio to Holdfast on one server without a replica, and to the limit: a bare loop that sends all "
                "locks and one WAIT in one write, and then all releases. Redisson waits for the replica after each "
                "release, too.\n\n" + self.deployed_table([("replica-own-1", "1 thread", ONE_CORE),
                                                  ("replica-own-64", "64 threads", ONE_CORE)], "durable"))

    # ---- the whole page ----

    def absolute_table(self):
        f, rows = self.figures, []
        columns = [("own-1", "rate"), ("own-16", "rate"), ("own-64", "rate"), ("async-64", "rate"), ("hand-8", "rate"),
                   ("hand-8", "changes_rate"), ("hand-8x4", "rate"), ("fair-8", "rate"), ("rw-16", "rate")]
        for row in f.titles:
            # The bare loop only locks and unlocks a free lock, so its other figures mean nothing.
            cells = [middle(f.figure(item, row, metric)) if row != "bare" or item.startswith("own") else "–"
                     for item, metric in columns]
            if any(cell != "–" for cell in cells):
                rows.append([f.titles[row], *cells])
        return table(["", "1 thread", "16", "64", "async", "hand-over 8", "changes 8", "hand-over 8×4", "fair 8",
                      "read-write"], rows)

    def missing_rows(self):
        lines = [f"- {peer['title']}: left out, {peer['skipped']}" for peer in self.results["peers"] if peer["skipped"]]
        lines += [f"- {self.figures.titles[note['row']]}, {note['item']}: {note['why']}" for note in self.results["notes"]]
        return "\n".join(lines)

    def markdown(self):
        names = {1: "One thread, free lock", 2: "A lock for each thread", 3: "Hand-over of one lock", 4: "Fair lock",
                 5: "Read-mostly", 6: "Held locks", 7: "Start", 8: "Cost of a pair", 9: "Added latency",
                 10: "A Cluster of three masters", 11: "A replica that acknowledges grants"}
        machine, options = self.results["machine"], self.results["options"]
        parts = ["# Results of the benchmark",
                 f"{options['rounds']} interleaved rounds of {options['seconds']:g} s for each figure, "
                 f"{min(options['rounds'], PEER_ROUNDS)} for peers that no goal names; medians, with the lowest and the highest in brackets. "
                 "[The benchmarks' page](../README.md) says how it is measured. Load: "
                 f"{describe(self.results['load'])}.",
                 "## Goals", self.goals_table()]
        for number, name in names.items():
            if number in self.works and not (options["quick"] and number in (4, 5, 6, 7, 9)):
                parts += [f"## {number}. {name}", getattr(self, f"work_{number}")()]
        missing = self.missing_rows()
        parts += ["## Left out", missing] if missing else []
        parts += ["## Footnote: the machine, and medians per second",
                  f"{machine['cpu']}, {machine['cores']} cores, Linux {machine['kernel']}, {machine['server']}"
                  + (f", ZooKeeper {machine['zookeeper']}" if machine["zookeeper"] else "") +
                  f"; {machine['date']}. Absolute figures are valid for this machine only."]
        parts += [self.absolute_table()] if self.results["runs"] else []
        return "\n\n".join(parts) + "\n"

    def write(self, directory):
        self.results["goals"] = self.goals
        with open(os.path.join(directory, "results.json"), "w", encoding="utf-8") as file:
            json.dump(self.results, file, indent=1)
            file.write("\n")
        with open(os.path.join(directory, "results.md"), "w", encoding="utf-8") as file:
            file.write(self.markdown())
