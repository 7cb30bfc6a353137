"""Twigs of a segment: laid out for the kernel, and those of several segments brought together."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from tidings.atoms import PublicationKind
from tidings.documents.model import ANY
from tidings.errors import TidingsError
from tidings.graphs.pattern_words import GRAPH
from tidings.matching.compiler import plan
from tidings.matching.compiler.blocks import twigs_of
from tidings.matching.compiler.plan import ClauseBlock, Compiled, IrregularClauses
from tidings.matching.index.arrays import starts_of
from tidings.matching.index.clause_table import ClauseTable, list_index
from tidings.matching.index.codecs import string_codec
from tidings.matching.index.rare_columns import WithoutRareColumns
from tidings.matching.kernels.clusters import LAST
from tidings.matching.kernels.shapes import twig_arrays as kernel
from tidings.matching.kernels.shapes.renumbering import mark_used, renumber
from tidings.matching.kernels.shapes.twig_arrays import reverse_twigs

Numbers = npt.NDArray[np.int64]


def lay_out(clauses: ClauseTable, hidden: WithoutRareColumns) -> tuple[ClauseTable, kernel.Twigs]:
    """Clauses that are numbered one by one, and what is to be checked of each before it counts for its subscription.

    If all clauses are about events, they stay as they are, and nothing is to be checked.
    """
    twigs = hidden.compiled.twigs
    if not len(twigs):
        return clauses, _nothing()
    shaped = clauses.twig >= 0
    checked = shaped & ~(twigs.exact & ~hidden.unsaid)[clauses.twig]
    lengths = np.where(checked, np.diff(twigs.starts)[clauses.twig], 0)
    starts, of = starts_of(lengths), np.where(shaped, _of(twigs)[clauses.twig], PublicationKind.EVENT)
    laid = kernel.Twigs(
        clause=_entries(starts, of, clauses.subscription),
        word=_turned(twigs, clauses.twig[checked].astype(np.int64), starts, of == PublicationKind.DOCUMENT),
        space=np.array([name.endswith("}*") for name in twigs.names], np.uint8),
        strings=string_codec([twigs.strings], [False], [True], [True]),
    )
    return replace(clauses, subscription=np.arange(len(clauses), dtype=np.int32)), laid


def _entries(
    starts: Numbers, of: npt.NDArray[np.int_], subscription: npt.NDArray[np.int32]
) -> npt.NDArray[np.int32]:
    """What the kernel reads of each clause."""
    if starts[-1] > LAST:
        raise TidingsError(f"a segment has no room for more than {LAST:,} words of twigs")
    sizes = np.diff(starts) << kernel.SIZE_SHIFT | of
    columns = (starts[:-1], sizes, _several(subscription), subscription)
    return np.column_stack(columns).astype(np.int32).reshape(-1)


def in_order(twigs: kernel.Twigs, rows: npt.NDArray[np.int32]) -> kernel.Twigs:
    """The same with clauses numbered anew, in the order in which these stand.

    Clauses that one publication leads to stand near each other in clusters: so do their twigs then.
    """
    entries = twigs.clause.reshape(-1, kernel.ENTRIES)
    begins = entries[:, kernel.FIRST_WORD].astype(np.int64)
    index, starts = list_index(np.append(begins, len(twigs.word)), rows.astype(np.int64))
    taken = entries[rows]
    taken[:, kernel.FIRST_WORD] = starts[:-1]
    return twigs._replace(clause=taken.reshape(-1), word=twigs.word[index])


def _turned(
    twigs: plan.Twigs, asked: Numbers, starts: Numbers, which: npt.NDArray[np.bool_]
) -> npt.NDArray[np.uint32]:
    """The words of these twigs, as they are checked; those of graphs stay as they are."""
    index, _ = list_index(twigs.starts, asked)
    words, longest = twigs.words[index], int(np.diff(starts).max(initial=0)) + 1
    star = twigs.names.index(ANY) if ANY in twigs.names else -1
    place, kept = np.empty(longest, np.int64), np.empty(longest, np.uint32)
    reverse_twigs(starts, words, which, star, len(twigs.names), place, kept)
    return words


def _of(twigs: plan.Twigs) -> npt.NDArray[np.uint8]:
    """By twig, what it is about. The words of a pattern of graphs begin with a mark."""
    is_graph = twigs.words[twigs.starts[:-1]] & np.uint32(GRAPH) != 0
    return np.where(is_graph, PublicationKind.GRAPH, PublicationKind.DOCUMENT).astype(np.uint8)


def _nothing() -> kernel.Twigs:
    strings = string_codec([pa.array([], pa.binary())], [False], [True], [True])
    return kernel.Twigs(np.empty(0, np.int32), np.empty(0, np.uint32), np.empty(0, np.uint8), strings)


def _several(subscription: npt.NDArray[np.int32]) -> npt.NDArray[np.int32]:
    """By clause, a number for subscriptions that have several; -1 for the others."""
    counts = np.bincount(subscription)
    numbers = np.where(counts > 1, np.cumsum(counts > 1) - 1, -1)
    return numbers[subscription].astype(np.int32)


def with_joined_twigs(sources: Sequence[Compiled]) -> list[Compiled]:
    """The same subscriptions with twigs that are numbered together; those that no clause has any more are left out."""
    if not any(len(source.twigs) for source in sources):
        return list(sources)
    used = [_used(source) for source in sources]
    names = list(dict.fromkeys(name for each in used for name in each.names))
    strings = pc.unique(pa.chunked_array([each.strings for each in used], pa.binary()))
    strings = strings.combine_chunks() if isinstance(strings, pa.ChunkedArray) else strings
    for each in used:
        each.renumber(names, strings)
    joined = plan.Twigs(
        starts_of(np.concatenate([each.lengths for each in used])),
        np.concatenate([each.words for each in used]),
        np.concatenate([each.exact for each in used]),
        tuple(names),
        strings,
    )
    firsts = starts_of([len(each.exact) for each in used])[:-1]
    return [
        _numbered(source, each.number + np.int32(first), joined)
        for source, each, first in zip(sources, used, firsts, strict=True)
    ]


@dataclass(slots=True)
class _Used:
    """The twigs that clauses have, with the names and strings in them. `number` leads from old numbers to new ones."""

    number: npt.NDArray[np.int32]
    lengths: Numbers
    words: npt.NDArray[np.uint32]
    exact: npt.NDArray[np.bool_]
    names: tuple[str, ...]
    strings: pa.Array[Any]
    _name: npt.NDArray[np.uint8]
    _string: npt.NDArray[np.uint8]

    def renumber(self, names: Sequence[str], strings: pa.Array[Any]) -> None:
        """Use the numbers of these names and strings."""
        place = {name: number for number, name in enumerate(names)}
        new_name = np.zeros(len(self._name), np.uint32)
        new_name[np.flatnonzero(self._name)] = [place[name] for name in self.names]
        new_string = np.zeros(len(self._string), np.uint32)
        new_string[np.flatnonzero(self._string)] = np.asarray(pc.index_in(self.strings, value_set=strings))
        renumber(self.words, new_name, new_string)


def _used(source: Compiled) -> _Used:
    twigs = source.twigs
    asked = np.concatenate([*map(twigs_of, source.blocks), twigs_of(source.loose)])
    kept = np.zeros(len(twigs), np.bool_)
    kept[asked[asked >= 0]] = True
    rows = np.flatnonzero(kept)
    index, _ = list_index(twigs.starts, rows)
    words = twigs.words[index]  # a copy: it is renumbered
    name, string = np.zeros(len(twigs.names), np.uint8), np.zeros(len(twigs.strings), np.uint8)
    mark_used(words, name, string)
    return _Used(
        (np.cumsum(kept) - 1).astype(np.int32),
        np.diff(twigs.starts)[rows],
        words,
        twigs.exact[rows],
        tuple(twigs.names[at] for at in np.flatnonzero(name)),
        twigs.strings.take(pa.array(np.flatnonzero(string))),
        name,
        string,
    )


def _numbered(source: Compiled, number: npt.NDArray[np.int32], joined: plan.Twigs) -> Compiled:
    def moved(clauses: ClauseBlock | IrregularClauses) -> npt.NDArray[np.int32]:
        old = twigs_of(clauses)
        return np.where(old >= 0, number[old] if len(number) else -1, -1).astype(np.int32)

    blocks = tuple(replace(block, twigs=moved(block)) for block in source.blocks)
    loose = replace(source.loose, twigs=moved(source.loose))
    return replace(source, blocks=blocks, loose=loose, twigs=joined)
