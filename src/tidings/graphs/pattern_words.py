"""Patterns of graphs as words: the form in which millions of them are kept, and which the kernel reads.

    GRAPH | size    edges | variables << 12    constraints    edges    constraints

An edge is four words: its subject, property and object, each the number of a variable (even) or of a string (odd), and
whether it begins a part that shares no variable with those before. A constraint is two words, its variable with what is
asked, and how many operands follow, five words each: what the operand means; a number in four, or a string's number and
how many bytes of it are the text of the literal. The strings are terms as `graph_keys` writes them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from tidings.graphs.gql.gql_tree import Constraint, ConstraintKind, Pattern, PatternEdge, Variable, variables
from tidings.graphs.keys import TermMeaning, term_meaning, term_text
from tidings.graphs.model import Term
from tidings.graphs.values import meaning
from tidings.matching.compiler.twig_writer import split_double, split_integer
from tidings.values import split_number

GRAPH = 1 << 31
"""In a first word: these are the words of a pattern, not of a twig, whose first word has nothing there."""

SIZE_MASK = GRAPH - 1
VARIABLES_SHIFT, COUNT_MASK = 12, 0xFFF
ASKED_SHIFT = 12
HEAD, EDGE, CONSTRAINT, OPERAND = 3, 4, 2, 5
BEGINS = 1

WORTH_OF_PROPERTY, WORTH_OF_ENDS = 3, 2
"""How much is known of an edge. A property that is known leads to few edges: it counts most."""

ASKED = tuple(ConstraintKind)


def encode_pattern(pattern: Pattern, string: Callable[[str], int]) -> list[int]:
    """A pattern in words; `string` numbers its terms."""
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
    """Edges in the order in which they are joined, and whether each begins a new part.

    The next one is that of which most is known: constants, and variables that are bound by then.
    """
    left, bound = list(edges), set[str]()
    while left:
        joined = [edge for edge in left if bound & _names(edge)]
        best = max(joined or left, key=lambda edge: _known(edge, bound))
        left.remove(best)
        yield not joined, best
        bound |= _names(best)


def _names(edge: PatternEdge) -> set[str]:
    places = (edge.subject, edge.property, edge.object)
    return {place.name for place in places if isinstance(place, Variable)}


def _known(edge: PatternEdge, bound: set[str]) -> int:
    places = ((edge.property, WORTH_OF_PROPERTY), (edge.subject, WORTH_OF_ENDS), (edge.object, WORTH_OF_ENDS))
    return sum(worth for place, worth in places if not isinstance(place, Variable) or place.name in bound)


def constraint_words(constraint: Constraint, variable: int, string: Callable[[str], int]) -> list[int]:
    """A constraint in words."""
    asked, operands = ASKED.index(constraint.asked), constraint.operands
    words = [variable | asked << ASKED_SHIFT, len(operands)]
    for operand in operands:
        words += _operand(operand, string)
    return words


def _operand(term: Term, string: Callable[[str], int]) -> list[int]:
    found = meaning(term)
    kind = term_meaning(found)
    if found is None or kind <= TermMeaning.STRING:
        return [kind, string(term_text(term)), len(term.text.encode()), 0, 0]
    if kind is TermMeaning.MOMENT:
        return [kind, 0, 0, *split_integer(found.value.ticks)]
    nearest, rest = split_number(found.value)
    return [kind, *split_double(nearest), *split_integer(rest)]
