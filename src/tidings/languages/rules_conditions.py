"""Reading the conditions of a rule: comparisons, their operands, and how they are joined."""

from __future__ import annotations

from dataclasses import dataclass

from tidings.languages import rules_refusals as refusals
from tidings.languages.rules_shown import KEYWORDS
from tidings.languages.rules_tokens import is_word, tokens_of
from tidings.languages.rules_tree import (
    Both,
    Compares,
    Comparison,
    Condition,
    Constant,
    Either,
    Path,
    Step,
)
from tidings.languages.tree import Span
from tidings.limits import check_limits
from tidings.values import parse_instant, to_number


@dataclass(frozen=True, slots=True)
class Limits:
    """How large one rule may be. `alternatives` is how many rules without `or` it may be split up into."""

    variables: int = 16
    steps: int = 64
    predicates: int = 64
    alternatives: int = 256
    nesting: int = 32
    length: int = 10_000

    def __post_init__(self) -> None:
        check_limits(self, MOST)


MOST = {
    "variables": 100,
    "steps": 200,
    "predicates": 200,
    "alternatives": 100_000,
    "nesting": 100,
    "length": 1_000_000,
}
"""What later steps can walk: they call themselves for what is nested, and a join for each predicate may be."""

_COMPARES = {each.value: each for each in Compares}
_FLIPPED = {"<": ">", "<=": ">=", ">": "<", ">=": "<=", "=": "=", "!=": "!="}


class ConditionReader:
    """One text on its way to a tree. `at` is the token to be read next; each method reads on from there."""

    def __init__(self, text: str, limits: Limits) -> None:
        self.tokens = tokens_of(text)
        self.words, self.edges = self.tokens.words, self.tokens.edges
        self.limits = limits
        self.at = self.depth = self.steps = self.predicates = 0

    def word(self) -> str:
        """The token at hand as a keyword."""
        return self.words[self.at].lower()

    def span(self, start: int) -> Span:
        """From a token to the last that was read."""
        return Span(self.edges[2 * start], self.edges[2 * self.at - 1])

    def variable(self, wanted: str = "a variable") -> str:
        word = self.words[self.at]
        if not is_word(word) or ":" in word or word.lower() in KEYWORDS:
            raise refusals.expected(wanted, self.tokens, self.at)
        self.at += 1
        return word

    def name(self, wanted: str) -> str:
        """The name of a class, a rule or a property."""
        word = self.words[self.at]
        if word[:1] != '"' and not is_word(word):
            raise refusals.expected(wanted, self.tokens, self.at)
        self.at += 1
        return word.strip('"')

    def either(self) -> Condition:
        parts = [self.both()]
        while self.word() == "or":
            self.at += 1
            parts.append(self.both())
        if len(parts) == 1:
            return parts[0]
        return Either(tuple(p for part in parts for p in (part.parts if type(part) is Either else (part,))))

    def both(self) -> Condition:
        parts = [self.comparison()]
        while self.word() == "and":
            self.at += 1
            parts.append(self.comparison())
        if len(parts) == 1:
            return parts[0]
        return Both(tuple(p for part in parts for p in (part.parts if type(part) is Both else (part,))))

    def comparison(self) -> Condition:
        if self.words[self.at] == "(":
            return self.enclosed()
        start = self.at
        left = self.operand()
        written = self.word()
        if written not in _COMPARES:
            raise refusals.no_operator(self.tokens, self.at)
        self.at += 1
        return self.compared(left, written, self.operand(), start)

    def enclosed(self) -> Condition:
        opened = self.at
        self.depth += 1
        if self.depth > self.limits.nesting:
            raise refusals.too_deep(self.limits.nesting, self.tokens.place(opened))
        self.at += 1
        found = self.either()
        if self.words[self.at] != ")":
            raise self.not_closed(opened)
        self.at += 1
        self.depth -= 1
        return found

    def not_closed(self, opened: int) -> Exception:
        if self.words[self.at]:
            return refusals.behind(self.tokens, self.at, "')'")
        return refusals.never_closed(self.tokens.place(opened))

    def compared(self, left: Path | Constant, written: str, right: Path | Constant, start: int) -> Comparison:
        """A constant goes to the right: `64 < c.memory` is `c.memory > 64`."""
        place = self.tokens.place(start, self.at - 1)
        if isinstance(left, Constant):
            if isinstance(right, Constant):
                raise refusals.two_constants(place)
            if written == "contains":
                raise refusals.constant_contains(place)
            left, written, right = right, _FLIPPED[written], left
        self.predicates += 1
        if self.predicates > self.limits.predicates:
            raise refusals.too_many("predicates", self.limits.predicates, place)
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
            raise refusals.quoted_operand(word, self.tokens.place(start))
        raise refusals.expected("a path or a constant", self.tokens, start)

    def boolean(self) -> Constant:
        self.at += 1
        return Constant(self.words[self.at - 1].lower() == "true", span=self.span(self.at - 1))

    def number(self) -> Constant:
        """A number, or a date, which is kept as the string it is: what it is compared with makes it an instant."""
        start, word = self.at, self.words[self.at]
        self.at += 1
        if word[:4].isdigit() and word[4:5] == "-":
            if parse_instant(word) is None:
                raise refusals.no_instant(self.tokens.place(start))
            return Constant(word, span=self.span(start))
        value = to_number(word)
        if value is None:
            raise refusals.number_too_large(self.tokens.place(start))
        return Constant(value + 0, span=self.span(start))  # -0.0 becomes 0.0, which it equals

    def path(self, wanted: str = "a path") -> Path:
        start = self.at
        if self.word() == "not":
            raise refusals.negation(self.tokens.place(start))
        if self.words[start + 1] == "(":
            raise refusals.function(self.words[start], self.tokens.place(start))
        variable = self.variable(wanted)
        if self.words[self.at] == "?":
            raise refusals.any_of_variable(self.tokens.place(self.at))
        steps = []
        while self.words[self.at] == ".":
            steps.append(self.step())
        self.steps += len(steps)
        if self.steps > self.limits.steps:
            raise refusals.too_many("steps", self.limits.steps, self.tokens.place(start, self.at - 1))
        return Path(variable, tuple(steps), self.span(start))

    def step(self) -> Step:
        self.at += 1
        start = self.at
        property = self.name("a property")
        several = self.words[self.at] == "?"
        self.at += several
        return Step(property, several, self.span(start))
