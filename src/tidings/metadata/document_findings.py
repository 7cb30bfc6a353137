"""What may be wrong with a metadata document, in words."""

from __future__ import annotations

from collections.abc import Collection, Sequence

from tidings.graphs import RDF, Term
from tidings.languages.gql_shown import show_term
from tidings.metadata.problems import Finding
from tidings.metadata.schema import Property
from tidings.metadata.vocabulary import Vocabulary
from tidings.schema.names import did_you_mean, listed, safe, some
from tidings.values import Kind

_CONTAINERS = frozenset(RDF + name for name in ("Bag", "Seq", "Alt", "List"))
_NO_CONTAINERS = "several values are written as the property several times, not as a container"
_EXPECTED = {
    Kind.NUMBER: "a number",
    Kind.STRING: "a text",
    Kind.BOOLEAN: "true or false",
    Kind.INSTANT: "a date or a date-time such as 2004-05-31T12:30:00Z, to the microsecond",
}


def foreign(resource: str, document: str) -> Finding:
    what, hint = "a resource of another document", "does the document name another base (xml:base, @base)?"
    accepted = f"{safe(document)} and {safe(document)}#..."
    return Finding(safe(resource, 200), what, accepted=accepted, hint=hint)


def schema(document: str) -> Finding:
    """One finding for all of it: each class would be one of a class that the schema does not have."""
    what, hint = "a schema, and no document", "tidings provider schema FILE loads it"
    received = "classes and properties (rdfs:Class, rdf:Property)"
    return Finding(
        safe(document, 200), what, received=received, accepted="resources of its classes", hint=hint
    )


def met(resource: str) -> Finding:
    what = "a resource with the name that is made for a nested one"
    return Finding(safe(resource, 200), what, hint="give the nested one an rdf:ID, or this one another name")


def no_class(resource: str, said: Collection[str]) -> Finding:
    hint = None if said else "what is only referred to needs a URI, and is described elsewhere"
    hint = _NO_CONTAINERS if RDF + "first" in said else hint
    return Finding(safe(resource, 200), "nothing says of which class it is", "rdf:type", hint=hint)


def unknown_class(resource: str, term: Term, vocabulary: Vocabulary) -> Finding:
    known = vocabulary.schema.classes
    container = term.text in _CONTAINERS
    hint = _NO_CONTAINERS if container else did_you_mean(vocabulary.short(term.text), known)
    what, accepted = "not a class of the schema", some(known)
    return Finding(safe(resource, 200), what, "rdf:type", _shown(term), accepted, hint)


def unrelated(resource: str, classes: Sequence[str]) -> Finding:
    what, accepted = "classes of which none is below all others", "one class; those above it may be said, too"
    return Finding(safe(resource, 200), what, "rdf:type", listed(classes), accepted)


def unknown_property(resource: str, cls: str, iri: str, vocabulary: Vocabulary) -> Finding:
    short, known, others = vocabulary.short(iri), vocabulary.properties(cls), vocabulary.having(iri)
    hint = f"it is one of {listed(others)}" if others else did_you_mean(short, known)
    name = short if others else f"<{safe(iri, 200)}>"
    accepted = some(known) if known else None
    return Finding(safe(resource, 200), f"{cls} has no such property", name, accepted=accepted, hint=hint)


def several(resource: str, property: Property, terms: Sequence[Term]) -> Finding:
    received = some(list(map(_shown, terms)), 3)
    return Finding(safe(resource, 200), "several values of a property that has one", property.name, received)


def literal_for_reference(resource: str, property: Property, term: Term) -> Finding:
    what, accepted = "a literal where a reference belongs", f"the URI of a resource of {property.leads_to}"
    hint = 'in RDF/XML a reference is rdf:resource="..."'
    return Finding(safe(resource, 200), what, property.name, _shown(term), accepted, hint)


def reference_for_literal(resource: str, property: Property, term: Term) -> Finding:
    what = "a resource where a value belongs"
    return Finding(safe(resource, 200), what, property.name, _shown(term), _expected(property))


def wrong_kind(resource: str, property: Property, term: Term) -> Finding:
    expected = _expected(property)
    return Finding(safe(resource, 200), f"not {expected}", property.name, _shown(term), expected)


def wrong_class(resource: str, property: Property, target: str, cls: str) -> Finding:
    what, accepted = "leads to a resource of another class", property.leads_to
    return Finding(safe(resource, 200), what, property.name, f"<{safe(target, 200)}>, a {cls}", accepted)


def _expected(property: Property) -> str:
    assert property.kind is not None
    return _EXPECTED[property.kind]


def _shown(term: Term) -> str:
    return safe(show_term(term), 200)
