"""Parser of rules and queries over metadata.

    search CycleProvider c register c where c.serverHost contains 'uni-passau.de' and c.serverInformation.memory > 64

`parse_rule` and `parse_query` return a tree, or raise an error that underlines the column; `format_rule` is the
inverse. The parser is hand-written, with a method for each line of the grammar, because rules are loaded by the
million:

    rule       = search "register" variable ["where" either]
    query      = search ["register" variable] ["where" either] ["select" path {"," path}]
                 ["order" "by" path ["asc" | "desc"] {"," path ["asc" | "desc"]}] ["limit" number]
    search     = "search" name variable {"," name variable}
    either     = both {"or" both}
    both       = comparison {"and" comparison}
    comparison = "(" either ")" | operand ("=" | "!=" | "<" | "<=" | ">" | ">=" | "contains") operand
    operand    = path | string | number | date | "true" | "false" | "<" uri ">"
    path       = variable {"." name ["?"]}
"""

from __future__ import annotations

from dataclasses import dataclass

from tidings.core.limits import check_limits, limits_from
from tidings.core.source_text import Span, refuse_unreadable
from tidings.language_hints import hints_elsewhere
from tidings.metadata.rules import rule_errors as errors
from tidings.metadata.rules.syntax import (
    KEYWORDS,
    And,
    Comparison,
    Condition,
    Constant,
    Operator,
    Or,
    Path,
    Query,
    Rule,
    Step,
    Variable,
    format_rule,
    is_word,
    tokenize,
)
from tidings.values import parse_instant, to_number

__all__ = ["RULE_LIMITS", "Limits", "format_rule", "parse_query", "parse_rule"]


@dataclass(frozen=True, slots=True)
class Limits:
    """Size limits of one rule. `alternatives` limits the normal rules that `or` expands to."""

    variables: int = 16
    steps: int = 64
    predicates: int = 64
    alternatives: int = 256
    nesting: int = 32
    length: int = 10_000

    def __post_init__(self) -> None:
        check_limits(self, MAX_RULE_LIMITS)


MAX_RULE_LIMITS = {
    "variables": 100,
    "steps": 200,
    "predicates": 200,
    "alternatives": 100_000,
    "nesting": 100,
    "length": 1_000_000,
}
"""The largest settings that later steps can process: they recurse into nested conditions and joins."""

_COMPARES = {each.value: each for each in Operator}
_FLIPPED = {"<": ">", "<=": ">=", ">": "<", ">=": "<=", "=": "=", "!=": "!="}


class ConditionParser:
    """Recursive-descent parser of conditions. `at` is the next token; each method consumes tokens from there."""

    def __init__(self, text: str, limits: Limits) -> None:
        self.tokens = tokenize(text)
        self.words, self.edges = self.tokens.words, self.tokens.edges
        self.limits = limits
        self.at = self.depth = self.steps = self.predicates = 0

    def word(self) -> str:
        """Return the current token in lower case."""
        return self.words[self.at].lower()

    def span(self, start: int) -> Span:
        """Return the span from a token to the last one that was consumed."""
        return Span(self.edges[2 * start], self.edges[2 * self.at - 1])

    def variable(self, accepted: str = "a variable") -> str:
        word = self.words[self.at]
        if not is_word(word) or ":" in word or word.lower() in KEYWORDS:
            raise errors.unexpected_token(accepted, self.tokens, self.at)
        self.at += 1
        return word

    def name(self, accepted: str) -> str:
        """Parse the name of a class, a rule or a property."""
        word = self.words[self.at]
        if word[:1] != '"' and not is_word(word):
            raise errors.unexpected_token(accepted, self.tokens, self.at)
        self.at += 1
        return word.strip('"')

    def either(self) -> Condition:
        parts = [self.both()]
        while self.word() == "or":
            self.at += 1
            parts.append(self.both())
        if len(parts) == 1:
            return parts[0]
        return Or(tuple(p for part in parts for p in (part.parts if type(part) is Or else (part,))))

    def both(self) -> Condition:
        parts = [self.comparison()]
        while self.word() == "and":
            self.at += 1
            parts.append(self.comparison())
        if len(parts) == 1:
            return parts[0]
        return And(tuple(p for part in parts for p in (part.parts if type(part) is And else (part,))))

    def comparison(self) -> Condition:
        if self.words[self.at] == "(":
            return self.parenthesized()
        start = self.at
        left = self.operand()
        written = self.word()
        if written not in _COMPARES:
            raise errors.missing_operator(self.tokens, self.at)
        self.at += 1
        return self.build_comparison(left, written, self.operand(), start)

    def parenthesized(self) -> Condition:
        opened = self.at
        self.depth += 1
        if self.depth > self.limits.nesting:
            raise errors.too_deeply_nested(self.limits.nesting, self.tokens.place(opened))
        self.at += 1
        condition = self.either()
        if self.words[self.at] != ")":
            raise self.unclosed_error(opened)
        self.at += 1
        self.depth -= 1
        return condition

    def unclosed_error(self, opened: int) -> Exception:
        if self.words[self.at]:
            return errors.trailing_text(self.tokens, self.at, "')'")
        return errors.unclosed_parenthesis(place=self.tokens.place(opened))

    def build_comparison(
        self, left: Path | Constant, written: str, right: Path | Constant, start: int
    ) -> Comparison:
        """Build a comparison with the constant on the right: `64 < c.memory` becomes `c.memory > 64`."""
        place = self.tokens.place(start, self.at - 1)
        if isinstance(left, Constant):
            if isinstance(right, Constant):
                raise errors.two_constants(place)
            if written == "contains":
                raise errors.constant_contains(place)
            left, written, right = right, _FLIPPED[written], left
        self.predicates += 1
        if self.predicates > self.limits.predicates:
            raise errors.too_many("predicates", self.limits.predicates, place)
        return Comparison(left, _COMPARES[written], right, self.span(start))

    def operand(self) -> Path | Constant:
        word, start = self.words[self.at], self.at
        first = word[:1]
        if is_word(word):
            return self.boolean() if word.lower() in ("true", "false") else self.path("a path or a constant")
        if first == "'":
            self.at += 1
            return Constant(word[1:-1].replace("''", "'"), span=self.span(start))
        if first.isdigit() or (first == "-" and len(word) > 1):
            return self.number()
        if first == "<" and len(word) > 2:
            self.at += 1
            return Constant(word[1:-1], True, self.span(start))
        if first == '"':
            raise errors.quoted_operand(word, self.tokens.place(start))
        raise errors.unexpected_token("a path or a constant", self.tokens, start)

    def boolean(self) -> Constant:
        self.at += 1
        return Constant(self.words[self.at - 1].lower() == "true", span=self.span(self.at - 1))

    def number(self) -> Constant:
        """Parse a number or a date. Dates stay strings; comparison with an instant converts them."""
        start, word = self.at, self.words[self.at]
        self.at += 1
        if word[:4].isdigit() and word[4:5] == "-":
            if parse_instant(word) is None:
                raise errors.invalid_instant(place=self.tokens.place(start))
            return Constant(word, span=self.span(start))
        value = to_number(word)
        if value is None:
            raise errors.number_too_large(place=self.tokens.place(start))
        return Constant(value + 0, span=self.span(start))  # -0.0 becomes 0.0, which it equals

    def path(self, accepted: str = "a path") -> Path:
        start = self.at
        if self.word() == "not":
            raise errors.unsupported_negation(self.tokens.place(start))
        if self.words[start + 1] == "(":
            raise errors.unsupported_function(self.words[start], self.tokens.place(start))
        variable = self.variable(accepted)
        if self.words[self.at] == "?":
            raise errors.any_of_variable(self.tokens.place(self.at))
        steps = []
        while self.words[self.at] == ".":
            steps.append(self.step())
        self.steps += len(steps)
        if self.steps > self.limits.steps:
            raise errors.too_many("steps", self.limits.steps, self.tokens.place(start, self.at - 1))
        return Path(variable, tuple(steps), self.span(start))

    def step(self) -> Step:
        self.at += 1
        start = self.at
        property = self.name("a property")
        several = self.words[self.at] == "?"
        self.at += several
        return Step(property, several, self.span(start))


RULE_LIMITS = limits_from("TIDINGS_RULES_LIMITS", Limits)

_AFTER_SEARCH = ("search", "register", "where", "and", "or")


@hints_elsewhere("rules")
def parse_rule(text: str, limits: Limits = RULE_LIMITS) -> Rule:
    """Parse the text of a rule."""
    refuse_unreadable(text, limits.length)
    return _Parser(text, limits).rule()


def parse_query(text: str, limits: Limits = RULE_LIMITS) -> Query:
    """Parse the text of a query. `register` is optional if there is only one variable."""
    refuse_unreadable(text, limits.length)
    return _Parser(text, limits).query()


class _Parser(ConditionParser):
    def rule(self) -> Rule:
        searched = self.search()
        if self.word() != "register":
            hint = f"write register {searched[0].variable} before 'where'" if self.word() == "where" else None
            raise errors.unexpected_token("',' or 'register'", self.tokens, self.at, hint)
        register = self.register(searched)
        where = self.where()
        if self.words[self.at]:
            raise self.trailing_error(where)
        return Rule(searched, register, where)

    def trailing_error(self, where: Condition | None) -> Exception:
        """Explain text after a complete rule."""
        word, place = self.word(), self.tokens.place(self.at)
        if word in ("select", "order", "limit"):
            return errors.only_in_queries(word, place)
        if where is None:
            return errors.unexpected_token("'where' or the end", self.tokens, self.at)
        return errors.trailing_text(self.tokens, self.at, "the end")

    def query(self) -> Query:
        searched = self.search()
        of = self.optional_register(searched)
        where = self.where()
        select = self.select()
        order = self.order()
        limit = self.limit()
        if self.words[self.at]:
            accepted = "'select', 'order by', 'limit' or the end"
            if where is not None and not select and not order and limit is None:
                raise errors.trailing_text(self.tokens, self.at, accepted)
            raise errors.unexpected_token(accepted, self.tokens, self.at, "in this order")
        return Query(searched, of, where, select, order, limit)

    def search(self) -> tuple[Variable, ...]:
        if not self.words[0]:
            raise errors.empty_text(self.tokens.text)
        if self.word() != "search":
            raise errors.missing_search(self.tokens)
        variables: dict[str, Variable] = {}
        while not variables or self.words[self.at] == ",":
            self.at += 1
            declared = self.declaration()
            if declared.variable in variables:
                raise errors.declared_twice(declared.variable, self.tokens.place(self.at - 1))
            variables[declared.variable] = declared
            if len(variables) > self.limits.variables:
                raise errors.too_many("variables", self.limits.variables, self.tokens.place(self.at - 1))
        return tuple(variables.values())

    def declaration(self) -> Variable:
        start = self.at
        if self.word() in _AFTER_SEARCH:
            raise errors.unexpected_token("a class or a rule", self.tokens, start)
        extension = self.name("a class or a rule")
        variable = self.variable()
        return Variable(extension, variable, self.span(start))

    def register(self, searched: tuple[Variable, ...]) -> str:
        self.at += 1
        register = self.variable()
        variables = [each.variable for each in searched]
        if register not in variables:
            raise errors.unknown_registered(register, variables, self.tokens.place(self.at - 1))
        if self.words[self.at] == ",":
            raise errors.multiple_registered(self.tokens.place(self.at))
        return register

    def optional_register(self, searched: tuple[Variable, ...]) -> str:
        if self.word() == "register":
            return self.register(searched)
        if len(searched) > 1:
            variables = [each.variable for each in searched]
            raise errors.not_registered(variables, self.tokens.place(self.at - 1))
        return searched[0].variable

    def where(self) -> Condition | None:
        if self.word() != "where":
            return None
        self.at += 1
        return self.either()

    def select(self) -> tuple[Path, ...]:
        if self.word() != "select":
            return ()
        paths: list[Path] = []
        while not paths or self.words[self.at] == ",":
            self.at += 1
            paths.append(self.path())
        return tuple(paths)

    def order(self) -> tuple[tuple[Path, bool], ...]:
        if self.word() != "order":
            return ()
        self.at += 1
        if self.word() != "by":
            raise errors.unexpected_token("'by'", self.tokens, self.at)
        order: list[tuple[Path, bool]] = []
        while not order or self.words[self.at] == ",":
            self.at += 1
            path, is_descending = self.path(), self.word() == "desc"
            self.at += is_descending or self.word() == "asc"
            order.append((path, is_descending))
        return tuple(order)

    def limit(self) -> int | None:
        if self.word() != "limit":
            return None
        self.at += 1
        word = self.words[self.at]
        if not word.isdecimal() or len(word) > 10 or not 1 <= int(word) < 2**31:
            raise errors.invalid_limit(self.tokens, self.at)
        self.at += 1
        return int(word)
