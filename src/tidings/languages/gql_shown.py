"""A graph pattern as text: the one form in GQL that every text of the same pattern is shown in."""

from __future__ import annotations

import re
from collections.abc import Mapping

from tidings.graphs import STRING, TYPE, XSD, Term, TermKind
from tidings.languages.gql_prefixes import PREFIXES
from tidings.languages.gql_tree import BLANK, Asked, Constraint, Pattern, PatternEdge, Variable
from tidings.languages.xpath_tokens import NAME_REST, NAME_START
from tidings.values import parse_instant

_SPELLED = {
    Asked.AT_CLASS: "=",
    Asked.NOT_AT_CLASS: "!=",
    Asked.AT_OR_BELOW: "<=",
    Asked.BELOW: "<",
    Asked.AT_OR_ABOVE: ">=",
    Asked.ABOVE: ">",
}
_BARE = {
    XSD + "integer": re.compile(r"[+-]?[0-9]+"),
    XSD + "decimal": re.compile(r"[+-]?[0-9]*\.[0-9]+"),
    XSD + "double": re.compile(r"[+-]?(?:[0-9]+\.[0-9]*|\.?[0-9]+)[eE][+-]?[0-9]+"),
    XSD + "boolean": re.compile(r"true|false"),
    XSD + "date": re.compile(r"[0-9-]{10}"),
    XSD + "dateTime": re.compile(r"[0-9-]{10}T[0-9:.]*[0-9](?:[Zz]|[+-][0-9]{2}:?[0-9]{2})?"),
}
"""The texts of each datatype that need no quotes: what the parser reads as that datatype."""

_LOCAL = re.compile(rf"(?!_)[{NAME_START}][{NAME_START}{NAME_REST}-]*")
_ESCAPES = {"\\": "\\\\", '"': '\\"', "\n": "\\n", "\r": "\\r", "\t": "\\t"}
_IN_NO_IRI = re.compile(r'[<>"{}|^`\\\x00-\x20]')


def show(pattern: Pattern, prefixes: Mapping[str, str] = PREFIXES) -> str:
    """The text of a pattern; with the same prefixes it parses back to the same pattern."""
    select = " ".join(f"?{name}" for name in pattern.select) or "*"
    edges = " ".join(show_edge(edge, prefixes) for edge in pattern.edges)
    asked = [f" AND {show_constraint(constraint, prefixes)}" for constraint in pattern.constraints]
    return f"SELECT {select} WHERE {edges}{''.join(asked)}"


def show_edge(edge: PatternEdge, prefixes: Mapping[str, str] = PREFIXES) -> str:
    property = show_place(edge.property, prefixes)
    named = "a" if isinstance(edge.property, Term) and edge.property.text == TYPE else property
    return f"({show_place(edge.subject, prefixes)}, {named}, {show_place(edge.object, prefixes)})"


def show_constraint(constraint: Constraint, prefixes: Mapping[str, str] = PREFIXES) -> str:
    operands = ", ".join(show_term(term, prefixes) for term in constraint.operands)
    spelled = _SPELLED.get(constraint.asked, constraint.asked.value)
    listed = f"({operands})" if constraint.asked is Asked.IN else operands
    return f"{show_place(Variable(constraint.variable), prefixes)} {spelled} {listed}"


def show_place(place: Term | Variable, prefixes: Mapping[str, str] = PREFIXES) -> str:
    if isinstance(place, Term):
        return show_term(place, prefixes)
    return place.name if place.name.startswith(BLANK) else f"?{place.name}"


def show_term(term: Term, prefixes: Mapping[str, str] = PREFIXES) -> str:
    if term.kind is TermKind.IRI:
        return _show_iri(term.text, prefixes)
    if term.kind is TermKind.BLANK:
        return f"{BLANK}{term.text}"
    if _is_bare(term):
        return term.text
    quoted = '"' + "".join(_ESCAPES.get(character, character) for character in term.text) + '"'
    if term.language:
        return f"{quoted}@{term.language}"
    return quoted if term.datatype == STRING else f"{quoted}^^{_show_iri(term.datatype, prefixes)}"


def _is_bare(term: Term) -> bool:
    form = _BARE.get(term.datatype)
    dated = term.datatype in (XSD + "date", XSD + "dateTime")
    return bool(form and form.fullmatch(term.text)) and (not dated or parse_instant(term.text) is not None)


def _show_iri(text: str, prefixes: Mapping[str, str]) -> str:
    for prefix, space in prefixes.items():
        if text.startswith(space) and _LOCAL.fullmatch(text, len(space)):
            return f"{prefix}:{text[len(space) :]}"
    return "<" + _IN_NO_IRI.sub(lambda found: f"\\u{ord(found[0]):04X}", text) + ">"
