"""Compaction: chooses segments to merge, and merges them.

Every segment costs each publication a visit, and every merge rewrites the segments it merges. Sizes that grow
geometrically keep both small: with a ratio of 4, a million subscriptions added a thousand at a time are in
four segments, and each was written about twelve times.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from tidings.errors import TidingsError
from tidings.events.schema.domains import Domain
from tidings.matching.array_functions import list_index, starts_of
from tidings.matching.compiler import plan
from tidings.matching.compiler.blocks import join_irregular, merge, take, take_irregular, twigs_of
from tidings.matching.compiler.plan import ClauseBlock, Compiled, IrregularClauses
from tidings.matching.index.arrays import Rows
from tidings.matching.index.builder.clause_table import Numbers
from tidings.matching.index.clause_file import read_clauses
from tidings.matching.index.segment import write_segment
from tidings.matching.index.versions import Part, View
from tidings.matching.kernels.shapes.renumbering import mark_used, renumber

if TYPE_CHECKING:
    from tidings.matching.index.index import Index

RATIO = 4
"""A segment is merged with all smaller ones if its size is at most this many times their sum."""

SMALLEST = 1000
"""Smaller segments count as this many subscriptions: writing one costs as much."""

DEAD_SHARE = 0.25
"""A segment with a larger share of dead rows is rewritten: comparing publications with dead rows is wasted work."""

Mask = npt.NDArray[np.bool_]
SUBSCRIPTIONS = pa.schema([(name, pa.string()) for name in ("id", "subscriber", "language", "text")])


def choose_merge(parts: Sequence[Part]) -> list[Part]:
    """Return the parts to merge into one, smallest first; empty if no merge is worth its cost."""
    by_size = sorted(parts, key=lambda part: part.alive)
    merged, total = 0, 0
    for place, part in enumerate(by_size):
        size = max(part.alive, SMALLEST)
        mostly_dead = part.dead > DEAD_SHARE * part.subscriptions
        if mostly_dead or (place and size <= RATIO * total):
            merged = place + 1
        total += size
    return by_size[:merged]


def choose_merge_to(parts: Sequence[Part], most: int) -> list[Part]:
    """Return the parts to merge so that at most `most` remain: those with many dead rows first, then the
    smallest.

    One dead row in a million is no reason to rewrite the million. If there are few enough parts, all parts
    with dead rows are merged.
    """
    if len(parts) <= most:
        return [part for part in parts if part.dead]
    by_size = sorted(parts, key=lambda part: (part.dead <= DEAD_SHARE * part.subscriptions, part.alive))
    return by_size[: len(by_size) - most + 1]


def choose_absorbed(parts: Sequence[Part], size: int, most: int) -> list[Part]:
    """Return the parts to merge with a new one of this size at once, if the result has at most `most` rows."""
    new = Part("", size)
    merged = choose_merge([*parts, new])
    if new not in merged or sum(part.alive for part in merged) > most:
        return []
    return [part for part in merged if part is not new]


class Merge:
    """A planned merge of segments. It can be written while the index is used; then the index adopts it."""

    def __init__(self, view: View, parts: Sequence[Part], name: str) -> None:
        self.view, self.parts, self.name = view, tuple(parts), name
        for part in parts:
            view.dead(part)  # read now: the file may be deleted later

    @property
    def subscriptions(self) -> int:
        return sum(part.alive for part in self.parts)

    def write(self) -> None:
        """Write the new segment, with the rows that were alive when the merge was planned."""
        if self.subscriptions:
            write_segment(self.view.folder / self.name, join_parts(self.view, self.parts))

    def died_since(self, now: View) -> Rows:
        """Return the rows of the new segment whose subscriptions were removed or replaced while it was written."""
        current = {part.name: part for part in now.parts}
        first, died = 0, [np.empty(0, np.int32)]
        for part in self.parts:
            alive = self.view.alive_rows(part)
            still = now.alive_rows(current[part.name]) if part.name in current else np.zeros_like(alive)
            died.append((first + np.flatnonzero(~still[alive])).astype(np.int32))
            first += part.alive
        return np.concatenate(died)


def join_parts(view: View, parts: Sequence[Part], new: Compiled | None = None) -> Compiled:
    """Return the live subscriptions of these parts followed by the new ones, as if compiled together."""
    tables: list[pa.Table] = []
    blocks: list[ClauseBlock] = []
    irregular: list[IrregularClauses] = []
    domains: dict[str, Domain] = {}
    sources = _join_twigs(list(_sources(view, parts, new)))
    for source in sources:
        first = np.int32(sum(table.num_rows for table in tables))
        tables.append(source.subscriptions.cast(SUBSCRIPTIONS))
        blocks.extend(replace(block, rows=block.rows + first) for block in source.blocks)
        irregular.append(replace(source.irregular, rows=source.irregular.rows + first))
        _add_domains(domains, source.domains, view.folder)
    twigs = sources[0].twigs if sources else plan.Twigs()
    return Compiled(
        pa.concat_tables(tables),
        tuple(merge(blocks)),
        tuple(domains.values()),
        (),
        join_irregular(irregular),
        twigs,
    )


def _sources(view: View, parts: Sequence[Part], new: Compiled | None) -> Iterator[Compiled]:
    for part in parts:
        segment, alive = view.segment(part), view.alive_rows(part)
        table = segment.subscriptions
        stored = read_clauses(segment.folder)
        blocks, irregular = stored.blocks, stored.irregular
        if part.dead:
            numbers = (np.cumsum(alive) - 1).astype(np.int32)
            blocks = [_live_clauses(block, alive, numbers) for block in blocks if alive[block.rows].any()]
            irregular = take_irregular(irregular, alive[irregular.rows])
            irregular = replace(irregular, rows=numbers[irregular.rows])
            table = table.filter(pa.array(alive))
        yield Compiled(table, tuple(blocks), tuple(stored.domains), (), irregular, stored.twigs)
    if new is not None:
        yield new


def _live_clauses(block: ClauseBlock, alive: Mask, numbers: Rows) -> ClauseBlock:
    """Return the clauses of a block whose subscriptions are alive, with their new row numbers."""
    live = take(block, np.flatnonzero(alive[block.rows]))
    return replace(live, rows=numbers[live.rows])


def _add_domains(domains: dict[str, Domain], added: Iterable[Domain], folder: Path) -> None:
    for domain in added:
        if domains.setdefault(domain.name, domain) != domain:
            message = f"segments with two different definitions of the domain {domain.name} cannot be merged"
            raise TidingsError(message, where=str(folder), hint="create a new index with the current schema")


def _join_twigs(sources: Sequence[Compiled]) -> list[Compiled]:
    """Number the twigs of all sources together; twigs that no clause uses are left out."""
    if not any(len(source.twigs) for source in sources):
        return list(sources)
    used = [_find_used_twigs(source) for source in sources]
    names = list(dict.fromkeys(name for twigs in used for name in twigs.names))
    strings = pc.unique(pa.chunked_array([twigs.strings for twigs in used], pa.binary()))
    strings = strings.combine_chunks() if isinstance(strings, pa.ChunkedArray) else strings
    for twigs in used:
        twigs.renumber(names, strings)
    joined = plan.Twigs(
        starts_of(np.concatenate([twigs.lengths for twigs in used])),
        np.concatenate([twigs.words for twigs in used]),
        np.concatenate([twigs.exact for twigs in used]),
        tuple(names),
        strings,
    )
    firsts = starts_of([len(twigs.exact) for twigs in used])[:-1]
    return [
        _with_twigs(source, twigs.number + np.int32(first), joined)
        for source, twigs, first in zip(sources, used, firsts, strict=True)
    ]


@dataclass(slots=True)
class _UsedTwigs:
    """The twigs that clauses use, with their names and strings. `number` maps old twig numbers to new ones."""

    number: npt.NDArray[np.int32]
    lengths: Numbers
    words: npt.NDArray[np.uint32]
    exact: npt.NDArray[np.bool_]
    names: tuple[str, ...]
    strings: pa.Array[Any]
    _name: npt.NDArray[np.uint8]
    _string: npt.NDArray[np.uint8]

    def renumber(self, names: Sequence[str], strings: pa.Array[Any]) -> None:
        """Replace the numbers of names and strings in the words by their positions in these."""
        place = {name: number for number, name in enumerate(names)}
        new_name = np.zeros(len(self._name), np.uint32)
        new_name[np.flatnonzero(self._name)] = [place[name] for name in self.names]
        new_string = np.zeros(len(self._string), np.uint32)
        new_string[np.flatnonzero(self._string)] = np.asarray(pc.index_in(self.strings, value_set=strings))
        renumber(self.words, new_name, new_string)


def _find_used_twigs(source: Compiled) -> _UsedTwigs:
    twigs = source.twigs
    referenced = np.concatenate([*map(twigs_of, source.blocks), twigs_of(source.irregular)])
    used = np.zeros(len(twigs), np.bool_)
    used[referenced[referenced >= 0]] = True
    rows = np.flatnonzero(used)
    index, _ = list_index(twigs.starts, rows)
    words = twigs.words[index]  # a copy, because it is renumbered
    name, string = np.zeros(len(twigs.names), np.uint8), np.zeros(len(twigs.strings), np.uint8)
    mark_used(words, name, string)
    return _UsedTwigs(
        (np.cumsum(used) - 1).astype(np.int32),
        np.diff(twigs.starts)[rows],
        words,
        twigs.exact[rows],
        tuple(twigs.names[at] for at in np.flatnonzero(name)),
        twigs.strings.take(pa.array(np.flatnonzero(string))),
        name,
        string,
    )


def _with_twigs(source: Compiled, number: npt.NDArray[np.int32], joined: plan.Twigs) -> Compiled:
    def new_numbers(clauses: ClauseBlock | IrregularClauses) -> npt.NDArray[np.int32]:
        old = twigs_of(clauses)
        return np.where(old >= 0, number[old] if len(number) else -1, -1).astype(np.int32)

    blocks = tuple(replace(block, twigs=new_numbers(block)) for block in source.blocks)
    irregular = replace(source.irregular, twigs=new_numbers(source.irregular))
    return replace(source, blocks=blocks, irregular=irregular, twigs=joined)


SMALL_MERGE = 20_000
"""Merging fewer subscriptions takes no longer than a batch of events, so it needs no thread."""


class CompactionWorker:
    """Changes an index and keeps the number of its segments small. Call it from one thread only.

    Large merges run in a thread while the index is used, small ones at once.
    """

    def __init__(self, index: Index) -> None:
        self._index = index
        self._thread = ThreadPoolExecutor(1, "merging")
        self._running: tuple[Merge, Future[None]] | None = None

    def change(self, removed: Iterable[str], added: Compiled) -> None:
        """Remove and add subscriptions atomically, then merge segments where that is worth its cost."""
        self._index.change(removed, added, absorb=SMALL_MERGE)
        self.step()

    def step(self) -> None:
        """Adopt a finished merge, run small merges, start a large one."""
        if self._running and self._running[1].done():
            self._adopt()
        while merge := self._index.plan_merge(None if self._running is None else SMALL_MERGE):
            if merge.subscriptions > SMALL_MERGE:
                self._running = merge, self._thread.submit(merge.write)
            else:
                self._write_and_adopt(merge, merge.write)

    def finish(self) -> None:
        """Wait for the running merge and adopt it."""
        if self._running:
            self._adopt()

    def _adopt(self) -> None:
        merge, written = self._running  # type: ignore[misc]
        self._running = None
        self._write_and_adopt(merge, written.result)

    def _write_and_adopt(self, merge: Merge, write: Callable[[], None]) -> None:
        """Write and adopt a merge. If writing fails, a later merge may use its segments."""
        try:
            write()
        except BaseException:
            self._index.abandon(merge)
            raise
        self._index.adopt(merge)
