"""Paper 001's figures 11 to 15: cost per document against the batch size, for each type of rules."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from typing import NamedTuple

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from benchmarks.rows import Row

PANELS = {
    "OID": "figure 11: OID",
    "PATH": "figure 12: PATH",
    "COMP 10%": "figure 13: COMP, 10%",
    "JOIN": "figure 14: JOIN",
}
_NAMED = re.compile(r"metadata, (?P<rules>(?:OID|PATH|JOIN|COMP) ?(?:\d+%)?), batches of (?P<batch>[\d,]+)")
_STYLES = {"SQLite": "-", "PostgreSQL": "--", "pyoxigraph, each rule in turn": ":"}


class Point(NamedTuple):
    """A point of the figures, from one row."""

    rules: str
    batch: int
    size: int
    engine: str
    milliseconds: float


def points(rows: Iterable[Row]) -> list[Point]:
    matched = [(row, _NAMED.fullmatch(row.workload)) for row in rows]
    return [
        Point(
            named["rules"],
            int(named["batch"].replace(",", "")),
            row.subscriptions,
            row.engine,
            1e3 * (row.seconds_per_event or 0.0),
        )
        for row, named in matched
        if named
    ]


def figures_11_to_14(rows: Sequence[Row]) -> Figure | None:
    """Draw a panel for each type, a line for each rule base and engine."""
    plotted = [point for point in points(rows) if point.rules in PANELS]
    panels = [name for name in PANELS if any(point.rules == name for point in plotted)]
    if not panels:
        return None
    figure = Figure(figsize=(11, 8), layout="constrained")
    sizes = sorted({point.size for point in plotted})
    for axes, name in zip(figure.subplots(2, 2).flat, panels, strict=False):
        mine = [point for point in plotted if point.rules == name]
        _draw(axes, mine, lambda point: point.size, sizes)
        axes.set_title(PANELS[name])
    _legend(figure, [f"{size:,} rules" for size in sizes], {point.engine for point in plotted})
    return figure


def figure_15(rows: Sequence[Row]) -> Figure | None:
    """Draw COMP at one rule base size, a line for each share of rules that match a document."""
    plotted = [point for point in points(rows) if point.rules.startswith("COMP")]
    varied = {point.size for point in plotted if point.rules not in PANELS}
    plotted = [
        point for point in plotted if point.size in varied and point.engine in ("SQLite", "PostgreSQL")
    ]
    if not plotted:
        return None
    figure = Figure(figsize=(8, 4.2), layout="constrained")
    shares = sorted({point.rules for point in plotted}, key=_share)
    axes = figure.subplots()
    _draw(axes, plotted, lambda point: point.rules, shares)
    axes.set_title(f"figure 15: {', '.join(f'{size:,}' for size in sorted(varied))} rules of COMP")
    _legend(figure, [f"{_share(name)}% match" for name in shares], {point.engine for point in plotted})
    return figure


def _share(name: str) -> int:
    return int(name.removeprefix("COMP ").removesuffix("%"))


def _draw(
    axes: Axes, plotted: Sequence[Point], line: Callable[[Point], object], lines: Sequence[object]
) -> None:
    for engine in sorted({point.engine for point in plotted}):
        for at, which in enumerate(lines):
            line_points = sorted(
                (point.batch, point.milliseconds)
                for point in plotted
                if point.engine == engine and line(point) == which
            )
            if line_points:
                axes.plot(*zip(*line_points, strict=True), _STYLES[engine], marker=".", color=f"C{at}")
    axes.set(
        xlabel="documents in a batch", ylabel="milliseconds a document (CPU)", xscale="log", yscale="log"
    )
    axes.grid(alpha=0.3)


def _legend(figure: Figure, colours: Sequence[str], engines: set[str]) -> None:
    """Draw the legend: colours are sizes or shares, line styles are engines."""
    axes = figure.axes[0]
    handles = [*(axes.plot([], [], color=f"C{at}")[0] for at in range(len(colours)))]
    handles += [axes.plot([], [], _STYLES[engine], color="black")[0] for engine in sorted(engines)]
    figure.legend(handles, [*colours, *sorted(engines)], loc="outside right upper", fontsize=8)
