"""The tree of a subscription: comparisons joined by and, or and not.

Nodes are frozen values that know their place in the text; two trees are equal when they say the same, wherever
that stands.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

from tidings.core.source_text import NOWHERE, Span
from tidings.events.operators import EXISTS, Operator, Order, Takes, literals_of
from tidings.matching.compiler.plan import Operand
from tidings.values import Kind, Literal, Scalar, kind_of, show

BARE_SEGMENT = r"[A-Za-z_][A-Za-z0-9_-]*"
KEYWORDS = frozenset(["and", "or", "not", "in", "between", "contains", "exists", "true", "false"])
_BARE_PATH = re.compile(rf"{BARE_SEGMENT}(?:\.{BARE_SEGMENT})*")


@dataclass(frozen=True, slots=True)
class Slots:
    """Stands for an operand where many texts share a shape: which literals of the text it is made of."""

    ordinals: tuple[int, ...]
    kind: Kind


@dataclass(frozen=True, slots=True)
class Spans:
    """Where the parts of a comparison stand."""

    path: Span
    operator: Span
    literals: tuple[Span, ...] = ()

    @property
    def whole(self) -> Span:
        every = (self.path, self.operator, *self.literals)
        return Span(min(span.start for span in every), max(span.end for span in every))


@dataclass(frozen=True, slots=True, eq=False)
class Comparison:
    """A predicate: some value at the path satisfies the operator.

    `order` is set where the attribute's domain has an order of its own.
    """

    path: str
    operator: Operator
    operand: Operand | Slots = None
    order: Order | None = None
    spans: Spans = field(default=Spans(NOWHERE, NOWHERE), repr=False)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Comparison) and self._said == other._said

    def __hash__(self) -> int:
        return hash(self._said)

    @property
    def _said(self) -> tuple[object, ...]:
        """What is compared. The kinds are, because to Python 1 and True are equal, and here they are not."""
        open = isinstance(self.operand, Slots)
        kinds = None if open else tuple(kind_of(literal) for literal in self.literals)
        return self.path, self.operator, self.operand, kinds

    def holds(self, value: Scalar) -> bool:
        """Whether one value satisfies the predicate."""
        if self.order is None or self.operator.ordered is None:
            return self.operator.holds(value, self.given)
        ordered, literal = self.operator.ordered, self.operand
        return (
            isinstance(value, str) and isinstance(literal, str) and ordered.holds(self.order, value, literal)
        )

    @property
    def given(self) -> Operand:
        """The operand, where it is not left open."""
        assert not isinstance(self.operand, Slots), "a shape without its literals has no operand"
        return self.operand

    @property
    def literals(self) -> tuple[Literal, ...]:
        return literals_of(self.given)

    @property
    def kind(self) -> Kind | None:
        """What the operand is made of; lists of several kinds have been split before anybody asks."""
        if isinstance(self.operand, Slots):
            return self.operand.kind
        return kind_of(self.literals[0]) if self.literals else None


@dataclass(frozen=True, slots=True)
class And:
    parts: tuple[Tree, ...]


@dataclass(frozen=True, slots=True)
class Or:
    parts: tuple[Tree, ...]


@dataclass(frozen=True, slots=True)
class Not:
    part: Tree


Tree = And | Or | Not | Comparison


def both(parts: tuple[Tree, ...]) -> Tree:
    """The parts joined by `and`; nested ones are taken in."""
    flat = tuple(inner for part in parts for inner in (part.parts if isinstance(part, And) else (part,)))
    return flat[0] if len(flat) == 1 else And(flat)


def either(parts: tuple[Tree, ...]) -> Tree:
    """The parts joined by `or`; nested ones are taken in."""
    flat = tuple(inner for part in parts for inner in (part.parts if isinstance(part, Or) else (part,)))
    return flat[0] if len(flat) == 1 else Or(flat)


def children(tree: Tree) -> tuple[Tree, ...]:
    if isinstance(tree, Comparison):
        return ()
    return (tree.part,) if isinstance(tree, Not) else tree.parts


def comparisons(tree: Tree) -> Iterator[Comparison]:
    """The predicates of a tree, in the order of the text."""
    if isinstance(tree, Comparison):
        yield tree
    for child in children(tree):
        yield from comparisons(child)


def rewrite(tree: Tree, change: Callable[[Comparison], Tree]) -> Tree:
    """The tree with each predicate replaced by what `change` makes of it."""
    if isinstance(tree, Comparison):
        return change(tree)
    if isinstance(tree, Not):
        return Not(rewrite(tree.part, change))
    join = both if isinstance(tree, And) else either
    return join(tuple(rewrite(part, change) for part in tree.parts))


def show_path(path: str) -> str:
    """A path as it is written in a subscription: bare where that reads back, else in double quotes."""
    bare = _BARE_PATH.fullmatch(path) and path.lower() not in KEYWORDS
    return path if bare else f'"{path}"'


def show_tree(tree: Tree) -> str:
    """The tree as text, in the one form that every text of the same meaning and order is shown in."""
    if isinstance(tree, Comparison):
        return _show_comparison(tree)
    if isinstance(tree, Not):
        return f"not ({show_tree(tree.part)})"
    word = " and " if isinstance(tree, And) else " or "
    return word.join(_show_part(part) for part in tree.parts)


def _show_part(part: Tree) -> str:
    return f"({show_tree(part)})" if isinstance(part, And | Or) else show_tree(part)


def _show_comparison(comparison: Comparison) -> str:
    path = show_path(comparison.path)
    if comparison.operator is EXISTS:
        return f"exists {path}"
    return f"{path} {show_test(comparison)}"


def show_test(comparison: Comparison) -> str:
    """A predicate without its attribute: `< 200`."""
    operator, shown = comparison.operator, [show(literal) for literal in comparison.literals]
    if operator.takes is Takes.SEVERAL:
        return f"{operator.spelling} ({', '.join(shown)})"
    return " ".join([operator.spelling, " and ".join(shown)]).rstrip()
