"""Parser of XPath paths: steps, their axes and names, and their predicates."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass

from tidings.core.limits import check_limits
from tidings.core.source_text import Span
from tidings.documents.model import ANY, Axis, NodeKind
from tidings.documents.xpath import xpath_errors as errors
from tidings.documents.xpath.xpath_tokens import NO_NAME, is_name, tokens_of
from tidings.documents.xpath.xpath_tree import (
    XML_NAMESPACE,
    And,
    Expression,
    Path,
    Step,
    make_path,
    make_span,
    make_step,
)


@dataclass(frozen=True, slots=True)
class Limits:
    """Size limits of a subscription. A predicate is a comparison, or a path that does not end with one."""

    steps: int = 64
    predicates: int = 64
    nesting: int = 32
    length: int = 10_000

    def __post_init__(self) -> None:
        check_limits(self, MOST)


MOST = {"steps": 1_000, "predicates": 1_000, "nesting": 100, "length": 1_000_000}
"""Upper limits: later steps recurse over nested expressions."""

_ELEMENT, _ATTRIBUTE, _TEXT = NodeKind.ELEMENT, NodeKind.ATTRIBUTE, NodeKind.TEXT
_CHILD, _DESCENDANT = Axis.CHILD, Axis.DESCENDANT
_SLASHES = {"/": _CHILD, "//": _DESCENDANT}
_CLOSING = {"(": ")", "[": "]"}
_NO_STEP = frozenset(("", "[", "]", ")", ",", "=", "!=", "<", "<=", ">", ">=", "|", "+", "-"))
_SELF = ["self", "::", "node", "(", ")"]


class PathReader(ABC):
    """Recursive-descent parser of one text. `at` is the next token; each method reads on from there.

    `inside` is the number of open `[`: outside of all, paths begin at the document.
    """

    def __init__(self, text: str, limits: Limits) -> None:
        self.tokens = tokens_of(text)
        self.words, self.edges = self.tokens.words, self.tokens.edges
        self.limits = limits
        self.namespaces = {"xml": XML_NAMESPACE}
        self.at = self.depth = self.inside = self.steps = self.predicates = 0

    @abstractmethod
    def either(self) -> Expression:
        """Parse the content of a predicate."""

    def span(self, start: int) -> Span:
        """Return the span from a token to the last one that was read."""
        return make_span(self.edges[2 * start], self.edges[2 * self.at - 1])

    def enclosed(self) -> Expression:
        """Parse the content of the bracket or parenthesis at the current token."""
        opened = self.at
        self.depth += 1
        if self.depth > self.limits.nesting:
            raise errors.too_deep(self.limits.nesting, self.tokens.place(opened))
        self.at += 1
        parsed = self.either()
        self.close(opened)
        self.depth -= 1
        return parsed

    def close(self, opened: int) -> None:
        closing = _CLOSING[self.words[opened]]
        if self.words[self.at] != closing:
            raise errors.not_closed(self.tokens, opened, self.at, closing)
        self.at += 1

    def path(self) -> Path:
        start = self.at
        absolute, axis = not self.inside, _CHILD
        if self.words[start] in _SLASHES:
            absolute, axis = True, self.slashes()
            if self.words[self.at] in _NO_STEP and axis is _CHILD:
                raise errors.document(self.tokens.place(start))
        steps = self.follow(axis)
        if absolute and not steps:
            raise errors.document(self.tokens.place(start, self.at - 1))
        self.steps += len(steps)
        return make_path(absolute, steps, self.span(start))

    def plain(self) -> Path:
        """Parse a path that is a single name, as most paths in predicates are."""
        start = self.at
        name = self.name()
        span = make_span(self.edges[2 * start], self.edges[2 * start + 1])
        self.steps += 1
        return make_path(not self.inside, (make_step(_CHILD, _ELEMENT, name, (), span),), span)

    def follow(self, axis: Axis) -> tuple[Step, ...]:
        """Parse steps up to the end of the path; `.` is not a step."""
        parsed: list[Step] = []
        while True:
            start, word = self.at, self.words[self.at]
            if word == "." or (word == "self" and self.words[start : start + 5] == _SELF):
                self.dot(axis)
            else:
                parsed.append(self.step(axis))
                if len(parsed) > 1 and parsed[-2].kind is not _ELEMENT:
                    raise errors.step_after(parsed[-2].kind, self.tokens.place(start))
            if self.words[self.at] not in _SLASHES:
                return tuple(parsed)
            axis = self.slashes()

    def slashes(self) -> Axis:
        self.at += 1
        return _SLASHES[self.words[self.at - 1]]

    def dot(self, axis: Axis) -> None:
        start = self.at
        self.at += 1 if self.words[start] == "." else len(_SELF)
        if axis is _DESCENDANT:
            raise errors.dot_after_slashes(self.tokens.place(start, self.at - 1))
        if self.words[self.at] == "[":
            raise errors.predicate_of_dot(self.tokens.place(self.at))

    def step(self, axis: Axis) -> Step:
        start, kind = self.at, _ELEMENT
        if self.words[start] == "@":
            self.at, kind = start + 1, _ATTRIBUTE
        elif self.words[start + 1] == "::":
            axis, kind = self.axis(axis)
        if self.words[self.at + 1] == "(":
            kind, name = self.text_test(kind), ""
        else:
            name = self.name()
        span = make_span(self.edges[2 * start], self.edges[2 * self.at - 1])
        return make_step(axis, kind, name, self.brackets() if self.words[self.at] == "[" else (), span)

    def axis(self, axis: Axis) -> tuple[Axis, NodeKind]:
        """Parse a long form, such as `descendant::`, after `/` or `//`."""
        name = self.words[self.at]
        if name not in errors.AXES:
            raise errors.axis(name, self.tokens.place(self.at, self.at + 1))
        self.at += 2
        if name == "attribute":
            return axis, _ATTRIBUTE
        return (_DESCENDANT if name == "descendant" else axis), _ELEMENT

    def text_test(self, kind: NodeKind) -> NodeKind:
        """Parse `text()`; other node tests are not supported."""
        name = self.words[self.at]
        if not is_name(name):
            raise errors.no_operand(self.tokens, self.at)
        if name != "text":
            refuse = errors.node_test if name in errors.NODE_TESTS else errors.function
            raise refuse(name, self.tokens.place(self.at))
        if kind is _ATTRIBUTE:
            raise errors.expected("an attribute's name or '*'", self.tokens, self.at)
        if self.words[self.at + 2] != ")":
            raise errors.expected("')'", self.tokens, self.at + 2)
        self.at += 3
        return _TEXT

    def name(self) -> str:
        """Parse a name or `*`; a prefix is replaced by its namespace: `{uri}local`."""
        word = self.words[self.at]
        if word[:1] in NO_NAME and word != ANY:
            raise errors.no_operand(self.tokens, self.at)
        self.at += 1
        if ":" not in word:
            return word
        prefix, _, local = word.partition(":")
        if prefix not in self.namespaces:
            raise errors.unknown_prefix(prefix, list(self.namespaces), self.tokens.place(self.at - 1))
        return f"{{{self.namespaces[prefix]}}}{local}"

    def brackets(self) -> tuple[Expression, ...]:
        """Parse the predicates of a step. `[a][b]` is `[a and b]`: without positions, the two are equivalent."""
        parsed: list[Expression] = []
        self.inside += 1
        while self.words[self.at] == "[":
            expression = self.enclosed()
            parsed += expression.parts if isinstance(expression, And) else (expression,)
        self.inside -= 1
        return tuple(parsed)
