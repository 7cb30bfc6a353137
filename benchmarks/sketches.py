"""Sketches of paper 004's figures, as far as its text describes them.

The paper's figures are curves without numbers in the text, so nothing here has a scale: only the described order of the
algorithms and the growth of their times are drawn.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from matplotlib.axes import Axes

COLOURS = {
    "index": "tab:blue",
    "naive": "tab:orange",
    "fair predicate": "tab:green",
    "equality-preferred": "tab:red",
    "quarantining": "tab:purple",
    "hanson": "tab:brown",
    "gough": "tab:pink",
    "aguilera": "tab:gray",
    "neon": "tab:olive",
}
"""Each algorithm has the same colour in sketches and measurements."""

_X = np.linspace(0.05, 1.0, 50)


def _growing(axes: Axes) -> None:
    """Draw figure 9: all grow with the subscriptions; quarantining is fastest, fair predicate slowest."""
    for slope, name in ((3.0, "fair predicate"), (1.6, "equality-preferred"), (0.8, "quarantining")):
        axes.plot(_X, slope * _X, color=COLOURS[name], label=name)
    _finish(axes, "subscriptions", "naive: nearly 10,000 times\nquarantining at 400,000")


def _falling(axes: Axes) -> None:
    """Draw figure 10: more equalities are faster; with equalities only, the last two are the same."""
    lines = ((3.0, 1.4, "fair predicate"), (2.2, 0.4, "equality-preferred"), (1.2, 0.4, "quarantining"))
    for high, low, name in lines:
        axes.plot(_X, high + (low - high) * _X, color=COLOURS[name], label=name)
    _finish(axes, "p, the share of equalities", "800,000 subscriptions")


def _threshold(axes: Axes) -> None:
    """Draw figure 11: a threshold for visiting the clusters, then slow, logarithmic growth."""
    growth = 1.0 + 0.25 * np.log(_X / _X[0])
    axes.plot(_X, growth, color=COLOURS["quarantining"], label="equality-preferred\n= quarantining")
    _finish(axes, "subscriptions", "a threshold, then slow,\nlogarithmic growth")


def _finish(axes: Axes, label: str, statement: str) -> None:
    axes.set(title="the paper's words, no scale", xlabel=label, ylabel="time an event", xticks=[], yticks=[])
    axes.set_ylim(0, 4.5)
    axes.text(0.03, 0.97, statement, transform=axes.transAxes, va="top", fontsize=8)
    axes.legend(loc="upper right", fontsize=7, bbox_to_anchor=(1, 0.87))


SKETCHES: dict[str, Callable[[Axes], None]] = {
    "figure-9": _growing,
    "figure-10": _falling,
    "figure-11": _threshold,
}
