"""Building a segment: compiled subscriptions in, arrays for the kernels out.

Five steps: hide the columns that few clauses ask about, collect the constants of the others, lower the clauses to one
table of codes, choose a way for each of them, lay them out.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from tidings.atoms import Aspect, Column
from tidings.compiler.plan import Compiled
from tidings.kernels.clusters import Clusters
from tidings.kernels.encode import Codecs
from tidings.kernels.sift import Tiles
from tidings.kernels.twig_arrays import Twigs
from tidings.matching.access import is_derived
from tidings.matching.index import ways
from tidings.matching.index.codecs import build_codecs
from tidings.matching.index.hiding import hide_rare
from tidings.matching.index.layout import Layout
from tidings.matching.index.lowered import Clauses, Numbers
from tidings.matching.index.lowering import collect_constants, lower
from tidings.matching.index.spreading import spread_members
from tidings.matching.index.tiles import no_tiles, pack_tiles
from tidings.matching.index.twigs import in_order, lay_out
from tidings.matching.index.ways import Way, choose


@dataclass(frozen=True, slots=True)
class Built:
    """A segment's content: what the kernels read, what its columns are called, and how its clauses are reached."""

    columns: tuple[Column, ...]
    codecs: Codecs
    clusters: Clusters
    tiles: Tiles
    twigs: Twigs
    hidden: tuple[str, ...]
    clauses: Clauses
    ways: tuple[Way, ...]

    def name_of(self, tests: Numbers | None) -> str | None:
        """What the column of these tests is called, by people."""
        if tests is None:
            return None
        column = self.columns[self.clauses.column[tests[0]]]
        return (
            column.path if column.aspect == Aspect.VALUE else f"{column.path} ({column.aspect.name.lower()})"
        )

    def tests_of(self, way: Way) -> float:
        """How many tests a clause has on average beside keys and cut."""
        keys = [each for each in (way.key, way.second, way.cut) if each is not None]
        held = sum(float((each >= 0).mean()) for each in keys)
        return float(np.diff(self.clauses.starts)[way.rows].mean()) - held


def build(compiled: Compiled) -> Built:
    """Lay compiled subscriptions out as a segment."""
    hidden = hide_rare(compiled)
    constants = collect_constants(hidden.compiled)
    columns = tuple(constants.columns)
    clauses, twigs = lay_out(spread_members(lower(hidden.compiled, constants)), hidden)
    codecs = build_codecs(list(constants.columns.values()), {d.name: d for d in compiled.domains})
    chosen = choose(clauses, [is_derived(column) for column in columns])
    count = len(clauses) if len(twigs.clause) else compiled.subscriptions.num_rows
    clusters, tiles = _laid_out(clauses, chosen, len(columns), count)
    if len(twigs.clause):
        twigs = in_order(twigs, clusters.subscription[: len(clauses)])
        clusters = clusters._replace(subscription=np.arange(len(clusters.subscription), dtype=np.int32))
    return Built(columns, codecs, clusters, tiles, twigs, hidden.patterns, clauses, tuple(chosen))


def _laid_out(
    clauses: Clauses, chosen: list[Way], columns: int, subscriptions: int
) -> tuple[Clusters, Tiles]:
    """The clusters one after the other; what stands in tiles comes last."""
    layout, tiles = Layout(columns, clauses), no_tiles()
    for way in chosen:
        if way.layout != ways.TILES:
            layout.add(way)
            continue
        rows, tiles = pack_tiles(clauses, way.rows)
        layout.add(replace(way, rows=rows))
        first = layout.rows() - len(rows)
        tiles = tiles._replace(
            tile_row=tiles.tile_row + first, list_shift=np.array([layout.list_shift()], np.int64)
        )
    return layout.finish(subscriptions), tiles
