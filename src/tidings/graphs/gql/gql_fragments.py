"""Parts of texts in GQL, each read by itself: what stands before the edges, a word, what stands behind the edges.

Of a million texts the first is often the same, and words come again; what was read once need not be read again. A part
that is not what it should be is no problem here: the whole text is read then, and says what is wrong with it.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from tidings.errors import SubscriptionError
from tidings.graphs.gql.gql_parser import DEFAULT, read_on
from tidings.graphs.gql.gql_reader import Reader
from tidings.graphs.gql.gql_terms import Operand
from tidings.graphs.gql.gql_tokens import has_comments
from tidings.graphs.gql.gql_tree import PREFIXES, Constraint


class Names(NamedTuple):
    """What names mean: prefixes, and what relative IRIs are relative to."""

    prefixes: Mapping[str, str]
    base: str

    def reader(self, text: str) -> Reader:
        reader = Reader(text, self.prefixes, DEFAULT)
        reader.base = self.base
        return reader


class Head(NamedTuple):
    """What stands before the edges of a text: what its names mean, and what it selects."""

    names: Names
    select: tuple[str, ...]


def read_head(text: str) -> Head | None:
    """All up to the first bracket; None if it does not end with WHERE, or not in a comment."""
    if has_comments(text):
        return None  # it may go on behind the bracket
    try:
        reader = Reader(text, PREFIXES, DEFAULT)
        reader.prologue()
        select = reader.select()
        reader.keyword("WHERE")
    except SubscriptionError:
        return None
    if reader.words[reader.at]:
        return None
    return Head(Names({**PREFIXES, **reader.declared}, reader.base), tuple(each.name for each in select))


def read_word(word: str, place: str, names: Names) -> Operand | None:
    """A word as the `subject`, `property` or `object` of an edge; None if it is none, or several words."""
    try:
        reader = names.reader(word)
        found: Operand = getattr(reader, place)() if place != "object" else reader.operand()
    except SubscriptionError:
        return None
    return None if reader.words[reader.at] else found


def read_conditions(text: str, names: Names) -> tuple[Constraint, ...] | None:
    """What stands behind the edges; None if there are more edges, or anything that is refused."""
    try:
        reader = names.reader(text)
        read_on(reader)
    except SubscriptionError:
        return None
    return None if reader.edges else tuple(reader.constraints)
