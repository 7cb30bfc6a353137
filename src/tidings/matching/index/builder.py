"""Building a segment: compiled subscriptions in, arrays for the kernels out.

Five steps: hide the columns that few clauses ask about, collect the constants of the others, lower the clauses to one
table of codes, choose a way for each of them, lay them out.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from tidings.atoms import Aspect, Column
from tidings.matching.compiler.plan import Compiled
from tidings.matching.index import access_paths
from tidings.matching.index.access import expand_in, is_derived
from tidings.matching.index.access_paths import AccessPath, choose_access_paths
from tidings.matching.index.bitmap_tiles import no_tiles, pack_tiles
from tidings.matching.index.clause_table import ClauseTable, Numbers
from tidings.matching.index.codecs import build_codecs
from tidings.matching.index.layout import Layout
from tidings.matching.index.lowering import collect_constants, lower
from tidings.matching.index.rare_columns import drop_rare_columns
from tidings.matching.index.twig_segments import in_order, lay_out
from tidings.matching.kernels.bitmap_filter import Tiles
from tidings.matching.kernels.clusters import Clusters
from tidings.matching.kernels.encode import Codecs
from tidings.matching.kernels.shapes.twig_arrays import Twigs


@dataclass(frozen=True, slots=True)
class SegmentContent:
    """A segment's content: what the kernels read, what its columns are called, and how its clauses are reached."""

    columns: tuple[Column, ...]
    codecs: Codecs
    clusters: Clusters
    tiles: Tiles
    twigs: Twigs
    hidden: tuple[str, ...]
    clauses: ClauseTable
    ways: tuple[AccessPath, ...]

    def name_of(self, tests: Numbers | None) -> str | None:
        """What the column of these tests is called, by people."""
        if tests is None:
            return None
        column = self.columns[self.clauses.column[tests[0]]]
        return (
            column.path if column.aspect == Aspect.VALUE else f"{column.path} ({column.aspect.name.lower()})"
        )

    def tests_of(self, way: AccessPath) -> float:
        """How many tests a clause has on average beside keys and cut."""
        keys = [each for each in (way.key, way.second, way.cut) if each is not None]
        held = sum(float((each >= 0).mean()) for each in keys)
        return float(np.diff(self.clauses.starts)[way.rows].mean()) - held


def build(compiled: Compiled) -> SegmentContent:
    """Lay compiled subscriptions out as a segment."""
    hidden = drop_rare_columns(compiled)
    constants = collect_constants(hidden.compiled)
    columns = tuple(constants.columns)
    clauses, twigs = lay_out(expand_in(lower(hidden.compiled, constants)), hidden)
    codecs = build_codecs(list(constants.columns.values()), {d.name: d for d in compiled.domains})
    chosen = choose_access_paths(clauses, [is_derived(column) for column in columns])
    count = len(clauses) if len(twigs.clause) else compiled.subscriptions.num_rows
    clusters, tiles = _laid_out(clauses, chosen, len(columns), count)
    if len(twigs.clause):
        twigs = in_order(twigs, clusters.subscription[: len(clauses)])
        clusters = clusters._replace(subscription=np.arange(len(clusters.subscription), dtype=np.int32))
    return SegmentContent(columns, codecs, clusters, tiles, twigs, hidden.patterns, clauses, tuple(chosen))


def _laid_out(
    clauses: ClauseTable, chosen: list[AccessPath], columns: int, subscriptions: int
) -> tuple[Clusters, Tiles]:
    """The clusters one after the other; what stands in tiles comes last."""
    layout, tiles = Layout(columns, clauses), no_tiles()
    for way in chosen:
        if way.layout != access_paths.TILES:
            layout.add(way)
            continue
        rows, tiles = pack_tiles(clauses, way.rows)
        layout.add(replace(way, rows=rows))
        first = layout.rows() - len(rows)
        tiles = tiles._replace(
            tile_row=tiles.tile_row + first, list_shift=np.array([layout.list_shift()], np.int64)
        )
    return layout.finish(subscriptions), tiles
