"""Paper 000's figures 3 and 4: cost of an update by number of watches, and by database size."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from benchmarks.objects_table import PROGRAMS, Line, lines
from benchmarks.rows import Row
from benchmarks.workloads.university import University

_COLOURS = dict(zip(PROGRAMS, ("0.7", "tab:green", "0.4", "tab:blue", "tab:orange"), strict=True))
_STROKES = {"SQLite": "-", "PostgreSQL": "--"}


def figures_3_and_4(rows: Sequence[Row]) -> Figure | None:
    """Draw table 1 on the left, table 2 on the right; colours are programs, line styles are databases."""
    plotted = [line for line in lines(rows) if line.setting.objects is not None]
    if not plotted:
        return None
    figure = Figure(figsize=(11, 4.2), layout="constrained")
    left, right = figure.subplots(1, 2, sharey=True)
    same_size = [line for line in plotted if line.setting.persons == University.persons]
    _draw(left, same_size, lambda line: line.setting.objects or 0)
    left.set(title="figure 3: more and more watch", xlabel="% of the persons who watch an object (P = 400)")
    _draw(right, [line for line in plotted if line.setting.objects == 8], lambda line: line.setting.persons)
    right.set(title="figure 4: growing databases", xlabel="persons (8% watch an object)", xscale="log")
    left.set_ylabel("milliseconds an update (CPU)")
    _legend(figure)
    return figure


def _draw(axes: Axes, plotted: Sequence[Line], x: Callable[[Line], float]) -> None:
    for place, stroke in _STROKES.items():
        for program in PROGRAMS:
            points = sorted(
                (x(line), 1e3 * line.seconds[program])
                for line in plotted
                if line.setting.place == place and program in line.seconds
            )
            if points:
                axes.plot(*zip(*points, strict=True), stroke, marker=".", color=_COLOURS[program])
    axes.set_yscale("log")
    axes.grid(alpha=0.3)


def _legend(figure: Figure) -> None:
    axes = figure.axes[0]
    handles = [axes.plot([], [], color=colour)[0] for colour in _COLOURS.values()]
    handles += [axes.plot([], [], stroke, color="black")[0] for stroke in _STROKES.values()]
    figure.legend(handles, [*_COLOURS, *_STROKES], loc="outside right upper", fontsize=8)
