"""Findings: problems of a schema or a metadata document, each with resource, property and reason.

All findings are reported at once, so that an author can fix a document in one pass.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from tidings.core.suggest import did_you_mean, join_words, printable, shorten_list
from tidings.core.text import plural
from tidings.errors import PublicationError, SchemaError, TidingsError
from tidings.graphs.model import RDF, Term
from tidings.graphs.patterns.pattern_tree import show_term
from tidings.metadata.schema.model import Property, Vocabulary
from tidings.values import Kind

MAX_SHOWN, MAX_REPORTED = 20, 100
"""Maximum number of findings in a message and its JSON facts: one mistake may be repeated in many resources."""


@dataclass(frozen=True, slots=True)
class Finding:
    """One problem of a resource or of one of its properties."""

    resource: str
    what: str
    property: str | None = None
    received: str | None = None
    accepted: str | None = None
    hint: str | None = None

    def __post_init__(self) -> None:
        object.__setattr__(self, "resource", printable(self.resource, 200))

    def error(self) -> TidingsError:
        """Return the finding as an error of its own, for its message."""
        return TidingsError(**self.parts())

    def parts(self) -> dict[str, Any]:
        where = f"{self.resource}, {self.property}" if self.property else self.resource
        parts = {"what": self.what, "received": self.received, "accepted": self.accepted, "hint": self.hint}
        return {"where": where, **parts}

    def facts(self) -> dict[str, str]:
        return {name: value for name, value in asdict(self).items() if value is not None}


class _FindingsError(TidingsError):
    """An error with findings: a single one is the message, several are listed below their count."""

    findings: tuple[Finding, ...]

    def __init__(self, where: str, findings: Iterable[Finding]) -> None:
        self.findings = tuple(findings)
        if len(self.findings) > 1:
            super().__init__(plural(len(self.findings), "problem"), where=where)
        else:
            super().__init__(**self.findings[0].parts())

    def message(self) -> str:
        return "\n".join((super().message(), *self._lines()))

    def _lines(self) -> Iterator[str]:
        if len(self.findings) > 1:
            yield from (f"  {finding.error().message()}" for finding in self.findings[:MAX_SHOWN])
        if len(self.findings) > MAX_SHOWN:
            yield f"  and {len(self.findings) - MAX_SHOWN:,} more"

    def facts(self) -> dict[str, object]:
        return super().facts() | {"problems": [finding.facts() for finding in self.findings[:MAX_REPORTED]]}


class MetadataSchemaError(_FindingsError, SchemaError):
    """An invalid RDF Schema."""


class MetadataError(_FindingsError, PublicationError):
    """A metadata document that breaks the schema; it is rejected as a whole."""


_CONTAINERS = frozenset(RDF + name for name in ("Bag", "Seq", "Alt", "List"))
_NO_CONTAINERS = "containers are not supported; repeat the property for several values"
_EXPECTED = {
    Kind.NUMBER: "a number",
    Kind.STRING: "a text",
    Kind.BOOLEAN: "true or false",
    Kind.INSTANT: "a date or a date-time such as 2004-05-31T12:30:00Z, to the microsecond",
}


def foreign_resource(resource: str, document: str) -> Finding:
    message, hint = "a resource of another document", "does the document name another base (xml:base, @base)?"
    accepted = f"{printable(document)} and {printable(document)}#..."
    return Finding(resource, message, accepted=accepted, hint=hint)


def schema_in_document(document: str) -> Finding:
    """Report a schema once, instead of an unknown class for each of its declarations."""
    message, hint = "a schema where a document was expected", "tidings provider schema FILE loads it"
    received = "classes and properties (rdfs:Class, rdf:Property)"
    return Finding(document, message, received=received, accepted="resources of its classes", hint=hint)


def name_collision(resource: str) -> Finding:
    message = "the name is also generated for a nested resource"
    return Finding(resource, message, hint="give the nested resource an rdf:ID, or rename this one")


def missing_class(resource: str, properties: Collection[str]) -> Finding:
    only_referred = "a resource that is only referred to needs a URI and is described elsewhere"
    hint = _NO_CONTAINERS if RDF + "first" in properties else None if properties else only_referred
    return Finding(resource, "the resource has no class", "rdf:type", hint=hint)


def unknown_class(resource: str, term: Term, vocabulary: Vocabulary) -> Finding:
    classes = vocabulary.schema.classes
    container = term.text in _CONTAINERS
    hint = _NO_CONTAINERS if container else did_you_mean(vocabulary.short(term.text), classes)
    message, accepted = "not a class of the schema", shorten_list(classes)
    return Finding(resource, message, "rdf:type", _show_term(term), accepted, hint)


def unrelated_classes(resource: str, classes: Sequence[str]) -> Finding:
    message, accepted = "unrelated classes", "one class, optionally with its superclasses"
    return Finding(resource, message, "rdf:type", join_words(classes), accepted)


def unknown_property(resource: str, cls: str, iri: str, vocabulary: Vocabulary) -> Finding:
    short, properties, owners = (
        vocabulary.short(iri),
        vocabulary.properties(cls),
        vocabulary.classes_with(iri),
    )
    hint = f"it is a property of {join_words(owners)}" if owners else did_you_mean(short, properties)
    name = short if owners else f"<{printable(iri, 200)}>"
    accepted = shorten_list(properties) if properties else None
    return Finding(resource, f"{cls} has no such property", name, accepted=accepted, hint=hint)


def too_many_values(resource: str, property: Property, terms: Sequence[Term]) -> Finding:
    received = shorten_list(list(map(_show_term, terms)), 3)
    return Finding(resource, "several values of a single-valued property", property.name, received)


def literal_for_reference(resource: str, property: Property, term: Term) -> Finding:
    message, accepted = (
        "a literal where a reference is expected",
        f"the URI of a resource of {property.leads_to}",
    )
    hint = 'in RDF/XML a reference is rdf:resource="..."'
    return Finding(resource, message, property.name, _show_term(term), accepted, hint)


def reference_for_literal(resource: str, property: Property, term: Term) -> Finding:
    message = "a resource where a literal is expected"
    return Finding(resource, message, property.name, _show_term(term), _describe_kind(property))


def wrong_datatype(resource: str, property: Property, term: Term) -> Finding:
    expected = _describe_kind(property)
    return Finding(resource, f"not {expected}", property.name, _show_term(term), expected)


def wrong_class(resource: str, property: Property, target: str, cls: str) -> Finding:
    message, accepted = "refers to a resource of another class", property.leads_to
    return Finding(resource, message, property.name, f"<{printable(target, 200)}>, a {cls}", accepted)


def _describe_kind(property: Property) -> str:
    assert property.kind is not None
    return _EXPECTED[property.kind]


def _show_term(term: Term) -> str:
    return printable(show_term(term), 200)
