"""Random documents and XPaths with few names, which repeat and nest, and few values, so that some match."""

from __future__ import annotations

from typing import Any

from hypothesis import strategies as st

from tidings.documents.model import Axis, Node, NodeKind
from tidings.documents.xpath.xpath_tree import And, Expression, Not, Path, PathTest, Step, ValueOperator
from tidings.documents.xpath.xpath_tree import Or as Either

NAMES = ("a", "b", "c", "{urn:n}a")
VALUES = ("x", "y", "xy", "5", " 7.50 ", "-1", "", "5e1", "12345678901234567890.5")
LITERALS = ("x", "y", "xy", "5")
NUMBERS = (5.0, 7.5, -1.0, 0.0, 6.0)


def element(name: str, *children: Node, text: str = "", **attributes: str) -> Node:
    """Create an element with attributes, a text and then children."""
    node = Node(NodeKind.ELEMENT, name, "")
    for key, value in attributes.items():
        _put(node, Node(NodeKind.ATTRIBUTE, key, value))
    for child in (*([Node(NodeKind.TEXT, "", text)] if text else []), *children):
        _put(node, child)
    node.value = "".join(child.value for child in node.children if child.kind is not NodeKind.ATTRIBUTE)
    return node


def _put(parent: Node, child: Node) -> None:
    child.parent = parent
    parent.children.append(child)


@st.composite
def documents(draw: st.DrawFn, depth: int = 4) -> Node:
    """The document element of a document."""
    name = draw(st.sampled_from(NAMES))
    attributes = draw(st.dictionaries(st.sampled_from(("p", "q")), st.sampled_from(VALUES), max_size=2))
    children: list[Node] = []
    for _ in range(draw(st.integers(0, 3)) if depth else 0):
        if draw(st.booleans()):
            children.append(draw(documents(depth=depth - 1)))
        elif not children or children[-1].kind is not NodeKind.TEXT:
            text = draw(st.sampled_from(VALUES))
            children += [Node(NodeKind.TEXT, "", text)] if text else []
    return element(name, *children, **attributes)


@st.composite
def steps(draw: st.DrawFn, depth: int, last: bool) -> Step:
    kinds = [NodeKind.ELEMENT] * 3 + ([NodeKind.ATTRIBUTE, NodeKind.TEXT] if last else [])
    kind = draw(st.sampled_from(kinds))
    names = {
        NodeKind.ELEMENT: (*NAMES, "*", "{urn:n}*"),
        NodeKind.ATTRIBUTE: ("p", "q", "*"),
        NodeKind.TEXT: ("",),
    }
    predicates = draw(st.lists(expressions(depth=depth - 1, top=False), max_size=2 if depth > 0 else 0))
    axis = draw(st.sampled_from((Axis.CHILD, Axis.CHILD, Axis.DESCENDANT)))
    return Step(axis, kind, draw(st.sampled_from(names[kind])), tuple(predicates))


@st.composite
def paths(draw: st.DrawFn, depth: int, top: bool) -> Path:
    size = draw(st.integers(1 if top else 0, 3))
    made = tuple(draw(steps(depth=depth, last=at == size - 1)) for at in range(size))
    return Path(bool(made) and (top or draw(st.integers(0, 5)) == 0), made)


@st.composite
def path_tests(draw: st.DrawFn, depth: int, top: bool) -> PathTest:
    path = draw(paths(depth=depth, top=top))
    operator = draw(st.sampled_from((None, *ValueOperator)))
    ordered = operator in (
        ValueOperator.LESS,
        ValueOperator.AT_MOST,
        ValueOperator.GREATER,
        ValueOperator.AT_LEAST,
    )
    textual = operator in (ValueOperator.CONTAINS, ValueOperator.STARTS_WITH)
    literal: Any = None
    if operator is not None:
        literal = draw(
            st.sampled_from(NUMBERS if ordered or (not textual and draw(st.booleans())) else LITERALS)
        )
    return PathTest(path, operator, literal)


@st.composite
def expressions(draw: st.DrawFn, depth: int = 2, top: bool = True) -> Expression:
    """An expression; `top` for one that is a whole subscription."""
    sort = draw(st.integers(0, 5)) if depth > 0 else 5
    if sort == 0:
        return Not(draw(expressions(depth=depth - 1, top=top)))
    if sort in (1, 2):
        parts = tuple(draw(st.lists(expressions(depth=depth - 1, top=top), min_size=2, max_size=3)))
        return And(parts) if sort == 1 else Either(parts)
    return draw(path_tests(depth=depth, top=top))
