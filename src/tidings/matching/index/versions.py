"""Versions of an index on disk, and the open segments of one of them.

    CURRENT                  the number of the newest version
    manifest-00000007.json   version 7: its segments and their files of dead rows
    segment-...              a folder for each segment
    dead-....npy             dead rows of one segment, sorted; a row is in one file only

Files that a version refers to never change.
"""

from __future__ import annotations

import json
import shutil
from collections.abc import Collection, Iterator, Sequence
from dataclasses import asdict, dataclass
from functools import cached_property
from pathlib import Path
from typing import TypeVar

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from tidings.core.atomic_files import sync, sync_all, temporary_beside
from tidings.errors import SetupError
from tidings.matching.index import clause_file
from tidings.matching.index.arrays import IDS_FILE, IdTable, Rows, map_arrays
from tidings.matching.index.path_columns import PathMatch
from tidings.matching.index.segment import Segment
from tidings.matching.kernels.rows import mark_dead

FORMAT = 8
"""Increased with every change of the file format. An index of another format has to be rebuilt."""

_CURRENT = "CURRENT"
_GROWTH = 4
"""A file of dead rows is merged into a new one unless it is more than this many times as long."""

K = TypeVar("K")
V = TypeVar("V")


@dataclass(frozen=True, slots=True)
class Marks:
    """A file of dead rows, and the number of rows in it."""

    file: str
    rows: int


@dataclass(frozen=True, slots=True)
class Part:
    """A segment in a version: its folder, its number of subscriptions, and its files of dead rows."""

    name: str
    subscriptions: int
    marks: tuple[Marks, ...] = ()

    @property
    def dead(self) -> int:
        return sum(marks.rows for marks in self.marks)

    @property
    def alive(self) -> int:
        return self.subscriptions - self.dead


def is_index(folder: Path) -> bool:
    return (folder / _CURRENT).exists()


def read_current(folder: Path) -> int:
    """Return the number of the newest version."""
    if not is_index(folder):
        raise SetupError("no index in this folder", where=str(folder), hint="Index.create creates one")
    return int((folder / _CURRENT).read_text())


def read(folder: Path, version: int) -> list[Part]:
    """Read the parts of a version."""
    path = folder / _manifest(version)
    if not path.exists():
        raise SetupError(f"version {version} of the index no longer exists", where=str(folder))
    try:
        content = json.loads(path.read_text())
    except ValueError as problem:
        raise SetupError("the index is damaged", where=str(path), hint=str(problem)) from problem
    if content.get("format") != FORMAT:
        message = "the index was written by an incompatible version of Tidings"
        raise SetupError(message, where=str(folder), hint="delete the folder and build the index again")
    return [
        Part(part["name"], part["subscriptions"], tuple(Marks(**marks) for marks in part["marks"]))
        for part in content["segments"]
    ]


def write(folder: Path, version: int, parts: Sequence[Part], previous: Sequence[Part]) -> None:
    """Write these parts as the current version, durably and atomically.

    First all new files are synced together, then the folder with the new names, then CURRENT is replaced.
    """
    content = {"format": FORMAT, "segments": [asdict(part) for part in parts]}
    new_files = {marks.file for part in parts for marks in part.marks}
    new_files -= {marks.file for part in previous for marks in part.marks}
    manifest, current = folder / _manifest(version), folder / _CURRENT
    with temporary_beside(manifest) as new_manifest, temporary_beside(current) as new_current:
        new_manifest.write_text(json.dumps(content))
        new_current.write_text(str(version))
        sync_all((new_manifest, new_current, *(folder / name for name in new_files)))
        new_manifest.replace(manifest)
        sync(folder)
        new_current.replace(current)
    sync(folder)


def collect(folder: Path, kept_versions: Collection[int], busy: Collection[str]) -> None:
    """Delete all files that none of the kept versions refers to, except segments that are `busy`."""
    used = set(busy)
    for path in folder.glob("manifest-*.json"):
        if _number(path) in kept_versions:
            used |= set(_files(read(folder, _number(path))))
        else:
            path.unlink()
    for path in folder.iterdir():
        if path.name.startswith(("segment-", "dead-")) and path.stem not in used and path.name not in used:
            shutil.rmtree(path) if path.is_dir() else path.unlink()


def list_versions(folder: Path) -> list[int]:
    """Return the versions that still exist, in order."""
    return sorted(map(_number, folder.glob("manifest-*.json")))


def read_marks(folder: Path, part: Part) -> Rows:
    """Return all dead rows of a part, in no particular order."""
    rows = [np.load(folder / marks.file) for marks in part.marks]
    return np.concatenate(rows or [np.empty(0, np.int32)])


def write_marks(folder: Path, name: str, part: Part, rows: Rows) -> Part:
    """Write more dead rows of a part; return the changed part.

    A few rows cost a small file, however many are dead already. Short files are merged into the new one, so
    that there are few files, and each row is written a few dozen times at most.
    """
    marks = list(part.marks)
    merged = [rows]
    while marks and marks[-1].rows <= _GROWTH * sum(map(len, merged)):
        merged.append(np.load(folder / marks.pop().file))
    dead = np.sort(np.concatenate(merged))
    np.save(folder / name, dead)  # synced by the version that lists it
    return Part(part.name, part.subscriptions, (*marks, Marks(name, len(dead))))


def _files(parts: Sequence[Part]) -> Iterator[str]:
    for part in parts:
        yield part.name
        yield from (marks.file for marks in part.marks)


def _manifest(version: int) -> str:
    return f"manifest-{version:08d}.json"


def _number(manifest: Path) -> int:
    return int(manifest.stem.removeprefix("manifest-"))


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
            for name in (IDS_FILE, clause_file.FILE):
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
            mark_dead(bits, read_marks(self.folder, part))
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
        marked = write_marks(self.folder, file, part, newly_dead)
        self._bits[marked] = bits  # for the next version
        return marked


def _pick(cache: dict[K, V], keys: Collection[K]) -> dict[K, V]:
    # A copy of the items, because another thread may open a segment meanwhile.
    return {key: value for key, value in list(cache.items()) if key in keys}
