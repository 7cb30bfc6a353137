"""Encoding of graph patterns as words: the form in which millions of them are stored, and which the kernel reads.

    GRAPH | size    edges | variables << 12    constraints    edges    constraints

An edge is four words: its subject, property and object, each the number of a variable (even) or of a string (odd), and
whether it begins a part that shares no variable with those before. A constraint is two words, its variable with its
kind, and the number of operands, which follow in five words each: the meaning; a number in four words, or a string's
number and the length in bytes of the literal's text in it. The strings are terms as formatted by `keys.term_text`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from tidings.graphs.keys import TermMeaning, term_meaning, term_text
from tidings.graphs.model import Term, meaning
from tidings.graphs.patterns.pattern_tree import (
    Constraint,
    ConstraintKind,
    Pattern,
    PatternEdge,
    Variable,
    variables,
)
from tidings.matching.compiler.plan import split_double, split_integer
from tidings.values import split_number

GRAPH = 1 << 31
"""Flag in a first word: this is a pattern, not a twig."""

SIZE_MASK = GRAPH - 1
VARIABLES_SHIFT, COUNT_MASK = 12, 0xFFF
ASKED_SHIFT = 12
HEAD, EDGE, CONSTRAINT, OPERAND = 3, 4, 2, 5
BEGINS = 1

WORTH_OF_PROPERTY, WORTH_OF_ENDS = 3, 2
"""Weights for ordering edges. A known property leads to few edges, so it counts most."""

CONSTRAINT_KINDS = tuple(ConstraintKind)


def encode_pattern(pattern: Pattern, string: Callable[[str], int]) -> list[int]:
    """Encode a pattern; `string` numbers its terms."""
    numbers = {name: number for number, name in enumerate(variables(pattern))}
    edges = tuple(dict.fromkeys(pattern.edges))
    words = [0, len(edges) | len(numbers) << VARIABLES_SHIFT, len(pattern.constraints)]
    for begins, edge in _in_order(edges):
        for place in (edge.subject, edge.property, edge.object):
            if isinstance(place, Variable):
                words.append(numbers[place.name] << 1)
            else:
                words.append(string(term_text(place)) << 1 | 1)
        words.append(BEGINS * begins)
    for constraint in pattern.constraints:
        words += constraint_words(constraint, numbers[constraint.variable], string)
    words[0] = GRAPH | len(words)
    return words


def _in_order(edges: Sequence[PatternEdge]) -> Iterator[tuple[bool, PatternEdge]]:
    """Yield edges in join order, and whether each begins a new part.

    The next edge is the one with the most constants and bound variables.
    """
    left, bound = list(edges), set[str]()
    while left:
        joined = [edge for edge in left if bound & _names(edge)]
        best = max(joined or left, key=lambda edge: _bound_weight(edge, bound))
        left.remove(best)
        yield not joined, best
        bound |= _names(best)


def _names(edge: PatternEdge) -> set[str]:
    places = (edge.subject, edge.property, edge.object)
    return {place.name for place in places if isinstance(place, Variable)}


def _bound_weight(edge: PatternEdge, bound: set[str]) -> int:
    places = ((edge.property, WORTH_OF_PROPERTY), (edge.subject, WORTH_OF_ENDS), (edge.object, WORTH_OF_ENDS))
    return sum(worth for place, worth in places if not isinstance(place, Variable) or place.name in bound)


def constraint_words(constraint: Constraint, variable: int, string: Callable[[str], int]) -> list[int]:
    """Encode a constraint."""
    kind, operands = CONSTRAINT_KINDS.index(constraint.kind), constraint.operands
    words = [variable | kind << ASKED_SHIFT, len(operands)]
    for operand in operands:
        words += _operand(operand, string)
    return words


def _operand(term: Term, string: Callable[[str], int]) -> list[int]:
    value = meaning(term)
    kind = term_meaning(value)
    if value is None or kind <= TermMeaning.STRING:
        return [kind, string(term_text(term)), len(term.text.encode()), 0, 0]
    if kind is TermMeaning.MOMENT:
        return [kind, 0, 0, *split_integer(value.value.ticks)]
    nearest, remainder = split_number(value.value)
    return [kind, *split_double(nearest), *split_integer(remainder)]
