"""RDF Schema: serialized schemas are read back, and invalid ones are rejected with findings."""

from __future__ import annotations

import pickle
from contextlib import nullcontext

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.support.paths import ROOT
from tests.support.strategies.metadata import schema_graph, schemas
from tidings.errors import SchemaError
from tidings.graphs.rdf.rdf_decoder import decode
from tidings.metadata.schema.findings import Finding, MetadataSchemaError
from tidings.metadata.schema.model import MAX_ANCESTORS, Class, Property, Reference, Schema
from tidings.metadata.schema.schema_parser import parse_schema
from tidings.values import Kind

EXAMPLES = ROOT / "examples/metadata"
SERVERS = "http://example.org/servers#"
MEDIA_TYPES = {"turtle": "text/turtle", "xml": "application/rdf+xml", "json-ld": "application/ld+json"}
HEAD = """
@prefix : <http://x.org/s#> .
@prefix md: <https://tidings.dev/metadata#> .
@prefix rdf: <http://www.w3.org/1999/02/22-rdf-syntax-ns#> .
@prefix rdfs: <http://www.w3.org/2000/01/rdf-schema#> .
@prefix xsd: <http://www.w3.org/2001/XMLSchema#> .
@prefix owl: <http://www.w3.org/2002/07/owl#> .
"""
HOST = ":Host a rdfs:Class . "
SIZE = HOST + ":size a rdf:Property ; rdfs:domain :Host ; rdfs:range "


def read(turtle: str) -> Schema:
    return parse_schema(decode((HEAD + turtle).encode(), "text/turtle"))


def read_findings(turtle: str) -> tuple[Finding, ...]:
    with pytest.raises(MetadataSchemaError) as caught:
        read(turtle)
    return caught.value.findings


def test_parse_schema_reads_example_of_paper() -> None:
    schema = parse_schema(decode((EXAMPLES / "schema.ttl").read_bytes(), "text/turtle"))
    assert list(schema.classes.values()) == [
        Class("CycleProvider", SERVERS + "CycleProvider"),
        Class("ServerInformation", SERVERS + "ServerInformation"),
    ]
    assert list(schema.properties) == ["serverHost", "serverPort", "serverInformation", "memory", "cpu"]
    assert schema.property_of("CycleProvider", "serverInformation") == Property(
        "serverInformation",
        SERVERS + "serverInformation",
        "CycleProvider",
        leads_to="ServerInformation",
        reference=Reference.STRONG,
    )
    assert schema.property_of("ServerInformation", "memory") == Property(
        "memory", SERVERS + "memory", "ServerInformation", kind=Kind.NUMBER
    )
    assert schema.property_of("ServerInformation", "serverHost") is None


@given(schemas(), st.sampled_from(sorted(MEDIA_TYPES)))
def test_parse_schema_serialized_schema_restores_it(schema: Schema, syntax: str) -> None:
    body = schema_graph(schema).serialize(format=syntax, encoding="utf-8")
    parsed = parse_schema(decode(body, MEDIA_TYPES[syntax]))
    assert sort_parents_and_domains(parsed) == sort_parents_and_domains(schema)


def sort_parents_and_domains(schema: Schema) -> Schema:
    """Sort parents and domains, because a graph has no order."""
    classes = {
        name: Class(name, each.iri, tuple(sorted(each.parents))) for name, each in schema.classes.items()
    }
    properties = {
        name: tuple(sorted(same_name, key=lambda each: each.of))
        for name, same_name in schema.properties.items()
    }
    return Schema(classes, properties)


@pytest.mark.parametrize(
    ("datatype", "kind"),
    [
        ("xsd:string", Kind.STRING),
        ("xsd:anyURI", Kind.STRING),
        ("rdfs:Literal", Kind.STRING),
        ("rdf:langString", Kind.STRING),
        ("xsd:integer", Kind.NUMBER),
        ("xsd:unsignedByte", Kind.NUMBER),
        ("xsd:decimal", Kind.NUMBER),
        ("xsd:double", Kind.NUMBER),
        ("xsd:boolean", Kind.BOOLEAN),
        ("xsd:dateTime", Kind.INSTANT),
        ("xsd:date", Kind.INSTANT),
    ],
)
def test_parse_schema_datatypes_become_kinds(datatype: str, kind: Kind) -> None:
    assert read(SIZE + datatype + " .").properties["size"] == (
        Property("size", "http://x.org/s#size", "Host", kind=kind),
    )


def test_parse_schema_references_are_weak_by_default() -> None:
    (near,) = read(HOST + ":near a rdf:Property ; rdfs:domain :Host ; rdfs:range :Host .").properties["near"]
    assert (near.kind, near.leads_to, near.reference) == (None, "Host", Reference.WEAK)


def test_parse_schema_several_marks_multivalued_property() -> None:
    assert read(SIZE + "xsd:string ; md:several true .").properties["size"][0].several
    assert not read(SIZE + "xsd:string ; md:several false .").properties["size"][0].several


def test_parse_schema_several_domains_share_property_with_subclasses() -> None:
    schema = read(
        ":A a rdfs:Class . :B a rdfs:Class ; rdfs:subClassOf :A . :C a rdfs:Class . "
        ":size a rdf:Property ; rdfs:domain :A , :B , :C ; rdfs:range xsd:integer ."
    )
    assert [each.of for each in schema.properties["size"]] == ["A", "C"]
    assert schema.property_of("B", "size") == schema.property_of("A", "size")


def test_parse_schema_equal_last_segments_get_prefixes() -> None:
    disks = "<http://x.org/disks#size> a rdf:Property ; rdfs:domain :Host ; rdfs:range xsd:integer ."
    assert sorted(read(SIZE + "xsd:integer ." + disks).properties) == ["disks:size", "s:size"]


def test_parse_schema_ignores_other_statements() -> None:
    plain = read(SIZE + "xsd:integer .")
    more = (
        "<http://x.org/s> a owl:Ontology . :Host rdfs:label 'host' ; rdfs:subClassOf rdfs:Resource , :Host ."
    )
    assert read(SIZE + "xsd:integer . " + more) == plain


def test_parse_schema_deep_hierarchy_is_accepted() -> None:
    rows = [f":C{n} a rdfs:Class ; rdfs:subClassOf :C{n - 1} ." for n in range(1, MAX_ANCESTORS)]
    schema = read(":C0 a rdfs:Class . " + " ".join(reversed(rows)))
    assert len(schema.at_or_above(f"C{MAX_ANCESTORS - 1}")) == MAX_ANCESTORS


@pytest.mark.parametrize(
    ("turtle", "resource", "property", "what"),
    [
        ("", "the schema", None, "the schema declares no class"),
        (":Host a owl:Class .", "the schema", None, "the schema declares no class"),
        ("[] a rdfs:Class .", "_:b0", None, "a class or a property without an IRI"),
        (HOST + "[] a rdf:Property .", "_:b0", None, "a class or a property without an IRI"),
        (HOST + ":Hots rdfs:subClassOf :Host .", "Hots", "rdfs:subClassOf", "not declared as rdfs:Class"),
        (HOST + ":size rdfs:range xsd:integer .", "size", "rdfs:range", "not declared as rdf:Property"),
        (HOST + ":size md:several true .", "size", "md:several", "not declared as rdf:Property"),
        (
            ":Host a rdfs:Class ; rdfs:subClassOf :Thing .",
            "Host",
            "rdfs:subClassOf",
            "not a class of the schema",
        ),
        (
            ":Host a rdfs:Class ; rdfs:subClassOf 'Host' .",
            "Host",
            "rdfs:subClassOf",
            "not a class of the schema",
        ),
        (HOST + ":p a rdf:Property ; rdfs:range :Host .", "p", "rdfs:domain", "has no domain"),
        (SIZE + "xsd:integer ; rdfs:domain :Hots .", "size", "rdfs:domain", "not a class of the schema"),
        (SIZE + "xsd:integer ; rdfs:domain 'http://x.org/s#Host' .", "size", "rdfs:domain", "not a class"),
        (
            HOST + ":p a rdf:Property ; rdfs:domain :Host .",
            "p",
            "rdfs:range",
            "the property has no range",
        ),
        (SIZE + ":Hots .", "size", "rdfs:range", "not a class of the schema"),
        (SIZE + "xsd:duration .", "size", "rdfs:range", "not a class of the schema"),
        (SIZE + "rdfs:Resource .", "size", "rdfs:range", "not a class of the schema"),
        (SIZE + "'http://x.org/s#Host' .", "size", "rdfs:range", "not a class of the schema"),
        (SIZE + "xsd:integer , :Host .", "size", "rdfs:range", "several ranges"),
        (SIZE + "xsd:integer ; md:several 'perhaps' .", "size", "md:several", "not a boolean"),
        (SIZE + "xsd:integer ; md:several true , false .", "size", "md:several", "not a boolean"),
        (SIZE + ":Host ; md:reference md:stong .", "size", "md:reference", "neither strong nor weak"),
        (SIZE + ":Host ; md:reference 'strong' .", "size", "md:reference", "neither strong nor weak"),
        (
            SIZE + ":Host ; md:reference md:strong , md:weak .",
            "size",
            "md:reference",
            "neither strong nor weak",
        ),
        (SIZE + "xsd:integer ; md:reference md:strong .", "size", "md:reference", "neither strong nor weak"),
        (
            SIZE + "xsd:integer ; md:sevral true .",
            "size",
            "<https://tidings.dev/metadata#sevral>",
            "unknown term",
        ),
        (SIZE + "xsd:integer ; rdfs:subPropertyOf :x .", "size", "rdfs:subPropertyOf", "subproperties"),
        (SIZE + "xsd:integer . :size a rdfs:Class .", "size", None, "both a class and a property"),
        (":1 a rdfs:Class .", "1", None, "no usable short name for this class"),
    ],
)
def test_parse_schema_invalid_schema_is_rejected(
    turtle: str, resource: str, property: str | None, what: str
) -> None:
    (finding,) = read_findings(turtle)
    assert finding.resource.removeprefix("http://x.org/s#") == resource
    assert finding.property == property
    assert what in finding.what


def test_parse_schema_indistinguishable_classes_are_rejected() -> None:
    findings = read_findings("<http://x.org/s#Host> a rdfs:Class . <http://x.org/s/Host> a rdfs:Class .")
    assert [finding.resource for finding in findings] == ["http://x.org/s#Host", "http://x.org/s/Host"]


def test_parse_schema_cycle_is_reported_once() -> None:
    names = ("A", "B", "C")
    rows = [
        f":{one} a rdfs:Class ; rdfs:subClassOf :{other} ." for one, other in zip(names, "BCA", strict=True)
    ]
    (finding,) = read_findings(" ".join(rows) + " :D a rdfs:Class ; rdfs:subClassOf :A .")
    assert finding.what == "cyclic class hierarchy"
    assert finding.received == " → ".join(f"<http://x.org/s#{name}>" for name in "ABCA")


def test_schema_constructor_rejects_cycle_and_accepts_diamond() -> None:
    classes = {name: Class(name, name, (above,)) for name, above in ("AB", "BC", "CA")}
    with pytest.raises(SchemaError, match="cyclic"):
        Schema(classes, {})
    diamond = {
        name: Class(name, name, tuple(above))
        for name, above in (("D", "BC"), ("B", "A"), ("C", "AB"), ("A", ""))
    }
    assert Schema(diamond, {}).at_or_above("D") == set("ABCD")


@pytest.mark.parametrize(("others", "is_accepted"), [(MAX_ANCESTORS - 1, True), (MAX_ANCESTORS, False)])
def test_schema_constructor_limits_number_of_superclasses(others: int, is_accepted: bool) -> None:
    chain = {f"C{i}": Class(f"C{i}", f"urn:C{i}", (f"C{i - 1}",) if i else ()) for i in range(others + 1)}
    with (
        nullcontext()
        if is_accepted
        else pytest.raises(SchemaError, match=f"more than {MAX_ANCESTORS - 1} superclasses")
    ):
        assert len(Schema(chain, {}).at_or_above(f"C{others}")) == MAX_ANCESTORS


def test_parse_schema_two_cycles_are_both_reported() -> None:
    rows = [f":{one} a rdfs:Class ; rdfs:subClassOf :{other} ." for one, other in ("AB", "BA", "CD", "DC")]
    assert [finding.resource[-1] for finding in read_findings(" ".join(rows))] == ["A", "C"]


def test_parse_schema_error_lists_all_findings() -> None:
    turtle = SIZE + ":Hots ; md:several 5 . :Disk a rdfs:Class ; rdfs:subClassOf :Thing ."
    with pytest.raises(SchemaError) as caught:
        read(turtle)
    assert str(caught.value).split("\n") == [
        "3 problems (the schema)",
        "  not a class of the schema (http://x.org/s#Disk, rdfs:subClassOf); received <http://x.org/s#Thing>; "
        "accepted: a class that the schema declares",
        "  not a class of the schema (http://x.org/s#size, rdfs:range); received <http://x.org/s#Hots>; "
        "accepted: a class that the schema declares; or xsd:string, xsd:boolean, xsd:dateTime, xsd:date, "
        "a number of XSD, rdfs:Literal; did you mean 'Host'?",
        "  not a boolean (http://x.org/s#size, md:several); received 5; accepted: true or false, once",
    ]
    restored = pickle.loads(pickle.dumps(caught.value))
    assert (str(restored), restored.facts()) == (str(caught.value), caught.value.facts())
    assert caught.value.facts()["problems"][2] == {  # type: ignore[index]
        "resource": "http://x.org/s#size",
        "property": "md:several",
        "what": "not a boolean",
        "received": "5",
        "accepted": "true or false, once",
    }
