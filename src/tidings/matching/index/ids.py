"""Which row of a segment has an id: a table of hashes, written with the segment and mapped when somebody asks.

A change of ten subscriptions looks ten ids up, whether the segment has a thousand rows or ten million.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from tidings.kernels.rows import fill_slots, find_rows
from tidings.matching.index.arrays import map_arrays, write_arrays

FILE = "ids.bin"
Rows = npt.NDArray[np.int32]


def write_ids(folder: Path, ids: pa.Array[Any]) -> None:
    """Write the table of a segment's ids, which are all different."""
    slots = np.full(2 * len(ids) + 1, -1, np.int32)
    fill_slots(slots, *_bytes(ids))
    write_arrays(folder / FILE, {"slots": slots})


class IdTable:
    """The table of a segment that was opened; `ids` are the segment's."""

    def __init__(self, folder: Path, ids: pa.Array[Any]) -> None:
        self._slots = map_arrays(folder / FILE)["slots"]
        self._ids = ids
        self._offsets, self._data = _bytes(ids)

    def rows_of(self, ids: pa.Array[Any]) -> Rows:
        """The rows of those ids that are in the segment."""
        rows = np.empty(len(ids), np.int32)
        find_rows(self._slots, self._offsets, self._data, *_bytes(ids), rows)
        return rows[rows >= 0]


def _bytes(ids: pa.Array[Any]) -> tuple[npt.NDArray[np.int32], npt.NDArray[np.uint8]]:
    """Where each id begins and ends, and the bytes, as Arrow holds them; read-only, so that one kernel serves all."""
    _, offsets, data = ids.buffers()
    starts = np.frombuffer(offsets or bytes(4 * (ids.offset + len(ids) + 1)), np.int32)
    text = np.frombuffer(data or b"", np.uint8)
    starts.flags.writeable = text.flags.writeable = False
    return starts[ids.offset : ids.offset + len(ids) + 1], text
