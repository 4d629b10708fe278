"""Turns single runs into figures: medians with their spread, and ratios within a round."""
import statistics

ONE_CORE = "one core"
TWO_CORES = "two cores"
COUNTED = ("pairs", "grants", "operations")
SCRIPTS = {"eval", "evalsha", "eval_ro", "evalsha_ro", "fcall", "fcall_ro"}


class Figure:
    """A median with the lowest and the highest value."""

    def __init__(self, values, against=None):
        values = list(values)
        self.median, self.low, self.high = statistics.median(values), min(values), max(values)
        self.count = len(values)
        self.against = against  # the row it is compared with, if that depends on the results

    @classmethod
    def from_dict(cls, values):
        return cls([values["low"], values["median"], values["high"]])

    def as_dict(self):
        return {"median": self.median, "low": self.low, "high": self.high, "count": self.count,
                **({"against": self.against} if self.against else {})}


def derive(run, shares):
    """Adds derived values to a run: rates, and the cost of one pair or grant."""
    count = next(run[key] for key in COUNTED if key in run)
    run["rate"] = count / run["seconds"]
    if run.get("changes") is not None:
        run["changes_rate"] = run["changes"] / run["seconds"]
        run["changes_share"] = run["changes"] / count if count else None
    if not count:
        return
    run["client_cpu_us"] = run["client_cpu"] / count * 1e6
    if run.get("ping_ms"):
        run["round_trips"] = run["seconds"] * 1000 / count / run["ping_ms"]
    server = run.get("server")
    if server:
        run["commands"], run["server_us"] = (part / count for part in add_commands(server["commands"], shares))
        run["server_cpu_us"] = server["cpu"] / count * 1e6
        run["bytes_in"], run["bytes_out"] = server["bytes_in"] / count, server["bytes_out"] / count


def add_commands(commands, shares):
    """The commands that clients sent, and the microseconds that they took; commands inside a script are part of it."""
    has_scripts = any(name in SCRIPTS for name in commands)
    calls, time_us = 0, 0
    for name, (count, usec) in commands.items():
        share = 1 if name in SCRIPTS or not has_scripts else shares.get(name, 0)
        calls += count * share
        time_us += usec * share
    return calls, time_us


class Figures:
    """Finds figures in the results of a run."""

    def __init__(self, results):
        self.results = results
        self.titles = {peer["key"]: peer["title"] for peer in results["peers"]}
        self.groups = {peer["key"]: peer["group"] for peer in results["peers"]}
        self.compared = {peer["key"] for peer in results["peers"] if peer["is_compared"]}
        self.index = {}
        for run in results["runs"]:
            item = run["item"]
            shares = results["shares"].get(item.split("-", 2)[2] if item.startswith("delay-") else item, {})
            derive(run, shares.get(run["row"], {}))
            self.index.setdefault((run["mode"], item, run["row"]), {})[run["round"]] = run

    def rows(self, item, mode=ONE_CORE):
        return [key for key in self.titles if (mode, item, key) in self.index]

    def values(self, item, row, metric, mode=ONE_CORE):
        """The values of a metric by round."""
        runs = self.index.get((mode, item, row), {})
        return {number: run[metric] for number, run in runs.items() if run.get(metric) is not None}

    def figure(self, item, row, metric, mode=ONE_CORE):
        values = self.values(item, row, metric, mode).values()
        return Figure(values) if values else None

    def ratio(self, item, row, other, metric="rate", mode=ONE_CORE, other_metric=None):
        """The ratio to another row of the same round."""
        mine, theirs = self.values(item, row, metric, mode), self.values(item, other, other_metric or metric, mode)
        ratios = [value / theirs[number] for number, value in mine.items() if theirs.get(number)]
        return Figure(ratios, self.titles.get(other)) if ratios else None

    def to_bare(self, item, row, mode=ONE_CORE, metric="rate"):
        """The ratio to the bare loop of the same round."""
        base = "pipelined" if item.startswith("async") else "bare"
        return self.ratio(item, row, base, metric, mode, "rate")

    def best(self, item, groups, metric="rate", mode=ONE_CORE, lowest=False):
        """The best row of these groups; a Redisson of which one process ran is left out."""
        known = [(self.figure(item, row, metric, mode), row) for row in self.rows(item, mode)
                 if self.groups[row] in groups and (row in self.compared or self.groups[row] != "redisson")]
        known = [(figure.median, row) for figure, row in known if figure]
        return (min(known) if lowest else max(known))[1] if known else None

    def to_best(self, item, groups, metric="rate", mode=ONE_CORE, lowest=False):
        """Holdfast's ratio to the best of these groups."""
        best = self.best(item, groups, metric, mode, lowest)
        return self.ratio(item, "holdfast", best, metric, mode) if best else None

    # ---- several servers ----

    def to_one_server(self, item, row, metric="rate", mode=ONE_CORE):
        """The ratio of a row on several servers to Holdfast on one server in the same round."""
        return self.ratio(item, row, "holdfast", metric, mode)

    def to_lowest(self, item, row, other):
        """The ratio to the lowest round of another row: at least 1 within that row's spread."""
        mine, theirs = self.figure(item, row, "rate"), self.figure(item, other, "rate")
        if not mine or not theirs:
            return None
        return Figure([value / theirs.low for value in (mine.low, mine.median, mine.high)], self.titles[other])

    def to_deployed_redisson(self, item):
        """Holdfast's ratio to the best Redisson on the same servers."""
        known = [(self.figure(item, row, "rate").median, row) for row in self.rows(item) if row.startswith("redisson")]
        return self.ratio(item, "holdfast-replica", max(known)[1]) if known else None

    # ---- held locks ----

    def held(self, row, count, is_used=False):
        for entry in self.results["held"]:
            if (entry["row"], entry["count"], entry["pairs_before"] > 0) == (row, count, is_used):
                return entry
        return None

    def held_figure(self, row, count, metric, is_used=False):
        entry = self.held(row, count, is_used)
        return Figure(window[metric] for window in entry["windows"]) if entry and entry["windows"] else None

    # ---- starts ----

    def start_values(self, row, metric="ms"):
        return {start["round"]: start[metric] for start in self.results["starts"] if start["row"] == row}

    def start_figure(self, row, metric="ms"):
        values = self.start_values(row, metric).values()
        return Figure(values) if values else None

    def start_ratio(self, row, other):
        mine, theirs = self.start_values(row), self.start_values(other)
        ratios = [value / theirs[number] for number, value in mine.items() if number in theirs]
        return Figure(ratios, self.titles.get(other)) if ratios else None
