"""Draws the plots with gnuplot."""
import os
import shutil
import subprocess

COLORS = ["#1b6ca8", "#e08214", "#5aae61", "#9970ab"]
PLAIN = "#b4bcc4"
HEAD = """
set terminal svg size {width},{height} font 'Helvetica,Arial,sans-serif,13' background '#ffffff' rounded
set output '{path}'
set border 0 lc rgb '#444444'
set tics nomirror scale 0
set grid xtics lc rgb '#dddddd' lt 1
unset key
set style fill solid 1 noborder
"""


class Bars:
    """Horizontal bars: a group for each row, with a bar for each series."""

    def __init__(self, title, axis, series, rows, unit="%.2f", is_log=False):
        self.title, self.axis = title, axis
        self.series = series  # a single one without a name gives Holdfast its own colour instead
        self.rows = rows  # (label, [Figure or None for each series])
        self.unit, self.is_log = unit, is_log

    def height(self):
        return len(self.rows) * (14 * len(self.series) + 10)

    def low(self):
        """Where the bars begin: at 0, or at a power of ten below all of them if the axis is logarithmic."""
        values = [figure.median for _, figures in self.rows for figure in figures if figure and figure.median > 0]
        low = 1.0
        while self.is_log and values and low > min(values):
            low /= 10
        return low if self.is_log else 0

    def high(self):
        values = [figure.high for _, figures in self.rows for figure in figures if figure]
        return max(values, default=1) * (4 if self.is_log else 1.13)

    def blocks(self, name):
        """Data of each series: centre, half height, value, lowest, highest, colour."""
        thick = 0.8 / len(self.series)
        text = ""
        for index in range(len(self.series)):
            text += f"${name}{index} << EOD\n"
            for number, (_, figures) in enumerate(self.rows):
                figure = figures[index]
                if figure and figure.median > 0:
                    y = len(self.rows) - 1 - number + 0.4 - thick * (index + 0.5)
                    low = max(figure.low, self.low() or 0)
                    text += (f"{y:.4f} {thick * 0.44:.4f} {figure.median:.6g} {low:.6g} {figure.high:.6g} "
                             f"{self.color(number, index)}\n")
            text += "EOD\n"
        return text

    def color(self, number, index):
        is_plain = not any(self.series) and "Bold" not in self.rows[number][0]
        return int((PLAIN if is_plain else COLORS[index])[1:], 16)

    def commands(self, name, has_labels=True):
        labels = ", ".join(f"\"{label if has_labels else ''}\" {len(self.rows) - 1 - number}"
                           for number, (label, _) in enumerate(self.rows))
        low = self.low()
        plots = []
        for index in range(len(self.series)):
            data = f"${name}{index}"
            plots.append(f"{data} using ({low}):1:({low}):3:($1-$2):($1+$2):6 with boxxyerror lc rgb variable")
            plots.append(f"{data} using 4:1:($5-$4):(0) with vectors nohead lw 1 lc rgb '#333333'")
            plots.append(f"{data} using 5:1:(sprintf(\"  {self.unit}\",$3)) with labels left font ',10' "
                         "tc rgb '#333333'")
        return "\n".join([
            f"set title \"{self.title}\"", f"set xlabel \"{self.axis}\"",
            "set logscale x" if self.is_log else "unset logscale x",
            "set format x '%g'",
            f"set xrange [{low}:{self.high():.6g}]", f"set yrange [-0.6:{len(self.rows) - 0.4}]",
            f"set ytics ({labels})",
            "plot " + ", \\\n ".join(plots)]) + "\n"


def heading(title, series, width, height, note=""):
    """The title on top, and below it a line that explains the colours. Gnuplot's own key would wrap at random."""
    text = f"set label \"{title}\" at screen 0.5,{1 - 18 / height:.4f} center font ',15'\n"
    if note:
        text += f"set label \"{note}\" at screen 0.5,{1 - 38 / height:.4f} center font ',12' tc rgb '#444444'\n"
    widths = [34 + 7.2 * len(name) for name in series]
    x, y = (width - sum(widths)) / 2, 1 - 46 / height
    for index, name in enumerate(series if any(series) else []):
        text += (f"set label \"■\" at screen {x / width:.4f},{y:.4f} left tc rgb '{COLORS[index]}' font ',16'\n"
                 f"set label \"{name}\" at screen {(x + 18) / width:.4f},{y:.4f} left\n")
        x += widths[index]
    return text


def label(figures, row):
    is_ours = row in ("holdfast", "holdfast-replica")
    return f"{{/:Bold {figures.titles[row]}}}" if is_ours else figures.titles[row]


def by_speed(figures, item, rows, metric="rate"):
    def speed(row):
        figure = figures.figure(item, row, metric)
        return -(figure.median if figure else 0)
    return sorted(rows, key=speed)


def one_panel(bars, path, title, left=0.30):
    """Bars that begin at this part of the width."""
    width, height = 860, bars.height() + 130
    return (HEAD.format(width=width, height=height, path=path) + bars.blocks("d") +
            heading(title, bars.series, width, height) +
            f"set tmargin at screen {1 - 62 / height:.4f}\nset bmargin at screen {60 / height:.4f}\n" +
            f"set lmargin at screen {left:.2f}\nset rmargin at screen 0.98\n" + bars.commands("d"))


def draw_threads(figures, path):
    items = ["own-1", "own-16", "own-64"]
    rows = [row for row in by_speed(figures, "own-64", figures.titles)
            if any(row in figures.rows(item) for item in items) and row != "bare"]
    if not rows:
        return None
    bars = Bars("", "pairs per second, as a ratio to the bare loop in C", ["1 thread", "16 threads", "64 threads"],
                [(label(figures, row), [figures.to_bare(item, row) for item in items]) for row in rows])
    return one_panel(bars, path, "Each thread locks and unlocks its own lock; client and server share one core")


def two_panels(left, right, path, title, note=""):
    """Bars side by side for the same rows."""
    above = 110 if any(left.series) else 93
    width, height = 1040, left.height() + above + 60
    return (HEAD.format(width=width, height=height, path=path) + left.blocks("l") + right.blocks("r") +
            "set multiplot\n" + heading(title, left.series, width, height, note) +
            f"set tmargin at screen {1 - above / height:.4f}\nset bmargin at screen {60 / height:.4f}\n"
            "set lmargin at screen 0.26\nset rmargin at screen 0.60\n" + left.commands("l") +
            "unset label\nset lmargin at screen 0.64\nset rmargin at screen 0.98\n" + right.commands("r", False) +
            "unset multiplot\n")


def draw_hand_over(figures, path):
    rows = [row for row in by_speed(figures, "hand-8", figures.rows("hand-8"), "changes_rate") if row != "bare"]
    if not rows:
        return None
    grants = Bars("Grants: every time a thread gets the lock", "grants per second, as a ratio to the bare loop", [""],
                  [(label(figures, row), [figures.to_bare("hand-8", row)]) for row in rows])
    changes = Bars("Changes: grants to another thread than the last",
                   "changes per second, as a ratio to the bare loop (log scale)", [""],
                   [(label(figures, row), [figures.to_bare("hand-8", row, metric="changes_rate")]) for row in rows],
                   "%.2g", True)
    return two_panels(grants, changes, path,
                      "8 threads of one process compete for one lock; client and server share one core",
                      "1 is the rate at which one thread of a bare C loop locks and unlocks a free lock. Bars: median; "
                      "thin lines: lowest and highest of all rounds.")


def draw_replicas(figures, path):
    items = ["replica-own-1", "replica-own-64"]
    rows = [row for row in by_speed(figures, items[1], figures.rows(items[1])) if row != "holdfast"]
    if not rows:
        return None
    bars = Bars("", "pairs per second, as a ratio to Holdfast on one server without a replica",
                ["1 thread", "64 threads"],
                [(label(figures, row), [figures.to_one_server(item, row) for item in items]) for row in rows])
    return one_panel(bars, path, "A replica acknowledges each lock; client, master and replica share one core", 0.34)


def draw_latency(figures, path):
    items = ["own-1", "own-16", "hand-8"]
    series = ["1 thread, free lock", "16 threads, a lock each", "8 threads, one lock"]
    rows = [row for row in by_speed(figures, "delay-1-hand-8", figures.titles)
            if row not in ("bare", "move") and row in figures.rows("delay-1-hand-8")]
    if not rows:
        return None
    panels = [Bars(f"{delay} ms each way", "pairs or grants per second, as a ratio to the bare loop", series,
                   [(label(figures, row), [figures.to_bare(f"delay-{delay}-{item}", row) for item in items])
                    for row in rows]) for delay in (1, 10)]
    return two_panels(*panels, path, "Added latency; client and server share one core")


def draw_held(figures, path):
    text, plots, counts = "", [], [1000, 10000, 100000]
    rows = [row for row in figures.titles if any(figures.held(row, count) for count in counts)]
    for index, row in enumerate(rows):
        text += f"$h{index} << EOD\n"
        for count in counts:
            figure = figures.held_figure(row, count, "client_cpu")
            if figure:
                text += f"{count} {figure.median * 100:.6g} {figure.low * 100:.6g} {figure.high * 100:.6g}\n"
        text += "EOD\n"
        style = f"lc rgb '{COLORS[index % len(COLORS)]}'"
        plots.append(f"$h{index} using 1:3:(0):($4-$3) with vectors nohead lw 1 {style} notitle")
        plots.append(f"$h{index} using 1:2 with linespoints lw 2 pt 7 ps 0.8 {style} title \"{figures.titles[row]}\"")
    if not rows:
        return None
    return HEAD.format(width=760, height=420, path=path) + text + "\n".join([
        "set title 'Held locks: what the watchdog costs the client'", "set logscale xy", "set grid ytics",
        "set key inside bottom right vertical reverse Left",
        "set xlabel 'locks held'", "set ylabel 'CPU time of the client, per cent of a core'",
        "set format x '%.0f'", "set format y '%g'",
        "set xrange [700:150000]",
        "plot " + ", \\\n ".join(plots)]) + "\n"


PLOTS = {"threads": draw_threads, "hand-over": draw_hand_over, "latency": draw_latency, "held": draw_held,
         "replicas": draw_replicas}


def draw_all(figures, directory):
    """Draws every plot for which there are figures. Returns messages about the others."""
    if not shutil.which("gnuplot"):
        return ["no plots, because gnuplot was not found"]
    problems = []
    for name, draw in PLOTS.items():
        path = os.path.join(directory, name + ".svg")
        script = draw(figures, path)
        if not script:
            continue
        done = subprocess.run(["gnuplot"], input=script.encode(), stderr=subprocess.PIPE, check=False)
        if done.returncode:
            problems.append(f"no plot {name}: {done.stderr.decode(errors='replace').strip()[:300]}")
    return problems
