"""Syntax tree of a predicate text: comparisons joined by and, or and not.

Nodes are frozen values with their position in the text. Trees compare equal when they have the same
meaning, whatever their positions.
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
    """A placeholder operand: the ordinals of the literals that fill it, where many texts share one shape."""

    ordinals: tuple[int, ...]
    kind: Kind


@dataclass(frozen=True, slots=True)
class Spans:
    """The positions of the parts of a comparison."""

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

    `order` is set where the attribute's domain defines its own order.
    """

    path: str
    operator: Operator
    operand: Operand | Slots = None
    order: Order | None = None
    spans: Spans = field(default=Spans(NOWHERE, NOWHERE), repr=False)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Comparison) and self._key == other._key

    def __hash__(self) -> int:
        return hash(self._key)

    @property
    def _key(self) -> tuple[object, ...]:
        """Identity for equality and hashing. It includes kinds, because Python considers 1 and True equal."""
        is_open = isinstance(self.operand, Slots)
        kinds = None if is_open else tuple(kind_of(literal) for literal in self.literals)
        return self.path, self.operator, self.operand, kinds

    def holds(self, value: Scalar) -> bool:
        """Return whether one value satisfies the predicate."""
        if self.order is None or self.operator.ordered is None:
            return self.operator.holds(value, self.bound_operand)
        ordered, literal = self.operator.ordered, self.operand
        return (
            isinstance(value, str) and isinstance(literal, str) and ordered.holds(self.order, value, literal)
        )

    @property
    def bound_operand(self) -> Operand:
        """The operand, which must not be a placeholder."""
        assert not isinstance(self.operand, Slots), "a shape without its literals has no operand"
        return self.operand

    @property
    def literals(self) -> tuple[Literal, ...]:
        return literals_of(self.bound_operand)

    @property
    def kind(self) -> Kind | None:
        """The kind of the operand's literals. Lists of several kinds have been split by `check.split_kinds`."""
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
    """Join the parts by `and`, flattening nested conjunctions."""
    flat = tuple(inner for part in parts for inner in (part.parts if isinstance(part, And) else (part,)))
    return flat[0] if len(flat) == 1 else And(flat)


def either(parts: tuple[Tree, ...]) -> Tree:
    """Join the parts by `or`, flattening nested disjunctions."""
    flat = tuple(inner for part in parts for inner in (part.parts if isinstance(part, Or) else (part,)))
    return flat[0] if len(flat) == 1 else Or(flat)


def children(tree: Tree) -> tuple[Tree, ...]:
    if isinstance(tree, Comparison):
        return ()
    return (tree.part,) if isinstance(tree, Not) else tree.parts


def comparisons(tree: Tree) -> Iterator[Comparison]:
    """Yield the predicates of a tree in text order."""
    if isinstance(tree, Comparison):
        yield tree
    for child in children(tree):
        yield from comparisons(child)


def rewrite(tree: Tree, change: Callable[[Comparison], Tree]) -> Tree:
    """Replace each predicate of the tree by the result of `change`."""
    if isinstance(tree, Comparison):
        return change(tree)
    if isinstance(tree, Not):
        return Not(rewrite(tree.part, change))
    join = both if isinstance(tree, And) else either
    return join(tuple(rewrite(part, change) for part in tree.parts))


def show_path(path: str) -> str:
    """Format a path for a subscription: bare where that parses back, else in double quotes."""
    bare = _BARE_PATH.fullmatch(path) and path.lower() not in KEYWORDS
    return path if bare else f'"{path}"'


def show_tree(tree: Tree) -> str:
    """Format the tree in canonical form."""
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
    """Format a predicate without its attribute: `< 200`."""
    operator, shown = comparison.operator, [show(literal) for literal in comparison.literals]
    if operator.takes is Takes.SEVERAL:
        return f"{operator.spelling} ({', '.join(shown)})"
    return " ".join([operator.spelling, " and ".join(shown)]).rstrip()
