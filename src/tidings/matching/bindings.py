"""Bindings as they leave in a notification: as SPARQL 1.1 writes results in JSON, so that clients exist."""

from __future__ import annotations

from typing import Any

from tidings.graphs import STRING, Term, TermKind
from tidings.languages.gql_tree import Pattern, selected
from tidings.matching.graphs import Kept

MOST_TEXT = 100_000
"""How many characters the values of a notification's bindings may have together: a literal may be a whole book."""


def results_of(pattern: Pattern, kept: Kept) -> dict[str, Any]:
    """The bindings of a match; `note` tells of those that are not shown."""
    shown = kept.shortened(MOST_TEXT)
    rows = [{name: _value(term) for name, term in row.items()} for row in shown.bindings]
    found: dict[str, Any] = {"head": {"vars": list(selected(pattern))}, "results": {"bindings": rows}}
    return found | {"note": shown.note()} if shown.note() else found


def _value(term: Term) -> dict[str, str]:
    if term.kind is TermKind.IRI:
        return {"type": "uri", "value": term.text}
    if term.kind is TermKind.BLANK:
        return {"type": "bnode", "value": term.text}
    found = {"type": "literal", "value": term.text}
    if term.language:
        return found | {"xml:lang": term.language}
    return found if term.datatype == STRING else found | {"datatype": term.datatype}
