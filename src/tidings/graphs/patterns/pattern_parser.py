"""Parser of graph subscriptions: GQL of the G-ToPSS paper, or a SPARQL 1.1 graph pattern.

    SELECT ?page WHERE (?page, rss:title, ?t) (?page, dc:subject, ?s) AND ?s <= ex:Academia AND ?t contains "oak"

`parse` returns the pattern of a text or raises a problem that underlines the column; `show` is the inverse. The bracket
after WHERE decides between the two languages; both give the same tree.

    text       = {PREFIX name: <iri> | BASE <iri>} SELECT ({variable} | "*") (WHERE body | [WHERE] group)
    body       = edge {[","] edge | AND (edge | constraint)}
    edge       = "(" term "," term "," term ")"
    constraint = term ("=" | "!=" | "<" | "<=" | ">" | ">=") term | variable IS [NOT] term
               | variable (CONTAINS | STARTS WITH) string | variable IN "(" term {"," term} ")"

`read_head`, `read_word` and `read_conditions` parse the parts of a GQL text that many texts share, for bulk
compilation. They return None for anything invalid: then the whole text is parsed, which reports the error.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from tidings.core.limits import limits_from
from tidings.core.source_text import refuse_unreadable
from tidings.errors import SubscriptionError
from tidings.graphs.patterns import pattern_errors as refusals
from tidings.graphs.patterns.pattern_reader import Limits, Operand, Reader
from tidings.graphs.patterns.pattern_tokens import has_comments
from tidings.graphs.patterns.pattern_tree import (
    PREFIXES,
    Constraint,
    ConstraintKind,
    Pattern,
    Variable,
    show,
    variables,
)
from tidings.graphs.patterns.sparql import read_group
from tidings.language_hints import hints_elsewhere

__all__ = ["DEFAULT", "PREFIXES", "Limits", "parse", "read_on", "show"]

DEFAULT = limits_from("TIDINGS_GQL_LIMITS", Limits)

_OPERATORS = frozenset(("=", "!=", "<", "<=", ">", ">="))


@hints_elsewhere("gql")
def parse(text: str, limits: Limits = DEFAULT, prefixes: Mapping[str, str] = PREFIXES) -> Pattern:
    """Parse a subscription's text in either language. `prefixes` need no declaration."""
    refuse_unreadable(text, limits.length)
    reader = Reader(text, prefixes, limits)
    if not reader.words[0]:
        raise refusals.empty(text)
    reader.prologue()
    select = reader.select()
    _where(reader)
    return _checked(reader, select)


def _where(reader: Reader) -> None:
    if reader.words[reader.at] != "{":
        reader.keyword("WHERE")
    opened = reader.at
    if reader.words[opened] == "{":
        read_group(reader)
    elif reader.words[opened] == "(":
        _edge(reader)
        read_on(reader)
    else:
        raise refusals.expected("'(' and an edge, or '{',", reader.tokens, opened)
    if not reader.edges:
        raise refusals.expected("an edge", reader.tokens, opened + 1)


def read_on(reader: Reader) -> None:
    """Parse everything after an edge."""
    while word := reader.words[reader.at].upper():
        if word == "(":
            _edge(reader)
        elif word == "," and reader.words[reader.at + 1] == "(":
            reader.at += 1
        elif word == "AND":
            reader.at += 1
            if reader.words[reader.at] != "(":
                _constraint(reader)
        else:
            raise _unexpected(reader)


def _unexpected(reader: Reader) -> Exception:
    word, place = reader.words[reader.at], reader.tokens.place(reader.at)
    if word == "||" or word.upper() == "OR":
        return refusals.alternatives(word, place, sparql=False)
    if word.upper() in refusals.OUTSIDE:
        return reader.outside()
    hint = "in GQL, '&&' and FILTER are written AND" if word.upper() in ("&&", "FILTER") else None
    accepted = "AND or the end" if reader.constraints else "an edge, AND or the end"
    return refusals.expected(accepted, reader.tokens, reader.at, hint)


def _edge(reader: Reader) -> None:
    start = reader.at
    reader.at += 1
    subject = reader.subject()
    if reader.words[reader.at] in _OPERATORS:
        hint = "write a condition after AND, without parentheses"
        raise refusals.expected("','", reader.tokens, reader.at, hint)
    _comma(reader)
    property = reader.property()
    _comma(reader)
    object = reader.operand("a variable, an IRI or a value")
    reader.symbol(")", start)
    reader.edge(subject, property, object, start)


def _comma(reader: Reader) -> None:
    if reader.words[reader.at] != ",":
        hint = "an edge is (subject, property, object)"
        raise refusals.expected("','", reader.tokens, reader.at, hint)
    reader.at += 1


def _constraint(reader: Reader) -> None:
    start = reader.at
    if reader.words[start].upper() == "NOT":
        raise reader.outside()
    left = reader.operand("an edge or a variable")
    written = reader.words[reader.at]
    reader.at += 1
    if written in _OPERATORS:
        reader.compared(left, written, reader.operand(), start)
    elif written.upper() == "IS":
        _is(reader, left, start)
    elif written.upper() == "CONTAINS":
        reader.add_text_constraint(left, ConstraintKind.CONTAINS, reader.operand("a string"), start)
    elif written.upper() == "STARTS":
        reader.keyword("WITH")
        reader.add_text_constraint(left, ConstraintKind.STARTS_WITH, reader.operand("a string"), start)
    elif written.upper() == "IN":
        reader.value_list(left, start)
    else:
        raise _no_operator(reader, start)


def _is(reader: Reader, left: object, start: int) -> None:
    """Parse `is`, which tests for one term, independent of the taxonomy."""
    kind = ConstraintKind.IS
    if reader.words[reader.at].upper() == "NOT":
        kind = ConstraintKind.IS_NOT
        reader.at += 1
    term = reader.operand("a value or an IRI")
    if not isinstance(left, Variable) or isinstance(term, Variable):
        variables = isinstance(term, Variable)
        raise refusals.no_comparison(variables, reader.tokens.place(start, reader.at - 1), sparql=False)
    reader.constrain(left, kind, (term,), start)


_SUGGESTIONS = {
    "like": "contains",
    "matches": "contains",
    "startswith": "starts with",
    "begins": "starts with",
}


def _no_operator(reader: Reader, start: int) -> Exception:
    reader.at -= 1
    word = reader.words[reader.at]
    if word.upper() == "NOT":
        return reader.outside()
    if not word or word.upper() == "AND":
        return refusals.alone(reader.tokens.place(start, reader.at - 1), sparql=False)
    suggestion = _SUGGESTIONS.get(word.lower())
    hint = f"did you mean '{suggestion}'?" if suggestion else None
    accepted = "an operator: = != < <= > >= contains, starts with, in or is"
    return refusals.expected(accepted, reader.tokens, reader.at, hint)


def _checked(reader: Reader, select: tuple[Variable, ...]) -> Pattern:
    """Return the pattern if all selected and constrained variables are in an edge."""
    pattern = Pattern((), tuple(reader.edges), tuple(reader.constraints))
    names = variables(pattern)
    if len(names) > reader.limits.variables:
        last = reader.edges[-1].span
        raise refusals.too_many("variables", reader.limits.variables, reader.place(last))
    references = [(variable.name, variable.span) for variable in select] + [
        (constraint.variable, constraint.span) for constraint in reader.constraints
    ]
    for name, span in references:
        if name not in names:
            raise refusals.no_edge(name, names, reader.place(span))
    return Pattern(
        tuple(dict.fromkeys(variable.name for variable in select)), pattern.edges, pattern.constraints
    )


class Names(NamedTuple):
    """The prefixes and the base of a text."""

    prefixes: Mapping[str, str]
    base: str

    def reader(self, text: str) -> Reader:
        reader = Reader(text, self.prefixes, DEFAULT)
        reader.base = self.base
        return reader


class Head(NamedTuple):
    """The part of a text before the edges: its names and the selected variables."""

    names: Names
    select: tuple[str, ...]


def read_head(text: str) -> Head | None:
    """Parse everything before the first bracket; None if it does not end with WHERE."""
    if has_comments(text):
        return None  # a comment may continue after the bracket
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
    """Parse a word as the `subject`, `property` or `object` of an edge; None if it is invalid there."""
    try:
        reader = names.reader(word)
        operand: Operand = getattr(reader, place)() if place != "object" else reader.operand()
    except SubscriptionError:
        return None
    return None if reader.words[reader.at] else operand


def read_conditions(text: str, names: Names) -> tuple[Constraint, ...] | None:
    """Parse the conditions after the edges; None if there are more edges or errors."""
    try:
        reader = names.reader(text)
        read_on(reader)
    except SubscriptionError:
        return None
    return None if reader.edges else tuple(reader.constraints)
