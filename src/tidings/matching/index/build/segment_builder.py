"""Segment builder: compiled subscriptions in, arrays for the kernels out."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from tidings.atoms import Aspect, Column
from tidings.documents.linear_paths import ANYWHERE
from tidings.matching.compiler.plan import Compiled
from tidings.matching.index.build import access_paths
from tidings.matching.index.build.access_paths import AccessPath, choose_access_paths
from tidings.matching.index.build.bitmap_tiles import empty_tiles, pack_tiles
from tidings.matching.index.build.clause_table import ClauseTable, Numbers, expand_in
from tidings.matching.index.build.codecs import build_codecs
from tidings.matching.index.build.layout import ClusterLayout
from tidings.matching.index.build.lowering import collect_constants, lower_clauses
from tidings.matching.index.build.rare_columns import drop_rare_columns
from tidings.matching.index.build.twig_layout import lay_out_twigs, reorder_twigs
from tidings.matching.kernels.bitmap_filter import Tiles
from tidings.matching.kernels.clusters import Clusters
from tidings.matching.kernels.encode import Codecs
from tidings.matching.kernels.shapes.twig_arrays import Twigs


@dataclass(frozen=True, slots=True)
class SegmentContent:
    """A built segment: the arrays of the kernels, the columns, and how its clauses are found."""

    columns: tuple[Column, ...]
    codecs: Codecs
    clusters: Clusters
    tiles: Tiles
    twigs: Twigs
    hidden: tuple[str, ...]
    clauses: ClauseTable
    access_paths: tuple[AccessPath, ...]

    def column_name(self, tests: Numbers | None) -> str | None:
        """Return the name of the column that these tests look at, for people to read."""
        if tests is None:
            return None
        column: Column = self.columns[self.clauses.column[tests[0]]]
        if column.aspect == Aspect.VALUE:
            return column.path
        return f"{column.path} ({column.aspect.name.lower()})"

    def mean_tests(self, path: AccessPath) -> float:
        """Return how many tests a clause of this path has on average beside its keys and its cut."""
        keys = [tests for tests in (path.key, path.second, path.cut) if tests is not None]
        used = sum(float((tests >= 0).mean()) for tests in keys)
        return float(np.diff(self.clauses.starts)[path.rows].mean()) - used


def build_segment(compiled: Compiled) -> SegmentContent:
    """Build the arrays of a segment."""
    reduced = drop_rare_columns(compiled)
    constants = collect_constants(reduced.compiled)
    columns = tuple(constants.columns)
    clauses, twigs = lay_out_twigs(expand_in(lower_clauses(reduced.compiled, constants)), reduced)
    codecs = build_codecs(list(constants.columns.values()), {d.name: d for d in compiled.domains})
    paths = choose_access_paths(clauses, [_is_derived(column) for column in columns])
    count = len(clauses) if len(twigs.clause) else compiled.subscriptions.num_rows
    clusters, tiles = _lay_out(clauses, paths, len(columns), count)
    if len(twigs.clause):
        twigs = reorder_twigs(twigs, clusters.subscription[: len(clauses)])
        clusters = clusters._replace(subscription=np.arange(len(clusters.subscription), dtype=np.int32))
    return SegmentContent(columns, codecs, clusters, tiles, twigs, reduced.patterns, clauses, tuple(paths))


def _is_derived(column: Column) -> bool:
    """Whether a publication may have many codes here: text patterns, order aspects, all values of a document."""
    return Aspect.INSTANT < column.aspect < Aspect.NUMBER or column.path == ANYWHERE


def _lay_out(
    clauses: ClauseTable, paths: list[AccessPath], columns: int, subscriptions: int
) -> tuple[Clusters, Tiles]:
    """Write the clusters one after the other; the clauses in tiles come last."""
    layout, tiles = ClusterLayout(columns, clauses), empty_tiles()
    for path in paths:
        if path.layout != access_paths.TILES:
            layout.add(path)
            continue
        rows, tiles = pack_tiles(clauses, path.rows)
        layout.add(replace(path, rows=rows))
        first = layout.row_count() - len(rows)
        tiles = tiles._replace(
            tile_row=tiles.tile_row + first, list_shift=np.array([layout.list_shift()], np.int64)
        )
    return layout.finish(subscriptions), tiles
