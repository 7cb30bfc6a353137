"""What a graph says about classes and properties, before anybody asked whether it makes sense."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property

from tidings.graph_values import meaning
from tidings.graphs import RDF, RDFS, TYPE, Edge, Graph, Term, TermKind, iri
from tidings.metadata.schema import Reference
from tidings.metadata.short_names import short_names

OURS = "https://tidings.dev/metadata#"
"""The namespace of what RDF Schema has no words for (section 2.4 of paper 001)."""

SEVERAL, REFERENCE = OURS + "several", OURS + "reference"
SUBCLASS, DOMAIN, RANGE = RDFS + "subClassOf", RDFS + "domain", RDFS + "range"
CLASS, PROPERTY = RDFS + "Class", RDF + "Property"
EVERYTHING = RDFS + "Resource"
CLOSENESS: Mapping[Term, Reference] = {iri(OURS + each.value): each for each in Reference}


@dataclass(frozen=True)
class Statements:
    """The objects of each subject by property, and the declared classes and properties, in the order written.

    Each of these has its short name; None where there is none that is its own.
    """

    objects: Mapping[str, Mapping[str, tuple[Term, ...]]]
    classes: Mapping[str, str | None]
    properties: Mapping[str, str | None]
    nameless: tuple[Term, ...]
    """Blank nodes that are declared as a class or a property."""

    def about(self, subject: str, property: str) -> tuple[Term, ...]:
        return self.objects.get(subject, {}).get(property, ())

    def is_class(self, term: Term) -> bool:
        return term.kind is TermKind.IRI and term.text in self.classes

    def parents(self, cls: str) -> list[str]:
        """Those right above. That a class is below itself, or below everything, is no news."""
        found = (each.text for each in self.about(cls, SUBCLASS))
        return [each for each in found if each not in (cls, EVERYTHING)]

    @cached_property
    def names(self) -> Mapping[str, str]:
        """The short names of what has one."""
        return {each: name for each, name in (*self.classes.items(), *self.properties.items()) if name}


def statements_of(graph: Graph) -> Statements:
    objects: dict[str, dict[str, tuple[Term, ...]]] = defaultdict(dict)
    for subject, property, object in graph.edges:
        if subject.kind is TermKind.IRI:
            about = objects[subject.text]
            about[property.text] = (*about.get(property.text, ()), object)
    classes, properties = (
        short_names(each for each, about in objects.items() if iri(kind) in about.get(TYPE, ()))
        for kind in (CLASS, PROPERTY)
    )
    nameless = tuple(edge.subject for edge in graph.edges if _declares_blank(edge))
    return Statements(dict(objects), classes, properties, nameless)


def _declares_blank(edge: Edge) -> bool:
    declares = edge.property.text == TYPE and edge.object in (iri(CLASS), iri(PROPERTY))
    return declares and edge.subject.kind is TermKind.BLANK


def truth(term: Term) -> bool | None:
    """Whether a term says yes; None if it says neither yes nor no."""
    found = meaning(term)
    return bool(found.value) if found is not None and found.kind == "boolean" else None
