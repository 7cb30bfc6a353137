"""The index: segments in a folder, and which of their subscriptions are still wanted.

Adding subscriptions writes one new segment; removing them marks their rows as dead; merging makes one segment of
several. Each change makes a new *version*: a small manifest that lists segments and marks. Nothing a version refers to
is ever changed, so that a reader of version 7 is not disturbed while version 8 is written. A change costs what it is
worth: ids are looked up, and what is written is the new segment, the new marks and the manifest.
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from types import NoneType
from typing import Any
from uuid import uuid4

import numpy as np
import pyarrow as pa

from tidings.atoms import Atoms, Event, PublicationKind
from tidings.core.arguments import accepts, checks_arguments, wrong_type
from tidings.errors import SetupError
from tidings.matching.compiler.plan import Compiled
from tidings.matching.index import versions
from tidings.matching.index.compaction import Merge, joined, to_at_most, worth_merging, worth_taking_up
from tidings.matching.index.matches import Matches
from tidings.matching.index.path_match import PathMatch
from tidings.matching.index.segment import ClusterDescription, write_segment
from tidings.matching.index.shape_checks import Pairs, numbers_of
from tidings.matching.index.versions import Part
from tidings.matching.index.view import View
from tidings.matching.kernels.rows import keep_alive

_FIRST_PART = 64


@dataclass(frozen=True, slots=True)
class SegmentDescription:
    name: str
    subscriptions: int
    removed: int
    nbytes: int
    clusters: list[ClusterDescription] = field(default_factory=list)


_ADD = "index.add(compile_many(subscriptions))"
_MATCH = "index.match([decode(b'{\"price\": 5}')])"


_NO_PAIRS: Pairs = np.empty(0, np.int32), np.empty(0, np.int32)


def _split_undecided(pairs: Pairs) -> tuple[Pairs, Pairs]:
    """The pairs that match, and those that the kernel marked as undecided."""
    publication, subscription = pairs
    marked = subscription < 0
    if not marked.any():
        return pairs, _NO_PAIRS
    return (publication[~marked], subscription[~marked]), (publication[marked], ~subscription[marked])


def _living(dead: Any, pairs: Pairs) -> Pairs:
    """The pairs whose subscription was not removed."""
    if dead is None or not len(pairs[0]):
        return pairs
    count = keep_alive(dead, *pairs)
    return pairs[0][:count], pairs[1][:count]


def _ids(given: Iterable[str] | str) -> list[str]:
    ids = [given] if isinstance(given, str) else list(given)
    for id in ids:
        if not isinstance(id, str):
            raise wrong_type("ids", id, str)
    return ids


def _events(given: Iterable[Event]) -> list[Event]:
    if isinstance(given, Mapping):
        raise wrong_type("batch", given, list, _MATCH)
    events = list(given)
    for event in events:
        if not isinstance(event, Mapping):
            raise wrong_type("batch", event, dict, _MATCH)
    return events


@checks_arguments
class Index:
    """Standing subscriptions, ready to be matched. One writer at a time; any number of readers.

    Another thread may match while the writer's thread changes the index: a batch is matched with one version of it.
    """

    def __init__(self, folder: Path, version: int, parts: Sequence[Part], keep: Any = None) -> None:
        self.folder = folder
        self.path_match = PathMatch()
        self._now = View(folder, version, parts, self.path_match)
        self._keep = keep
        self._part = _FIRST_PART
        self._merging: dict[str, Merge] = {}

    @classmethod
    @accepts(folder=(str, Path, NoneType))
    def create(cls, folder: Path | str | None = None) -> Index:
        """An empty index in a new or empty folder; without one, in a temporary folder that goes with the object."""
        keep = tempfile.TemporaryDirectory(prefix="tidings-index-") if folder is None else None
        place = Path(keep.name) if keep else Path(folder or "")
        place.mkdir(parents=True, exist_ok=True)
        if versions.is_index(place):
            raise SetupError(
                "there is an index already", where=str(place), hint="open it, or give another folder"
            )
        index = cls(place, 0, (), keep)
        index._publish([])
        return index

    @staticmethod
    @accepts(folder=(str, Path))
    def is_in(folder: Path | str) -> bool:
        """Whether there is an index in a folder."""
        return versions.is_index(Path(folder))

    @classmethod
    @accepts(folder=(str, Path), version=(int, NoneType))
    def open(cls, folder: Path | str, version: int | None = None) -> Index:
        """The index in a folder, at its current version or at an earlier one that is still there."""
        place = Path(folder)
        version = versions.current(place) if version is None else version
        return cls(place, version, versions.read(place, version))

    def check(self) -> None:
        """Look into every file of it; SetupError if one is not whole."""
        try:
            self._now.check()
        except (OSError, ValueError, EOFError) as problem:
            raise SetupError("the index is damaged", where=str(self.folder), hint=str(problem)) from problem

    @property
    def version(self) -> int:
        return self._now.version

    @property
    def size(self) -> int:
        """How many subscriptions there are."""
        return sum(part.alive for part in self._now.parts)

    @property
    def segments(self) -> int:
        """How many segments they stand in: each is matched for itself."""
        return len(self._now.parts)

    @property
    def sizes(self) -> tuple[int, ...]:
        """How many subscriptions each segment has, the largest first."""
        return tuple(sorted((part.alive for part in self._now.parts), reverse=True))

    @property
    def nbytes(self) -> int:
        """What matching keeps in memory, ids included."""
        return sum(segment.nbytes for segment, _ in self._now.opened)

    @property
    def paths(self) -> tuple[str, ...]:
        """Every path of events that some subscription looks at: nothing else of them needs decoding."""
        columns = {column for segment, _ in self._now.opened for column in segment.columns}
        return tuple(sorted({column.path for column in columns if column.of is PublicationKind.EVENT}))

    @property
    def graph_paths(self) -> frozenset[str]:
        """Every key of graphs that some subscription looks at (see `graph_keys`)."""
        columns = {column for segment, _ in self._now.opened for column in segment.columns}
        return frozenset(column.path for column in columns if column.of is PublicationKind.GRAPH)

    @property
    def sorts(self) -> frozenset[PublicationKind]:
        """Which sorts of publications some subscription looks at."""
        return frozenset(column.of for segment, _ in self._now.opened for column in segment.columns)

    @property
    def ids(self) -> pa.Array:
        """The ids of all subscriptions, those of removed ones too, in the order of `Matches.subscription`."""
        parts = [segment.ids for segment, _ in self._now.opened]
        return pa.concat_arrays(parts) if parts else pa.array([], pa.string())

    @accepts(_ADD, compiled=Compiled)
    def add(self, compiled: Compiled) -> int:
        """Add subscriptions as one new segment; those with known ids replace the old ones. The new version."""
        return self.change((), compiled)

    @accepts(ids=Iterable)
    def remove(self, ids: Iterable[str] | str) -> int:
        """Remove subscriptions by their ids, or one by its id; how many there were."""
        before = self.size
        self._publish_if_new(self._without(pa.array(_ids(ids), pa.string())))
        return before - self.size

    @accepts(_ADD, removed=Iterable, added=Compiled, take_up=int)
    def change(self, removed: Iterable[str] | str, added: Compiled, take_up: int = 0) -> int:
        """Remove some and add others in one step: no reader sees the one without the other. The new version.

        Small segments that would be merged with the new one anyway are taken up into it at once, as long as it has at
        most `take_up` subscriptions.
        """
        new = added.subscriptions.column("id").combine_chunks()
        parts = self._without(pa.concat_arrays([pa.array(_ids(removed), pa.string()), new.cast(pa.string())]))
        return self._publish_if_new(self._with(parts, added, take_up) if len(new) else parts)

    @accepts(_MATCH, batch=(Atoms, Iterable))
    def match(self, batch: Atoms | Iterable[Event]) -> Matches:
        """All pairs of a publication of the batch and a subscription it satisfies.

        Finding a pattern in a graph can take very long, so the search ends at a step limit. Pairs that it leaves
        undecided are no matches; they are in `Matches.undecided`.
        """
        atoms = batch if isinstance(batch, Atoms) else Atoms.of(_events(batch))
        found, undecided, numbers = [], [], numbers_of(atoms)
        for segment, dead in self._now.opened:
            pairs = segment.match(atoms, numbers)
            left: Pairs = _NO_PAIRS
            if atoms.about is PublicationKind.GRAPH:
                pairs, left = _split_undecided(pairs)
            found.append((segment, *_living(dead, pairs)))
            undecided.append((segment, *_living(dead, left)))
        return Matches(found, undecided)

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

    def merge(self) -> int:
        """Merge segments where that is worth it: after many small additions, or where much is dead. The version."""
        while merge := self.plan_merge():
            merge.write()
            self.adopt(merge)
        return self.version

    def compact(self, most: int = 1) -> int:
        """Merge segments until at most `most` are left, whatever it costs. The version."""
        parts = to_at_most(self._now.parts, most)
        if parts:
            merge = self._plan(parts)
            merge.write()
            self.adopt(merge)
        return self.version

    def plan_merge(self, most: int | None = None) -> Merge | None:
        """A merge that is worth it, of at most so many subscriptions: to be written and then adopted.

        It can be written in another thread. Meanwhile the index may be matched and changed and other segments merged.
        """
        busy = self._being_merged()
        parts = worth_merging([part for part in self._now.parts if part.name not in busy])
        if not parts or (most is not None and sum(part.alive for part in parts) > most):
            return None
        return self._plan(parts)

    def abandon(self, merge: Merge) -> None:
        """Give up a planned merge: its segments may be merged again."""
        del self._merging[merge.name]

    def adopt(self, merge: Merge) -> int:
        """Put a merged segment in the place of those it was made from. The new version."""
        del self._merging[merge.name]
        names = {part.name for part in merge.parts}
        parts = [part for part in self._now.parts if part.name not in names]
        if merge.subscriptions:
            merged = Part(merge.name, merge.subscriptions)
            parts.append(
                self._now.without(merged, merge.died_since(self._now), self._new_name("dead", ".npy"))
            )
        return self._publish(parts)

    def collect(self, keep_versions: int = 2) -> None:
        """Delete the files that none of the newest versions refers to."""
        kept = {*versions.numbers(self.folder)[-keep_versions:], self.version}
        versions.collect(self.folder, kept, {*self._merging, *self._being_merged()})

    def describe(self) -> list[SegmentDescription]:
        """What stands in each segment and how it is reached."""
        return [
            SegmentDescription(part.name, part.subscriptions, part.dead, segment.nbytes, segment.describe())
            for part, (segment, _) in zip(self._now.parts, self._now.opened, strict=True)
        ]

    def _plan(self, parts: Sequence[Part]) -> Merge:
        merge = Merge(self._now, parts, self._new_name("segment"))
        self._merging[merge.name] = merge
        return merge

    def _being_merged(self) -> set[str]:
        return {part.name for merge in self._merging.values() for part in merge.parts}

    def _without(self, ids: pa.Array) -> list[Part]:
        """The parts, with these ids marked as dead."""
        view = self._now
        rows = ((part, view.rows_of(part, ids)) for part in view.parts)
        return [view.without(part, found, self._new_name("dead", ".npy")) for part, found in rows]

    def _with(self, parts: Sequence[Part], added: Compiled, most: int) -> list[Part]:
        """The parts and a new one, which may take some of them up."""
        busy, size, name = self._being_merged(), added.subscriptions.num_rows, self._new_name("segment")
        free = [part for part in parts if part.alive and part.name not in busy]
        taken_up = worth_taking_up(free, size, most)
        write_segment(self.folder / name, joined(self._now, taken_up, added) if taken_up else added)
        kept = [part for part in parts if part not in taken_up]
        return [*kept, Part(name, size + sum(part.alive for part in taken_up))]

    def _publish_if_new(self, parts: Sequence[Part]) -> int:
        return self.version if tuple(parts) == self._now.parts else self._publish(parts)

    def _publish(self, parts: Sequence[Part]) -> int:
        """Make these parts the next version, for everyone who opens the index from now on."""
        version, kept = self.version + 1, [part for part in parts if part.alive]
        versions.write(self.folder, version, kept, self._now.parts)
        view = View(self.folder, version, kept, self.path_match, self._now)
        view.opened  # noqa: B018  before a thread that matches can see it, and before the files may go
        self._now = view
        return version

    def _new_name(self, what: str, ending: str = "") -> str:
        # Not the version alone: one that was being written when the process died may have left files behind.
        return f"{what}-{self.version + 1:08d}-{uuid4().hex[:6]}{ending}"
