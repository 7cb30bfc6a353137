"""Files of arrays and hash tables of ids, opened by mapping them into memory.

A file holds aligned arrays after a table of contents. All processes of a host that map it share one copy in
the page cache.
"""

from __future__ import annotations

import json
import mmap
from functools import cache
from pathlib import Path
from typing import Any, TypeVar, get_type_hints

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from tidings.matching.kernels.rows import fill_slots, find_rows

_MAGIC = b"tidings-arrays-1\n"
_ALIGNMENT = 64

T = TypeVar("T", bound=tuple[Any, ...])


def write_arrays(path: Path, arrays: dict[str, np.ndarray[Any, Any]]) -> None:
    """Write arrays to a new file; the file is complete when the call returns."""
    contents, offset = {}, 0
    for name, array in arrays.items():
        contents[name] = {"dtype": array.dtype.str, "count": int(array.size), "offset": offset}
        offset += -(-array.nbytes // _ALIGNMENT) * _ALIGNMENT
    head = _MAGIC + json.dumps(contents).encode() + b"\n"
    head = head.ljust(-(-len(head) // _ALIGNMENT) * _ALIGNMENT, b" ")
    with path.open("wb") as file:
        file.write(f"{len(head):>{_ALIGNMENT - 1}}\n".encode())
        file.write(head)
        for array in arrays.values():
            file.write(np.ascontiguousarray(array).data)
            file.write(b"\0" * (-array.nbytes % _ALIGNMENT))


def map_arrays(path: Path) -> dict[str, np.ndarray[Any, Any]]:
    """Map the arrays of a file read-only."""
    with path.open("rb") as file:
        mapped = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
    start = _ALIGNMENT + int(mapped[:_ALIGNMENT])
    contents = json.loads(mapped[_ALIGNMENT + len(_MAGIC) : start])
    return {
        name: np.frombuffer(mapped, np.dtype(entry["dtype"]), entry["count"], start + entry["offset"])
        for name, entry in contents.items()
    }


def flatten(group: tuple[Any, ...], prefix: str = "") -> dict[str, np.ndarray[Any, Any]]:
    """Return the arrays of a NamedTuple and of NamedTuples inside it, by dotted name."""
    flat: dict[str, np.ndarray[Any, Any]] = {}
    for name, value in zip(group._fields, group, strict=True):  # type: ignore[attr-defined]
        if isinstance(value, tuple):
            flat |= flatten(value, f"{prefix}{name}.")
        else:
            flat[prefix + name] = value
    return flat


@cache
def _hints(group: type) -> dict[str, Any]:
    return get_type_hints(group)


def rebuild(group: type[T], flat: dict[str, np.ndarray[Any, Any]], prefix: str = "") -> T:
    """Rebuild a NamedTuple from the arrays that `flatten` returned."""
    hints = _hints(group)
    return group(
        *(
            rebuild(hints[name], flat, f"{prefix}{name}.")
            if isinstance(hints[name], type) and issubclass(hints[name], tuple)
            else flat[prefix + name]
            for name in group._fields  # type: ignore[attr-defined]
        )
    )


IDS_FILE = "ids.bin"
Rows = npt.NDArray[np.int32]


def write_ids(folder: Path, ids: pa.Array[Any]) -> None:
    """Write the hash table of a segment's ids, which are all different."""
    slots = np.full(2 * len(ids) + 1, -1, np.int32)
    fill_slots(slots, *_id_buffers(ids))
    write_arrays(folder / IDS_FILE, {"slots": slots})


class IdTable:
    """Hash table from ids to rows of a segment.

    Changing ten subscriptions looks up ten ids, whether the segment has a thousand rows or ten million.
    """

    def __init__(self, folder: Path, ids: pa.Array[Any]) -> None:
        self._slots = map_arrays(folder / IDS_FILE)["slots"]
        self._ids = ids
        self._offsets, self._data = _id_buffers(ids)

    def find_rows(self, ids: pa.Array[Any]) -> Rows:
        """Return the rows of those ids that are in the segment."""
        rows = np.empty(len(ids), np.int32)
        find_rows(self._slots, self._offsets, self._data, *_id_buffers(ids), rows)
        return rows[rows >= 0]


def _id_buffers(ids: pa.Array[Any]) -> tuple[npt.NDArray[np.int32], npt.NDArray[np.uint8]]:
    """Return Arrow's offsets and bytes of ids; read-only, so that one compiled kernel serves all arrays."""
    _, offsets, data = ids.buffers()
    starts = np.frombuffer(offsets or bytes(4 * (ids.offset + len(ids) + 1)), np.int32)
    text = np.frombuffer(data or b"", np.uint8)
    starts.flags.writeable = text.flags.writeable = False
    return starts[ids.offset : ids.offset + len(ids) + 1], text
