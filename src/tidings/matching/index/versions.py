"""Versions of an index on disk: manifests that list segments and their dead rows.

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
from pathlib import Path

import numpy as np
import numpy.typing as npt

from tidings.core.atomic_files import sync, sync_all, temporary_beside
from tidings.errors import SetupError

FORMAT = 8
"""Increased with every change of the file format. An index of another format has to be rebuilt."""

_CURRENT = "CURRENT"
_GROWTH = 4
"""A file of dead rows is merged into a new one unless it is more than this many times as long."""

Rows = npt.NDArray[np.int32]


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
        what = "the index was written by an incompatible version of Tidings"
        raise SetupError(what, where=str(folder), hint="delete the folder and build the index again")
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


def collect(folder: Path, kept: Collection[int], busy: Collection[str]) -> None:
    """Delete all files that none of the kept versions refers to, except segments that are `busy`."""
    used = set(busy)
    for path in folder.glob("manifest-*.json"):
        if _number(path) in kept:
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

    A few rows cost a small file, however many are dead already. Short files are merged into the new one, so that there
    are few files, and each row is written a few dozen times at most.
    """
    kept = list(part.marks)
    merged = [rows]
    while kept and kept[-1].rows <= _GROWTH * sum(map(len, merged)):
        merged.append(np.load(folder / kept.pop().file))
    dead = np.sort(np.concatenate(merged))
    np.save(folder / name, dead)  # synced by the version that lists it
    return Part(part.name, part.subscriptions, (*kept, Marks(name, len(dead))))


def _files(parts: Sequence[Part]) -> Iterator[str]:
    for part in parts:
        yield part.name
        yield from (marks.file for marks in part.marks)


def _manifest(version: int) -> str:
    return f"manifest-{version:08d}.json"


def _number(manifest: Path) -> int:
    return int(manifest.stem.removeprefix("manifest-"))
