"""Twigs: an XPath subscription as a list of alternatives without `or`.

`//stock[symbol = "YHOO" and not(closed)]/price > 50` is one twig of four nodes: a stock anywhere; in it a symbol with
the value YHOO; no closed; a price above 50.
"""

from __future__ import annotations

from typing import NamedTuple

from tidings.documents.model import Axis, NodeKind
from tidings.documents.xpath.xpath_tree import ValueOperator

DOCUMENT = -1
"""Parent number of the topmost nodes: the document itself."""


class ValueTest(NamedTuple):
    """A test of a node's own value, possibly negated."""

    operator: ValueOperator
    literal: str | float
    negated: bool = False


class TwigNode(NamedTuple):
    """A node that must exist, or must not (`negated`): below its parent, with its tests and its twig children.

    Parents come before their children. `contains(a/b, "x")` tests only the first b. Its twig nodes are a, with
    `firsts`, and b, which `leads_on`: of all nodes that a and the nodes leading on from it reach together, the first in
    document order must pass the tests in `firsts`.
    """

    parent: int
    axis: Axis
    kind: NodeKind
    name: str
    negated: bool = False
    tests: tuple[ValueTest, ...] = ()
    firsts: tuple[ValueTest, ...] = ()
    leads_on: bool = False


Twig = tuple[TwigNode, ...]
"""All nodes with the parent DOCUMENT must be found in a document (negated ones must not)."""
