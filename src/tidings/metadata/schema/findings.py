"""What is wrong with a schema or a metadata document: every finding at once, each with resource, property and reason.

Whoever writes a document mends it in one go; a reader that stops at the first problem makes that a conversation.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass

from tidings.core.suggest import did_you_mean, join_words, printable, shorten_list
from tidings.core.text import plural
from tidings.errors import PublicationError, SchemaError, TidingsError
from tidings.graphs.gql.gql_tree import show_term
from tidings.graphs.model import RDF, Term
from tidings.metadata.schema.model import Property
from tidings.metadata.schema.vocabulary import Vocabulary
from tidings.values import Kind

MAX_SHOWN, MAX_REPORTED = 20, 100
"""How many findings a message lists, and how many the facts for machines: one slip may be in each of many resources."""


@dataclass(frozen=True, slots=True)
class Finding:
    """One thing that is wrong: with which resource, with which of its properties, and why."""

    resource: str
    what: str
    property: str | None = None
    received: str | None = None
    accepted: str | None = None
    hint: str | None = None

    def error(self) -> TidingsError:
        """The finding alone, for its words."""
        return TidingsError(
            self.what,
            where=f"{self.resource}, {self.property}" if self.property else self.resource,
            received=self.received,
            accepted=self.accepted,
            hint=self.hint,
        )

    def facts(self) -> dict[str, str]:
        return {name: value for name, value in asdict(self).items() if value is not None}


class _Found(TidingsError):
    """Says a single finding itself, and lists several below a line that counts them."""

    findings: tuple[Finding, ...]

    def __init__(self, where: str, findings: Iterable[Finding]) -> None:
        self.findings = tuple(findings)
        if len(self.findings) > 1:
            super().__init__(plural(len(self.findings), "problem"), where=where)
            return
        only = self.findings[0].error()
        super().__init__(
            only.what, where=only.where, received=only.received, accepted=only.accepted, hint=only.hint
        )

    def message(self) -> str:
        return "\n".join((super().message(), *self._lines()))

    def _lines(self) -> Iterator[str]:
        if len(self.findings) > 1:
            yield from (f"  {finding.error().message()}" for finding in self.findings[:MAX_SHOWN])
        if len(self.findings) > MAX_SHOWN:
            yield f"  and {len(self.findings) - MAX_SHOWN:,} more"

    def facts(self) -> dict[str, object]:
        return super().facts() | {"problems": [finding.facts() for finding in self.findings[:MAX_REPORTED]]}


class MetadataSchemaError(_Found, SchemaError):
    """An RDF Schema that makes no sense."""


class MetadataError(_Found, PublicationError):
    """A metadata document that breaks the schema; nothing of it counts."""


# What may be wrong with a metadata document, in words.


_CONTAINERS = frozenset(RDF + name for name in ("Bag", "Seq", "Alt", "List"))
_NO_CONTAINERS = "several values are written as the property several times, not as a container"
_EXPECTED = {
    Kind.NUMBER: "a number",
    Kind.STRING: "a text",
    Kind.BOOLEAN: "true or false",
    Kind.INSTANT: "a date or a date-time such as 2004-05-31T12:30:00Z, to the microsecond",
}


def foreign_resource(resource: str, document: str) -> Finding:
    what, hint = "a resource of another document", "does the document name another base (xml:base, @base)?"
    accepted = f"{printable(document)} and {printable(document)}#..."
    return Finding(printable(resource, 200), what, accepted=accepted, hint=hint)


def schema_in_document(document: str) -> Finding:
    """One finding for all of it: each class would be one of a class that the schema does not have."""
    what, hint = "a schema, and no document", "tidings provider schema FILE loads it"
    received = "classes and properties (rdfs:Class, rdf:Property)"
    return Finding(
        printable(document, 200), what, received=received, accepted="resources of its classes", hint=hint
    )


def name_collision(resource: str) -> Finding:
    what = "a resource with the name that is made for a nested one"
    return Finding(
        printable(resource, 200), what, hint="give the nested one an rdf:ID, or this one another name"
    )


def missing_class(resource: str, said: Collection[str]) -> Finding:
    hint = None if said else "what is only referred to needs a URI, and is described elsewhere"
    hint = _NO_CONTAINERS if RDF + "first" in said else hint
    return Finding(printable(resource, 200), "nothing says of which class it is", "rdf:type", hint=hint)


def unknown_class(resource: str, term: Term, vocabulary: Vocabulary) -> Finding:
    known = vocabulary.schema.classes
    container = term.text in _CONTAINERS
    hint = _NO_CONTAINERS if container else did_you_mean(vocabulary.short(term.text), known)
    what, accepted = "not a class of the schema", shorten_list(known)
    return Finding(printable(resource, 200), what, "rdf:type", _shown(term), accepted, hint)


def unrelated_classes(resource: str, classes: Sequence[str]) -> Finding:
    what, accepted = "classes of which none is below all others", "one class; those above it may be said, too"
    return Finding(printable(resource, 200), what, "rdf:type", join_words(classes), accepted)


def unknown_property(resource: str, cls: str, iri: str, vocabulary: Vocabulary) -> Finding:
    short, known, others = vocabulary.short(iri), vocabulary.properties(cls), vocabulary.having(iri)
    hint = f"it is one of {join_words(others)}" if others else did_you_mean(short, known)
    name = short if others else f"<{printable(iri, 200)}>"
    accepted = shorten_list(known) if known else None
    return Finding(
        printable(resource, 200), f"{cls} has no such property", name, accepted=accepted, hint=hint
    )


def too_many_values(resource: str, property: Property, terms: Sequence[Term]) -> Finding:
    received = shorten_list(list(map(_shown, terms)), 3)
    return Finding(
        printable(resource, 200), "several values of a property that has one", property.name, received
    )


def literal_for_reference(resource: str, property: Property, term: Term) -> Finding:
    what, accepted = "a literal where a reference belongs", f"the URI of a resource of {property.leads_to}"
    hint = 'in RDF/XML a reference is rdf:resource="..."'
    return Finding(printable(resource, 200), what, property.name, _shown(term), accepted, hint)


def reference_for_literal(resource: str, property: Property, term: Term) -> Finding:
    what = "a resource where a value belongs"
    return Finding(printable(resource, 200), what, property.name, _shown(term), _expected(property))


def wrong_datatype(resource: str, property: Property, term: Term) -> Finding:
    expected = _expected(property)
    return Finding(printable(resource, 200), f"not {expected}", property.name, _shown(term), expected)


def wrong_class(resource: str, property: Property, target: str, cls: str) -> Finding:
    what, accepted = "leads to a resource of another class", property.leads_to
    return Finding(
        printable(resource, 200), what, property.name, f"<{printable(target, 200)}>, a {cls}", accepted
    )


def _expected(property: Property) -> str:
    assert property.kind is not None
    return _EXPECTED[property.kind]


def _shown(term: Term) -> str:
    return printable(show_term(term), 200)
