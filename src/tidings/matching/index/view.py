"""One version of an index, opened. It never changes, so that it can be matched while the next one is made."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from functools import cached_property
from pathlib import Path
from typing import TypeVar

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from tidings.matching.index import arrays, clauses, versions
from tidings.matching.index.arrays import IdTable, Rows, map_arrays
from tidings.matching.index.path_match import PathMatch
from tidings.matching.index.segment import Segment
from tidings.matching.index.versions import Part
from tidings.matching.kernels.rows import mark_dead

K = TypeVar("K")
V = TypeVar("V")
Bits = npt.NDArray[np.uint8]
"""A bit for each row of a segment, set if the row is dead."""


class View:
    """The segments of a version, each opened when it is first asked for; what the version before had open is kept.

    A mapped file keeps its place on the disk: what this version does not use goes with the version that did.
    """

    def __init__(
        self,
        folder: Path,
        version: int,
        parts: Sequence[Part],
        path_match: PathMatch,
        before: View | None = None,
    ) -> None:
        self.folder, self.version, self.parts = folder, version, tuple(parts)
        self._path_match = path_match
        names = {part.name for part in parts}
        self._segments: dict[str, Segment] = _those(before._segments, names) if before else {}
        self._tables: dict[str, IdTable] = _those(before._tables, names) if before else {}
        self._bits: dict[Part, Bits] = _those(before._bits, set(parts)) if before else {}

    @cached_property
    def opened(self) -> tuple[tuple[Segment, Bits | None], ...]:
        """Each segment with its dead rows, if it has any."""
        return tuple((self.segment(part), self.dead(part) if part.marks else None) for part in self.parts)

    def check(self) -> None:
        """Look into every file that it stands in. What a disk that failed has cut is an error here, and not in the
        middle of a batch.
        """
        for part in self.parts:
            self.segment(part)
            self.dead(part)
            for name in (arrays.FILE, clauses.FILE):
                map_arrays(self.folder / part.name / name)

    def segment(self, part: Part) -> Segment:
        if part.name not in self._segments:
            segment = Segment(self.folder / part.name, self._path_match)
            segment.ids  # noqa: B018  mapped now: who asks a match for them later may find the folder deleted
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

    def rows_of(self, part: Part, wanted: pa.Array) -> Rows:
        """The rows that have these ids, dead ones too."""
        if part.name not in self._tables:
            segment = self.segment(part)
            self._tables[part.name] = IdTable(segment.folder, segment.ids)
        return self._tables[part.name].rows_of(wanted)

    def without(self, part: Part, rows: Rows, file: str) -> Part:
        """The part with these rows dead, too; the file is written if some of them were not."""
        if not len(rows):
            return part
        bits = self.dead(part).copy()
        new = rows[: mark_dead(bits, rows)]
        if not len(new):
            return part
        marked = versions.write_marks(self.folder, file, part, new)
        self._bits[marked] = bits  # for the version that will have it
        return marked


def _those(held: dict[K, V], wanted: Collection[K]) -> dict[K, V]:
    # A list first: another thread may open a segment meanwhile.
    return {key: value for key, value in list(held.items()) if key in wanted}
