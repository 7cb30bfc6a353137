"""Graph patterns: keeps the pairs that passed the tests and whose pattern can be bound to the graph.

The edges of a pattern are bound one after another to the published edges from its subject, to its object, or
with its property, whichever is known by then. A variable has the same term everywhere, and its constraints
are checked when it is bound. Parts of a pattern without a common variable are bound independently: if one
cannot be bound, the search does not return to earlier parts.

Subgraph search can take very long. A pair that is not decided after MOST_STEPS is marked as undecided; the
caller decides it by the specification (`graphs.explanation`) or reports it.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from tidings.matching.kernels.codes import find_string
from tidings.matching.kernels.compiled import F64, I32, I64, U8, inlined, kernel
from tidings.matching.kernels.shapes.twig_arrays import (
    ENTRIES,
    FIRST_WORD,
    SEVERAL,
    SHAPE_MASK,
    SIZE_AND_SHAPE,
    SIZE_SHIFT,
    SUBSCRIPTION,
    Twigs,
    prefetch_twigs,
)

# As in graphs.pattern_words and graphs.keys; a test keeps them equal.
GRAPH = 1 << 31
SIZE_MASK = GRAPH - 1
VARIABLES_SHIFT, COUNT_MASK, ASKED_SHIFT = 12, 0xFFF, 12
HEAD, EDGE, CONSTRAINT, OPERAND = 3, 4, 2, 5
BEGINS = 1
(
    EQUAL, UNEQUAL, LESS, AT_MOST, GREATER, AT_LEAST, CONTAINS, STARTS_WITH, IN, IS, IS_NOT,
    AT_CLASS, NOT_AT_CLASS, AT_OR_BELOW, BELOW_CLASS, AT_OR_ABOVE, ABOVE_CLASS,
) = range(17)  # fmt: skip
NODE, LANGUAGE, UNKNOWN, STRING, NUMBER, BOOLEAN, MOMENT = range(7)
AT, BELOW, ABOVE = range(3)
SUBJECT, PROPERTY, OBJECT, ALL = range(4)
PLACES = 3

NONE = -1
MOST_STEPS = 5_000_000
"""Edges that are tried for one pair: some tens of milliseconds."""

NO, YES, INCOMPARABLE = 0, 1, 2
UNDECIDED = 2
"""The answer of a search that reached its step limit, beside NO and YES."""


class Graphs(NamedTuple):
    """The edges and terms of a batch (see `atoms.Edges`), the bytes of their texts, and the strings that
    terms are.

    `known` has by term its number among the strings of the patterns, or -1.
    """

    starts: I64
    subject: I32
    property: I32
    object: I32
    term: I64
    length: I32
    string: I64
    string_length: I32
    meaning: U8
    number: F64
    rest: I64
    class_start: I64
    relation: U8
    related: I32
    text: U8
    known: I32


class Work(NamedTuple):
    """Working memory for one pattern and one graph.

    graph     the publication of these lists
    term      by number of a string: the equal term of the graph, or NONE
    head      by term of the batch, three each: the first edge from it, with it, to it
    next      by edge of the graph, three each: the next with the same subject, property, object
    binding   by variable: its term, or NONE
    at        by edge of the pattern: the edge of the graph that it is bound to
    fresh     by edge of the pattern, three each: the variables that it bound, or NONE
    seen      by number in `several`: the publication that matched last
    """

    graph: I64
    term: I32
    head: I32
    next: I32
    binding: I32
    at: I64
    fresh: I32
    seen: I64


@kernel
def look_up_terms(twigs: Twigs, graphs: Graphs) -> None:
    """Look up the terms of a batch among the strings of the patterns."""
    for term in range(len(graphs.known)):
        graphs.known[term] = find_string(
            twigs.strings, 0, graphs.text, graphs.term[term], np.int64(graphs.length[term])
        )


@kernel
def check(
    twigs: Twigs, graphs: Graphs, work: Work, publication: Any, clause: Any, count: int, shape: int
) -> int:
    """Keep the pairs whose pattern can be bound, with subscriptions for clauses, each once; return how many
    there are.

    The pairs of a publication are adjacent. An undecided pair is kept too, with the complement of its
    subscription, which is negative.
    """
    kept = 0
    for i in range(count):
        prefetch_twigs(twigs, clause, i, count)
        row, asked = publication[i], ENTRIES * np.int64(clause[i])
        size = np.int64(twigs.clause[asked + SIZE_AND_SHAPE])
        if size & SHAPE_MASK != shape:
            continue
        several = twigs.clause[asked + SEVERAL]
        if several >= 0 and work.seen[several] == row:
            continue
        subscription, answer = twigs.clause[asked + SUBSCRIPTION], YES
        if size >> SIZE_SHIFT:
            if work.graph[0] != row:
                _list_edges(graphs, work, np.int64(row))
            answer = _search(twigs, graphs, work, np.int64(row), np.int64(twigs.clause[asked + FIRST_WORD]))
        if answer == NO:
            continue
        if several >= 0:
            work.seen[several] = row
        publication[kept] = row
        clause[kept] = ~subscription if answer == UNDECIDED else subscription
        kept += 1
    return kept


@inlined
def _end(graphs: Graphs, edge: int, place: int) -> Any:
    """Return subject, property or object of an edge."""
    if place == SUBJECT:
        return np.int64(graphs.subject[edge])
    if place == PROPERTY:
        return np.int64(graphs.property[edge])
    return np.int64(graphs.object[edge])


@inlined
def _list_edges(graphs: Graphs, work: Work, row: int) -> None:
    """List the edges of a graph by each of their ends, after removing those of the previous graph."""
    before = work.graph[0]
    if before >= 0:
        for edge in range(graphs.starts[before], graphs.starts[before + 1]):
            for place in range(PLACES):
                term = _end(graphs, edge, place)
                work.head[PLACES * term + place] = NONE
                if graphs.known[term] >= 0:
                    work.term[graphs.known[term]] = NONE
    first = graphs.starts[row]
    for edge in range(graphs.starts[row + 1] - 1, first - 1, -1):
        for place in range(PLACES):
            term = _end(graphs, edge, place)
            work.next[PLACES * (edge - first) + place] = work.head[PLACES * term + place]
            work.head[PLACES * term + place] = edge - first
            if graphs.known[term] >= 0:
                work.term[graphs.known[term]] = term
    work.graph[0] = row


@inlined
def _search(twigs: Twigs, graphs: Graphs, work: Work, row: int, begin: int) -> int:
    """Search a binding of the pattern at `begin` to a graph: NO, YES or UNDECIDED."""
    word, first, size = twigs.word, graphs.starts[row], graphs.starts[row + 1] - graphs.starts[row]
    edges, steps = np.int64(word[begin + 1]) & COUNT_MASK, 0
    for variable in range(np.int64(word[begin + 1]) >> VARIABLES_SHIFT & COUNT_MASK):
        work.binding[variable] = NONE
    e, part, forward = 0, 0, True
    while e < edges:
        at = begin + HEAD + EDGE * e
        if forward:
            if word[at + PLACES] & np.uint32(BEGINS):
                part = e
        else:
            _unbind(work, e)
        place, term = _choose_access(twigs, work, at)
        d = _first(work, place, term, size) if forward else _next(work, place, work.at[e], size)
        while d >= 0 and not _bind(twigs, graphs, work, begin, e, first + d):
            d = _next(work, place, d, size)
            steps += 1
        steps += 1
        if steps > MOST_STEPS:
            return UNDECIDED
        if d >= 0:
            work.at[e] = d
            e += 1
            forward = True
        elif e == part:
            return NO
        else:
            e -= 1
            forward = False
    return YES


@inlined
def _choose_access(twigs: Twigs, work: Work, at: int) -> Any:
    """Return the end through which candidates for a pattern edge are listed, and its term; ALL for all edges.

    Subjects and objects have few edges each; a property may have nearly all of them. A term that is not in
    the graph is NONE.
    """
    for place in (SUBJECT, OBJECT, PROPERTY):
        asked = np.int64(twigs.word[at + place])
        if asked & 1:
            return place, np.int64(work.term[asked >> 1])
        if work.binding[asked >> 1] != NONE:
            return place, np.int64(work.binding[asked >> 1])
    return ALL, np.int64(NONE)


@inlined
def _first(work: Work, place: int, term: int, size: int) -> Any:
    """Return the first candidate edge."""
    if place == ALL:
        return np.int64(0 if size else NONE)
    return np.int64(NONE) if term == NONE else np.int64(work.head[PLACES * term + place])


@inlined
def _next(work: Work, place: int, d: int, size: int) -> Any:
    """Return the candidate edge after `d`."""
    if place == ALL:
        return np.int64(d + 1 if d + 1 < size else NONE)
    return np.int64(work.next[PLACES * d + place])


@inlined
def _bind(twigs: Twigs, graphs: Graphs, work: Work, begin: int, e: int, edge: int) -> bool:
    """Bind a pattern edge and its variables to a published edge, if that is consistent."""
    at = begin + HEAD + EDGE * e
    for place in range(PLACES):
        work.fresh[PLACES * e + place] = NONE
    for place in range(PLACES):
        term = _end(graphs, edge, place)
        asked = np.int64(twigs.word[at + place])
        good = True
        if asked & 1:
            good = graphs.known[term] == asked >> 1
        elif work.binding[asked >> 1] == NONE:
            work.binding[asked >> 1] = term
            work.fresh[PLACES * e + place] = asked >> 1
            good = _satisfies(twigs, graphs, begin, asked >> 1, term)
        else:
            good = work.binding[asked >> 1] == term
        if not good:
            _unbind(work, e)
            return False
    return True


@inlined
def _unbind(work: Work, e: int) -> None:
    for place in range(PLACES * e, PLACES * (e + 1)):
        if work.fresh[place] != NONE:
            work.binding[work.fresh[place]] = NONE
            work.fresh[place] = NONE


@inlined
def _satisfies(twigs: Twigs, graphs: Graphs, begin: int, variable: int, term: int) -> bool:
    """Return whether a term satisfies all constraints of a variable."""
    word = twigs.word
    at = begin + HEAD + EDGE * (np.int64(word[begin + 1]) & COUNT_MASK)
    for _ in range(word[begin + 2]):
        flags, operands = np.int64(word[at]), np.int64(word[at + 1])
        at += CONSTRAINT
        if flags & COUNT_MASK == variable and not _some_operand_holds(
            twigs, graphs, flags >> ASKED_SHIFT, at, operands, term
        ):
            return False
        at += OPERAND * operands
    return True


@inlined
def _some_operand_holds(twigs: Twigs, graphs: Graphs, asked: int, at: int, operands: int, term: int) -> bool:
    """Return whether a constraint holds with one of its operands; only `in` has several."""
    for operand in range(operands):  # noqa: SIM110 - no generators in kernels
        if _operand_holds(twigs, graphs, asked, at + OPERAND * operand, term):
            return True
    return False


@inlined
def _operand_holds(twigs: Twigs, graphs: Graphs, asked: int, at: int, term: int) -> bool:
    if asked in (EQUAL, IN):
        return _compare_equal(twigs, graphs, at, term) == YES
    if asked == UNEQUAL:
        return _compare_equal(twigs, graphs, at, term) == NO
    if asked == IS:
        return graphs.known[term] == np.int64(twigs.word[at + 1])
    if asked == IS_NOT:
        return graphs.known[term] != np.int64(twigs.word[at + 1])
    if asked >= AT_CLASS:
        return _class_holds(twigs, graphs, asked, at, term)
    if asked in (CONTAINS, STARTS_WITH):
        return _text_holds(twigs, graphs, asked, at, term)
    return _order_holds(twigs, graphs, asked, at, term)


@inlined
def _compare_equal(twigs: Twigs, graphs: Graphs, at: int, term: int) -> int:
    """Compare as `graphs.model.equal` does."""
    one, other = np.int64(graphs.meaning[term]), np.int64(twigs.word[at])
    if one >= NUMBER and one == other:
        return YES if _order(twigs, graphs, at, term) == 0 else NO
    same = other <= STRING and graphs.known[term] == np.int64(twigs.word[at + 1])
    if same:
        return YES
    if one == UNKNOWN or other == UNKNOWN:
        known = other if one == UNKNOWN else one
        return NO if known in (NODE, LANGUAGE) else INCOMPARABLE
    return NO


@inlined
def _order_holds(twigs: Twigs, graphs: Graphs, asked: int, at: int, term: int) -> bool:
    """Compare as `graphs.model.compare` does: only values of one kind."""
    one, other = np.int64(graphs.meaning[term]), np.int64(twigs.word[at])
    if one != other or one in (NODE, UNKNOWN):
        return False
    order = _order(twigs, graphs, at, term) if one >= NUMBER else _text_order(twigs, graphs, at, term)
    if order == INCOMPARABLE:
        return False
    if asked == LESS:
        return order < 0
    if asked == AT_MOST:
        return order <= 0
    if asked == GREATER:
        return order > 0
    return order >= 0


@inlined
def _order(twigs: Twigs, graphs: Graphs, at: int, term: int) -> int:
    """Return -1, 0 or 1 for a number below, at or above the operand; INCOMPARABLE if one of them is NaN."""
    word = twigs.word
    bits = np.uint64(word[at + 2]) << np.uint64(32) | np.uint64(word[at + 1])
    nearest = np.int64(bits).view(np.float64)
    rest = np.int64(np.uint64(word[at + 4]) << np.uint64(32) | np.uint64(word[at + 3]))
    value = graphs.number[term]
    if value != value or nearest != nearest:
        return INCOMPARABLE
    if value != nearest:
        return -1 if value < nearest else 1
    if graphs.rest[term] != rest:
        return -1 if graphs.rest[term] < rest else 1
    return 0


@inlined
def _text_order(twigs: Twigs, graphs: Graphs, at: int, term: int) -> int:
    """Compare texts byte by byte; those of two languages are INCOMPARABLE."""
    number, size = np.int64(twigs.word[at + 1]), np.int64(twigs.word[at + 2])
    data, begin, end = twigs.strings.data, twigs.strings.offsets[number], twigs.strings.offsets[number + 1]
    text, start, length = graphs.text, graphs.string[term], np.int64(graphs.string_length[term])
    behind = graphs.term[term] + graphs.length[term] - (start + length)
    if end - (begin + 1 + size) != behind:
        return INCOMPARABLE
    for i in range(behind):
        if data[begin + 1 + size + i] != text[start + length + i]:
            return INCOMPARABLE
    for i in range(min(size, length)):
        if text[start + i] != data[begin + 1 + i]:
            return -1 if text[start + i] < data[begin + 1 + i] else 1
    if length != size:
        return -1 if length < size else 1
    return 0


@inlined
def _text_holds(twigs: Twigs, graphs: Graphs, asked: int, at: int, term: int) -> bool:
    """Return whether a text contains the operand, or starts with it."""
    meaning = graphs.meaning[term]
    if meaning != STRING and meaning != LANGUAGE:
        return False
    begin, size = twigs.strings.offsets[np.int64(twigs.word[at + 1])] + 1, np.int64(twigs.word[at + 2])
    start, length = graphs.string[term], np.int64(graphs.string_length[term])
    if size > length:
        return False
    last = 0 if asked == STARTS_WITH else length - size
    for shift in range(last + 1):
        i = 0
        while i < size and twigs.strings.data[begin + i] == graphs.text[start + shift + i]:
            i += 1
        if i == size:
            return True
    return False


@inlined
def _class_holds(twigs: Twigs, graphs: Graphs, asked: int, at: int, term: int) -> bool:
    """Return whether a term has the asked relation to a class."""
    wanted, is_at, is_below, is_above = np.int64(twigs.word[at + 1]), False, False, False
    for i in range(graphs.class_start[term], graphs.class_start[term + 1]):
        if graphs.known[graphs.related[i]] == wanted:
            relation = graphs.relation[i]
            is_at = is_at or relation == AT
            is_below = is_below or relation == BELOW
            is_above = is_above or relation == ABOVE
    if asked == AT_CLASS:
        return is_at
    if asked == NOT_AT_CLASS:
        return not is_at
    if asked == AT_OR_BELOW:
        return is_at or is_below
    if asked == BELOW_CLASS:
        return is_below
    return is_above or (asked == AT_OR_ABOVE and is_at)
