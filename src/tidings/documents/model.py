"""XML documents as trees of nodes, and the notation for places in them.

A *tag path* locates a node: `/stock/price`, `/stock/@id`, `/stock/price/text()`. Names with a namespace are
`{http://example.org/ns}price`. A *linear path* may also have `//` and `*`: `//stock/*/text()`.
"""

from __future__ import annotations

import math
import re
from dataclasses import dataclass, field
from enum import IntEnum
from typing import NamedTuple

ANY = "*"
TEXT = "text()"


class NodeKind(IntEnum):
    """Kinds of nodes. Comments and processing instructions are not nodes."""

    ELEMENT = 0
    ATTRIBUTE = 1
    TEXT = 2


class Axis(IntEnum):
    """Axis of a step: to children (`/`), or to all descendants (`//`).

    Attributes count as children of their element, so that `a//@y` includes those of `a`, as in XPath.
    """

    CHILD = 0
    DESCENDANT = 1


@dataclass(slots=True, eq=False)
class Node:
    """A node of a document. `value` is its string value: for an element, all text in it.

    `children` are an element's attributes, followed by its content in document order.
    """

    kind: NodeKind
    name: str
    value: str
    parent: Node | None = None
    children: list[Node] = field(default_factory=list)


class LinearStep(NamedTuple):
    """A step of a linear path. Text nodes have no name; `*` is any name, `{uri}*` any name of a namespace."""

    axis: Axis
    kind: NodeKind
    name: str


_STEP = re.compile(r"(//?)(@?)((?:\{[^}]*\})?[^/{}]+)")


def steps_of(path: str) -> tuple[LinearStep, ...]:
    """Parse a tag path or a linear path."""
    steps = tuple(_step(*match.groups()) for match in _STEP.finditer(path))
    if show_steps(steps) != path:
        raise ValueError(f"not a path of steps: {path!r}")
    return steps


def _step(slashes: str, sign: str, name: str) -> LinearStep:
    axis = Axis.DESCENDANT if slashes == "//" else Axis.CHILD
    if sign:
        return LinearStep(axis, NodeKind.ATTRIBUTE, name)
    return LinearStep(axis, NodeKind.TEXT, "") if name == TEXT else LinearStep(axis, NodeKind.ELEMENT, name)


def show_steps(steps: list[LinearStep] | tuple[LinearStep, ...]) -> str:
    """Format the steps as a path."""
    return "".join(
        ("//" if step.axis is Axis.DESCENDANT else "/") + show_node(step.kind, step.name) for step in steps
    )


def show_node(kind: NodeKind, name: str) -> str:
    return TEXT if kind is NodeKind.TEXT else f"@{name}" if kind is NodeKind.ATTRIBUTE else name


def is_named(name_test: str, name: str) -> bool:
    """Return whether a node's name passes the name test of a step."""
    if name_test in (ANY, name):
        return True
    return name_test.endswith("}*") and name.startswith(name_test[:-1])


def place_of(node: Node) -> str:
    """Return the exact position of a node: `/stock[1]/price[2]/@currency`."""
    shown = show_node(node.kind, node.name)
    if node.kind is not NodeKind.ATTRIBUTE:
        siblings = node.parent.children if node.parent else [node]
        alike = [other for other in siblings if (other.kind, other.name) == (node.kind, node.name)]
        shown += f"[{alike.index(node) + 1}]"
    return (place_of(node.parent) if node.parent else "") + "/" + shown


_NUMBER = re.compile(r"[ \t\r\n]*(-?(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+))[ \t\r\n]*")


def xpath_number(text: str) -> float:
    """Convert a string as XPath 1.0 does in `number()` (section 4.4 of the recommendation); NaN if it is not a number.

    A number is an optional minus sign and digits with or without a point, surrounded by optional white space. There is
    no plus sign, no exponent, and no digits of other scripts.
    """
    match = _NUMBER.fullmatch(text)
    return float(match[1]) if match else math.nan
