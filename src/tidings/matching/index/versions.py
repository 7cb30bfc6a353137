"""Versions of an index on disk: which segments there are, and which of their rows are no longer wanted.

    CURRENT                  the number of the newest version
    manifest-00000007.json   version 7: its segments, and the files that mark dead rows
    segment-...              a folder each
    dead-....npy             dead rows of one segment, sorted; those of several files are different ones

Nothing a version refers to is ever changed.
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
"""Changes with anything an index writes: an index of another format is not read, but made anew from the texts."""

_CURRENT = "CURRENT"
_GROWTH = 4
"""A file of marks is written anew with the next one's unless it is more than so many times as long."""

Rows = npt.NDArray[np.int32]


@dataclass(frozen=True, slots=True)
class Marks:
    """A file of dead rows, and how many are in it."""

    file: str
    rows: int


@dataclass(frozen=True, slots=True)
class Part:
    """A segment in a version: its folder's name, how many subscriptions it has, and which of them are dead."""

    name: str
    subscriptions: int
    marks: tuple[Marks, ...] = ()

    @property
    def dead(self) -> int:
        return sum(each.rows for each in self.marks)

    @property
    def alive(self) -> int:
        return self.subscriptions - self.dead


def is_index(folder: Path) -> bool:
    return (folder / _CURRENT).exists()


def current(folder: Path) -> int:
    if not is_index(folder):
        raise SetupError("there is no index", where=str(folder), hint="Index.create makes one")
    return int((folder / _CURRENT).read_text())


def read(folder: Path, version: int) -> list[Part]:
    """The parts of a version."""
    path = folder / _manifest(version)
    if not path.exists():
        raise SetupError(f"version {version} of the index is gone", where=str(folder))
    try:
        content = json.loads(path.read_text())
    except ValueError as problem:
        raise SetupError("the index is damaged", where=str(path), hint=str(problem)) from problem
    if content.get("format") != FORMAT:
        what = "the index was written by another version of Tidings"
        raise SetupError(what, where=str(folder), hint="delete the folder; its texts make it anew")
    return [
        Part(part["name"], part["subscriptions"], tuple(Marks(**marks) for marks in part["marks"]))
        for part in content["segments"]
    ]


def write(folder: Path, version: int, parts: Sequence[Part], before: Sequence[Part]) -> None:
    """Make these parts the current version: durably, and whole or not at all.

    All new files are waited for at once, then the manifest's name and those of new segments, then the switch.
    """
    content = {"format": FORMAT, "segments": [asdict(part) for part in parts]}
    marks = {each.file for part in parts for each in part.marks}
    marks -= {each.file for part in before for each in part.marks}
    manifest, current = folder / _manifest(version), folder / _CURRENT
    with temporary_beside(manifest) as new_manifest, temporary_beside(current) as new_current:
        new_manifest.write_text(json.dumps(content))
        new_current.write_text(str(version))
        sync_all((new_manifest, new_current, *(folder / name for name in marks)))
        new_manifest.replace(manifest)
        sync(folder)
        new_current.replace(current)
    sync(folder)


def collect(folder: Path, kept: Collection[int], busy: Collection[str]) -> None:
    """Delete all files that none of the kept versions refers to; names that are `busy` are left alone."""
    used = set(busy)
    for path in folder.glob("manifest-*.json"):
        if _number(path) in kept:
            used |= set(_files(read(folder, _number(path))))
        else:
            path.unlink()
    for path in folder.iterdir():
        if path.name.startswith(("segment-", "dead-")) and path.stem not in used and path.name not in used:
            shutil.rmtree(path) if path.is_dir() else path.unlink()


def numbers(folder: Path) -> list[int]:
    """The versions that are still there, in order."""
    return sorted(map(_number, folder.glob("manifest-*.json")))


def read_marks(folder: Path, part: Part) -> Rows:
    """All dead rows of a part, in no particular order."""
    return np.concatenate([np.load(folder / each.file) for each in part.marks] or [np.empty(0, np.int32)])


def write_marks(folder: Path, name: str, part: Part, rows: Rows) -> Part:
    """The part with more dead rows. A few rows cost a small file, whatever is dead already.

    Short files are taken into the new one, so that lengths rise by a factor and files stay few: a row that died is
    written a few dozen times at most.
    """
    kept = list(part.marks)
    gathered = [rows]
    while kept and kept[-1].rows <= _GROWTH * sum(map(len, gathered)):
        gathered.append(np.load(folder / kept.pop().file))
    joined = np.sort(np.concatenate(gathered))
    np.save(folder / name, joined)  # the version that lists it makes it last
    return Part(part.name, part.subscriptions, (*kept, Marks(name, len(joined))))


def _files(parts: Sequence[Part]) -> Iterator[str]:
    for part in parts:
        yield part.name
        yield from (each.file for each in part.marks)


def _manifest(version: int) -> str:
    return f"manifest-{version:08d}.json"


def _number(manifest: Path) -> int:
    return int(manifest.stem.removeprefix("manifest-"))
