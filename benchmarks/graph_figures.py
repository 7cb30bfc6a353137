"""Paper 002's figures 9 and 10: the paper's statement as title, our times, and the memory of the index.

The paper's figures are curves without numbers in the text, so only its statements are used.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from benchmarks.rows import Row

NAME = "graphs"
COLOURS = {
    "index": "tab:blue",
    "g-topss": "tab:purple",
    "ops": "tab:green",
    "naive": "tab:orange",
    "ops, bare structures": "tab:red",
    "pyoxigraph, each query in turn": "tab:brown",
}
_IN_THE_PAPER = {"g-topss": 0.5, "ops": 1.6, "naive": 4.0}
"""Order in figure 10: OPS grows much faster than G-ToPSS, and is far better than the naive algorithm."""


class Panel(NamedTuple):
    """One varied parameter: its label, the paper's statement about it, and how to read its value from a row."""

    label: str
    statement: str
    value: Callable[[Row], float | None]
    memory: bool = False


def _size(row: Row) -> float | None:
    return row.subscriptions if row.workload == NAME else None


def _number(ending: str) -> Callable[[Row], float | None]:
    """Return a reader of the number before this suffix in the name of a workload."""

    def read(row: Row) -> float | None:
        varied = row.workload.removeprefix(f"{NAME}, ")
        number = varied.removesuffix(ending)
        return float(number) if varied.endswith(ending) and number.replace(".", "").isdigit() else None

    return read


FIGURE_9 = (
    Panel("subscriptions", "(a) memory grows linearly", _size, memory=True),
    Panel("subscriptions", "(b) time grows with them,\nand with the matches", _size),
    Panel("% overlap", "(c) the more overlap,\nthe less memory", _number("% overlap"), memory=True),
    Panel("edges", "(e) from 4 to 8 edges,\ntime almost doubles", _number(" edges")),
    Panel("% matched", "(f) the more are matched,\nthe longer, very rapidly", _number("% matched")),
)


def figure_9(rows: Sequence[Row]) -> Figure | None:
    """Draw a panel for each varied parameter: the index and the paper's algorithm."""
    panels = [(panel, lines) for panel in FIGURE_9 if (lines := _lines(rows, panel, ("index", "g-topss")))]
    if not panels:
        return None
    figure = Figure(figsize=(3.1 * len(panels), 3.6), layout="constrained")
    for axes, (panel, lines) in zip(np.atleast_1d(figure.subplots(1, len(panels))), panels, strict=True):
        _draw(axes, lines)
        unit = "megabytes of the index" if panel.memory else "milliseconds a publication (CPU)"
        axes.set(title=panel.statement, xlabel=panel.label, ylabel=unit)
        axes.set(xscale="log", yscale="linear" if panel.memory else "log")
        axes.title.set_fontsize(9)
        _ticks(axes, lines)
    _legend(figure, {engine for _, lines in panels for engine in lines})
    return figure


def figure_10(rows: Sequence[Row]) -> Figure | None:
    """Draw a sketch of the paper's three algorithms on the left, our measurements on the right."""
    lines = _lines(rows, Panel("subscriptions", "", _size), tuple(COLOURS))
    if not lines:
        return None
    figure = Figure(figsize=(11, 4.2), layout="constrained")
    left, right = figure.subplots(1, 2, width_ratios=(1, 2))
    grown = np.linspace(0.05, 1.0, 50)
    for name, slope in _IN_THE_PAPER.items():
        left.plot(grown, slope * grown, color=COLOURS[name])
    left.set(title="the paper's words, no scale", xlabel="subscriptions", ylabel="time a publication")
    left.set(xticks=[], yticks=[])
    _draw(right, lines)
    right.set(title="measured here", xlabel="subscriptions", ylabel="milliseconds a publication (CPU)")
    right.set(xscale="log", yscale="log")
    _ticks(right, lines)
    _legend(figure, set(lines))
    return figure


Line = list[tuple[float, float]]


def _lines(rows: Sequence[Row], panel: Panel, engines: Sequence[str]) -> dict[str, Line]:
    """Return the points of each engine that has any."""
    lines: dict[str, Line] = {}
    for row in rows:
        x = panel.value(row)
        y = _megabytes(row) if panel.memory else 1e3 * (row.seconds_per_event or 0.0)
        if x is not None and y and row.engine in engines:
            lines.setdefault(row.engine, []).append((x, y))
    return {engine: sorted(points) for engine, points in lines.items()}


def _megabytes(row: Row) -> float:
    return (row.bytes_per_subscription or 0.0) * row.subscriptions / 1e6


def _draw(axes: Axes, lines: dict[str, Line]) -> None:
    for engine, points in lines.items():
        axes.plot(*zip(*points, strict=True), marker="o", color=COLOURS[engine])
    axes.grid(alpha=0.3)


def _ticks(axes: Axes, lines: dict[str, Line]) -> None:
    """Put ticks at measured values."""
    places = sorted({x for points in lines.values() for x, _ in points})
    axes.set_xticks(places, [f"{x:,g}" if x < 1_000 else f"{x:,.0f}" for x in places], fontsize=8)
    axes.set_xticks([], minor=True)


def _legend(figure: Figure, engines: set[str]) -> None:
    shown = [engine for engine in COLOURS if engine in engines]
    lines = [Axes.plot(figure.axes[0], [], [], marker="o", color=COLOURS[each])[0] for each in shown]
    figure.legend(lines, shown, loc="outside right upper", fontsize=8)
