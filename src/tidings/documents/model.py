"""Documents: XML in its readable form, and how places in it are written.

A *tag path* says where a node stands: `/stock/price`, `/stock/@id`, `/stock/price/text()`. Names with a namespace are
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
    """What stands at a place of a document. Comments and processing instructions count as nothing."""

    ELEMENT = 0
    ATTRIBUTE = 1
    TEXT = 2


class Axis(IntEnum):
    """How a step leads on: to children (`/`), or to all that stands below (`//`).

    Attributes count as children of their element here, so that `a//@y` reaches those of `a`, too, as in XPath.
    """

    CHILD = 0
    DESCENDANT = 1


@dataclass(slots=True, eq=False)
class Node:
    """A node of a document. `value` is its string value: of an element, all text in it.

    `children` are an element's attributes, then its content, in the order of the document.
    """

    kind: NodeKind
    name: str
    value: str
    parent: Node | None = None
    children: list[Node] = field(default_factory=list)


class LinearStep(NamedTuple):
    """One step of a linear path. A text has no name; `*` is any name, `{uri}*` any of a namespace."""

    axis: Axis
    kind: NodeKind
    name: str


_STEP = re.compile(r"(//?)(@?)((?:\{[^}]*\})?[^/{}]+)")


def steps_of(path: str) -> tuple[LinearStep, ...]:
    """The steps of a tag path or a linear path."""
    found = [_step(*match.groups()) for match in _STEP.finditer(path)]
    if show_steps(found) != path:
        raise ValueError(f"not a path of steps: {path!r}")
    return tuple(found)


def _step(slashes: str, at: str, name: str) -> LinearStep:
    axis = Axis.DESCENDANT if slashes == "//" else Axis.CHILD
    if at:
        return LinearStep(axis, NodeKind.ATTRIBUTE, name)
    return LinearStep(axis, NodeKind.TEXT, "") if name == TEXT else LinearStep(axis, NodeKind.ELEMENT, name)


def show_steps(steps: list[LinearStep] | tuple[LinearStep, ...]) -> str:
    """The path of steps, as it is written."""
    return "".join(
        ("//" if step.axis is Axis.DESCENDANT else "/") + show_node(step.kind, step.name) for step in steps
    )


def show_node(kind: NodeKind, name: str) -> str:
    return TEXT if kind is NodeKind.TEXT else f"@{name}" if kind is NodeKind.ATTRIBUTE else name


def is_named(asked: str, name: str) -> bool:
    """Whether a node's name is what a step asks for."""
    if asked in (ANY, name):
        return True
    return asked.endswith("}*") and name.startswith(asked[:-1])


def place_of(node: Node) -> str:
    """Where a node stands, so that nobody has to search: `/stock[1]/price[2]/@currency`."""
    shown = show_node(node.kind, node.name)
    if node.kind is not NodeKind.ATTRIBUTE:
        among = node.parent.children if node.parent else [node]
        alike = [other for other in among if (other.kind, other.name) == (node.kind, node.name)]
        shown += f"[{alike.index(node) + 1}]"
    return (place_of(node.parent) if node.parent else "") + "/" + shown


# Numbers as XPath 1.0 reads them: `number()` of a string (section 4.4 of the recommendation).
#
# Space, perhaps a minus sign, digits with or without a point, space. Nothing else is a number: no plus sign, no
# exponent, no digits of other scripts. What is no number is NaN, which is unequal to everything and has no order.


_NUMBER = re.compile(r"[ \t\r\n]*(-?(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+))[ \t\r\n]*")


def xpath_number(text: str) -> float:
    """The double nearest to the number a string writes, NaN for other strings."""
    found = _NUMBER.fullmatch(text)
    return float(found[1]) if found else math.nan
