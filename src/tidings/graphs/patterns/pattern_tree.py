"""Syntax tree of a graph subscription: edges between terms and variables, and constraints on the variables."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import Enum

from tidings.core.source_text import NAME_REST, NAME_START, NOWHERE, Span
from tidings.graphs.model import RDF, RDFS, STRING, TYPE, XSD, Term, TermKind
from tidings.values import parse_instant

PREFIXES = {
    "rdf": RDF,
    "rdfs": RDFS,
    "xsd": XSD,
    "owl": "http://www.w3.org/2002/07/owl#",
    "dc": "http://purl.org/dc/elements/1.1/",
    "dcterms": "http://purl.org/dc/terms/",
    "rss": "http://purl.org/rss/1.0/",
    "content": "http://purl.org/rss/1.0/modules/content/",
    "foaf": "http://xmlns.com/foaf/0.1/",
    "skos": "http://www.w3.org/2004/02/skos/core#",
    "schema": "http://schema.org/",
    "sioc": "http://rdfs.org/sioc/ns#",
}
"""Prefixes that graph subscriptions may use without declaring them."""


BLANK = "_:"
"""Prefix of the name of a variable that was written as a blank node."""


class ConstraintKind(Enum):
    """Constraints on the term of a variable.

    The first eight compare the value of a literal, `in` with several; `is` and `is not` compare terms. The others use
    the taxonomy: a node is at its classes and, if it is a class, at itself.
    """

    EQUAL = "="
    UNEQUAL = "!="
    LESS = "<"
    AT_MOST = "<="
    GREATER = ">"
    AT_LEAST = ">="
    CONTAINS = "contains"
    STARTS_WITH = "starts with"
    IN = "in"
    IS = "is"
    IS_NOT = "is not"
    AT_CLASS = "at class"
    NOT_AT_CLASS = "not at class"
    AT_OR_BELOW = "at or below class"
    BELOW = "below class"
    AT_OR_ABOVE = "at or above class"
    ABOVE = "above class"


@dataclass(frozen=True, slots=True)
class Variable:
    """`?x`; `name` is without the question mark. A blank node in a pattern is a variable, too: `_:x`."""

    name: str
    span: Span = field(default=NOWHERE, compare=False)


@dataclass(frozen=True, slots=True)
class PatternEdge:
    """An edge that must exist, with variables for arbitrary terms."""

    subject: Term | Variable
    property: Term | Variable
    object: Term | Variable
    span: Span = field(default=NOWHERE, compare=False)


@dataclass(frozen=True, slots=True)
class Constraint:
    """A constraint on a variable. There is one operand, or several for IN."""

    variable: str
    kind: ConstraintKind
    operands: tuple[Term, ...]
    span: Span = field(default=NOWHERE, compare=False)


@dataclass(frozen=True, slots=True)
class Pattern:
    """A pattern: one binding of the variables must make all edges exist and all constraints hold.

    `select` are the variables that a notification shows; all of them if it is empty (`SELECT *`).
    """

    select: tuple[str, ...]
    edges: tuple[PatternEdge, ...]
    constraints: tuple[Constraint, ...] = ()


def variables(pattern: Pattern) -> tuple[str, ...]:
    """Return the names of all variables, in edge order."""
    places = [place for edge in pattern.edges for place in (edge.subject, edge.property, edge.object)]
    return tuple(dict.fromkeys(place.name for place in places if isinstance(place, Variable)))


def selected(pattern: Pattern) -> tuple[str, ...]:
    """Return the names of the variables that a notification shows; variables such as `_:x` are never selected."""
    return pattern.select or tuple(name for name in variables(pattern) if not name.startswith(BLANK))


_SPELLED = {
    ConstraintKind.AT_CLASS: "=",
    ConstraintKind.NOT_AT_CLASS: "!=",
    ConstraintKind.AT_OR_BELOW: "<=",
    ConstraintKind.BELOW: "<",
    ConstraintKind.AT_OR_ABOVE: ">=",
    ConstraintKind.ABOVE: ">",
}
_BARE = {
    XSD + "integer": re.compile(r"[+-]?[0-9]+"),
    XSD + "decimal": re.compile(r"[+-]?[0-9]*\.[0-9]+"),
    XSD + "double": re.compile(r"[+-]?(?:[0-9]+\.[0-9]*|\.?[0-9]+)[eE][+-]?[0-9]+"),
    XSD + "boolean": re.compile(r"true|false"),
    XSD + "date": re.compile(r"[0-9-]{10}"),
    XSD + "dateTime": re.compile(r"[0-9-]{10}T[0-9:.]*[0-9](?:[Zz]|[+-][0-9]{2}:?[0-9]{2})?"),
}
"""The literals of each datatype that need no quotes, because the parser reads them as that datatype."""

_LOCAL = re.compile(rf"(?!_)[{NAME_START}][{NAME_START}{NAME_REST}-]*")
_ESCAPES = {"\\": "\\\\", '"': '\\"', "\n": "\\n", "\r": "\\r", "\t": "\\t"}
_IN_NO_IRI = re.compile(r'[<>"{}|^`\\\x00-\x20]')


def show(pattern: Pattern, prefixes: Mapping[str, str] = PREFIXES) -> str:
    """Format a pattern in canonical GQL; with the same prefixes it parses back to the same pattern."""
    select = " ".join(f"?{name}" for name in pattern.select) or "*"
    edges = " ".join(show_edge(edge, prefixes) for edge in pattern.edges)
    constraints = [f" AND {show_constraint(constraint, prefixes)}" for constraint in pattern.constraints]
    return f"SELECT {select} WHERE {edges}{''.join(constraints)}"


def show_edge(edge: PatternEdge, prefixes: Mapping[str, str] = PREFIXES) -> str:
    property = show_place(edge.property, prefixes)
    named = "a" if isinstance(edge.property, Term) and edge.property.text == TYPE else property
    return f"({show_place(edge.subject, prefixes)}, {named}, {show_place(edge.object, prefixes)})"


def show_constraint(constraint: Constraint, prefixes: Mapping[str, str] = PREFIXES) -> str:
    operands = ", ".join(show_term(term, prefixes) for term in constraint.operands)
    spelled = _SPELLED.get(constraint.kind, constraint.kind.value)
    listed = f"({operands})" if constraint.kind is ConstraintKind.IN else operands
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
    return "<" + _IN_NO_IRI.sub(lambda match: f"\\u{ord(match[0]):04X}", text) + ">"
