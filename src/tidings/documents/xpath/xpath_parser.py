"""Parser of document subscriptions: the part of XPath 1.0 that tests whether something is in a document.

`parse` returns the tree of a text or raises a problem that underlines the column; `show` is the inverse. The parser is
written by hand, a method per grammar rule, because subscriptions are loaded by the million:

    text        = {"declare" "namespace" prefix "=" string ";"} either
    either      = both {"or" both}
    both        = comparison {"and" comparison}
    comparison  = operand [("=" | "!=" | "<" | "<=" | ">" | ">=") operand]
    operand     = path | string | ["-"] number | "(" either ")" | "not" "(" either ")"
                | ("contains" | "starts-with") "(" path "," string ")"
    path        = ["/" | "//"] step {("/" | "//") step}
    step        = "." | (["@"] (name | "*") | "text" "(" ")") {"[" either "]"}
"""

from __future__ import annotations

import math
from collections.abc import Callable

from tidings.core.limits import limits_from
from tidings.core.source_text import refuse_unreadable
from tidings.documents.model import xpath_number
from tidings.documents.xpath import xpath_errors as errors
from tidings.documents.xpath.xpath_paths import Limits, PathReader
from tidings.documents.xpath.xpath_tokens import NO_NAME, is_name
from tidings.documents.xpath.xpath_tree import (
    And,
    Expression,
    Not,
    Or,
    Path,
    PathTest,
    ValueOperator,
    make_path_test,
    show,
)
from tidings.language_hints import hints_elsewhere

__all__ = ["DEFAULT", "Limits", "parse", "show"]

DEFAULT = limits_from("TIDINGS_XPATH_LIMITS", Limits)


@hints_elsewhere("xpath")
def parse(text: str, limits: Limits = DEFAULT) -> Expression:
    """Parse a subscription's text. Paths outside of predicates are absolute: `a/b` is `/a/b`."""
    refuse_unreadable(text, limits.length)
    return _Parser(text, limits).whole()


_Operand = Path | str | float | Expression

_LITERAL = (str, float)
_INFINITE = (math.inf, -math.inf)

_OPERATORS = {each.value: each for each in ValueOperator if not each.value[0].isalpha()}
_GOES_ON = frozenset(("/", "//", "[", "::"))
_FLIPPED = {"<": ">", "<=": ">=", ">": "<", ">=": "<=", "=": "=", "!=": "!="}
_CALLS = {"contains": ValueOperator.CONTAINS, "starts-with": ValueOperator.STARTS_WITH}
_DECLARED: tuple[tuple[str, Callable[[str], bool]], ...] = (
    ("a prefix", lambda word: is_name(word) and ":" not in word),
    ("'='", lambda word: word == "="),
    ("a namespace in quotes", lambda word: word.startswith(('"', "'"))),
    ("';'", lambda word: word == ";"),
)


class _Parser(PathReader):
    def whole(self) -> Expression:
        if not self.words[0]:
            raise errors.empty_text(self.tokens.text)
        while self.words[self.at] == "declare" and self.words[self.at + 1] == "namespace":
            self.declaration()
        expression = self.either()
        if self.words[self.at]:
            raise errors.unexpected(self.tokens, self.at, "the end")
        return expression

    def declaration(self) -> None:
        for index, (accepted, fits) in enumerate(_DECLARED, self.at + 2):
            if not fits(self.words[index]):
                raise errors.expected(accepted, self.tokens, index)
        prefix, uri = self.words[self.at + 2], self.words[self.at + 4][1:-1]
        if prefix in ("xml", "xmlns"):
            raise errors.bad_prefix(prefix, self.tokens.place(self.at + 2))
        if prefix in self.namespaces:
            raise errors.declared_twice(prefix, self.tokens.place(self.at + 2))
        if not uri.strip() or "{" in uri or "}" in uri:
            raise errors.bad_namespace(self.tokens.place(self.at + 4))
        self.namespaces[prefix] = uri
        self.at += 6

    def either(self) -> Expression:
        first = self.both()
        if self.words[self.at] not in ("or", "OR"):
            return first
        parts = [first]
        while self.words[self.at] in ("or", "OR"):
            self.at += 1
            parts.append(self.both())
        return Or(tuple([inner for part in parts for inner in (part.parts if type(part) is Or else (part,))]))

    def both(self) -> Expression:
        first = self.comparison()
        if self.words[self.at] not in ("and", "AND"):
            return first
        parts = [first]
        while self.words[self.at] in ("and", "AND"):
            self.at += 1
            parts.append(self.comparison())
        return And(
            tuple([inner for part in parts for inner in (part.parts if type(part) is And else (part,))])
        )

    def comparison(self) -> Expression:
        start = self.at
        left = self.operand()
        written = self.words[self.at]
        if written not in _OPERATORS:
            return self.alone(left, start)
        self.at += 1
        value = self.at
        right = self.operand()
        if isinstance(left, Path) and isinstance(right, _LITERAL):
            return self.compared(left, written, right, start, value)
        if isinstance(right, Path) and isinstance(left, _LITERAL):
            return self.compared(right, _FLIPPED[written], left, start, start)
        raise errors.no_comparison(left, right, self.tokens.place(start, self.at - 1))

    def compared(self, path: Path, written: str, literal: str | float, start: int, value: int) -> PathTest:
        if isinstance(literal, str) and written not in ("=", "!="):
            literal = self.finite(xpath_number(literal), value)
            if math.isnan(literal):
                raise errors.never_a_number(self.tokens.place(value))
        return self.path_test(path, _OPERATORS[written], literal, start)

    def alone(self, operand: _Operand, start: int) -> Expression:
        """Convert an operand without a comparison: a path tests existence, and a condition stays as it is."""
        if isinstance(operand, Path):
            return self.path_test(operand, None, None, start)
        if isinstance(operand, _LITERAL):
            raise errors.literal_alone(operand, self.tokens, start, self.at)
        return operand

    def path_test(
        self, path: Path, operator: ValueOperator | None, literal: str | float | None, start: int
    ) -> PathTest:
        self.predicates += operator is not None or _counts(path)
        if self.steps > self.limits.steps:
            raise errors.too_many("steps", self.limits.steps, self.tokens.place(start, self.at - 1))
        if self.predicates > self.limits.predicates:
            raise errors.too_many("predicates", self.limits.predicates, self.tokens.place(start, self.at - 1))
        return make_path_test(path, operator, literal, self.span(start))

    def operand(self) -> _Operand:
        read = _OPERANDS.get(self.words[self.at][:1])
        if read is not None:
            return read(self)
        following = self.words[self.at + 1]
        if following == "(":
            return self.call()
        return self.path() if following in _GOES_ON else self.plain()

    def string(self) -> str:
        self.at += 1
        return self.words[self.at - 1][1:-1]

    def number(self) -> float:
        self.at += 1
        return self.finite(float(self.words[self.at - 1]), self.at - 1)

    def finite(self, number: float, index: int) -> float:
        if number in _INFINITE:
            raise errors.number_too_large(self.tokens.place(index))
        return number + 0.0  # -0.0 becomes 0.0, which it equals

    def negative(self) -> float:
        self.at += 1
        if not self.words[self.at].replace(".", "").isdigit():
            raise errors.arithmetic(self.tokens.place(self.at - 1))
        return 0.0 - self.number()

    def dotted(self) -> _Operand:
        """Parse `.5` as a number, and `.`, `./a` and `.//a` as paths."""
        return self.number() if self.words[self.at][1:].isdigit() else self.path()

    def parenthesised(self) -> _Operand:
        inner = self.enclosed()
        if self.words[self.at] in ("/", "//", "["):
            raise errors.unexpected_after_parentheses(self.tokens, self.at)
        if not isinstance(inner, PathTest) or inner.operator is not None:
            return inner
        self.predicates -= _counts(inner.path)  # `(price)` is still a path, and may be compared
        return inner.path

    def call(self) -> _Operand:
        name = self.words[self.at]
        if name == "not":
            self.at += 1
            return Not(self.enclosed())
        if name in _CALLS:
            return self.look_inside(name)
        if name == "text" or name in errors.NODE_TESTS:
            return self.path()
        raise errors.function(name, self.tokens.place(self.at))

    def look_inside(self, name: str) -> PathTest:
        """Parse `contains(path, "x")` or `starts-with(path, "x")`."""
        start = self.at
        self.at += 2
        path = self.operand()
        if not isinstance(path, Path):
            raise errors.argument(name, self.tokens.place(start + 2, self.at - 1))
        if self.words[self.at] != ",":
            raise errors.expected("','", self.tokens, self.at)
        self.at += 1
        second = self.at
        literal = self.operand()
        if not isinstance(literal, str):
            raise errors.argument(name, self.tokens.place(second, self.at - 1))
        if not literal:
            raise errors.empty_literal(name, self.tokens.place(second))
        if self.words[self.at] not in (")", ""):
            raise errors.expected("')'", self.tokens, self.at)
        self.close(start + 1)
        return self.path_test(path, _CALLS[name], literal, start)


def _counts(path: Path) -> bool:
    """Return whether a path alone counts as a predicate: `/a[b]` has only one, that there is a b."""
    return not path.steps or not path.steps[-1].predicates


_OPERANDS: dict[str, Callable[[_Parser], _Operand]] = {
    **dict.fromkeys(NO_NAME, _Parser.path),
    **dict.fromkeys("\"'", _Parser.string),
    **dict.fromkeys("0123456789", _Parser.number),
    "-": _Parser.negative,
    ".": _Parser.dotted,
    "(": _Parser.parenthesised,
}
"""Parser method by the first character of an operand that is not a name."""
