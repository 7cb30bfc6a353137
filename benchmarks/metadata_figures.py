"""Paper 001's figures 11 to 15: the cost of a document against the batch it comes in, for each type of rules."""

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
    """A row as the figures have it."""

    rules: str
    batch: int
    size: int
    engine: str
    milliseconds: float


def points(rows: Iterable[Row]) -> list[Point]:
    found = [(row, _NAMED.fullmatch(row.workload)) for row in rows]
    return [
        Point(
            named["rules"],
            int(named["batch"].replace(",", "")),
            row.subscriptions,
            row.engine,
            1e3 * (row.seconds_per_event or 0.0),
        )
        for row, named in found
        if named
    ]


def figures_11_to_14(rows: Sequence[Row]) -> Figure | None:
    """A panel for each type, a line for each rule base and each way to evaluate it."""
    found = [point for point in points(rows) if point.rules in PANELS]
    panels = [name for name in PANELS if any(point.rules == name for point in found)]
    if not panels:
        return None
    figure = Figure(figsize=(11, 8), layout="constrained")
    sizes = sorted({point.size for point in found})
    for axes, name in zip(figure.subplots(2, 2).flat, panels, strict=False):
        mine = [point for point in found if point.rules == name]
        _draw(axes, mine, lambda point: point.size, sizes)
        axes.set_title(PANELS[name])
    _legend(figure, [f"{size:,} rules" for size in sizes], {point.engine for point in found})
    return figure


def figure_15(rows: Sequence[Row]) -> Figure | None:
    """COMP at one size of the rule base, a line for each share of it that matches a document."""
    found = [point for point in points(rows) if point.rules.startswith("COMP")]
    varied = {point.size for point in found if point.rules not in PANELS}
    found = [point for point in found if point.size in varied and point.engine in ("SQLite", "PostgreSQL")]
    if not found:
        return None
    figure = Figure(figsize=(8, 4.2), layout="constrained")
    shares = sorted({point.rules for point in found}, key=_share)
    axes = figure.subplots()
    _draw(axes, found, lambda point: point.rules, shares)
    axes.set_title(f"figure 15: {', '.join(f'{size:,}' for size in sorted(varied))} rules of COMP")
    _legend(figure, [f"{_share(name)}% match" for name in shares], {point.engine for point in found})
    return figure


def _share(name: str) -> int:
    return int(name.removeprefix("COMP ").removesuffix("%"))


def _draw(
    axes: Axes, found: Sequence[Point], line: Callable[[Point], object], lines: Sequence[object]
) -> None:
    for engine in sorted({point.engine for point in found}):
        for at, which in enumerate(lines):
            mine = sorted(
                (point.batch, point.milliseconds)
                for point in found
                if point.engine == engine and line(point) == which
            )
            if mine:
                axes.plot(*zip(*mine, strict=True), _STYLES[engine], marker=".", color=f"C{at}")
    axes.set(
        xlabel="documents in a batch", ylabel="milliseconds a document (CPU)", xscale="log", yscale="log"
    )
    axes.grid(alpha=0.3)


def _legend(figure: Figure, colours: Sequence[str], engines: set[str]) -> None:
    """Colours are sizes or shares, strokes are engines."""
    axes = figure.axes[0]
    handles = [*(axes.plot([], [], color=f"C{at}")[0] for at in range(len(colours)))]
    handles += [axes.plot([], [], _STYLES[engine], color="black")[0] for engine in sorted(engines)]
    figure.legend(handles, [*colours, *sorted(engines)], loc="outside right upper", fontsize=8)
