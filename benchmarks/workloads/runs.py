"""Runs: lists of different lengths, one after another in a flat array; run i is `starts[i]:starts[i + 1]`."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

Integers = npt.NDArray[np.int64]


def starts_of(lengths: npt.ArrayLike) -> Integers:
    """Return the start of each run, and the end of the last one."""
    return np.concatenate(([0], np.cumsum(lengths, dtype=np.int64)))


def places(starts: Integers, runs: npt.NDArray[np.integer]) -> Integers:
    """Return the positions of the elements of these runs, run after run."""
    lengths = np.diff(starts)[runs]
    begins = starts_of(lengths)
    return np.arange(begins[-1]) + np.repeat(starts[runs] - begins[:-1], lengths)
