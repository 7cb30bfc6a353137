"""Documents: figure 4 from figure 1, round trips, and rejected violations of the schema."""

from __future__ import annotations

import pickle

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.support.paths import ROOT
from tests.support.strategies.metadata import Registered, document_graph, documents, schemas
from tidings.errors import DecodeProblem, PublicationError
from tidings.graphs.rdf.rdf_decoder import decode
from tidings.metadata.documents import Document, DocumentReader
from tidings.metadata.resources import SUBJECT, Ref, Resource, Value
from tidings.metadata.schema.findings import MAX_REPORTED, MAX_SHOWN, Finding, MetadataError
from tidings.metadata.schema.model import Schema
from tidings.metadata.schema.schema_parser import parse_schema

EXAMPLES = ROOT / "examples/metadata"
PAPER = parse_schema(decode((EXAMPLES / "schema.ttl").read_bytes(), "text/turtle"))
URI = "http://example.org/doc.rdf"
HOST, INFO = f"{URI}#host", f"{URI}#info"
FIGURE_1 = (EXAMPLES / "host.rdf").read_bytes()
RDF_XML, TURTLE = "application/rdf+xml", "text/turtle"
MEDIA_TYPES = {"turtle": TURTLE, "xml": RDF_XML, "pretty-xml": RDF_XML, "json-ld": "application/ld+json"}
PREFIXES = """
@prefix : <http://x.org/s#> .
@prefix md: <https://tidings.dev/metadata#> .
@prefix rdf: <http://www.w3.org/1999/02/22-rdf-syntax-ns#> .
@prefix rdfs: <http://www.w3.org/2000/01/rdf-schema#> .
@prefix xsd: <http://www.w3.org/2001/XMLSchema#> .
"""
SCHEMA = parse_schema(
    decode(
        f"""{PREFIXES}
        :Thing a rdfs:Class .
        :Host a rdfs:Class ; rdfs:subClassOf :Thing .
        :Server a rdfs:Class ; rdfs:subClassOf :Host .
        :Disk a rdfs:Class .
        :name a rdf:Property ; rdfs:domain :Thing ; rdfs:range xsd:string .
        :tags a rdf:Property ; rdfs:domain :Thing ; rdfs:range xsd:string ; md:several true .
        :size a rdf:Property ; rdfs:domain :Host , :Disk ; rdfs:range xsd:integer .
        :sizes a rdf:Property ; rdfs:domain :Host ; rdfs:range xsd:decimal ; md:several true .
        :public a rdf:Property ; rdfs:domain :Host ; rdfs:range xsd:boolean .
        :since a rdf:Property ; rdfs:domain :Host ; rdfs:range xsd:dateTime .
        :disk a rdf:Property ; rdfs:domain :Host ; rdfs:range :Disk .
        :disks a rdf:Property ; rdfs:domain :Host ; rdfs:range :Disk ; md:several true .
        :near a rdf:Property ; rdfs:domain :Host ; rdfs:range :Host .
        """.encode(),
        TURTLE,
    )
)


def read(turtle: str) -> Document:
    return DocumentReader(SCHEMA).read((PREFIXES + turtle).encode(), TURTLE, URI)


def read_findings(turtle: str) -> tuple[Finding, ...]:
    with pytest.raises(MetadataError) as caught:
        read(turtle)
    return caught.value.findings


def values(turtle: str) -> dict[str, tuple[Value, ...]]:
    """Return the values of the first resource."""
    return dict(read(turtle).resources[0].values)


def uris(turtle: str) -> list[str]:
    return [each.uri.removeprefix(URI) for each in read(turtle).resources]


def test_read_figure_1_gives_atoms_of_figure_4() -> None:
    """Values of numeric properties are numbers."""
    atoms = [
        atom for each in DocumentReader(PAPER).read(FIGURE_1, RDF_XML, URI).resources for atom in each.atoms()
    ]
    assert [tuple(atom) for atom in atoms] == [
        (HOST, "CycleProvider", SUBJECT, Ref(HOST)),
        (HOST, "CycleProvider", "serverHost", "pirates.uni-passau.de"),
        (HOST, "CycleProvider", "serverPort", 5874),
        (HOST, "CycleProvider", "serverInformation", Ref(INFO)),
        (INFO, "ServerInformation", SUBJECT, Ref(INFO)),
        (INFO, "ServerInformation", "memory", 92),
        (INFO, "ServerInformation", "cpu", 600),
    ]


def test_read_nested_and_referenced_resources_are_equal() -> None:
    nested = DocumentReader(PAPER).read(FIGURE_1, RDF_XML, URI)
    info = b'<s:ServerInformation rdf:ID="info" s:memory="92" s:cpu="600"/>'
    apart = FIGURE_1.replace(b"<s:serverInformation>", b'<s:serverInformation rdf:resource="#info"/>')
    apart = apart.replace(b"</s:serverInformation>", b"").replace(info, b"")
    apart = apart.replace(b"</rdf:RDF>", info + b"</rdf:RDF>")
    assert DocumentReader(PAPER).read(apart, RDF_XML, URI) == nested


@given(st.data(), st.sampled_from(sorted(MEDIA_TYPES)), st.booleans())
def test_read_serialized_document_restores_resources(data: st.DataObject, syntax: str, typed: bool) -> None:
    schema: Schema = data.draw(schemas())
    drawn: Registered = data.draw(documents(schema).filter(lambda document: document.resources))
    body = document_graph(drawn.resources, schema, typed).serialize(format=syntax, encoding="utf-8")
    document = DocumentReader(schema).read(body, MEDIA_TYPES[syntax], drawn.uri)
    assert document == Document(drawn.uri, tuple(sorted(drawn.resources, key=lambda each: each.uri)))
    assert [list(each.values) for each in document.resources] == [
        [name for name in schema.properties if name in each.values] for each in document.resources
    ]


def test_read_document_without_resources_is_valid() -> None:
    assert read("") == Document(URI, ())


def test_read_document_uri_may_be_resource() -> None:
    assert read("<> a :Host ; :name 'me' .").resources == (Resource(URI, "Host", {"name": ("me",)}),)


def test_read_several_classes_keeps_most_specific() -> None:
    assert read("<#h> a :Thing , :Server , :Host .").resources[0].cls == "Server"


def test_read_properties_are_inherited_by_subclasses() -> None:
    assert values("<#h> a :Server ; :name 'x' ; :size 5 .") == {"name": ("x",), "size": (5,)}


@pytest.mark.parametrize(
    ("turtle", "expected"),
    [
        (":size '92'", {"size": (92,)}),
        (":size ' 92\\n'", {"size": (92,)}),
        (":size 92", {"size": (92,)}),
        (":size 92.0", {"size": (92,)}),
        (":size 9.2e1", {"size": (92,)}),
        (":size 2.5", {"size": (2.5,)}),
        (":size -0.0", {"size": (0,)}),
        (":size 9007199254740993", {"size": (9007199254740993,)}),
        (":size 5 , 5.0", {"size": (5,)}),
        (":sizes 5 , 1 , 2.5 , 5.0", {"sizes": (1, 2.5, 5)}),
        (":public true", {"public": (True,)}),
        (":public 'false'", {"public": (False,)}),
        (":public '1'", {"public": (True,)}),
        (":name '92'", {"name": ("92",)}),
        (":name ' x '", {"name": (" x ",)}),
        (":name 'x'@en", {"name": ("x",)}),
        (":name 'http://x.org'^^xsd:anyURI", {"name": ("http://x.org",)}),
        (":tags 'b' , 'a' , 'a'@en", {"tags": ("a", "b")}),
        (":since '2004-05-31'", {"since": ("2004-05-31T00:00:00.000000Z",)}),
        (":since '2004-05-31'^^xsd:date", {"since": ("2004-05-31T00:00:00.000000Z",)}),
        (":since '2004-05-31+02:00'^^xsd:date", {"since": ("2004-05-30T22:00:00.000000Z",)}),
        (":since '2004-05-31T14:30:00.5+02:00'^^xsd:dateTime", {"since": ("2004-05-31T12:30:00.500000Z",)}),
        (":since '0099-05-31'", {"since": ("0099-05-31T00:00:00.000000Z",)}),
        (":disk <#nowhere>", {"disk": (Ref(f"{URI}#nowhere"),)}),
        (":disk <http://other.org/doc#disk>", {"disk": (Ref("http://other.org/doc#disk"),)}),
        (":near <#h>", {"near": (Ref(f"{URI}#h"),)}),
    ],
)
def test_read_values_have_kinds_of_schema(turtle: str, expected: dict[str, tuple[Value, ...]]) -> None:
    actual = values(f"<#h> a :Host ; {turtle} .")
    assert actual == expected
    assert [list(map(type, each)) for each in actual.values()] == [
        list(map(type, each)) for each in expected.values()
    ]


@pytest.mark.parametrize(
    ("turtle", "resource", "property", "what"),
    [
        ("<#h> :name 'x' .", "#h", "rdf:type", "the resource has no class"),
        ("<#h> a :Hots .", "#h", "rdf:type", "not a class of the schema"),
        ("<#h> a 'http://x.org/s#Host' .", "#h", "rdf:type", "not a class of the schema"),
        ("<#h> a :Host , :Disk .", "#h", "rdf:type", "unrelated classes"),
        ("<#h> a :Host , :Hots ; :size 5 .", "#h", "rdf:type", "not a class of the schema"),
        ("<#h> a :Host ; :sizee 5 .", "#h", "<http://x.org/s#sizee>", "Host has no such property"),
        ("<#h> a :Host ; rdfs:label 'x' .", "#h", "<http://www.w3.org/2000/01/rdf-schema#label>", "no such"),
        ("<#h> a :Disk ; :name 'x' .", "#h", "name", "Disk has no such property"),
        ("<#h> a :Thing ; :size 5 .", "#h", "size", "Thing has no such property"),
        ("<#h> a :Host ; :size 'much' .", "#h", "size", "not a number"),
        ("<#h> a :Host ; :size '' .", "#h", "size", "not a number"),
        ("<#h> a :Host ; :size '٣' .", "#h", "size", "not a number"),
        ("<#h> a :Host ; :size '1_000' .", "#h", "size", "not a number"),
        ("<#h> a :Host ; :size 'INF'^^xsd:double .", "#h", "size", "not a number"),
        ("<#h> a :Host ; :size 'NaN' .", "#h", "size", "not a number"),
        ("<#h> a :Host ; :size true .", "#h", "size", "not a number"),
        ("<#h> a :Host ; :size '5'@en .", "#h", "size", "not a number"),
        ("<#h> a :Host ; :size 'x'^^xsd:integer .", "#h", "size", "not a number"),
        ("<#h> a :Host ; :name 5 .", "#h", "name", "not a text"),
        ("<#h> a :Host ; :public 'yes' .", "#h", "public", "not true or false"),
        ("<#h> a :Host ; :public 1 .", "#h", "public", "not true or false"),
        ("<#h> a :Host ; :since '31.5.2004' .", "#h", "since", "not a date or a date-time"),
        ("<#h> a :Host ; :since '0001-01-01T00:00:00+02:00' .", "#h", "since", "not a date or a date-time"),
        ("<#h> a :Host ; :since '2004'^^xsd:gYear .", "#h", "since", "not a date or a date-time"),
        ("<#h> a :Host ; :size 5 , 6 .", "#h", "size", "several values of a single-valued property"),
        ("<#h> a :Host ; :near <#i> , <#j> .", "#h", "near", "several values of a single-valued property"),
        ("<#h> a :Host ; :disk '#d' .", "#h", "disk", "a literal where a reference is expected"),
        ("<#h> a :Host ; :name <#x> .", "#h", "name", "a resource where a literal is expected"),
        ("<#h> a :Host ; :disk <#h> .", "#h", "disk", "refers to a resource of another class"),
        (
            "<#h> a :Thing . <#i> a :Host ; :near <#h> .",
            "#i",
            "near",
            "refers to a resource of another class",
        ),
        ("<#h> a :Host ; :near [ a :Disk ] .", "#h", "near", "refers to a resource of another class"),
        ("<#h> a :Host ; :disk [] .", "#h/disk", "rdf:type", "the resource has no class"),
        ("<http://x.org/h> a :Host .", "http://x.org/h", None, "a resource of another document"),
        (f"<{URI}2#h> a :Host .", "2#h", None, "a resource of another document"),
        ("<x/> a :Host .", "http://example.org/x/", None, "a resource of another document"),
        ("<#h> a :Host ; :disk [ a :Disk ] . <#h/disk> a :Disk .", "#h/disk", None, "generated for a nested"),
    ],
)
def test_read_schema_violation_is_rejected(
    turtle: str, resource: str, property: str | None, what: str
) -> None:
    (finding,) = read_findings(turtle)
    assert (finding.resource.removeprefix(URI), finding.property) == (resource, property)
    assert what in finding.what


@pytest.mark.parametrize(
    ("turtle", "hint"),
    [
        ("<#h> a :Hosst .", "did you mean 'Host'?"),
        ("<#h> a :Host ; :nmae 'x' .", "did you mean 'name'?"),
        ("<#h> a :Disk ; :name 'x' .", "it is a property of Thing"),
        ("<#h> a :Thing ; :size 5 .", "it is a property of Host and Disk"),
        ("<#h> a :Host ; :disk 'd' .", 'in RDF/XML a reference is rdf:resource="..."'),
    ],
)
def test_read_rejected_document_has_hint(turtle: str, hint: str) -> None:
    assert read_findings(turtle)[0].hint == hint


@pytest.mark.parametrize(
    "more", ["", "<#b> a rdfs:Class . <#c> a <#a> .", "<#p> a rdf:Property . [] a <#Nothing> ."]
)
def test_read_schema_as_document_is_rejected_with_hint(more: str) -> None:
    (finding,) = read_findings(f"<#a> a rdfs:Class ; rdfs:label 'A' . {more}")
    assert finding.resource == URI and "tidings provider schema FILE" in str(finding.hint)


def test_read_class_among_resources_is_finding() -> None:
    (finding,) = read_findings("<#h> a :Host . <#a> a rdfs:Class .")
    assert (finding.resource, finding.what) == (f"{URI}#a", "not a class of the schema")


def test_read_container_is_rejected_with_hint() -> None:
    bag = read_findings("<#h> a :Host ; :disks [ a rdf:Bag ; rdf:_1 <#d> ] .")
    assert [(each.what, each.hint) for each in bag] == [
        (
            "not a class of the schema",
            "containers are not supported; repeat the property for several values",
        )
    ]
    (cell,) = read_findings("<#h> a :Host ; :disks ( <#d> ) .")
    assert cell.hint == bag[0].hint


def test_read_attribute_without_namespace_is_rejected() -> None:
    with pytest.raises(DecodeProblem, match="memory"):
        DocumentReader(PAPER).read(FIGURE_1.replace(b"s:memory", b"memory"), RDF_XML, URI)


def test_read_error_lists_all_findings_and_can_be_pickled() -> None:
    turtle = "<#h> a :Host ; :size 'much' ; :disk 'd' . <#good> a :Host . <#d> a :Dsk ."
    with pytest.raises(PublicationError) as caught:
        read(turtle)
    assert str(caught.value).split("\n") == [
        f"3 problems ({URI})",
        f"  not a class of the schema ({URI}#d, rdf:type); received <http://x.org/s#Dsk>; "
        "accepted: Thing, Host, Server, Disk; did you mean 'Disk'?",
        f'  not a number ({URI}#h, size); received "much"; accepted: a number',
        f'  a literal where a reference is expected ({URI}#h, disk); received "d"; '
        'accepted: the URI of a resource of Disk; in RDF/XML a reference is rdf:resource="..."',
    ]
    restored = pickle.loads(pickle.dumps(caught.value))
    assert (str(restored), restored.facts()) == (str(caught.value), caught.value.facts())


def test_read_error_limits_shown_findings() -> None:
    with pytest.raises(MetadataError) as caught:
        read(" ".join(f"<#h{number}> a :Hots ." for number in range(250)))
    lines = str(caught.value).split("\n")
    assert (lines[0], len(lines), lines[-1]) == (f"250 problems ({URI})", MAX_SHOWN + 2, "  and 230 more")
    assert len(caught.value.findings) == 250
    assert len(caught.value.facts()["problems"]) == MAX_REPORTED  # type: ignore[arg-type]


def test_read_error_with_single_finding_is_one_line() -> None:
    with pytest.raises(MetadataError) as caught:
        read("<#h> a :Host ; :size 'much' .")
    assert str(caught.value) == f'not a number ({URI}#h, size); received "much"; accepted: a number'
    assert caught.value.facts()["problems"] == [
        {
            "resource": f"{URI}#h",
            "property": "size",
            "what": "not a number",
            "received": '"much"',
            "accepted": "a number",
        }
    ]


@pytest.mark.parametrize("uri", ["doc.rdf", "", f"{URI}#host", "http://exa mple.org/"])
@pytest.mark.parametrize("media_type", [TURTLE, RDF_XML, "application/n-triples"])
def test_read_relative_or_fragment_document_uri_is_rejected(uri: str, media_type: str) -> None:
    body = FIGURE_1 if media_type == RDF_XML else b""
    with pytest.raises(DecodeProblem):
        DocumentReader(PAPER).read(body, media_type, uri)


def test_read_resources_of_other_base_are_rejected_with_hint() -> None:
    (finding,) = read_findings("@base <http://other.org/> . <#h> a :Host .")
    assert finding.hint == "does the document name another base (xml:base, @base)?"


def test_read_nested_blank_resources_are_named_by_path() -> None:
    assert uris("<#h> a :Host ; :disk [ a :Disk ; :size 5 ] .") == ["#h", "#h/disk"]
    assert uris("<> a :Host ; :disk [ a :Disk ] .") == ["", "#/disk"]
    assert uris("<#h> a :Host ; :disks [ a :Disk ] , [ a :Disk ] .") == ["#h", "#h/disks", "#h/disks/2"]
    assert uris("<#h> a :Host ; :near [ a :Host ; :disk [ a :Disk ] ] .") == ["#h", "#h/near", "#h/near/disk"]


def test_read_unreferenced_blank_resources_are_named_by_class() -> None:
    assert uris("[] a :Disk . [] a :Host ; :disk [ a :Disk ] . [] a :Disk .") == [
        "#/Disk",
        "#/Disk/2",
        "#/Host",
        "#/Host/disk",
    ]


def test_read_cyclic_blank_nodes_are_named() -> None:
    assert uris("_:a a :Host ; :near _:b . _:b a :Host ; :near _:a .") == ["#/Host", "#/Host/near"]


def test_read_blank_node_with_two_referrers_is_one_resource() -> None:
    document = read("<#g> a :Host ; :disk _:d . <#h> a :Host ; :disk _:d . _:d a :Disk .")
    assert [each.values.get("disk") for each in document.resources] == [
        (Ref(f"{URI}#g/disk"),),
        None,
        (Ref(f"{URI}#g/disk"),),
    ]


def test_read_generated_name_can_be_referenced() -> None:
    document = read("<#h> a :Host ; :disk [ a :Disk ; :size 5 ] . <#i> a :Host ; :disk <#h/disk> .")
    assert document.resources[2].values == {"disk": (Ref(f"{URI}#h/disk"),)}


def test_read_generated_name_is_stable_under_other_changes() -> None:
    before = "<#h> a :Host ; :disk [ a :Disk ; :size 5 ] ."
    after = "<#g> a :Host ; :disk [ a :Disk ] . [] a :Disk . <#h> a :Host ; :name 'x' ; :disk [ a :Disk ; :size 6 ] ."
    assert "#h/disk" in uris(before)
    assert "#h/disk" in uris(after)
