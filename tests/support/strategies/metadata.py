"""Generated schemas, resources, documents and histories of metadata, and how rdflib writes them.

    schemas()                   a Schema: up to four classes, some below others, with properties of all kinds
    resources(schema, uri)      the resources of a document, which the schema allows
    documents(schema)           such a document with its URI, as `Registered`
    histories(schema)           a list of `Registered` and `Deleted`: documents are added, changed and deleted
    state(history)              all resources after a history, by URI

    schema_graph(schema), document_graph(resources, schema)      as graphs of rdflib

There are few documents, resources and values, so that rules and references match by chance. References lead to
resources of the right class, to resources of other documents of any class, and to missing resources.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import rdflib
from hypothesis import strategies as st
from rdflib.namespace import RDF, RDFS, XSD

from tidings.metadata.resources import Ref, Resource, Value
from tidings.metadata.schema.model import Class, Property, Reference, Schema
from tidings.values import Kind

A, B = "http://example.org/a#", "http://example.org/b#"
OURS = rdflib.Namespace("https://tidings.dev/metadata#")
DOCUMENTS = tuple(f"http://example.org/{name}.rdf" for name in ("doc", "other", "third"))
FRAGMENTS = ("host", "info", "r3")

NUMBERS = (0, 1, 2, 64, 92, -3, 2.5, 2**53 + 1)
STRINGS = ("", "a", "ab", "b", "it's", "92", "uni-passau.de", "pirates.uni-passau.de", "日本", "<&> ")
MOMENTS = ("2004-05-31T00:00:00.000000Z", "2004-05-31T12:30:00.500000Z", "2005-01-01T00:00:00.000000Z")
"""In the stored form: in UTC and of equal length, so that they sort by time."""

VALUES: Mapping[Kind, st.SearchStrategy[Any]] = {
    Kind.NUMBER: st.sampled_from(NUMBERS),
    Kind.STRING: st.sampled_from(STRINGS),
    Kind.BOOLEAN: st.booleans(),
    Kind.INSTANT: st.sampled_from(MOMENTS),
}
DATATYPES = {
    Kind.NUMBER: XSD.decimal,
    Kind.STRING: XSD.string,
    Kind.BOOLEAN: XSD.boolean,
    Kind.INSTANT: XSD.dateTime,
}


@dataclass(frozen=True)
class Registered:
    """A document is registered, or registered again with other content."""

    uri: str
    resources: tuple[Resource, ...]


@dataclass(frozen=True)
class Deleted:
    """A document is deleted with all its content."""

    uri: str


Step = Registered | Deleted


@st.composite
def schemas(draw: st.DrawFn) -> Schema:
    """Classes below earlier classes; properties with texts, numbers and so on, or references to classes.

    Some local names come from two namespaces: their short names have a prefix.
    """
    classes: dict[str, Class] = {}
    for name, iri in _named(draw, ("Host", "Info", "Disk", "Net"), most=4):
        above = draw(st.lists(st.sampled_from(sorted(classes)), max_size=2, unique=True)) if classes else []
        classes[name] = Class(name, iri, tuple(above))
    properties: dict[str, tuple[Property, ...]] = {}
    for name, iri in _named(draw, ("size", "name", "port", "info", "near", "since"), most=7):
        properties[name] = draw(_property(name, iri, Schema(classes, {})))
    return Schema(classes, properties)


def _named(draw: st.DrawFn, locals_: Sequence[str], most: int) -> list[tuple[str, str]]:
    """Short names and IRIs."""
    pairs = [(space, local) for space in (A, A, A, B) for local in locals_]
    chosen = draw(st.lists(st.sampled_from(pairs), min_size=1, max_size=most, unique=True))
    often = [local for _, local in chosen]
    short = {A: "a", B: "b"}
    return [
        (local if often.count(local) == 1 else f"{short[space]}:{local}", space + local)
        for space, local in chosen
    ]


@st.composite
def _property(draw: st.DrawFn, name: str, iri: str, schema: Schema) -> tuple[Property, ...]:
    """A property for each of its classes, none of which is below another."""
    names = sorted(schema.classes)
    drawn = draw(st.lists(st.sampled_from(names), min_size=1, max_size=2, unique=True))
    of = [cls for cls in drawn if not (schema.at_or_above(cls) - {cls}) & set(drawn)]
    several = draw(st.booleans())
    if draw(st.booleans()):
        kind = draw(st.sampled_from(list(Kind)))
        return tuple(Property(name, iri, cls, kind=kind, several=several) for cls in of)
    leads_to, reference = draw(st.sampled_from(names)), draw(st.sampled_from(list(Reference)))
    made = Property(name, iri, "", leads_to=leads_to, reference=reference, several=several)
    return tuple(replace(made, of=cls) for cls in of)


@st.composite
def resources(draw: st.DrawFn, schema: Schema, uri: str = DOCUMENTS[0]) -> tuple[Resource, ...]:
    """The resources of a document, whose classes, values and references conform to the schema."""
    fragments = draw(st.lists(st.sampled_from(FRAGMENTS), max_size=len(FRAGMENTS), unique=True))
    made = [draw(_resource(schema, f"{uri}#{fragment}")) for fragment in fragments]
    return _fitting(made, schema)


@st.composite
def _resource(draw: st.DrawFn, schema: Schema, uri: str) -> Resource:
    cls = draw(st.sampled_from(sorted(schema.classes)))
    drawn = {each.name: draw(_values(each)) for each in properties_of(schema, cls)}
    return Resource(uri, cls, {name: values for name, values in drawn.items() if values})


def properties_of(schema: Schema, cls: str) -> list[Property]:
    """Return the properties that instances of a class may have, in the order of the schema."""
    found = (schema.property_of(cls, name) for name in schema.properties)
    return [each for each in found if each is not None]


def _values(property: Property) -> st.SearchStrategy[tuple[Value, ...]]:
    """No value, one value, or several if the property allows it, sorted."""
    target = st.sampled_from([f"{uri}#{name}" for uri in DOCUMENTS for name in (*FRAGMENTS, "nowhere")])
    one = VALUES[property.kind] if property.kind is not None else target.map(Ref)
    some = st.lists(one, max_size=3 if property.several else 1, unique=True)
    return some.map(lambda values: tuple(sorted(values)))


def _fitting(made: Iterable[Resource], schema: Schema) -> tuple[Resource, ...]:
    """Remove references inside the document to resources of a wrong class, which would be rejected."""
    there = {each.uri: each.cls for each in made}

    def fits(cls: str, name: str, value: Value) -> bool:
        property = schema.property_of(cls, name)
        assert property is not None
        if property.leads_to is None or not isinstance(value, Ref) or value.uri not in there:
            return True
        return property.leads_to in schema.at_or_above(there[value.uri])

    def drop_unfitting(each: Resource) -> Resource:
        values = {
            name: tuple(value for value in values if fits(each.cls, name, value))
            for name, values in each.values.items()
        }
        return replace(each, values={name: found for name, found in values.items() if found})

    return tuple(drop_unfitting(each) for each in made)


def documents(schema: Schema) -> st.SearchStrategy[Registered]:
    return st.sampled_from(DOCUMENTS).flatmap(
        lambda uri: resources(schema, uri).map(lambda made: Registered(uri, made))
    )


@st.composite
def histories(draw: st.DrawFn, schema: Schema, most: int = 8) -> list[Step]:
    """Consistent steps: only existing documents are deleted, and most updates are small."""
    there: dict[str, tuple[Resource, ...]] = {}
    steps: list[Step] = []
    for _ in range(draw(st.integers(1, most))):
        step = draw(_step(schema, there))
        steps.append(step)
        if isinstance(step, Registered):
            there[step.uri] = step.resources
        else:
            del there[step.uri]
    return steps


@st.composite
def _step(draw: st.DrawFn, schema: Schema, there: Mapping[str, tuple[Resource, ...]]) -> Step:
    uri = draw(st.sampled_from(DOCUMENTS))
    if uri not in there:
        return Registered(uri, draw(resources(schema, uri)))
    way = draw(st.sampled_from(("little", "little", "little", "anew", "delete")))
    if way == "delete":
        return Deleted(uri)
    if way == "anew":
        return Registered(uri, draw(resources(schema, uri)))
    return Registered(uri, draw(_slightly_changed(schema, uri, there[uri])))


@st.composite
def _slightly_changed(
    draw: st.DrawFn, schema: Schema, uri: str, before: tuple[Resource, ...]
) -> tuple[Resource, ...]:
    """A document with one resource added, removed, or changed in one property."""
    made = {each.uri: each for each in before}
    chosen = f"{uri}#{draw(st.sampled_from(FRAGMENTS))}"
    old = made.get(chosen)
    properties = properties_of(schema, old.cls) if old else []
    if old is None:
        made[chosen] = draw(_resource(schema, chosen))
    elif not properties or draw(st.integers(0, 4)) == 0:
        del made[chosen]
    else:
        property = draw(st.sampled_from(properties))
        values = {**old.values, property.name: draw(_values(property))}
        in_order = {each.name: values[each.name] for each in properties if values.get(each.name)}
        made[chosen] = replace(old, values=in_order)
    return _fitting(made.values(), schema)


def state(history: Iterable[Step]) -> dict[str, Resource]:
    """Return all resources after the steps."""
    there: dict[str, tuple[Resource, ...]] = {}
    for step in history:
        there[step.uri] = step.resources if isinstance(step, Registered) else ()
    return {each.uri: each for made in there.values() for each in made}


def schema_graph(schema: Schema) -> rdflib.Graph:
    """Write the schema as RDF Schema, with the properties of Tidings."""
    made = rdflib.Graph()
    iris = {name: rdflib.URIRef(cls.iri) for name, cls in schema.classes.items()}
    for name, cls in schema.classes.items():
        made.add((iris[name], RDF.type, RDFS.Class))
        for parent in cls.parents:
            made.add((iris[name], RDFS.subClassOf, iris[parent]))
    for each in (each for found in schema.properties.values() for each in found):
        subject = rdflib.URIRef(each.iri)
        made.add((subject, RDF.type, RDF.Property))
        made.add((subject, RDFS.domain, iris[each.of]))
        made.add(
            (subject, RDFS.range, DATATYPES[each.kind] if each.leads_to is None else iris[each.leads_to])
        )
        if each.several:
            made.add((subject, OURS.several, rdflib.Literal(True)))
        if each.reference is Reference.STRONG:
            made.add((subject, OURS.reference, OURS.strong))
    return made


def document_graph(resources: Iterable[Resource], schema: Schema, typed: bool = True) -> rdflib.Graph:
    """Write the resources as RDF; if untyped, all values are plain texts, as in figure 1 of paper 001."""
    made = rdflib.Graph()
    for each in resources:
        subject = rdflib.URIRef(each.uri)
        made.add((subject, RDF.type, rdflib.URIRef(schema.classes[each.cls].iri)))
        for name, values in each.values.items():
            property = schema.property_of(each.cls, name)
            assert property is not None
            for value in values:
                made.add((subject, rdflib.URIRef(property.iri), _written(value, property, typed)))
    return made


def _written(value: Value, property: Property, typed: bool) -> rdflib.URIRef | rdflib.Literal:
    if isinstance(value, Ref):
        return rdflib.URIRef(value.uri)
    text = str(value).lower() if isinstance(value, bool) else str(value)
    assert property.kind is not None
    datatype = XSD.integer if type(value) is int else DATATYPES[property.kind]
    return rdflib.Literal(text, datatype=datatype) if typed else rdflib.Literal(text)
