"""Open version of an index. It never changes, so it can be matched while the next version is written."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from functools import cached_property
from pathlib import Path
from typing import TypeVar

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from tidings.matching.index import arrays, clause_file, versions
from tidings.matching.index.arrays import IdTable, Rows, map_arrays
from tidings.matching.index.path_match import PathMatch
from tidings.matching.index.segment import Segment
from tidings.matching.index.versions import Part
from tidings.matching.kernels.rows import mark_dead

K = TypeVar("K")
V = TypeVar("V")
Bits = npt.NDArray[np.uint8]
"""One bit for each row of a segment, set if the row is dead."""


class View:
    """The segments of one version, opened on first use; those that the previous version has open are reused.

    A mapped file occupies the disk even after it is deleted, so segments that are no longer used are dropped.
    """

    def __init__(
        self,
        folder: Path,
        version: int,
        parts: Sequence[Part],
        path_match: PathMatch,
        previous: View | None = None,
    ) -> None:
        self.folder, self.version, self.parts = folder, version, tuple(parts)
        self._path_match = path_match
        names = {part.name for part in parts}
        self._segments: dict[str, Segment] = _pick(previous._segments, names) if previous else {}
        self._tables: dict[str, IdTable] = _pick(previous._tables, names) if previous else {}
        self._bits: dict[Part, Bits] = _pick(previous._bits, set(parts)) if previous else {}

    @cached_property
    def opened(self) -> tuple[tuple[Segment, Bits | None], ...]:
        """Each segment with the bits of its dead rows, None if all are alive."""
        return tuple((self.segment(part), self.dead(part) if part.marks else None) for part in self.parts)

    def check(self) -> None:
        """Open every file, so that a truncated one is an error here and not in the middle of a batch."""
        for part in self.parts:
            self.segment(part)
            self.dead(part)
            for name in (arrays.IDS_FILE, clause_file.FILE):
                map_arrays(self.folder / part.name / name)

    def segment(self, part: Part) -> Segment:
        if part.name not in self._segments:
            segment = Segment(self.folder / part.name, self._path_match)
            segment.ids  # noqa: B018  mapped now: the folder may be deleted before a match looks them up
            self._segments[part.name] = segment
        return self._segments[part.name]

    def dead(self, part: Part) -> Bits:
        if part not in self._bits:
            bits = np.zeros(-(-part.subscriptions // 8), np.uint8)
            mark_dead(bits, versions.read_marks(self.folder, part))
            self._bits[part] = bits
        return self._bits[part]

    def alive_rows(self, part: Part) -> npt.NDArray[np.bool_]:
        dead = np.unpackbits(self.dead(part), count=part.subscriptions, bitorder="little")
        return ~dead.view(np.bool_)

    def find_rows(self, part: Part, ids: pa.Array) -> Rows:
        """Return the rows that have these ids, dead ones included."""
        if part.name not in self._tables:
            segment = self.segment(part)
            self._tables[part.name] = IdTable(segment.folder, segment.ids)
        return self._tables[part.name].find_rows(ids)

    def mark_dead(self, part: Part, rows: Rows, file: str) -> Part:
        """Return the part with these rows marked as dead; writes the file if some of them were alive."""
        if not len(rows):
            return part
        bits = self.dead(part).copy()
        newly_dead = rows[: mark_dead(bits, rows)]
        if not len(newly_dead):
            return part
        marked = versions.write_marks(self.folder, file, part, newly_dead)
        self._bits[marked] = bits  # for the next version
        return marked


def _pick(cache: dict[K, V], keys: Collection[K]) -> dict[K, V]:
    # A copy of the items, because another thread may open a segment meanwhile.
    return {key: value for key, value in list(cache.items()) if key in keys}
