"""Size limits of published graphs, and their error messages."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial

from tidings.core.limits import check_limits, limits_from, over_limit


@dataclass(frozen=True, slots=True)
class Limits:
    """How large a graph or a feed may be. Lengths of terms are in characters."""

    publication: int = 16_000_000
    depth: int = 200
    graphs: int = 10_000
    edges: int = 100_000
    nodes: int = 100_000
    term: int = 1_000_000
    text: int = 50_000_000
    namespaces: int = 200_000
    namespaces_in_scope: int = 1_000
    attributes: int = 256
    context_terms: int = 500
    context_work: int = 1_000_000
    items: int = 10_000

    def __post_init__(self) -> None:
        check_limits(self, MOST)


MOST = {"depth": 256, "term": 10_000_000, "context_terms": 1_000}
"""Depth and length of a text are limits of libxml2. A context with a chain of some thousand terms, each defined by the
next, overflows the parser's stack."""

OVER = {
    "publication": ("the publication is too large", "bytes"),
    "depth": ("nested too deeply", "levels"),
    "graphs": ("the publication has too many graphs", "graphs"),
    "edges": (
        "the graph has too many edges",
        "edges, counted each time they are written, with those to members of containers and lists",
    ),
    "nodes": ("the graph has too many nodes", "nodes"),
    "term": ("a term is too long", "characters"),
    "text": ("the terms of the graph are too long, counted each time they are written", "characters"),
    "namespaces": ("too many namespaces are declared", "declarations"),
    "namespaces_in_scope": ("too many namespaces are declared for one element", "declarations"),
    "attributes": ("an element has too many attributes", "attributes"),
    "context_terms": ("the contexts define too many terms", "terms"),
    "context_work": (
        "a context inside the publication would have to be read too often",
        "terms of contexts times objects",
    ),
    "items": ("the feed has too many items", "items"),
}
"""The message for each limit, and the unit of the limit."""

DEFAULT = limits_from("TIDINGS_GRAPH_LIMITS", Limits)
beyond = partial(over_limit, OVER)
"""Make the error of a graph that exceeds the named limit."""


def at_most(limit: str, value: int, limits: Limits, where: str | None = None) -> None:
    """Refuse a value that exceeds the named limit."""
    if value > getattr(limits, limit):
        raise beyond(limit, limits, where)
