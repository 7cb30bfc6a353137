"""Versioned index of subscriptions in a folder of immutable segments.

Adding subscriptions writes one new segment; removing them marks their rows as dead; merging replaces several
segments by one. Each change makes a new *version*: a small manifest that lists segments and marks of dead
rows. Files that a version refers to never change, so readers of version 7 can continue while version 8 is
written. The cost of a change depends on its size only: it looks up ids and writes the new segment, the new
marks and the manifest.
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

from tidings.atoms import Atoms, AtomShape, Event
from tidings.core.arguments import accepts, checks_arguments, wrong_type
from tidings.errors import SetupError
from tidings.matching.compiler.plan import Compiled
from tidings.matching.index import versions
from tidings.matching.index.arrays import Rows
from tidings.matching.index.compaction import (
    Merge,
    choose_absorbed,
    choose_merge,
    choose_merge_to,
    join_parts,
)
from tidings.matching.index.matches import Matches
from tidings.matching.index.path_columns import PathMatch
from tidings.matching.index.segment import ClusterDescription, write_segment
from tidings.matching.index.shape_checks import Pairs, read_document_numbers
from tidings.matching.index.versions import Part, View
from tidings.matching.kernels.rows import keep_alive

_FIRST_PART = 64
"""Publications in the first part of `match_parts`, before the number of matches is known."""


@dataclass(frozen=True, slots=True)
class SegmentDescription:
    """Size of a segment, and how its clauses are found."""

    name: str
    subscriptions: int
    removed: int
    nbytes: int
    clusters: list[ClusterDescription] = field(default_factory=list)


_ADD = "index.add(compile_many(subscriptions))"
_MATCH = "index.match([decode(b'{\"price\": 5}')])"


_NO_PAIRS: Pairs = np.empty(0, np.int32), np.empty(0, np.int32)


def _split_undecided(pairs: Pairs) -> tuple[Pairs, Pairs]:
    """Separate the pairs that match from those that the kernel marked as undecided."""
    publication, subscription = pairs
    undecided = subscription < 0
    if not undecided.any():
        return pairs, _NO_PAIRS
    matches = publication[~undecided], subscription[~undecided]
    return matches, (publication[undecided], ~subscription[undecided])


def _drop_removed(dead: Any, pairs: Pairs) -> Pairs:
    """Return the pairs whose subscription was not removed."""
    if dead is None or not len(pairs[0]):
        return pairs
    count = keep_alive(dead, *pairs)
    return pairs[0][:count], pairs[1][:count]


def _check_ids(value: Iterable[str] | str) -> list[str]:
    ids = [value] if isinstance(value, str) else list(value)
    for id in ids:
        if not isinstance(id, str):
            raise wrong_type("ids", id, str)
    return ids


def _check_events(value: Iterable[Event]) -> list[Event]:
    if isinstance(value, Mapping):
        raise wrong_type("batch", value, list, _MATCH)
    events = list(value)
    for event in events:
        if not isinstance(event, Mapping):
            raise wrong_type("batch", event, dict, _MATCH)
    return events


@checks_arguments
class Index:
    """Standing subscriptions, matched against batches of publications. One writer at a time, any number of
    readers.

    Other threads may match while the writer changes the index: each batch is matched with one version.
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
        """Create an empty index in a new or empty folder; without a folder, in a temporary one."""
        keep = tempfile.TemporaryDirectory(prefix="tidings-index-") if folder is None else None
        place = Path(keep.name) if keep else Path(folder or "")
        place.mkdir(parents=True, exist_ok=True)
        if versions.is_index(place):
            raise SetupError(
                "the folder already contains an index",
                where=str(place),
                hint="open it, or choose another folder",
            )
        index = cls(place, 0, (), keep)
        index._publish([])
        return index

    @staticmethod
    @accepts(folder=(str, Path))
    def is_in(folder: Path | str) -> bool:
        """Whether a folder contains an index."""
        return versions.is_index(Path(folder))

    @classmethod
    @accepts(folder=(str, Path), version=(int, NoneType))
    def open(cls, folder: Path | str, version: int | None = None) -> Index:
        """Open the index in a folder at its current version, or at an earlier one that still exists."""
        place = Path(folder)
        version = versions.read_current(place) if version is None else version
        return cls(place, version, versions.read(place, version))

    def check(self) -> None:
        """Check every file of the index; SetupError if one is damaged."""
        try:
            self._now.check()
        except (OSError, ValueError, EOFError) as problem:
            raise SetupError("the index is damaged", where=str(self.folder), hint=str(problem)) from problem

    @property
    def version(self) -> int:
        return self._now.version

    @property
    def size(self) -> int:
        """The number of subscriptions."""
        return sum(part.alive for part in self._now.parts)

    @property
    def segments(self) -> int:
        """The number of segments. Each is matched separately."""
        return len(self._now.parts)

    @property
    def sizes(self) -> tuple[int, ...]:
        """The number of subscriptions of each segment, largest first."""
        return tuple(sorted((part.alive for part in self._now.parts), reverse=True))

    @property
    def nbytes(self) -> int:
        """The memory that matching needs, ids included."""
        return sum(segment.nbytes for segment, _ in self._now.opened)

    @property
    def paths(self) -> tuple[str, ...]:
        """The paths of events that subscriptions test: decoders can skip all others."""
        columns = {column for segment, _ in self._now.opened for column in segment.columns}
        return tuple(sorted({column.path for column in columns if column.shape is AtomShape.FLAT}))

    @property
    def graph_paths(self) -> frozenset[str]:
        """The keys of graphs that subscriptions test (see `tidings.graphs.keys`)."""
        columns = {column for segment, _ in self._now.opened for column in segment.columns}
        return frozenset(column.path for column in columns if column.shape is AtomShape.EDGES)

    @property
    def paths_by_shape(self) -> dict[AtomShape, tuple[str, ...]]:
        """Every path that some subscription looks at, by the shape of atoms."""
        columns = {column for segment, _ in self._now.opened for column in segment.columns}
        return {
            shape: tuple(sorted({column.path for column in columns if column.shape is shape}))
            for shape in AtomShape
        }

    @property
    def shapes(self) -> frozenset[AtomShape]:
        """The shapes of atoms that subscriptions test."""
        return frozenset(column.shape for segment, _ in self._now.opened for column in segment.columns)

    @property
    def ids(self) -> pa.Array:
        """The ids of all subscriptions, removed ones included, in the order of `Matches.subscription`."""
        parts = [segment.ids for segment, _ in self._now.opened]
        return pa.concat_arrays(parts) if parts else pa.array([], pa.string())

    @property
    def subscribers(self) -> pa.Array:
        """The subscribers of all subscriptions, in the order of `ids`."""
        columns = [segment.subscriptions["subscriber"].cast(pa.string()) for segment, _ in self._now.opened]
        return pa.concat_arrays(
            [chunk for column in columns for chunk in column.chunks] or [pa.array([], pa.string())]
        )

    @accepts(_ADD, compiled=Compiled)
    def add(self, compiled: Compiled) -> int:
        """Add subscriptions as one new segment, replacing those with the same ids; return the new version."""
        return self.change((), compiled)

    @accepts(ids=Iterable)
    def remove(self, ids: Iterable[str] | str) -> int:
        """Remove subscriptions by their ids, or one by its id; return how many were removed."""
        size_before = self.size
        self._publish_if_changed(self._remove_rows(pa.array(_check_ids(ids), pa.string())))
        return size_before - self.size

    @accepts(_ADD, removed=Iterable, added=Compiled, absorb=int)
    def change(self, removed: Iterable[str] | str, added: Compiled, absorb: int = 0) -> int:
        """Remove and add subscriptions atomically; return the new version.

        Small segments that would be merged with the new one anyway are absorbed into it at once, if the
        result has at most `absorb` subscriptions.
        """
        new_ids = added.subscriptions.column("id").combine_chunks().cast(pa.string())
        parts = self._remove_rows(pa.concat_arrays([pa.array(_check_ids(removed), pa.string()), new_ids]))
        return self._publish_if_changed(self._add_segment(parts, added, absorb) if len(new_ids) else parts)

    @accepts(_MATCH, batch=(Atoms, Iterable))
    def match(self, batch: Atoms | Iterable[Event]) -> Matches:
        """Return all pairs of a publication of the batch and a subscription that it matches.

        Finding a pattern in a graph can take very long, so the search stops at a step limit. Pairs that it
        leaves undecided do not count as matches; they are in `Matches.undecided`.
        """
        atoms = batch if isinstance(batch, Atoms) else Atoms.of(_check_events(batch))
        matches, undecided, numbers = [], [], read_document_numbers(atoms)
        for segment, dead in self._now.opened:
            pairs = segment.match(atoms, numbers)
            undecided_pairs: Pairs = _NO_PAIRS
            if atoms.shape is AtomShape.EDGES:
                pairs, undecided_pairs = _split_undecided(pairs)
            matches.append((segment, *_drop_removed(dead, pairs)))
            undecided.append((segment, *_drop_removed(dead, undecided_pairs)))
        return Matches(matches, undecided)

    def match_parts(self, atoms: Atoms, most: int = 1_000_000) -> Iterator[tuple[int, Matches]]:
        """Match a batch part by part, each with at most about `most` pairs, so that memory stays bounded.

        Yields the position of a part's first publication and its matches, whose publications count from
        there. The number of publications per part adapts, also across batches: large parts are matched
        faster.
        """
        first, size = 0, self._part
        while first < atoms.count:
            last = min(atoms.count, first + size)
            matches = self.match(atoms.part(first, last))
            yield first, matches
            pairs_each = max(1.0, len(matches) / (last - first))
            first, size = last, max(1, min(4 * size, int(most / pairs_each)))
        self._part = min(size, max(_FIRST_PART, atoms.count))

    def merge(self) -> int:
        """Merge segments where that is worth its cost: many small ones, or many dead rows. Return the version."""
        while merge := self.plan_merge():
            merge.write()
            self.adopt(merge)
        return self.version

    def compact(self, most: int = 1) -> int:
        """Merge segments until at most `most` are left, whatever it costs. Return the version."""
        parts = choose_merge_to(self._now.parts, most)
        if parts:
            merge = self._plan(parts)
            merge.write()
            self.adopt(merge)
        return self.version

    def plan_merge(self, most: int | None = None) -> Merge | None:
        """Plan a merge up to a number of subscriptions; None if none is worth its cost.

        Another thread may write it. Meanwhile the index can be matched and changed, and other segments
        merged. Call `adopt` when it is written, or `abandon` if that fails.
        """
        busy = self._being_merged()
        parts = choose_merge([part for part in self._now.parts if part.name not in busy])
        if not parts or (most is not None and sum(part.alive for part in parts) > most):
            return None
        return self._plan(parts)

    def abandon(self, merge: Merge) -> None:
        """Give up a planned merge, so that its segments may be merged again."""
        del self._merging[merge.name]

    def adopt(self, merge: Merge) -> int:
        """Replace segments by the one they were merged into. Return the new version."""
        del self._merging[merge.name]
        names = {part.name for part in merge.parts}
        parts = [part for part in self._now.parts if part.name not in names]
        if merge.subscriptions:
            merged = Part(merge.name, merge.subscriptions)
            parts.append(
                self._now.mark_dead(merged, merge.died_since(self._now), self._new_name("dead", ".npy"))
            )
        return self._publish(parts)

    def collect(self, keep_versions: int = 2) -> None:
        """Delete files that none of the newest versions refers to."""
        kept_versions = {*versions.list_versions(self.folder)[-keep_versions:], self.version}
        versions.collect(self.folder, kept_versions, {*self._merging, *self._being_merged()})

    def list_segments(self) -> list[tuple[str, int, Rows]]:
        """Return folder name, number of subscriptions and removed rows of each segment."""
        return [
            (part.name, part.subscriptions, versions.read_marks(self.folder, part))
            for part in self._now.parts
        ]

    def describe(self) -> list[SegmentDescription]:
        """Describe each segment and how its clauses are found."""
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

    def _remove_rows(self, ids: pa.Array) -> list[Part]:
        """Return the parts with these ids marked as dead."""
        view = self._now
        return [
            view.mark_dead(part, view.find_rows(part, ids), self._new_name("dead", ".npy"))
            for part in view.parts
        ]

    def _add_segment(self, parts: Sequence[Part], added: Compiled, most: int) -> list[Part]:
        """Return the parts and a new one, which may absorb some of them."""
        busy, size, name = self._being_merged(), added.subscriptions.num_rows, self._new_name("segment")
        free = [part for part in parts if part.alive and part.name not in busy]
        absorbed = choose_absorbed(free, size, most)
        write_segment(self.folder / name, join_parts(self._now, absorbed, added) if absorbed else added)
        unchanged = [part for part in parts if part not in absorbed]
        return [*unchanged, Part(name, size + sum(part.alive for part in absorbed))]

    def _publish_if_changed(self, parts: Sequence[Part]) -> int:
        return self.version if tuple(parts) == self._now.parts else self._publish(parts)

    def _publish(self, parts: Sequence[Part]) -> int:
        """Write these parts as the next version and switch to it."""
        version, live_parts = self.version + 1, [part for part in parts if part.alive]
        versions.write(self.folder, version, live_parts, self._now.parts)
        view = View(self.folder, version, live_parts, self.path_match, self._now)
        view.opened  # noqa: B018  opened before other threads see it, and before its files may be deleted
        self._now = view
        return version

    def _new_name(self, prefix: str, ending: str = "") -> str:
        # The version alone is not unique: a process that died while writing it may have left files behind.
        return f"{prefix}-{self.version + 1:08d}-{uuid4().hex[:6]}{ending}"
