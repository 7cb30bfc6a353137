"""Plots for the docs: rates against the number of subscriptions, bars, and the papers' figures."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path

import matplotlib
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from benchmarks import graph_figures, metadata_figures, objects_figures, paper003
from benchmarks.rows import Row
from benchmarks.sketches import COLOURS, SKETCHES
from benchmarks.workloads.stock_documents import MANY

FAMILIES = {"stock": "S: stock quotes", "equalities": "E: equalities", "intervals": "H: intervals"}
PAPER = "paper 004, p = "
BEGEN = "BE-Gen, "
OURS = {"color": "tab:blue", "linewidth": 2.5, "marker": "o"}
LIMIT = {"color": "black", "linestyle": "--", "marker": ""}
PEER_COLOURS = tuple(f"C{at}" for at in range(1, 10))


def draw(rows: Sequence[Row], folder: Path) -> None:
    """Draw every figure for which there are rows."""
    folder.mkdir(parents=True, exist_ok=True)
    measured = [row for row in rows if row.events_per_cpu_second is not None]
    for ending, name in (("", "heart"), (", Zipf", "heart-zipf")):
        families = {workload + ending: title for workload, title in FAMILIES.items()}
        _rates(name, [row for row in measured if row.workload in families], families, folder)
    _bars("begen", [row for row in measured if row.workload.startswith(BEGEN)], folder)
    _bars("ads", [row for row in measured if row.workload == "ads"], folder)
    _paper([row for row in measured if row.workload.startswith(PAPER)], folder)
    _documents(measured, folder)
    for name, plot in _PAPER_FIGURES.items():
        if (figure := plot(measured)) is not None:
            _save(figure, name, folder)


_PAPER_FIGURES = {
    "graphs-figure-9": graph_figures.figure_9,
    "graphs-figure-10": graph_figures.figure_10,
    "metadata-figures-11-14": metadata_figures.figures_11_to_14,
    "metadata-figure-15": metadata_figures.figure_15,
    "objects-figures-3-4": objects_figures.figures_3_and_4,
}


def _save(figure: Figure, name: str, folder: Path) -> None:
    """Save a figure reproducibly: the same rows give the same bytes."""
    with matplotlib.rc_context({"svg.hashsalt": name}):
        figure.savefig(folder / f"{name}.svg", metadata={"Date": None})


def _rates(name: str, rows: Sequence[Row], families: dict[str, str], folder: Path) -> None:
    """Plot events per CPU second against the number of subscriptions, one panel per family."""
    if not rows:
        return
    figure = Figure(figsize=(11, 4.2), layout="constrained")
    styles = _styles(rows)
    for panel, (workload, title) in zip(figure.subplots(1, 3, sharey=True), families.items(), strict=True):
        own = [row for row in rows if row.workload == workload]
        for engine, style in styles.items():
            line = sorted((r.subscriptions, r.events_per_cpu_second or 0) for r in own if r.engine == engine)
            if line:
                panel.plot(*zip(*line, strict=True), **{"marker": ".", **style})
        panel.set(title=title, xlabel="subscriptions", xscale="log", yscale="log")
        panel.grid(alpha=0.3)
    figure.axes[0].set_ylabel("events a CPU second")
    _legend(figure, styles)
    _save(figure, name, folder)


def _styles(rows: Iterable[Row]) -> dict[str, dict[str, object]]:
    """Return line styles: the index first, the limit dashed, peers in order of appearance."""
    roles = {row.engine: row.role for row in rows}
    ours = {engine: dict(OURS) for engine, role in roles.items() if role == "ours"}
    limit = {engine: dict(LIMIT) for engine, role in roles.items() if role == "limit"}
    others = [engine for engine, role in roles.items() if role == "peer"]
    styles: dict[str, dict[str, object]] = {**ours, **limit}
    for at, engine in enumerate(others):
        dotted = "-" if at < len(PEER_COLOURS) else ":"
        styles[engine] = {"color": PEER_COLOURS[at % len(PEER_COLOURS)], "linestyle": dotted}
    return styles


def _legend(figure: Figure, styles: dict[str, dict[str, object]]) -> None:
    lines = [matplotlib.lines.Line2D([], [], **style) for style in styles.values()]  # type: ignore[arg-type]
    figure.legend(lines, list(styles), loc="outside right upper", fontsize=8)


def _bars(name: str, rows: Sequence[Row], folder: Path) -> None:
    """Plot events per CPU second, a group of bars for each workload and size."""
    if not rows:
        return
    groups = list(dict.fromkeys((row.workload, row.subscriptions) for row in rows))
    styles = _styles(rows)
    height = 0.8 / len(styles)
    figure = Figure(figsize=(9, 1.5 + len(groups) * (0.35 + 0.12 * len(styles))), layout="constrained")
    axes = figure.subplots()
    for at, (engine, style) in enumerate(styles.items()):
        rates = {
            (row.workload, row.subscriptions): row.events_per_cpu_second
            for row in rows
            if row.engine == engine
        }
        places = [(place + at * height, rates[group]) for place, group in enumerate(groups) if group in rates]
        if places:
            axes.barh(*zip(*places, strict=True), height=height, label=engine, color=str(style["color"]))
    middle = [place + 0.4 - height / 2 for place in range(len(groups))]
    titles = [f"{workload.removeprefix(BEGEN)}\n{size:,} subscriptions" for workload, size in groups]
    axes.set_yticks(middle, titles, fontsize=8)
    slowest = min(row.events_per_cpu_second or 1.0 for row in rows)
    axes.set(xlabel="events a CPU second", xscale="log", xlim=(10 ** math.floor(math.log10(slowest)), None))
    axes.invert_yaxis()
    axes.grid(alpha=0.3, axis="x")
    figure.legend(loc="outside right upper", fontsize=8)
    _save(figure, name, folder)


def _documents(rows: Sequence[Row], folder: Path) -> None:
    """Plot paper 003's table 5.2, seconds for 10,000 documents by subscriptions, with our results."""
    lines = [line for line in paper003.lines(rows) if line.share == MANY]
    if not lines:
        return
    figure = Figure(figsize=(8, 4.2), layout="constrained")
    axes = figure.subplots()
    for engine in paper003.OURS:
        points = [(line.subscriptions, line.seconds[engine]) for line in lines if engine in line.seconds]
        if points:
            axes.plot(*zip(*points, strict=True), marker="o", label=engine)
    for at, plan in enumerate(paper003.PLANS):
        points = [(size, seconds[at]) for size, seconds in paper003.TABLE_5_2.items()]
        axes.plot(
            *zip(*points, strict=True), "--", marker=".", label=f"paper's {plan}", color=f"{0.2 + 0.25 * at}"
        )
    axes.set(xlabel="subscriptions", ylabel="seconds for 10,000 documents", xscale="log", yscale="log")
    axes.grid(alpha=0.3)
    figure.legend(loc="outside right upper", fontsize=8)
    _save(figure, "documents", folder)


def _paper(rows: Sequence[Row], folder: Path) -> None:
    """Plot paper 004's figures 9, 10 and 11: a sketch after the paper on the left, our times on the right."""
    half, ones = ([row for row in rows if _share(row) == share] for share in (0.5, 1.0))
    sizes = {row.subscriptions for row in rows if _share(row) == 0.0}
    mixed = [row for row in rows if row.subscriptions in sizes]
    by_size: Callable[[Row], float] = lambda row: row.subscriptions  # noqa: E731
    _side_by_side("figure-9", half, by_size, "subscriptions (p = 0.5)", folder)
    _side_by_side("figure-10", mixed, _share, "p, the share of equalities", folder)
    _side_by_side("figure-11", ones, by_size, "subscriptions (equalities only)", folder)


def _share(row: Row) -> float:
    return float(row.workload.removeprefix(PAPER))


def _side_by_side(
    name: str, rows: Sequence[Row], x: Callable[[Row], float], label: str, folder: Path
) -> None:
    if not rows:
        return
    figure = Figure(figsize=(11, 4.2), layout="constrained")
    left, right = figure.subplots(1, 2, width_ratios=(1, 2))
    SKETCHES[name](left)
    _times(right, rows, x)
    right.set(title="measured here", xlabel=label, ylabel="milliseconds an event (CPU)", yscale="log")
    right.set_xscale("linear" if x is _share else "log")
    right.grid(alpha=0.3)
    figure.legend(*right.get_legend_handles_labels(), loc="outside right upper", fontsize=8)
    _save(figure, name, folder)


def _times(axes: Axes, rows: Sequence[Row], x: Callable[[Row], float]) -> None:
    lines: dict[str, list[Row]] = {}
    for row in rows:
        lines.setdefault(f"{row.engine} ({row.subscriptions:,})" if x is _share else row.engine, []).append(
            row
        )
    most = max(row.subscriptions for row in rows)
    for title, points in lines.items():
        points.sort(key=x)
        times = [(row.seconds_per_event or 0) * 1e3 for row in points]
        colour = COLOURS.get(points[0].engine)
        style = "--" if x is _share and points[0].subscriptions == most else "-"
        axes.plot([x(row) for row in points], times, style, marker="o", label=title, color=colour)
