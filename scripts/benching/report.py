"""From runs to cells, a table, the list that all benches write, and a plot."""

import statistics

from .jobs import ENGINES, JOBS

# A cell this far above its bar still holds: the noise of the machine.
NOISE = 1.05
# Of a cell, with the digits that are worth showing.
MEASURES = {"wall": ".2f", "min": ".2f", "cpu": ".1f", "rss": ".0f", "size": ".1f"}


def summarise(runs):
    """One cell for each engine, job and limit: medians over the rounds that ended well."""
    cells = {}
    for run in runs:
        cells.setdefault((run["job"], run["limit"], run["engine"]), []).append(run)
    summary = []
    for (job, limit, engine), all_runs in cells.items():
        good = [run for run in all_runs if run["status"] == "ok"]
        bad = [run for run in all_runs if run["status"] != "ok"]
        cell = {"job": job, "limit": limit, "engine": engine, "rounds": len(all_runs)}
        cell["status"] = bad[0]["status"] if bad else "ok"
        measured = good or [run for run in bad if "rss" in run]
        if measured:
            cell["rss"] = max(run["rss"] for run in measured)
        if good:
            cell |= {
                "wall": statistics.median(run["wall"] for run in good),
                "min": min(run["wall"] for run in good),
                "cpu": statistics.median(run["cpu"] for run in good),
                "size": good[-1]["size"],
            }
        summary.append(cell)
    return summary


def by_place(summary):
    """Cells of (job, limit) by engine, in the order of the jobs, limits as they were chosen."""
    places = {}
    for cell in summary:
        places.setdefault((cell["job"], cell["limit"]), {})[cell["engine"]] = cell
    order = list(JOBS)
    return dict(sorted(places.items(), key=lambda place: order.index(place[0][0])))


def label(limit):
    return f"{limit}MiB" if limit else "none"


def show(value, form):
    return format(value, form) if value is not None else "-"


def rival_of(engines, job):
    """The cell that windrow is held against: the fastest that ended well, or the job's own."""
    good = [cell for engine, cell in engines.items() if engine != "windrow" and cell["status"] == "ok"]
    named = [cell for cell in good if cell["engine"] == job.bar_rival]
    return min(named or good, key=lambda cell: cell["wall"], default=None)


def verdict(engines, job):
    """Windrow's wall time over the rival's, that rival, and whether the bar holds."""
    ours, rival = engines.get("windrow"), rival_of(engines, job)
    if not ours or ours["status"] != "ok" or not rival:
        return None, rival, None
    ratio = ours["wall"] / rival["wall"]
    return ratio, rival, ratio <= job.bar * NOISE


def print_tables(summary):
    places = by_place(summary)
    title = None
    print("Wall s (median, min), CPU s, peak RSS MiB, output MB, wall over windrow's")
    for (name, limit), engines in places.items():
        if name != title:
            title = name
            print(f"\n{name}: {JOBS[name].title}")
            print(f"{'limit':>8} {'engine':<13}{'wall':>7}{'min':>7}{'cpu':>7}{'rss':>7}{'size':>8}{'ratio':>7}  status")
        ours = engines.get("windrow", {}).get("wall")
        for engine in (engine for engine in ENGINES if engine in engines):
            cell = engines[engine]
            wall = cell.get("wall")
            numbers = [show(cell.get(name), form) for name, form in MEASURES.items()]
            numbers.append(show(wall / ours if wall and ours else None, ".2f"))
            line = "".join(f"{number:>{width}}" for number, width in zip(numbers, (7, 7, 7, 7, 8, 7)))
            over = " OVER THE LIMIT" if limit and cell.get("rss", 0) > limit else ""
            print(f"{label(limit):>8} {engine:<13}{line}  {cell['status']}{over}")
    print_bars(places)


def print_bars(places):
    """A job a line: windrow over the fastest rival at every limit."""
    limits = list(dict.fromkeys(limit for _, limit in places))
    print("\nWindrow's wall time over the fastest rival's (* DuckDB's as it comes; ! above the bar); or how it failed")
    print(f"{'job':<16}{'bar':>6}" + "".join(f"{label(limit):>22}" for limit in limits))
    for name in dict.fromkeys(name for name, _ in places):
        line = f"{name:<16}{JOBS[name].bar:>6.2f}"
        for limit in limits:
            ratio, rival, holds = verdict(places.get((name, limit), {}), JOBS[name])
            if ratio is not None:
                text = f"{rival['engine']} {ratio:.2f}" + "*" * (rival["engine"] == JOBS[name].bar_rival) + "!" * (not holds)
            else:
                text = places.get((name, limit), {}).get("windrow", {}).get("status", "-")
            line += f"{text:>22}"
        print(line)


def cells_of(summary):
    """The list that all benches write: ours beside each rival's, null where a run failed."""
    cells = []
    for (job, limit), engines in by_place(summary).items():
        if not (ours := engines.get("windrow")):
            continue
        for rival in (cell for engine, cell in engines.items() if engine != "windrow"):
            for name, unit in [("wall", "s"), ("cpu", "s"), ("rss", "MiB"), ("size", "MB")]:
                a = ours.get(name) if ours["status"] == "ok" else None
                b = rival.get(name) if rival["status"] == "ok" else None
                cells.append({"bench": "jobs", "case": f"{job} {label(limit)} {name}", "ours": a,
                              "rival_name": rival["engine"], "rival": b, "unit": unit,
                              "ratio": a / b if a is not None and b else None})
    return cells


COLOURS = {
    "windrow": "#d62728", "duckdb": "#1f77b4", "duckdb-l1": "#7fb2dd", "duckdb-join": "#17becf", "polars": "#9467bd",
    "polars-merge": "#c5a3e0", "datafusion": "#8c8c8c", "gnu-sort": "#2ca02c", "xan": "#ff7f0e",
}
# Where "no limit" stands on an axis of limits, in MiB.
NO_LIMIT = 1 << 20


def draw(axis, measure, cells, limits):
    """One measure of one job: a line for each engine over the limits, a gap where it failed."""
    for engine in ENGINES:
        good = (cell for cell in cells if cell["engine"] == engine and cell["status"] == "ok")
        mine = {cell["limit"] or NO_LIMIT: cell[measure] for cell in good}
        points = [(place, mine.get(limit, float("nan"))) for place, limit in enumerate(limits)]
        if mine:
            width = 2 if engine == "windrow" else 1
            axis.plot(*zip(*points), marker="o", markersize=4, color=COLOURS[engine], linewidth=width)
    kept = [(place, limit) for place, limit in enumerate(limits) if limit < NO_LIMIT]
    if measure == "rss" and kept:
        axis.plot(*zip(*kept), linestyle="--", color="black", linewidth=1)
        axis.set_yscale("log", base=2)
        axis.yaxis.set_major_formatter(lambda value, _: f"{value:.0f}")
    else:
        axis.set_ylim(bottom=0)
    axis.set_xticks(range(len(limits)), [str(limit) if limit < NO_LIMIT else "none" for limit in limits])
    axis.grid(alpha=0.3)


def plot(summary, file):
    """Two panels for each job: wall time above peak memory, over the limits."""
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot
    from matplotlib.lines import Line2D

    jobs = [name for name in JOBS if any(cell["job"] == name for cell in summary)]
    limits = sorted({cell["limit"] or NO_LIMIT for cell in summary})
    columns = min(4, len(jobs))
    rows = -(-len(jobs) // columns)
    figure, axes = pyplot.subplots(2 * rows, columns, figsize=(3.6 * columns, 4.2 * rows + 0.6), squeeze=False)
    for place in range(rows * columns):
        wall, rss = (axes[2 * (place // columns) + half][place % columns] for half in (0, 1))
        if place >= len(jobs):
            wall.set_axis_off(), rss.set_axis_off()
            continue
        cells = [cell for cell in summary if cell["job"] == jobs[place]]
        draw(wall, "wall", cells, limits)
        draw(rss, "rss", cells, limits)
        wall.set_title(JOBS[jobs[place]].title, fontsize=9)
        wall.set_ylabel("wall, s")
        rss.set_ylabel("peak RSS, MiB")
        rss.set_xlabel("memory limit, MiB")
    shown = [engine for engine in ENGINES if any(cell["engine"] == engine for cell in summary)]
    handles = [Line2D([], [], color=COLOURS[engine], marker="o", markersize=4, label=engine) for engine in shown]
    handles.append(Line2D([], [], color="black", linestyle="--", linewidth=1, label="the limit"))
    figure.tight_layout(rect=(0, 0, 1, 1 - 0.4 / figure.get_figheight()))
    figure.legend(handles=handles, loc="upper center", ncol=len(handles), fontsize=8)
    figure.savefig(file)
