"""Twigs: what an XPath subscription asks of a document, as a list of alternatives without `or`.

`//stock[symbol = "YHOO" and not(closed)]/price > 50` is one twig of four nodes: a stock somewhere; in it a symbol whose
value is YHOO; no closed; a price above 50.
"""

from __future__ import annotations

from typing import NamedTuple

from tidings.documents.model import Axis, NodeKind
from tidings.documents.xpath.xpath_tree import ValueOperator

DOCUMENT = -1
"""In place of a node's parent: the document itself."""


class ValueTest(NamedTuple):
    """What is asked of a node's own value; negated, it must not be so."""

    operator: ValueOperator
    literal: str | float
    negated: bool = False


class TwigNode(NamedTuple):
    """A node that must be there, or must not (`negated`): below its parent, with these tests, and with all twig nodes
    whose parent it is. Parents come before their children.

    `contains(a/b, "x")` asks only the first b. Its twig nodes are a, with `firsts`, and b, which `leads_on`: of all
    nodes that a and those that lead on from it reach together, the first in the document must pass the tests in
    `firsts`.
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
