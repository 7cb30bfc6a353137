"""Twig layout: writes the twigs of clauses in the order in which the kernel checks them."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from tidings.atoms import AtomShape
from tidings.documents.model import ANY
from tidings.errors import TidingsError
from tidings.graphs.pattern_words import GRAPH
from tidings.matching.compiler import plan
from tidings.matching.index.arrays import starts_of
from tidings.matching.index.build.clause_table import ClauseTable, list_index
from tidings.matching.index.build.codecs import string_codec
from tidings.matching.index.build.rare_columns import WithoutRareColumns
from tidings.matching.kernels.clusters import LAST
from tidings.matching.kernels.shapes import twig_arrays as kernel
from tidings.matching.kernels.shapes.twig_arrays import reverse_twigs

Numbers = npt.NDArray[np.int64]


def lay_out_twigs(clauses: ClauseTable, reduced: WithoutRareColumns) -> tuple[ClauseTable, kernel.Twigs]:
    """Return clauses whose subscriptions are replaced by clause numbers, and the twig to check of each clause.

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

    Rows that one publication reaches are close to each other in clusters; this puts their twigs close to each other.
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
