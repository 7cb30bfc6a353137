"""The index: segments in a folder, and which of their subscriptions are still wanted.

Adding subscriptions writes one new segment; removing them marks their rows as dead; compacting writes what is alive
anew. Each change makes a new *version*: a small manifest that lists segments and marks. Nothing a version refers to is
ever changed, so that a reader of version 7 is not disturbed while version 8 is written.
"""

from __future__ import annotations

import json
import shutil
import tempfile
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from uuid import uuid4

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from tidings.atoms import Atoms, Event
from tidings.compiler.plan import Compiled
from tidings.durable import sync, write_whole
from tidings.errors import SetupError, TidingsError
from tidings.matching.index.matches import Matches
from tidings.matching.index.segment import ClusterDescription, Segment, write_segment

_CURRENT = "CURRENT"
_FIRST_PART = 64

Recompile = Callable[[pa.Table], Compiled]
"""Compiles subscriptions (id, subscriber, language, text) once more, for compaction."""


@dataclass(frozen=True, slots=True)
class Part:
    """A segment in a version: its folder's name, how many subscriptions it has, and the file of dead rows if any."""

    name: str
    subscriptions: int
    dead_file: str | None = None
    dead: int = 0

    @property
    def alive(self) -> int:
        return self.subscriptions - self.dead


@dataclass(frozen=True, slots=True)
class SegmentDescription:
    name: str
    subscriptions: int
    removed: int
    nbytes: int
    clusters: list[ClusterDescription] = field(default_factory=list)


class Index:
    """Standing subscriptions, ready to be matched. One writer at a time; any number of readers."""

    def __init__(self, folder: Path, version: int, parts: Sequence[Part], keep: Any = None) -> None:
        self.folder, self.version = folder, version
        self._parts = list(parts)
        self._keep = keep
        self._segments: dict[str, Segment] = {}
        self._dead: dict[str, npt.NDArray[np.bool_]] = {}
        self._part = _FIRST_PART

    @classmethod
    def create(cls, folder: Path | str | None = None) -> Index:
        """An empty index in a new or empty folder; without one, in a temporary folder that goes with the object."""
        keep = tempfile.TemporaryDirectory(prefix="tidings-index-") if folder is None else None
        place = Path(keep.name) if keep else Path(folder or "")
        place.mkdir(parents=True, exist_ok=True)
        if (place / _CURRENT).exists():
            raise SetupError(
                "there is an index already", where=str(place), hint="open it, or give another folder"
            )
        index = cls(place, 0, (), keep)
        index._publish([])
        return index

    @classmethod
    def open(cls, folder: Path | str, version: int | None = None) -> Index:
        """The index in a folder, at its current version or at an earlier one that is still there."""
        place = Path(folder)
        if version is None:
            if not (place / _CURRENT).exists():
                raise SetupError("there is no index", where=str(place), hint="Index.create makes one")
            version = int((place / _CURRENT).read_text())
        manifest = place / _manifest(version)
        if not manifest.exists():
            raise SetupError(f"version {version} of the index is gone", where=str(place))
        parts = [Part(**entry) for entry in json.loads(manifest.read_text())["segments"]]
        return cls(place, version, parts)

    @property
    def size(self) -> int:
        """How many subscriptions there are."""
        return sum(part.alive for part in self._parts)

    @property
    def nbytes(self) -> int:
        """What matching keeps in memory, ids included."""
        return sum(self._segment(part).nbytes for part in self._parts)

    @property
    def paths(self) -> tuple[str, ...]:
        """Every path some subscription looks at: nothing else of a publication needs decoding."""
        return tuple(sorted({c.path for part in self._parts for c in self._segment(part).columns}))

    @property
    def ids(self) -> pa.Array:
        """The ids of all subscriptions, those of removed ones too, in the order of `Matches.subscription`."""
        parts = [self._segment(part).ids for part in self._parts]
        return pa.concat_arrays(parts) if parts else pa.array([], pa.string())

    def add(self, compiled: Compiled) -> int:
        """Add subscriptions as one new segment; those with known ids replace the old ones. The new version."""
        if compiled.subscriptions.num_rows == 0:
            return self.version
        parts = self._without(compiled.subscriptions.column("id").combine_chunks())
        return self._publish([*parts, self._write(compiled)])

    def remove(self, ids: Iterable[str]) -> int:
        """Remove subscriptions by id; how many there were."""
        before = self.size
        parts = self._without(pa.array(list(ids), pa.string()))
        removed = before - sum(part.alive for part in parts)
        if removed:
            self._publish(parts)
        return removed

    def match(self, batch: Atoms | Iterable[Event]) -> Matches:
        """All pairs of a publication of the batch and a subscription it satisfies."""
        atoms = batch if isinstance(batch, Atoms) else Atoms.of(batch)
        found = []
        for part in self._parts:
            segment = self._segment(part)
            publication, subscription = segment.match(atoms)
            if part.dead_file:
                alive = ~self._dead_rows(part)[subscription]
                publication, subscription = publication[alive], subscription[alive]
            found.append((segment, publication, subscription))
        return Matches(found)

    def match_parts(self, atoms: Atoms, most: int = 1_000_000) -> Iterator[tuple[int, Matches]]:
        """Match a batch part by part, each of about `most` pairs at the most: memory stays bounded.

        A part is the place of its first publication and its matches, whose publications count from there. How many
        publications fit a part is learned, and remembered for the next batch: large parts are matched faster.
        """
        first, size = 0, self._part
        while first < atoms.count:
            last = min(atoms.count, first + size)
            matches = self.match(atoms.part(first, last))
            yield first, matches
            each = max(1.0, len(matches) / (last - first))
            first, size = last, max(1, min(4 * size, int(most / each)))
        self._part = min(size, max(_FIRST_PART, atoms.count))

    def compact(self, recompile: Recompile, most: int = 1) -> int:
        """Merge segments until at most `most` are left: first those of which a fifth is dead, then the smallest.

        One dead row in a million is no reason to write the million anew. The new version.
        """
        by_size = sorted(self._parts, key=lambda part: (part.dead * 5 < part.subscriptions, part.alive))
        merged = (
            [p for p in by_size if p.dead] if len(by_size) <= most else by_size[: len(by_size) - most + 1]
        )
        if not merged:
            return self.version
        kept = [part for part in self._parts if part not in merged]
        alive = pa.concat_tables([self._alive(part) for part in merged])
        if alive.num_rows == 0:
            return self._publish(kept)
        compiled = recompile(alive)
        if compiled.rejects:
            first = compiled.rejects[0]
            raise TidingsError(f"subscription {first.id} was accepted and is refused now: {first.reason}")
        return self._publish([*kept, self._write(compiled)])

    def collect(self, keep_versions: int = 2) -> None:
        """Delete the files that none of the newest versions refers to."""
        versions = sorted(int(path.stem.split("-")[1]) for path in self.folder.glob("manifest-*.json"))
        kept = set(versions[-keep_versions:]) | {self.version}
        used: set[str | None] = set()
        for version in kept:
            entries = json.loads((self.folder / _manifest(version)).read_text())["segments"]
            used |= {entry["name"] for entry in entries} | {entry["dead_file"] for entry in entries}
        for version in set(versions) - kept:
            (self.folder / _manifest(version)).unlink()
        for path in self.folder.iterdir():
            if path.name.startswith(("segment-", "dead-")) and path.name not in used:  # unfinished ones, too
                shutil.rmtree(path) if path.is_dir() else path.unlink()

    def describe(self) -> list[SegmentDescription]:
        """What stands in each segment and how it is reached."""
        return [
            SegmentDescription(part.name, part.subscriptions, part.dead, s.nbytes, s.describe())
            for part in self._parts
            for s in [self._segment(part)]
        ]

    def _write(self, compiled: Compiled) -> Part:
        # Not the version alone: one that was being written when the process died may have left a folder behind.
        name = f"segment-{self.version + 1:08d}-{uuid4().hex[:6]}"
        write_segment(self.folder / name, compiled)
        return Part(name, compiled.subscriptions.num_rows)

    def _publish(self, parts: Sequence[Part]) -> int:
        """Make these parts the next version, for everyone who opens the index from now on."""
        version = self.version + 1
        entries = [{s: getattr(part, s) for s in part.__slots__} for part in parts if part.alive]
        write_whole(self.folder / _manifest(version), json.dumps({"segments": entries}))
        write_whole(self.folder / _CURRENT, str(version))
        self.version, self._parts = version, [part for part in parts if part.alive]
        self._forget()
        return version

    def _forget(self) -> None:
        """Let go of what this version does not use: a file that is mapped keeps its place on the disk."""
        segments, dead = {part.name for part in self._parts}, {part.dead_file for part in self._parts}
        self._segments = {name: held for name, held in self._segments.items() if name in segments}
        self._dead = {name: held for name, held in self._dead.items() if name in dead}

    def _without(self, ids: pa.Array) -> list[Part]:
        """The parts, with these ids marked as dead."""
        parts = []
        for part in self._parts:
            hit = pc.is_in(self._segment(part).ids, value_set=ids).to_numpy(zero_copy_only=False)
            dead = hit | self._dead_rows(part)
            count = int(dead.sum())
            if count != part.dead:
                name = f"dead-{self.version + 1:08d}-{uuid4().hex[:6]}.npy"
                np.save(self.folder / name, dead)
                sync(self.folder / name)
                part = Part(part.name, part.subscriptions, name, count)
            parts.append(part)
        return parts

    def _segment(self, part: Part) -> Segment:
        if part.name not in self._segments:
            self._segments[part.name] = Segment(self.folder / part.name)
        return self._segments[part.name]

    def _dead_rows(self, part: Part) -> npt.NDArray[np.bool_]:
        if part.dead_file is None:
            return np.zeros(part.subscriptions, bool)
        if part.dead_file not in self._dead:
            self._dead[part.dead_file] = np.load(self.folder / part.dead_file, mmap_mode="r")
        return self._dead[part.dead_file]

    def _alive(self, part: Part) -> pa.Table:
        return self._segment(part).subscriptions.filter(pa.array(~self._dead_rows(part)))


def _manifest(version: int) -> str:
    return f"manifest-{version:08d}.json"
