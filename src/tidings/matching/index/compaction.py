"""Merging segments: which are worth it, and how several become one.

Every segment costs each publication a visit, and every merge writes what it merges anew. Sizes that rise by a factor
keep both small: with a ratio of 4, a million subscriptions added a thousand at a time stand in four segments, and each
was written a dozen times.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from tidings.errors import TidingsError
from tidings.events.schema.domains import Domain
from tidings.matching.compiler.blocks import join_irregular, merge, take, take_irregular
from tidings.matching.compiler.plan import ClauseBlock, Compiled, IrregularClauses, Twigs
from tidings.matching.index.arrays import Rows
from tidings.matching.index.clauses import read_clauses
from tidings.matching.index.segment import write_segment
from tidings.matching.index.twig_segments import with_joined_twigs
from tidings.matching.index.versions import Part
from tidings.matching.index.view import View

RATIO = 4
"""A segment is merged with all smaller ones when it is not larger than so many times their sum."""

SMALLEST = 1000
"""Segments of fewer subscriptions count as this many: writing one costs as much."""

DEAD_SHARE = 0.25
"""A segment of which more is dead is written anew: every event looks at dead rows in vain."""

Mask = npt.NDArray[np.bool_]
SUBSCRIPTIONS = pa.schema([(name, pa.string()) for name in ("id", "subscriber", "language", "text")])


def worth_merging(parts: Sequence[Part]) -> list[Part]:
    """The parts to make one of, the smallest first; none if all is well."""
    by_size = sorted(parts, key=lambda part: part.alive)
    merged, total = 0, 0
    for place, part in enumerate(by_size):
        size = max(part.alive, SMALLEST)
        decayed = part.dead > DEAD_SHARE * part.subscriptions
        if decayed or (place and size <= RATIO * total):
            merged = place + 1
        total += size
    return by_size[:merged]


def to_at_most(parts: Sequence[Part], most: int) -> list[Part]:
    """The parts to make one of if at most `most` are to remain: decayed ones first, then the smallest.

    One dead row in a million is no reason to write the million anew. If there are few enough, only dead rows are.
    """
    if len(parts) <= most:
        return [part for part in parts if part.dead]
    by_size = sorted(parts, key=lambda part: (part.dead <= DEAD_SHARE * part.subscriptions, part.alive))
    return by_size[: len(by_size) - most + 1]


def worth_taking_up(parts: Sequence[Part], size: int, most: int) -> list[Part]:
    """The parts that would be merged at once with a new one of this size, if all that is at most `most`."""
    new = Part("", size)
    merged = worth_merging([*parts, new])
    wanted = new in merged and sum(part.alive for part in merged) <= most
    return [part for part in merged if part is not new] if wanted else []


class Merge:
    """Segments on their way to becoming one. Writing it disturbs nobody; then the index adopts it."""

    def __init__(self, view: View, parts: Sequence[Part], name: str) -> None:
        self.view, self.parts, self.name = view, tuple(parts), name
        for part in parts:
            view.dead(part)  # read now: later the file may be gone

    @property
    def subscriptions(self) -> int:
        return sum(part.alive for part in self.parts)

    def write(self) -> None:
        """Write the new segment: what was alive when the merge was planned."""
        if self.subscriptions:
            write_segment(self.view.folder / self.name, joined(self.view, self.parts))

    def died_since(self, now: View) -> Rows:
        """The rows of the new segment whose subscriptions were removed or replaced while it was written."""
        known = {part.name: part for part in now.parts}
        first, found = 0, [np.empty(0, np.int32)]
        for part in self.parts:
            alive = self.view.alive_rows(part)
            still = now.alive_rows(known[part.name]) if part.name in known else np.zeros_like(alive)
            found.append((first + np.flatnonzero(~still[alive])).astype(np.int32))
            first += part.alive
        return np.concatenate(found)


def joined(view: View, parts: Sequence[Part], new: Compiled | None = None) -> Compiled:
    """What is alive in these parts, one after the other, and then what is new: as if compiled together."""
    tables: list[pa.Table] = []
    blocks: list[ClauseBlock] = []
    loose: list[IrregularClauses] = []
    domains: dict[str, Domain] = {}
    sources = with_joined_twigs(list(_sources(view, parts, new)))
    for source in sources:
        first = np.int32(sum(each.num_rows for each in tables))
        tables.append(source.subscriptions.cast(SUBSCRIPTIONS))
        blocks.extend(replace(block, rows=block.rows + first) for block in source.blocks)
        loose.append(replace(source.loose, rows=source.loose.rows + first))
        _know(domains, source.domains, view.folder)
    known, twigs = tuple(domains.values()), sources[0].twigs if sources else Twigs()
    return Compiled(pa.concat_tables(tables), tuple(merge(blocks)), known, (), join_irregular(loose), twigs)


def _sources(view: View, parts: Sequence[Part], new: Compiled | None) -> Iterator[Compiled]:
    for part in parts:
        segment, alive = view.segment(part), view.alive_rows(part)
        table = segment.subscriptions
        stored = read_clauses(segment.folder)
        held, loose = stored.blocks, stored.loose
        if part.dead:
            numbers = (np.cumsum(alive) - 1).astype(np.int32)
            held = [_alive(block, alive, numbers) for block in held if alive[block.rows].any()]
            loose = take_irregular(loose, alive[loose.rows])
            loose = replace(loose, rows=numbers[loose.rows])
            table = table.filter(pa.array(alive))
        yield Compiled(table, tuple(held), tuple(stored.domains), (), loose, stored.twigs)
    if new is not None:
        yield new


def _alive(block: ClauseBlock, alive: Mask, numbers: Rows) -> ClauseBlock:
    """The clauses of a block whose subscriptions are alive, which have new numbers."""
    kept = take(block, np.flatnonzero(alive[block.rows]))
    return replace(kept, rows=numbers[kept.rows])


def _know(domains: dict[str, Domain], more: Iterable[Domain], folder: Path) -> None:
    for domain in more:
        if domains.setdefault(domain.name, domain) != domain:
            what = f"segments that speak of two different domains {domain.name} cannot become one"
            raise TidingsError(what, where=str(folder), hint="make a new index with the schema of today")
