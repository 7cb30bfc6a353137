"""Matcher of one segment: encodes publications, finds candidate clauses, and checks them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from functools import cached_property
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from tidings.atoms import Atoms, AtomShape, Column
from tidings.matching.index.path_columns import PathColumns, PathResolver
from tidings.matching.index.shape_checks import Doubles, Pairs, ShapeChecker, Strings
from tidings.matching.kernels import bitmap_filter, clusters, encode, match
from tidings.matching.kernels.compiled import handle_of
from tidings.matching.kernels.shapes.twig_arrays import Twigs
from tidings.matching.kernels.small_batch import TRY_AGAIN, Buffers, SmallBatch, match_small_batch
from tidings.matching.kernels.strings import GROUP, NOT_LOOKED_UP, find_strings
from tidings.matching.kernels.vectors import TILE_WORDS

Numbers = npt.NDArray[np.int64]

WORTH_SORTING = 256
"""Smaller batches are matched in their own order (see `Matcher._order`)."""

MOST_CANDIDATES = 1 << 24
"""Most candidates of the bitmap filter that are held in memory at once."""

SMALL_BATCH = 16
"""Up to this number of publications are matched in one kernel call with reused buffers."""

SMALL_ATOMS, SMALL_PAIRS = 1024, 1024


class _SmallBuffers(NamedTuple):
    """Reusable buffers for a small batch, their handle, and the paths they were made for."""

    paths: PathColumns
    arrays: SmallBatch
    handle: Numbers


class Matcher:
    """Matches publications with the arrays of a segment.

    Several threads may match at once: each call allocates its buffers or takes unused ones from a pool.
    """

    def __init__(
        self,
        columns: Sequence[Column],
        codecs: encode.Codecs,
        clause_clusters: clusters.Clusters,
        tiles: bitmap_filter.Tiles,
        twigs: Twigs,
        resolver: PathResolver,
    ) -> None:
        self._columns, self._codecs, self._clusters, self._tiles = columns, codecs, clause_clusters, tiles
        self._checker, self._resolver = ShapeChecker(twigs), resolver
        self._paths = resolver.resolve((), AtomShape.FLAT, codecs)
        self._pool: list[_SmallBuffers] = []

    def match(self, atoms: Atoms, numbers: Doubles) -> Pairs:
        """Return pairs of publication (its position in the batch) and subscription (its row), unordered."""
        if not self._checker.covers(atoms.shape):
            return _NO_PAIRS
        strings = self._find_strings(atoms)
        if len(atoms.starts) <= SMALL_BATCH + 1:
            pairs = self._match_small_batch(atoms, numbers, strings)
            if pairs is not None:
                return _concatenate(list(self._check_shapes(atoms, numbers, strings, [pairs])))
        coded = self._encode(atoms, numbers, strings)
        return _concatenate(list(self._check_shapes(atoms, numbers, strings, self._match_coded(coded))))

    def _find_strings(self, atoms: Atoms) -> Strings:
        """Look up the texts of documents in the strings of the segment, if some column needs them."""
        if atoms.shape is not AtomShape.TREE:
            return _NO_STRINGS
        strings = np.full(len(atoms.path), NOT_LOOKED_UP, np.int32)
        if self._shared_column is not None:
            find_strings(
                atoms.path, atoms.payload, atoms.length, atoms.text, self._resolve_paths(atoms).lookup,
                self._codecs.strings, self._shared_column, np.empty(GROUP, np.uint64), strings,
            )  # fmt: skip
        return strings

    @cached_property
    def _shared_column(self) -> int | None:
        """A column with the strings that all columns of documents share."""
        shared = np.flatnonzero(self._codecs.strings.shared)
        return int(shared[0]) if len(shared) else None

    def _check_shapes(
        self, atoms: Atoms, numbers: Doubles, strings: Strings, parts: Iterable[Pairs]
    ) -> Iterable[Pairs]:
        """Return the pairs whose twigs or patterns match; all of them if the segment has none."""
        if not self._checker.is_needed:
            return parts
        prepared = self._checker.prepare(atoms, numbers, strings, self._resolve_paths(atoms).names)
        return (self._checker.check(prepared, pairs, atoms.shape) for pairs in parts)

    def _match_small_batch(self, atoms: Atoms, numbers: Doubles, strings: Strings) -> Pairs | None:
        """Match a few publications in one call; None if they do not fit into its buffers."""
        if self._has_tiles:
            return None
        try:  # popping from a list is atomic: no other thread gets the same buffers
            buffers = self._pool.pop()
        except IndexError:
            buffers = self._new_buffers(self._resolve_paths(atoms))
        if not _are_paths_of(buffers.paths, atoms):
            buffers = self._new_buffers(self._resolve_paths(atoms))
        pairs = np.empty(2 * SMALL_PAIRS, np.int32)
        publication, subscription = pairs[:SMALL_PAIRS], pairs[SMALL_PAIRS:]
        count = match_small_batch(
            atoms.starts, atoms.path, atoms.kind, atoms.payload, numbers, strings,
            atoms.length, atoms.text, buffers.handle, publication, subscription,
        )  # fmt: skip
        self._pool.append(buffers)
        return None if count == TRY_AGAIN else (publication[:count], subscription[:count])

    @cached_property
    def _needs_sorted_codes(self) -> bool:
        """Whether some clusters are merge-joined with the codes of publications."""
        return bool((self._clusters.layout == clusters.MERGE).any())

    @cached_property
    def _has_tiles(self) -> bool:
        return len(self._tiles.node_depth) > 0

    def _new_buffers(self, paths: PathColumns) -> _SmallBuffers:
        buffers = Buffers(
            starts=np.zeros(SMALL_BATCH + 2, np.int64),
            column=np.empty(SMALL_ATOMS, np.uint32),
            code=np.empty(SMALL_ATOMS, np.int32),
            order=np.arange(SMALL_BATCH + 1),
            node_marks=np.full(len(self._codecs.trie.first), -1, np.int64),
            column_marks=np.full(len(self._columns), -1, np.int64),
            tick=np.zeros(1, np.int64),
            no_starts=_NO_CANDIDATES.starts,
            no_rows=_NO_CANDIDATES.row,
            needs_order=np.array([self._needs_sorted_codes], np.uint8),
        )
        batch = SmallBatch(paths.columns, self._codecs, self._clusters, buffers, self._scratch(SMALL_ATOMS))
        return _SmallBuffers(paths, batch, handle_of(batch))

    def _resolve_paths(self, atoms: Atoms) -> PathColumns:
        """Return the columns of the batch's paths; those of the previous batch are reused if the paths are equal."""
        paths = self._paths
        if not _are_paths_of(paths, atoms):
            paths = self._paths = self._resolver.resolve(atoms.paths, atoms.shape, self._codecs)
        return paths

    def _encode(self, atoms: Atoms, numbers: Doubles, strings: Strings) -> encode.Coded:
        paths = self._resolve_paths(atoms).columns
        arrays = encode.AtomArrays(
            atoms.starts, atoms.path, atoms.kind, atoms.payload, numbers, strings,
            atoms.length, atoms.text, *paths,
        )  # fmt: skip
        room = int(np.diff(paths.column_start).max(initial=0)) * len(atoms.path) + 64
        out = encode.Coded(
            np.zeros(atoms.count + 1, np.int64), np.empty(room, np.uint32), np.empty(room, np.int32)
        )
        done, several = encode.encode(arrays, self._codecs, self._marks(), out, 0)
        while done < atoms.count:
            used = out.starts[done]
            out = encode.Coded(out.starts, _grow(out.column, used), _grow(out.code, used))
            done, exceeded = encode.encode(arrays, self._codecs, self._marks(), out, done)
            several |= exceeded
        if several or self._needs_sorted_codes:
            encode.sort_codes(out)
        return out

    def _marks(self) -> encode.Marks:
        nodes, columns = len(self._codecs.trie.first), len(self._columns)
        return encode.Marks(np.full(nodes, -1, np.int64), np.full(columns, -1, np.int64), 0)

    def _match_coded(self, coded: encode.Coded) -> Iterator[Pairs]:
        order = self._order(coded)
        scratch = self._scratch(int(np.diff(coded.starts).max(initial=0)))
        if not self._has_tiles:
            yield from self._match_in_order(coded, order, _NO_CANDIDATES, scratch)
            return
        for portion in self._filter_by_bitmaps(coded, order):
            yield from self._match_in_order(coded, *portion, scratch)

    def _match_in_order(
        self,
        coded: encode.Coded,
        order: Numbers,
        candidates: bitmap_filter.FilteredCandidates,
        scratch: clusters.Scratch,
    ) -> Iterator[Pairs]:
        """Yield the pairs of publications in this order, in as many parts as their number needs."""
        count = len(order)
        room, done, total = max(1024, 32 * count), 0, 0
        while True:
            out = clusters.Pairs(np.empty(room, np.int32), np.empty(room, np.int32))
            done, pairs = match.match(coded, order, self._clusters, candidates, scratch, 0, out, done)
            yield out.publication[:pairs], out.subscription[:pairs]
            if done == count:
                return
            # Room for as many matches as the rest is likely to have; twice as much if not one publication fitted.
            total += pairs
            room = max(2 * room if pairs == 0 else room, int(1.1 * total / max(1, done) * (count - done)))

    def _filter_by_bitmaps(
        self, coded: encode.Coded, order: Numbers
    ) -> Iterator[tuple[Numbers, bitmap_filter.FilteredCandidates]]:
        """Yield portions of publications with the candidates that the bitmaps leave over.

        A portion whose candidates would take too much memory is halved.
        """
        work, room = self._work(min(len(order), bitmap_filter.BATCH)), 1 << 16
        first, size = 0, bitmap_filter.BATCH
        while first < len(order):
            portion = order[first : first + size]
            candidates = bitmap_filter.Candidates(np.empty(room, np.int32), np.empty(room, np.int32))
            candidate_count = bitmap_filter.filter_candidates(coded, portion, self._tiles, work, candidates)
            if candidate_count > MOST_CANDIDATES and len(portion) > 1:
                size = len(portion) // 2
            elif candidate_count > room:
                room = candidate_count
            else:
                yield portion, self._group(candidates, candidate_count, len(portion))
                first, size = first + len(portion), min(bitmap_filter.BATCH, 2 * size)

    def _group(
        self, candidates: bitmap_filter.Candidates, candidate_count: int, count: int
    ) -> bitmap_filter.FilteredCandidates:
        starts, rows = np.zeros(count + 1, np.int64), np.empty(candidate_count, np.int32)
        bitmap_filter.group_candidates(candidates, candidate_count, starts, rows)
        return bitmap_filter.FilteredCandidates(starts, rows, int(self._tiles.list_shift[0]))

    def _work(self, count: int) -> bitmap_filter.Work:
        tiles = self._tiles
        number = np.full(len(self._columns), -1, np.int64)
        number[tiles.column] = np.arange(len(tiles.column))
        depth = int(tiles.node_depth.max()) + 2
        return bitmap_filter.Work(
            number=number,
            code=np.empty((len(tiles.column), count), np.int32),
            cell=np.empty((len(tiles.column), count), np.int32),
            listed=np.empty((depth, count), np.int32),
            count=np.zeros(depth, np.int64),
            kept=np.empty(TILE_WORDS, np.uint64),
            starts=np.empty(bitmap_filter.MOST_SLOTS, np.int64),
        )

    def _order(self, coded: encode.Coded) -> Numbers:
        """Return the order in which to match a batch: publications that read the same bucket follow each
        other.

        The bucket is then in the processor's cache for all but the first of them.
        """
        count = len(coded.starts) - 1
        if count < WORTH_SORTING or self._main_column is None:
            return np.arange(count)
        codes = np.full(count, -1, np.int32)
        match.fill_codes(coded, self._main_column, codes)
        return np.argsort(codes)

    @cached_property
    def _main_column(self) -> int | None:
        """The key column of the most clauses whose buckets are long enough to be worth keeping in the cache."""
        c = self._clusters
        worth = (c.key_mode != clusters.NO_KEY) & (c.layout == clusters.UNIFORM)
        keyed = np.where(worth, np.diff(c.row_start), 0)
        return int(c.key_column[np.argmax(keyed)]) if keyed.any() else None

    def _scratch(self, atoms: int) -> clusters.Scratch:
        """Allocate scratch memory for publications up to a number of atoms."""
        columns, visits = len(self._columns), clusters.VISITS + 2 + atoms
        return clusters.Scratch(
            code=np.full(columns, clusters.ABSENT, np.int32),
            head=np.zeros(columns, np.int64),
            tail=np.zeros(columns, np.int64),
            narrow=np.full(columns, clusters.NOT_NARROW, np.uint32),
            seen=np.full(self._repeated, -1, np.int64),
            cluster=np.zeros(visits, np.uint32),
            bucket=np.zeros(visits, np.int64),
            low=np.zeros(visits, np.int64),
            high=np.zeros(visits, np.int64),
        )

    @cached_property
    def _repeated(self) -> int:
        """The number of subscriptions with several rows."""
        return int(self._clusters.several.max(initial=-1)) + 1


_NO_CANDIDATES = bitmap_filter.FilteredCandidates(np.zeros(1, np.int64), np.empty(0, np.int32), 0)
_NO_STRINGS = np.empty(0, np.int32)
_NO_PAIRS = np.empty(0, np.int32), np.empty(0, np.int32)


def _are_paths_of(columns: PathColumns, atoms: Atoms) -> bool:
    """Whether these columns were resolved for the paths of this batch."""
    same = columns.paths is atoms.paths or columns.paths == atoms.paths
    return same and columns.shape == atoms.shape


def _concatenate(parts: list[Pairs]) -> Pairs:
    if len(parts) == 1:
        return parts[0]
    nothing = np.empty(0, np.int32)
    return np.concatenate([nothing, *(p for p, _ in parts)]), np.concatenate(
        [nothing, *(s for _, s in parts)]
    )


def _grow(array: npt.NDArray[np.generic], used: int) -> npt.NDArray[np.generic]:
    bigger = np.empty(2 * len(array) + 64, array.dtype)
    bigger[:used] = array[:used]
    return bigger
