"""Size limits of published graphs, and the errors for graphs that exceed them or do not parse."""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import partial

from tidings.core.limits import check_limits, limits_from, over_limit
from tidings.core.suggest import printable
from tidings.errors import DecodeProblem
from tidings.graphs.rdf.media_types import Syntax
from tidings.parsers.xml_bytes import build_problem_at


@dataclass(frozen=True, slots=True)
class Limits:
    """Size limits of a graph or feed. Lengths of terms are in characters."""

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


NO_BASE = "tidings-no-base://relative/"
BASELESS = NO_BASE[: NO_BASE.index("//")]
"""Stand-in base for parsers that do not report relative IRIs without a base."""

RELATIVE = "a relative IRI without a base to resolve it against"
ACCEPTED = "absolute IRIs, or a base in the publication (@base, xml:base) or beside it (--base)"

_WHERE = re.compile(r"^Parser error (?:at|between) .*?: (?=\S)", re.DOTALL)


def relative(text: str) -> DecodeProblem:
    """Make the error for an IRI that was resolved against the stand-in base."""
    return DecodeProblem(RELATIVE, received=f"<{printable(text.removeprefix(NO_BASE))}>", accepted=ACCEPTED)


def parser_message(error: SyntaxError) -> str:
    """Return the parser's message without its position."""
    return _WHERE.sub("", error.msg or "")


def syntax_problem(error: SyntaxError, text: bytes, syntax: Syntax) -> DecodeProblem:
    """Locate a parser's error in the text; it counts lines and columns from one, and columns in characters."""
    message = parser_message(error)
    if error.lineno is None or error.offset is None:
        return DecodeProblem(f"invalid {syntax.value}: {message}")
    start = _offset(text, error.lineno, error.offset)
    end = _offset(text, error.end_lineno or error.lineno, error.end_offset or error.offset)
    if "No scheme found" in message:
        received = printable(text[start:end].decode(errors="replace"))
        return build_problem_at(RELATIVE, text, start, end, received=received, accepted=ACCEPTED)
    return build_problem_at(
        f"invalid {syntax.value}: {printable(message, 200)}", text, start, max(start + 1, end)
    )


def _offset(text: bytes, line: int, column: int) -> int:
    """Return the byte offset of a line and column."""
    start = 0
    for _ in range(line - 1):
        start = text.find(b"\n", start) + 1
    preceding = text[start : start + 4 * column].decode(errors="replace")[: max(0, column - 1)]
    return min(start + len(preceding.encode()), len(text))
