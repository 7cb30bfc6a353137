"""Segment builder: compiled subscriptions in, arrays for the kernels out."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from tidings.atoms import Aspect, AtomShape, Column
from tidings.documents.linear_paths import ANYWHERE
from tidings.documents.model import ANY
from tidings.errors import TidingsError
from tidings.graphs.pattern_words import GRAPH
from tidings.matching.array_functions import list_index, starts_of
from tidings.matching.compiler import plan
from tidings.matching.compiler.plan import Compiled
from tidings.matching.index.builder import access_paths
from tidings.matching.index.builder.access_paths import AccessPath, choose_access_paths
from tidings.matching.index.builder.bitmap_tiles import empty_tiles, pack_tiles
from tidings.matching.index.builder.clause_table import ClauseTable, Numbers, expand_in
from tidings.matching.index.builder.codecs import build_codecs, string_codec
from tidings.matching.index.builder.layout import ClusterLayout
from tidings.matching.index.builder.lowering import collect_constants, lower_clauses
from tidings.matching.index.builder.rare_columns import WithoutRareColumns, drop_rare_columns
from tidings.matching.kernels.bitmap_filter import Tiles
from tidings.matching.kernels.clusters import LAST, Clusters
from tidings.matching.kernels.encode import Codecs
from tidings.matching.kernels.shapes import twig_arrays as kernel
from tidings.matching.kernels.shapes.twig_arrays import Twigs, reverse_twigs


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


def lay_out_twigs(clauses: ClauseTable, reduced: WithoutRareColumns) -> tuple[ClauseTable, kernel.Twigs]:
    """Return clauses whose subscriptions are replaced by clause numbers, and the twig to check of each
    clause.

    If all clauses are about events, they stay as they are, and there are no twigs.
    """
    twigs = reduced.compiled.twigs
    if not len(twigs):
        return clauses, _empty_twigs()
    has_twig = clauses.twig >= 0
    checked = has_twig & ~(twigs.exact & ~reduced.must_check)[clauses.twig]
    lengths = np.where(checked, np.diff(twigs.starts)[clauses.twig], 0)
    starts, shape = starts_of(lengths), np.where(has_twig, _shapes(twigs)[clauses.twig], AtomShape.FLAT)
    layout = kernel.Twigs(
        clause=_clause_entries(starts, shape, clauses.subscription),
        word=_reverse(twigs, clauses.twig[checked].astype(np.int64), starts, shape == AtomShape.TREE),
        space=np.array([name.endswith("}*") for name in twigs.names], np.uint8),
        strings=string_codec([twigs.strings], [False], [True], [True]),
    )
    return replace(clauses, subscription=np.arange(len(clauses), dtype=np.int32)), layout


def _clause_entries(
    starts: Numbers, shape: npt.NDArray[np.int_], subscription: npt.NDArray[np.int32]
) -> npt.NDArray[np.int32]:
    """Return the entry of each clause: first word, size and shape, number if repeated, subscription."""
    if starts[-1] > LAST:
        raise TidingsError(f"a segment cannot hold more than {LAST:,} words of twigs")
    sizes = np.diff(starts) << kernel.SIZE_SHIFT | shape
    columns = (starts[:-1], sizes, _number_repeated(subscription), subscription)
    return np.column_stack(columns).astype(np.int32).reshape(-1)


def reorder_twigs(twigs: kernel.Twigs, rows: npt.NDArray[np.int32]) -> kernel.Twigs:
    """Renumber the clauses of twigs by the order of cluster rows.

    Rows that one publication reaches are close to each other in clusters; this puts their twigs close to each
    other.
    """
    entries = twigs.clause.reshape(-1, kernel.ENTRIES)
    first_words = entries[:, kernel.FIRST_WORD].astype(np.int64)
    index, starts = list_index(np.append(first_words, len(twigs.word)), rows.astype(np.int64))
    reordered = entries[rows]
    reordered[:, kernel.FIRST_WORD] = starts[:-1]
    return twigs._replace(clause=reordered.reshape(-1), word=twigs.word[index])


def _reverse(
    twigs: plan.Twigs, numbers: Numbers, starts: Numbers, is_document: npt.NDArray[np.bool_]
) -> npt.NDArray[np.uint32]:
    """Return the words of these twigs in the order of checking; those of graphs stay as they are."""
    index, _ = list_index(twigs.starts, numbers)
    words, longest = twigs.words[index], int(np.diff(starts).max(initial=0)) + 1
    star = twigs.names.index(ANY) if ANY in twigs.names else -1
    place, buffer = np.empty(longest, np.int64), np.empty(longest, np.uint32)
    reverse_twigs(starts, words, is_document, star, len(twigs.names), place, buffer)
    return words


def _shapes(twigs: plan.Twigs) -> npt.NDArray[np.uint8]:
    """Return the shape of atoms that each twig is about. The words of graph patterns start with a mark."""
    is_graph = twigs.words[twigs.starts[:-1]] & np.uint32(GRAPH) != 0
    return np.where(is_graph, AtomShape.EDGES, AtomShape.TREE).astype(np.uint8)


def _empty_twigs() -> kernel.Twigs:
    strings = string_codec([pa.array([], pa.binary())], [False], [True], [True])
    return kernel.Twigs(np.empty(0, np.int32), np.empty(0, np.uint32), np.empty(0, np.uint8), strings)


def _number_repeated(subscription: npt.NDArray[np.int32]) -> npt.NDArray[np.int32]:
    """Return for each clause a number of its subscription if that has several clauses, else -1."""
    counts = np.bincount(subscription)
    numbers = np.where(counts > 1, np.cumsum(counts > 1) - 1, -1)
    return numbers[subscription].astype(np.int32)
