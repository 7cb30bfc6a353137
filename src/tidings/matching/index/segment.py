"""Segments: an immutable index of many subscriptions, as files that are mapped into memory."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from tidings.atoms import Aspect, Atoms, Column
from tidings.compiler.plan import Compiled
from tidings.durable import sync_all
from tidings.kernels import clusters
from tidings.kernels import encode as encoding
from tidings.kernels import match as matching
from tidings.kernels import sift as sifting
from tidings.kernels.codes import DENSE_NUMBERS
from tidings.kernels.vectors import TILE_WORDS
from tidings.matching.index.arrays import flatten, map_arrays, rebuild, starts_of, write_arrays
from tidings.matching.index.builder import Built, build
from tidings.matching.index.clauses import write_clauses
from tidings.matching.index.ids import write_ids

_WORTH_SORTING = 256
_MOST_CANDIDATES = 1 << 24
Pairs = tuple[npt.NDArray[np.int32], npt.NDArray[np.int32]]


@dataclass(frozen=True, slots=True)
class ClusterDescription:
    """How some of a segment's clauses are reached: for people who want to know why matching costs what it costs.

    `tests` is how many a clause has on average beside key and cut. The last two are what was expected for one event
    when the segment was built: how many clauses are looked at, and how long that takes.
    """

    layout: str
    key: str | None
    second: str | None
    cut: str | None
    tests: float
    clauses: int
    rows_per_event: float
    nanoseconds: float


def write_segment(folder: Path, compiled: Compiled) -> None:
    """Build a segment and put it into `folder`, whole or not at all; the version that lists it makes it last."""
    built = build(compiled)
    unfinished = folder.with_name(folder.name + ".unfinished")
    shutil.rmtree(unfinished, ignore_errors=True)
    unfinished.mkdir(parents=True)
    arrays = (
        flatten(built.codecs, "codecs.")
        | flatten(built.clusters, "clusters.")
        | flatten(built.tiles, "tiles.")
    )
    write_arrays(unfinished / "arrays.bin", arrays)
    with pa.OSFile(str(unfinished / "subscriptions.arrow"), "wb") as sink:
        table = compiled.subscriptions.combine_chunks()
        with pa.ipc.new_file(sink, table.schema) as writer:
            writer.write_table(table)
    write_ids(unfinished, table.column("id").combine_chunks())
    write_clauses(unfinished, compiled)
    about = {"columns": [asdict(column) for column in built.columns], "clusters": _described(built)}
    (unfinished / "segment.json").write_text(json.dumps(about))
    sync_all((*unfinished.iterdir(), unfinished))
    unfinished.rename(folder)


def _described(built: Built) -> list[dict[str, Any]]:
    """The ways of a built segment, for people to read."""
    return [
        asdict(
            ClusterDescription(
                layout=way.layout,
                key=built.name_of(way.key),
                second=built.name_of(way.second),
                cut=built.name_of(way.cut),
                tests=round(built.tests_of(way), 1),
                clauses=len(way.rows),
                rows_per_event=round(way.estimate.rows, 3),
                nanoseconds=round(way.estimate.cost, 1),
            )
        )
        for way in built.ways
    ]


@dataclass(frozen=True, slots=True)
class _Paths:
    """What the columns of a segment want to know of each path of a batch (see `kernels.encode.AtomArrays`)."""

    names: tuple[str, ...]
    column_start: npt.NDArray[np.int64]
    columns: npt.NDArray[np.uint32]
    dense_low: npt.NDArray[np.int64]
    dense_count: npt.NDArray[np.int64]
    most: int
    """How many columns look at one path, at the most."""

    @classmethod
    def of(cls, names: tuple[str, ...], columns: Sequence[Column], codecs: encoding.Codecs) -> _Paths:
        by_path: dict[str, list[int]] = {}
        for number, column in enumerate(columns):
            by_path.setdefault(column.path, []).append(number)
        lists = [by_path.get(path, []) for path in names]
        low, count = np.zeros(len(names), np.int64), np.zeros(len(names), np.int64)
        for place, numbers in enumerate(lists):
            if len(numbers) == 1 and columns[numbers[0]].aspect == Aspect.VALUE:
                dense = codecs.numbers.mode[numbers[0]] == DENSE_NUMBERS
                low[place] = codecs.numbers.low[numbers[0]]
                count[place] = codecs.numbers.count[numbers[0]] if dense else 0
        lengths = [len(numbers) for numbers in lists]
        flat = np.array([number for numbers in lists for number in numbers], np.uint32)
        return cls(names, starts_of(lengths), flat, low, count, max(lengths, default=0))


class Segment:
    """An opened segment. It can be matched by several threads at once: what a call needs, the call allocates."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        arrays = map_arrays(folder / "arrays.bin")
        self._codecs = rebuild(encoding.Codecs, arrays, "codecs.")
        self._clusters = rebuild(clusters.Clusters, arrays, "clusters.")
        self._tiles = rebuild(sifting.Tiles, arrays, "tiles.")
        about = json.loads((folder / "segment.json").read_text())
        self.columns = tuple(
            Column(entry["path"], Aspect(entry["aspect"]), entry["domain"]) for entry in about["columns"]
        )
        self._described = about["clusters"]
        self.array_bytes = (folder / "arrays.bin").stat().st_size
        self._known_paths = _Paths.of((), self.columns, self._codecs)

    @cached_property
    def subscriptions(self) -> pa.Table:
        """The subscriptions (id, subscriber, language, text); row numbers are what `match` answers with."""
        source = pa.memory_map(str(self.folder / "subscriptions.arrow"))
        return pa.ipc.open_file(source).read_all()

    @cached_property
    def ids(self) -> pa.Array:
        return self.subscriptions.column("id").combine_chunks()

    @property
    def nbytes(self) -> int:
        """What matching needs in memory: the arrays and the ids. The texts stay on disk until a reason is asked."""
        return self.array_bytes + int(self.ids.nbytes)

    def match(self, atoms: Atoms) -> Pairs:
        """Pairs of publication (its place in the batch) and subscription (its row), in no particular order."""
        coded = self._encode(atoms)
        return self._join(coded)

    def describe(self) -> list[ClusterDescription]:
        return [ClusterDescription(**entry) for entry in self._described]

    def _paths(self, paths: tuple[str, ...]) -> _Paths:
        """For each path of a batch, the columns that look at it."""
        known = self._known_paths
        if known.names is not paths and known.names != paths:
            known = self._known_paths = _Paths.of(paths, self.columns, self._codecs)
        return known

    def _encode(self, atoms: Atoms) -> encoding.Coded:
        paths = self._paths(atoms.paths)
        arrays = encoding.AtomArrays(
            atoms.starts,
            atoms.path,
            atoms.kind,
            atoms.payload,
            atoms.payload.view(np.float64),
            atoms.length,
            atoms.text,
            paths.column_start,
            paths.columns,
            paths.dense_low,
            paths.dense_count,
        )
        room = paths.most * len(atoms.path) + 64
        out = encoding.Coded(
            np.zeros(atoms.count + 1, np.int64), np.empty(room, np.uint32), np.empty(room, np.int32)
        )
        seen = np.full(len(self._codecs.trie.first), -1, np.int32)
        stamp = np.full(len(self.columns), -1, np.int64)
        done, several = encoding.encode(arrays, self._codecs, seen, stamp, out, 0)
        while done < atoms.count:
            used = out.starts[done]
            out = encoding.Coded(out.starts, _grown(out.column, used), _grown(out.code, used))
            seen.fill(-1)
            stamp.fill(-1)
            done, more = encoding.encode(arrays, self._codecs, seen, stamp, out, done)
            several |= more
        return self._tidied(out) if several else out

    def _tidied(self, coded: encoding.Coded) -> encoding.Coded:
        """The same codes, but those of a column together, in order, and each once."""
        count = len(coded.starts) - 1
        marks = np.zeros(count, np.uint8)
        encoding.mark_several(coded, np.full(len(self.columns), -1, np.int64), marks)
        size = int(coded.starts[-1])
        column, code = coded.column[:size], coded.code[:size]
        row = np.repeat(np.arange(count), np.diff(coded.starts))
        moved = np.flatnonzero(marks[row])
        order = moved[np.lexsort((code[moved], column[moved], row[moved]))]
        column[moved], code[moved] = column[order], code[order]
        again = (row[1:] == row[:-1]) & (column[1:] == column[:-1]) & (code[1:] == code[:-1])
        kept = np.concatenate(([True], ~again))
        starts = starts_of(np.bincount(row[kept], minlength=count))
        return encoding.Coded(starts, column[kept], code[kept])

    def _join(self, coded: encoding.Coded) -> Pairs:
        order = self._order(coded)
        scratch = self._scratch(int(np.diff(coded.starts).max(initial=0)))
        if not len(self._tiles.node_depth):
            return _joined(self._matched(coded, order, _NOTHING_SIFTED, scratch))
        parts: list[Pairs] = []
        for some in self._sifted(coded, order):
            parts.extend(self._matched(coded, *some, scratch))
        return _joined(parts)

    def _matched(
        self,
        coded: encoding.Coded,
        order: npt.NDArray[np.int64],
        sifted: sifting.Sifted,
        scratch: clusters.Scratch,
    ) -> list[Pairs]:
        """The pairs of publications in this order, in as many parts as they turn out to need."""
        count = len(order)
        room, done, total, parts = max(1024, 32 * count), 0, 0, []
        while True:
            out = clusters.Found(np.empty(room, np.int32), np.empty(room, np.int32))
            done, found = matching.match(coded, order, self._clusters, sifted, scratch, out, done)
            parts.append((out.publication[:found], out.subscription[:found]))
            if done == count:
                return parts
            # Room for as many matches as the rest is likely to have; twice as much if not even one event fitted.
            total += found
            room = max(2 * room if found == 0 else room, int(1.1 * total / max(1, done) * (count - done)))

    def _sifted(
        self, coded: encoding.Coded, order: npt.NDArray[np.int64]
    ) -> Iterator[tuple[npt.NDArray[np.int64], sifting.Sifted]]:
        """Portions of publications with the candidates that the bitmaps leave over for them.

        A portion whose candidates would take too much memory is halved.
        """
        work, room = self._work(min(len(order), sifting.BATCH)), 1 << 16
        first, size = 0, sifting.BATCH
        while first < len(order):
            some = order[first : first + size]
            candidates = sifting.Candidates(np.empty(room, np.int32), np.empty(room, np.int32))
            found = sifting.sift(coded, some, self._tiles, work, candidates)
            if found > _MOST_CANDIDATES and len(some) > 1:
                size = len(some) // 2
            elif found > room:
                room = found
            else:
                yield some, self._grouped(candidates, found, len(some))
                first += len(some)

    def _grouped(self, candidates: sifting.Candidates, found: int, count: int) -> sifting.Sifted:
        starts, rows = np.zeros(count + 1, np.int64), np.empty(found, np.int32)
        sifting.group(candidates, found, starts, rows)
        return sifting.Sifted(starts, rows, int(self._tiles.list_shift[0]))

    def _work(self, count: int) -> sifting.Work:
        tiles = self._tiles
        number = np.full(len(self.columns), -1, np.int64)
        number[tiles.column] = np.arange(len(tiles.column))
        depth = int(tiles.node_depth.max()) + 2
        return sifting.Work(
            number=number,
            code=np.empty((len(tiles.column), count), np.int32),
            cell=np.empty((len(tiles.column), count), np.int32),
            listed=np.empty((depth, count), np.int32),
            count=np.zeros(depth, np.int64),
            kept=np.empty(TILE_WORDS, np.uint64),
            starts=np.empty(sifting.MOST_SLOTS, np.int64),
        )

    def _order(self, coded: encoding.Coded) -> npt.NDArray[np.int64]:
        """The order in which to match a batch: publications that lead to the same bucket one after the other.

        What the first of them brings into the processor's cache serves the others.
        """
        count = len(coded.starts) - 1
        if count < _WORTH_SORTING or self._main_column is None:
            return np.arange(count)
        codes = np.full(count, -1, np.int32)
        matching.fill_codes(coded, self._main_column, codes)
        return np.argsort(codes)

    @cached_property
    def _main_column(self) -> int | None:
        """The key column of the most clauses whose buckets are long enough to be worth keeping in the cache."""
        c = self._clusters
        keyed = np.where(
            (c.key_mode != clusters.NO_KEY) & (c.layout == clusters.UNIFORM), np.diff(c.row_start), 0
        )
        return int(c.key_column[np.argmax(keyed)]) if keyed.any() else None

    def _scratch(self, atoms: int) -> clusters.Scratch:
        """Room for a publication with so many atoms."""
        columns, visits = len(self.columns), clusters.VISITS + 2 + atoms
        several = self._clusters.several
        return clusters.Scratch(
            code=np.full(columns, clusters.ABSENT, np.int32),
            head=np.zeros(columns, np.int64),
            tail=np.zeros(columns, np.int64),
            seen=np.full(int(several.max()) + 1 if len(several) else 0, -1, np.int64),
            cluster=np.zeros(visits, np.uint32),
            bucket=np.zeros(visits, np.int64),
            low=np.zeros(visits, np.int64),
            high=np.zeros(visits, np.int64),
        )


_NOTHING_SIFTED = sifting.Sifted(np.zeros(1, np.int64), np.empty(0, np.int32), 0)


def _joined(parts: list[Pairs]) -> Pairs:
    if len(parts) == 1:
        return parts[0]
    return np.concatenate([p for p, _ in parts]), np.concatenate([s for _, s in parts])


def _grown(array: npt.NDArray[Any], used: int) -> npt.NDArray[Any]:
    bigger = np.empty(2 * len(array) + 64, array.dtype)
    bigger[:used] = array[:used]
    return bigger
