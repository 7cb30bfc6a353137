"""Random draws that several workloads share."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from benchmarks.workloads.runs import Integers

CELLS = 20_000_000
"""Random numbers drawn at a time."""


def picked(rng: np.random.Generator, counts: npt.NDArray[np.integer], of: int) -> npt.NDArray[np.bool_]:
    """Return a row for each count, with that many random cells of `of` set."""
    chosen_cells = np.zeros((len(counts), of), np.bool_)
    step = CELLS // of
    for at in range(0, len(counts), step):
        order = rng.random((min(step, len(counts) - at), of), np.float32).argsort(axis=1)
        np.put_along_axis(
            chosen_cells[at : at + step], order, np.arange(of) < counts[at : at + step, None], axis=1
        )
    return chosen_cells


def chosen(rng: np.random.Generator, rows: int, count: int, of: int) -> npt.NDArray[np.int16]:
    """Return for each row `count` different numbers below `of`, sorted."""
    return np.nonzero(picked(rng, np.full(rows, count), of))[1].astype(np.int16).reshape(rows, count)


def shares(values: int, exponent: float = 1.0) -> npt.NDArray[np.float64]:
    """Return the probabilities of values under Zipf's law: the second is half as frequent as the first, ..."""
    weight = 1.0 / np.arange(1, values + 1) ** exponent
    return weight / weight.sum()


def zipf(
    rng: np.random.Generator, values: int, size: int | tuple[int, ...], exponent: float = 1.0
) -> Integers:
    """Draw numbers below `values`, small ones more often."""
    bounds = np.cumsum(shares(values, exponent))
    return np.minimum(np.searchsorted(bounds, rng.random(size), side="right"), values - 1)


def drawn(rng: np.random.Generator, values: int, size: int | tuple[int, ...], skewed: bool) -> Integers:
    """Draw numbers below `values`: uniform, or by Zipf's law."""
    return zipf(rng, values, size) if skewed else rng.integers(0, values, size)
