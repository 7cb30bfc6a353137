"""Array functions that decoders, compilers and the index share: lists in flat arrays, read-only views."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

Numbers = npt.NDArray[np.int64]


def starts_of(counts: Any) -> Numbers:
    """Return where each of several consecutive lists starts, and where the last one ends."""
    return np.concatenate(([0], np.cumsum(counts, dtype=np.int64))).astype(np.int64)


def list_index(offsets: Numbers, rows: Numbers) -> tuple[Numbers, Numbers]:
    """Return the positions of the items of these rows' lists, and where each list starts among them."""
    counts = offsets[rows + 1] - offsets[rows]
    starts = starts_of(counts)
    index = np.arange(starts[-1]) + np.repeat(offsets[rows] - starts[:-1], counts)
    return index, starts


def sum_before(groups: npt.NDArray[Any], sizes: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """Return the total size before each item in its group; groups are contiguous."""
    before: npt.NDArray[Any] = np.cumsum(sizes) - sizes
    first = np.flatnonzero(np.diff(groups, prepend=-1))
    before -= np.repeat(before[first], np.diff(first, append=len(groups)))
    return before


def read_only(array: Any) -> Any:
    """Return a contiguous read-only view, so that one compiled kernel serves files, Arrow and NumPy."""
    view = np.ascontiguousarray(array).view()
    view.flags.writeable = False
    return view
