"""The language of documents: XPath 1.0, as far as it asks whether something is in a document.

`parse` gives the tree of a text, or a problem that underlines the column; `show` is the way back. The parser is
written by hand, a method for each rule of the grammar, because subscriptions are loaded by the million:

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

from tidings.core.language_hints import hints_elsewhere, refuse_unreadable
from tidings.core.limits import limits_from
from tidings.documents.model import xpath_number
from tidings.documents.xpath import xpath_errors as refusals
from tidings.documents.xpath import xpath_errors as slips
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

__all__ = ["DEFAULT", "Limits", "parse", "show"]

DEFAULT = limits_from("TIDINGS_XPATH_LIMITS", Limits)


@hints_elsewhere("xpath")
def parse(text: str, limits: Limits = DEFAULT) -> Expression:
    """The tree of a subscription's text. Outside of predicates, paths in it are absolute: `a/b` is `/a/b`."""
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
            raise slips.empty_text(self.tokens.text)
        while self.words[self.at] == "declare" and self.words[self.at + 1] == "namespace":
            self.declaration()
        found = self.either()
        if self.words[self.at]:
            raise slips.unexpected(self.tokens, self.at, "the end")
        return found

    def declaration(self) -> None:
        for at, (wanted, fits) in enumerate(_DECLARED, self.at + 2):
            if not fits(self.words[at]):
                raise slips.expected(wanted, self.tokens, at)
        prefix, uri = self.words[self.at + 2], self.words[self.at + 4][1:-1]
        if prefix in ("xml", "xmlns"):
            raise refusals.bad_prefix(prefix, self.tokens.place(self.at + 2))
        if prefix in self.namespaces:
            raise refusals.declared_twice(prefix, self.tokens.place(self.at + 2))
        if not uri.strip() or "{" in uri or "}" in uri:
            raise refusals.bad_namespace(self.tokens.place(self.at + 4))
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
        raise refusals.no_comparison(left, right, self.tokens.place(start, self.at - 1))

    def compared(self, path: Path, written: str, literal: str | float, start: int, value: int) -> PathTest:
        if isinstance(literal, str) and written not in ("=", "!="):
            literal = self.finite(xpath_number(literal), value)
            if math.isnan(literal):
                raise refusals.never_a_number(self.tokens.place(value))
        return self.found(path, _OPERATORS[written], literal, start)

    def alone(self, operand: _Operand, start: int) -> Expression:
        """What is not compared: a path asks for existence, and what is true or false stays as it is."""
        if isinstance(operand, Path):
            return self.found(operand, None, None, start)
        if isinstance(operand, _LITERAL):
            raise slips.literal_alone(operand, self.tokens, start, self.at)
        return operand

    def found(
        self, path: Path, operator: ValueOperator | None, literal: str | float | None, start: int
    ) -> PathTest:
        self.predicates += operator is not None or _counts(path)
        if self.steps > self.limits.steps:
            raise slips.too_many("steps", self.limits.steps, self.tokens.place(start, self.at - 1))
        if self.predicates > self.limits.predicates:
            raise slips.too_many("predicates", self.limits.predicates, self.tokens.place(start, self.at - 1))
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

    def finite(self, number: float, at: int) -> float:
        if number in _INFINITE:
            raise refusals.number_too_large(self.tokens.place(at))
        return number + 0.0  # -0.0 becomes 0.0, which it equals

    def negative(self) -> float:
        self.at += 1
        if not self.words[self.at].replace(".", "").isdigit():
            raise refusals.arithmetic(self.tokens.place(self.at - 1))
        return 0.0 - self.number()

    def dotted(self) -> _Operand:
        """`.5` is a number; `.`, `./a` and `.//a` are paths."""
        return self.number() if self.words[self.at][1:].isdigit() else self.path()

    def parenthesised(self) -> _Operand:
        inner = self.enclosed()
        if self.words[self.at] in ("/", "//", "["):
            raise slips.unexpected_after_parentheses(self.tokens, self.at)
        if not isinstance(inner, PathTest) or inner.operator is not None:
            return inner
        self.predicates -= _counts(inner.path)  # `(price)` is a path still, and may be compared
        return inner.path

    def call(self) -> _Operand:
        name = self.words[self.at]
        if name == "not":
            self.at += 1
            return Not(self.enclosed())
        if name in _CALLS:
            return self.look_inside(name)
        if name == "text" or name in refusals.NODE_TESTS:
            return self.path()
        raise refusals.function(name, self.tokens.place(self.at))

    def look_inside(self, name: str) -> PathTest:
        """`contains(path, "x")` or `starts-with(path, "x")`."""
        start = self.at
        self.at += 2
        path = self.operand()
        if not isinstance(path, Path):
            raise refusals.argument(name, self.tokens.place(start + 2, self.at - 1))
        if self.words[self.at] != ",":
            raise slips.expected("','", self.tokens, self.at)
        self.at += 1
        second = self.at
        literal = self.operand()
        if not isinstance(literal, str):
            raise refusals.argument(name, self.tokens.place(second, self.at - 1))
        if not literal:
            raise refusals.empty_literal(name, self.tokens.place(second))
        if self.words[self.at] not in (")", ""):
            raise slips.expected("')'", self.tokens, self.at)
        self.close(start + 1)
        return self.found(path, _CALLS[name], literal, start)


def _counts(path: Path) -> bool:
    """Whether a path alone is a predicate of its own: `/a[b]` is only one, that there is a b."""
    return not path.steps or not path.steps[-1].predicates


_OPERANDS: dict[str, Callable[[_Parser], _Operand]] = {
    **dict.fromkeys(NO_NAME, _Parser.path),
    **dict.fromkeys("\"'", _Parser.string),
    **dict.fromkeys("0123456789", _Parser.number),
    "-": _Parser.negative,
    ".": _Parser.dotted,
    "(": _Parser.parenthesised,
}
"""How an operand is read, by its first character, if that begins no name."""
