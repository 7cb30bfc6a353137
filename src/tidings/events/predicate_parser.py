"""Parser of the predicate language: `category is a 'dining room' and (price < 200 or not exists reserve)`.

`parse` returns the tree of a text or raises a `SyntaxProblem` that underlines the column. The grammar is
`predicates.lark`; `syntax_errors` explains texts that do not fit it.
"""

from __future__ import annotations

from dataclasses import replace
from functools import cache
from importlib.resources import files
from typing import cast

from lark import Lark, Token, Transformer, v_args
from lark.exceptions import UnexpectedInput

from tidings.core.source_text import Span, refuse_unreadable
from tidings.errors import Place, SyntaxProblem
from tidings.events.operators import BETWEEN, BY_SPELLING, EXISTS, IN
from tidings.events.parse_failure import ParseRun
from tidings.events.predicate_tree import Comparison, Not, Spans, Tree, both, children, either
from tidings.events.schema.event_schema import EventSchema
from tidings.events.syntax_errors import explain_slip
from tidings.language_hints import hints_elsewhere
from tidings.values import (
    BETWEEN_MICROSECONDS,
    WHOLE_MICROSECONDS,
    Instant,
    Literal,
    parse_instant,
    to_number,
)

MAX_LENGTH = 10_000
MAX_DEPTH = 100

SQL_SPELLINGS = {"==": "=", "<>": "!="}
REVERSED = {"<": ">", "<=": ">=", ">": "<", ">=": "<="}
"""The operators for a comparison whose sides are exchanged."""

_Located = tuple[Literal, Span]


@hints_elsewhere("predicates")
def parse(text: str, schema: EventSchema | None = None) -> Tree:
    """Parse a subscription's text; `schema` only improves the error for a text that does not parse."""
    refuse_unreadable(text, MAX_LENGTH)
    run = ParseRun(_parser(), text)
    try:
        tree = cast(Tree, run.finish())
    except UnexpectedInput as stopped:
        problem = explain_slip(text, run, stopped, schema)
    except _InvalidLiteral as invalid:
        problem = invalid.problem(text)
    else:
        _refuse_deep(tree)
        return tree
    raise problem  # outside of the handler: its context would keep the whole parser alive


def _refuse_deep(tree: Tree) -> None:
    """Refuse deep trees with a loop, since later steps recurse over them."""
    level: list[Tree] = [tree]
    for _ in range(MAX_DEPTH):
        level = [child for node in level for child in children(node)]
        if not level:
            return
    raise SyntaxProblem(
        "the text is nested too deeply", accepted=f"at most {MAX_DEPTH} levels of and, or and not"
    )


class _InvalidLiteral(Exception):
    """An invalid literal token. It has its position, but not yet the text around it."""

    def __init__(self, message: str, token: Token, accepted: str) -> None:
        super().__init__(message)
        self.what, self.span, self.accepted = message, _span(token), accepted

    def problem(self, text: str) -> SyntaxProblem:
        place = Place.at(text, self.span.start, self.span.end)
        return SyntaxProblem(self.what, place=place, accepted=self.accepted)


class _Trees(Transformer[Token, Tree]):
    """Builds tree nodes during parsing, without an intermediate parse tree."""

    def __init__(self) -> None:
        super().__init__(visit_tokens=False)

    def disjunction(self, parts: list[Tree]) -> Tree:
        return either(tuple(parts))

    def conjunction(self, parts: list[Tree]) -> Tree:
        return both(tuple(parts))

    @v_args(inline=True)
    def negated(self, part: Tree) -> Tree:
        return Not(part)

    @v_args(inline=True)
    def compared(self, path: Token, operator: Token, operand: _Located) -> Tree:
        spelling = " ".join(operator.lower().split()).replace("is an", "is a")
        spelling = SQL_SPELLINGS.get(spelling, spelling)
        spans = Spans(_span(path), _span(operator), (operand[1],))
        return Comparison(_path(path), BY_SPELLING[spelling], operand[0], spans=spans)

    @v_args(inline=True)
    def reversed(self, operand: _Located, operator: Token, path: Token) -> Tree:
        """Build `price > 5` from `5 < price`."""
        spans = Spans(_span(path), _span(operator), (operand[1],))
        spelling = SQL_SPELLINGS.get(operator, operator)
        return Comparison(_path(path), BY_SPELLING[REVERSED.get(spelling, spelling)], operand[0], spans=spans)

    @v_args(inline=True)
    def not_compared(self, path: Token, operator: Token, operand: _Located) -> Tree:
        return Not(self.compared(path, operator, operand))

    @v_args(inline=True)
    def not_listed(self, path: Token, operator: Token, operand: list[_Located]) -> Tree:
        return Not(self.listed(path, operator, operand))

    @v_args(inline=True)
    def not_bounded(self, path: Token, operator: Token, low: _Located, high: _Located) -> Tree:
        return Not(self.bounded(path, operator, low, high))

    @v_args(inline=True)
    def listed(self, path: Token, operator: Token, operand: list[_Located]) -> Tree:
        spans = Spans(_span(path), _span(operator), tuple(span for _, span in operand))
        return Comparison(_path(path), IN, tuple(literal for literal, _ in operand), spans=spans)

    @v_args(inline=True)
    def bounded(self, path: Token, operator: Token, low: _Located, high: _Located) -> Tree:
        spans = Spans(_span(path), _span(operator), (low[1], high[1]))
        return Comparison(_path(path), BETWEEN, (low[0], high[0]), spans=spans)

    @v_args(inline=True)
    def existing(self, operator: Token, path: Token) -> Tree:
        return Comparison(_path(path), EXISTS, None, spans=Spans(_span(path), _span(operator)))

    @v_args(inline=True)
    def existing_behind(self, path: Token, operator: Token) -> Tree:
        return Comparison(_path(path), EXISTS, None, spans=Spans(_span(path), _span(operator)))

    @v_args(inline=True)
    def missing(self, path: Token, operator: Token) -> Tree:
        return Not(self.existing(operator, path))

    def literals(self, literals: list[_Located]) -> list[_Located]:
        return literals

    @v_args(inline=True)
    def literal(self, token: Token) -> _Located:
        return _literal(token), _span(token)


@cache
def _parser() -> Lark:
    grammar = files(__package__).joinpath("predicates.lark").read_text(encoding="utf-8")
    return Lark(grammar, parser="lalr", lexer="basic", transformer=_Trees(), maybe_placeholders=False)


def _span(token: Token) -> Span:
    assert token.start_pos is not None and token.end_pos is not None
    return Span(token.start_pos, token.end_pos)


def _path(token: Token) -> str:
    return token.replace('"', "")


def _literal(token: Token) -> Literal:
    if token.type == "STRING":
        return unquote(token)
    if token.type == "NUMBER":
        return _number(token)
    if token.type == "BOOLEAN":
        return token.lower() == "true"
    return _instant(token, token[token.index("'") :] if token.type == "INSTANT" else token)


def unquote(text: str) -> str:
    """Return the value of a quoted string."""
    return text[1:-1].replace("''", "'")


def _number(token: Token) -> int | float:
    number = to_number(token)
    if number is None:
        raise _InvalidLiteral("the number is too large", token, "numbers a 64-bit double can hold")
    return number + 0  # -0.0 becomes 0.0, which it equals


def _instant(token: Token, written: str) -> Instant:
    text = unquote(written) if written.startswith("'") else written
    instant = as_instant(text)
    if instant is None:
        raise _InvalidLiteral("not a date or date-time", token, "such as 2004-05-31 or 2004-05-31T12:30:00Z")
    if instant.between:
        raise _InvalidLiteral(BETWEEN_MICROSECONDS, token, WHOLE_MICROSECONDS)
    return instant


def as_instant(text: str) -> Instant | None:
    """Parse a string as an instant that reads back without quotes; None for other strings."""
    instant = parse_instant(text)
    return None if instant is None else replace(instant, text=text.replace(" ", "T"))
