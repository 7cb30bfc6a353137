"""Keys by which the edges of graphs are indexed, in publications and in subscriptions.

An edge (page, dc:subject, ai) is found by its subject and by its object, each among the edges with its property and
among all edges; by the value of its object, if that is a literal; and by the classes of its ends. A path is a key and a
property: `o http://purl.org/dc/elements/1.1/subject`.
"""

from __future__ import annotations

from enum import IntEnum, StrEnum

from tidings.graphs.model import STRING, Meaning, Term, TermKind

ANY = "*"
"""In place of a property: edges with any property."""


class Key(StrEnum):
    """Search keys of an edge.

    `TEXT` is a string with or without a language, `MOMENT` an instant in ticks of half a microsecond. `AT` are the
    classes of an end, `BELOW` those and all above them, `ABOVE` those and all below them.
    """

    SUBJECT = "s"
    OBJECT = "o"
    VALUE = "v"
    TEXT = "t"
    MOMENT = "m"
    SUBJECT_AT = "s="
    SUBJECT_BELOW = "s<="
    SUBJECT_ABOVE = "s>="
    OBJECT_AT = "o="
    OBJECT_BELOW = "o<="
    OBJECT_ABOVE = "o>="


class TermMeaning(IntEnum):
    """Meaning of a term, for kernels. Terms of one meaning are comparable, except nodes and unknown ones."""

    NODE = 0
    LANGUAGE = 1
    UNKNOWN = 2
    STRING = 3
    NUMBER = 4
    BOOLEAN = 5
    MOMENT = 6


class Related(IntEnum):
    """The relation of a term to a class: at it, strictly below it, strictly above it."""

    AT = 0
    BELOW = 1
    ABOVE = 2


_MEANS = {
    "node": TermMeaning.NODE,
    "string": TermMeaning.STRING,
    "number": TermMeaning.NUMBER,
    "boolean": TermMeaning.BOOLEAN,
    "instant": TermMeaning.MOMENT,
}


def term_meaning(value: Meaning | None) -> TermMeaning:
    return TermMeaning.UNKNOWN if value is None else _MEANS.get(value.kind, TermMeaning.LANGUAGE)


def path_of(key: Key, property: str) -> str:
    """Return the path of a key among the edges with a property, or among all (`ANY`)."""
    return f"{key} {property}"


def term_text(term: Term) -> str:
    """Format a term unambiguously. The text of a literal follows the first character."""
    if term.kind is TermKind.IRI:
        return f"<{term.text}>"
    if term.kind is TermKind.BLANK:
        return f"_:{term.text}"
    if term.language:
        return f'"{term.text}"@{term.language}'
    return f'"{term.text}"' if term.datatype == STRING else f'"{term.text}"^^<{term.datatype}>'
