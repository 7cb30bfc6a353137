"""Matching with the arrays of one segment: publications become codes, codes become pairs."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from functools import cached_property
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from tidings.atoms import Atoms, Column, PublicationKind
from tidings.matching.index.paths import KnownPaths, Patterns
from tidings.matching.index.shape_checks import Branches, Doubles, Pairs, Strings
from tidings.matching.kernels import bitmap_filter as sifting
from tidings.matching.kernels import clusters
from tidings.matching.kernels import encode as encoding
from tidings.matching.kernels import match as matching
from tidings.matching.kernels.handles import handle_of
from tidings.matching.kernels.shapes.twig_arrays import Twigs
from tidings.matching.kernels.small_batch import TRY_AGAIN, Buffers, SmallBatch, match_small_batch
from tidings.matching.kernels.strings import AT_ONCE, NOT_SOUGHT, find_strings
from tidings.matching.kernels.vectors import TILE_WORDS

Numbers = npt.NDArray[np.int64]

WORTH_SORTING = 256
MOST_CANDIDATES = 1 << 24
FEW = 16
"""So few publications are matched in one call, in room that is kept."""

FEW_ATOMS, FEW_PAIRS = 1024, 1024


class _Kept(NamedTuple):
    """Room for a few publications, and its handle; the paths it was made for."""

    known: KnownPaths
    arrays: SmallBatch
    handle: Numbers


class Matcher:
    """Several threads may match at once: what a call needs, it allocates, or takes from what is not in use."""

    def __init__(
        self,
        columns: Sequence[Column],
        codecs: encoding.Codecs,
        held: clusters.Clusters,
        tiles: sifting.Tiles,
        twigs: Twigs,
        patterns: Patterns,
    ) -> None:
        self._columns, self._codecs, self._clusters, self._tiles = columns, codecs, held, tiles
        self._branches, self._patterns = Branches(twigs), patterns
        self._known = patterns.look_at((), PublicationKind.EVENT, codecs)
        self._kept: list[_Kept] = []

    def match(self, atoms: Atoms, numbers: Doubles) -> Pairs:
        """Pairs of publication (its place in the batch) and subscription (its row), in no particular order."""
        if not self._branches.about(atoms.about):
            return _NO_PAIRS
        strings = self._strings(atoms)
        if len(atoms.starts) <= FEW + 1:
            found = self._match_few(atoms, numbers, strings)
            if found is not None:
                return _joined(list(self._checked(atoms, numbers, strings, [found])))
        coded = self._encode(atoms, numbers, strings)
        return _joined(list(self._checked(atoms, numbers, strings, self._join(coded))))

    def _strings(self, atoms: Atoms) -> Strings:
        """What the texts of documents are among the strings of the segment, if some column asks for it."""
        if atoms.about is not PublicationKind.DOCUMENT:
            return _NO_STRINGS
        found = np.full(len(atoms.path), NOT_SOUGHT, np.int32)
        if self._shared is not None:
            find_strings(
                atoms.path, atoms.payload, atoms.length, atoms.text, self._known_of(atoms).sought,
                self._codecs.strings, self._shared, np.empty(AT_ONCE, np.uint64), found,
            )  # fmt: skip
        return found

    @cached_property
    def _shared(self) -> int | None:
        """A column with the strings that columns of documents have in common."""
        shared = np.flatnonzero(self._codecs.strings.shared)
        return int(shared[0]) if len(shared) else None

    def _checked(
        self, atoms: Atoms, numbers: Doubles, strings: Strings, parts: Iterable[Pairs]
    ) -> Iterable[Pairs]:
        """The pairs that hold beyond their tests; if the segment asks no more than those, all of them."""
        if not self._branches.is_needed:
            return parts
        prepared = self._branches.prepare(atoms, numbers, strings, self._known_of(atoms).names)
        return (self._branches.check(prepared, pairs, atoms.about) for pairs in parts)

    def _match_few(self, atoms: Atoms, numbers: Doubles, strings: Strings) -> Pairs | None:
        """The pairs of a few publications; None if they are out of the ordinary."""
        if self._has_tiles:
            return None
        try:  # taking from a list is a single step: no other thread gets the same room
            kept = self._kept.pop()
        except IndexError:
            kept = self._room(self._known_of(atoms))
        if not _is_of(kept.known, atoms):
            kept = self._room(self._known_of(atoms))
        pairs = np.empty(2 * FEW_PAIRS, np.int32)
        publication, subscription = pairs[:FEW_PAIRS], pairs[FEW_PAIRS:]
        found = match_small_batch(
            atoms.starts, atoms.path, atoms.kind, atoms.payload, numbers, strings,
            atoms.length, atoms.text, kept.handle, publication, subscription,
        )  # fmt: skip
        self._kept.append(kept)
        return None if found == TRY_AGAIN else (publication[:found], subscription[:found])

    @cached_property
    def _meets(self) -> bool:
        """Whether rows are met by codes, which have to be in order for that."""
        return bool((self._clusters.layout == clusters.MET).any())

    @cached_property
    def _has_tiles(self) -> bool:
        return len(self._tiles.node_depth) > 0

    def _room(self, known: KnownPaths) -> _Kept:
        room = Buffers(
            starts=np.zeros(FEW + 2, np.int64),
            column=np.empty(FEW_ATOMS, np.uint32),
            code=np.empty(FEW_ATOMS, np.int32),
            order=np.arange(FEW + 1),
            node_marks=np.full(len(self._codecs.trie.first), -1, np.int64),
            column_marks=np.full(len(self._columns), -1, np.int64),
            tick=np.zeros(1, np.int64),
            no_starts=_NOTHING_SIFTED.starts,
            no_rows=_NOTHING_SIFTED.row,
            meets=np.array([self._meets], np.uint8),
        )
        few = SmallBatch(known.columns, self._codecs, self._clusters, room, self._scratch(FEW_ATOMS))
        return _Kept(known, few, handle_of(few))

    def _known_of(self, atoms: Atoms) -> KnownPaths:
        known = self._known
        if not _is_of(known, atoms):
            known = self._known = self._patterns.look_at(atoms.paths, atoms.about, self._codecs)
        return known

    def _encode(self, atoms: Atoms, numbers: Doubles, strings: Strings) -> encoding.Coded:
        paths = self._known_of(atoms).columns
        arrays = encoding.AtomArrays(
            atoms.starts, atoms.path, atoms.kind, atoms.payload, numbers, strings,
            atoms.length, atoms.text, *paths,
        )  # fmt: skip
        room = int(np.diff(paths.column_start).max(initial=0)) * len(atoms.path) + 64
        out = encoding.Coded(
            np.zeros(atoms.count + 1, np.int64), np.empty(room, np.uint32), np.empty(room, np.int32)
        )
        done, several = encoding.encode(arrays, self._codecs, self._marks(), out, 0)
        while done < atoms.count:
            used = out.starts[done]
            out = encoding.Coded(out.starts, _grown(out.column, used), _grown(out.code, used))
            done, more = encoding.encode(arrays, self._codecs, self._marks(), out, done)
            several |= more
        if several or self._meets:
            encoding.sort_codes(out)
        return out

    def _marks(self) -> encoding.Marks:
        nodes, columns = len(self._codecs.trie.first), len(self._columns)
        return encoding.Marks(np.full(nodes, -1, np.int64), np.full(columns, -1, np.int64), 0)

    def _join(self, coded: encoding.Coded) -> Iterator[Pairs]:
        order = self._order(coded)
        scratch = self._scratch(int(np.diff(coded.starts).max(initial=0)))
        if not self._has_tiles:
            yield from self._matched(coded, order, _NOTHING_SIFTED, scratch)
            return
        for some in self._sifted(coded, order):
            yield from self._matched(coded, *some, scratch)

    def _matched(
        self,
        coded: encoding.Coded,
        order: Numbers,
        sifted: sifting.FilteredCandidates,
        scratch: clusters.Scratch,
    ) -> Iterator[Pairs]:
        """The pairs of publications in this order, in as many parts as they turn out to need."""
        count = len(order)
        room, done, total = max(1024, 32 * count), 0, 0
        while True:
            out = clusters.Pairs(np.empty(room, np.int32), np.empty(room, np.int32))
            done, found = matching.match(coded, order, self._clusters, sifted, scratch, 0, out, done)
            yield out.publication[:found], out.subscription[:found]
            if done == count:
                return
            # Room for as many matches as the rest is likely to have; twice as much if not even one event fitted.
            total += found
            room = max(2 * room if found == 0 else room, int(1.1 * total / max(1, done) * (count - done)))

    def _sifted(
        self, coded: encoding.Coded, order: Numbers
    ) -> Iterator[tuple[Numbers, sifting.FilteredCandidates]]:
        """Portions of publications with the candidates that the bitmaps leave over for them.

        A portion whose candidates would take too much memory is halved.
        """
        work, room = self._work(min(len(order), sifting.BATCH)), 1 << 16
        first, size = 0, sifting.BATCH
        while first < len(order):
            some = order[first : first + size]
            candidates = sifting.Candidates(np.empty(room, np.int32), np.empty(room, np.int32))
            found = sifting.filter_candidates(coded, some, self._tiles, work, candidates)
            if found > MOST_CANDIDATES and len(some) > 1:
                size = len(some) // 2
            elif found > room:
                room = found
            else:
                yield some, self._grouped(candidates, found, len(some))
                first, size = first + len(some), min(sifting.BATCH, 2 * size)

    def _grouped(self, candidates: sifting.Candidates, found: int, count: int) -> sifting.FilteredCandidates:
        starts, rows = np.zeros(count + 1, np.int64), np.empty(found, np.int32)
        sifting.group(candidates, found, starts, rows)
        return sifting.FilteredCandidates(starts, rows, int(self._tiles.list_shift[0]))

    def _work(self, count: int) -> sifting.Work:
        tiles = self._tiles
        number = np.full(len(self._columns), -1, np.int64)
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

    def _order(self, coded: encoding.Coded) -> Numbers:
        """The order in which to match a batch: publications that lead to the same bucket one after the other.

        What the first of them brings into the processor's cache serves the others.
        """
        count = len(coded.starts) - 1
        if count < WORTH_SORTING or self._main_column is None:
            return np.arange(count)
        codes = np.full(count, -1, np.int32)
        matching.fill_codes(coded, self._main_column, codes)
        return np.argsort(codes)

    @cached_property
    def _main_column(self) -> int | None:
        """The key column of the most clauses whose buckets are long enough to be worth keeping in the cache."""
        c = self._clusters
        worth = (c.key_mode != clusters.NO_KEY) & (c.layout == clusters.UNIFORM)
        keyed = np.where(worth, np.diff(c.row_start), 0)
        return int(c.key_column[np.argmax(keyed)]) if keyed.any() else None

    def _scratch(self, atoms: int) -> clusters.Scratch:
        """Room for a publication with so many atoms."""
        columns, visits = len(self._columns), clusters.VISITS + 2 + atoms
        return clusters.Scratch(
            code=np.full(columns, clusters.ABSENT, np.int32),
            head=np.zeros(columns, np.int64),
            tail=np.zeros(columns, np.int64),
            narrow=np.full(columns, clusters.NOT_NARROW, np.uint32),
            seen=np.full(self._several, -1, np.int64),
            cluster=np.zeros(visits, np.uint32),
            bucket=np.zeros(visits, np.int64),
            low=np.zeros(visits, np.int64),
            high=np.zeros(visits, np.int64),
        )

    @cached_property
    def _several(self) -> int:
        """How many subscriptions have several rows."""
        return int(self._clusters.several.max(initial=-1)) + 1


_NOTHING_SIFTED = sifting.FilteredCandidates(np.zeros(1, np.int64), np.empty(0, np.int32), 0)


_NO_STRINGS = np.empty(0, np.int32)
_NO_PAIRS = np.empty(0, np.int32), np.empty(0, np.int32)


def _is_of(known: KnownPaths, atoms: Atoms) -> bool:
    """Whether this is what is known of the paths of a batch."""
    same = known.paths is atoms.paths or known.paths == atoms.paths
    return same and known.of == atoms.about


def _joined(parts: list[Pairs]) -> Pairs:
    if len(parts) == 1:
        return parts[0]
    nothing = np.empty(0, np.int32)
    return np.concatenate([nothing, *(p for p, _ in parts)]), np.concatenate(
        [nothing, *(s for _, s in parts)]
    )


def _grown(array: npt.NDArray[np.generic], used: int) -> npt.NDArray[np.generic]:
    bigger = np.empty(2 * len(array) + 64, array.dtype)
    bigger[:used] = array[:used]
    return bigger
