"""Graphs: the same graph in every syntax is the same graph; what is refused is named, and the process lives."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable
from dataclasses import fields
from pathlib import Path

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from rdflib.compare import isomorphic

from generated_rdf import (
    PYOXIGRAPH,
    RDFLIB,
    edge_lists,
    edges,
    to_rdflib,
    written_by_pyoxigraph,
    written_by_rdflib,
)
from tidings.errors import DecodeProblem, InputError, SetupError
from tidings.graphs import RDF, RDFS, TYPE, XSD, Edge, Graph, Term, TermKind, blank, iri, literal
from tidings.publications import rdf, rdf_json
from tidings.publications.rdf import decode, decode_graphs
from tidings.publications.rdf_limits import DEFAULT, MOST, OVER, Limits
from tidings.publications.rdf_media_types import SUFFIXES, SYNTAXES, Syntax, graph_media_type_of, syntax_of
from tidings.publications.rdf_members import members

TTL, NT, TRIG, NQ = "text/turtle", "application/n-triples", "application/trig", "application/n-quads"
XML, JSON = "application/rdf+xml", "application/ld+json"
MEMBER = iri(RDFS + "member")

Writer = Callable[[list[Edge], str], bytes]


def e(name: str) -> Term:
    return iri(f"urn:e:{name}")


def turtle(text: str, **more: object) -> tuple[Edge, ...]:
    return decode(f"@prefix e: <urn:e:> . {text}".encode(), TTL, **more).edges  # type: ignore[arg-type]


def rdf_xml(inner: str) -> bytes:
    return f'<rdf:RDF xmlns:rdf="{RDF}" xmlns:e="urn:e:">{inner}</rdf:RDF>'.encode()


def json_ld(**keys: object) -> bytes:
    return json.dumps({key.replace("at_", "@"): value for key, value in keys.items()}).encode()


def without_members(graph: Graph) -> tuple[Edge, ...]:
    return tuple(edge for edge in graph.edges if edge.property != MEMBER)


def refusal(body: bytes, media_type: str, **more: object) -> DecodeProblem:
    with pytest.raises(DecodeProblem) as problem:
        decode(body, media_type, **more)  # type: ignore[arg-type]
    return problem.value


# --- The same graph in every syntax ----------------------------------------------------------------------------------


@pytest.mark.parametrize("write", [written_by_rdflib, written_by_pyoxigraph])
@given(media_type=st.sampled_from(list(RDFLIB)), made=edge_lists)
def test_the_same_graph_in_every_syntax(write: Writer, media_type: str, made: list[Edge]) -> None:
    if write is written_by_rdflib and media_type == JSON:  # rdflib forgets blank nodes that stand in a circle
        assume(not any(edge.subject.kind is edge.object.kind is TermKind.BLANK for edge in made))
    body = write(made, media_type)
    found = decode(body, media_type)
    assert isomorphic(to_rdflib(found.edges), to_rdflib(made)), body.decode()
    assert len(set(found.edges)) == len(found.edges) == len(made)
    assert decode(body, media_type) == found


@given(made=edge_lists)
def test_blank_nodes_are_numbered_in_the_order_they_appear(made: list[Edge]) -> None:
    found = decode(written_by_pyoxigraph(made, NT), NT)
    labels = [
        term.text
        for edge in found.edges
        for term in (edge.subject, edge.object)
        if term.kind is TermKind.BLANK
    ]
    assert list(dict.fromkeys(labels)) == [f"b{number}" for number in range(len(set(labels)))]


@pytest.mark.parametrize(
    ("media_type", "body"),
    [
        (TTL, b"<urn:a> <urn:p> [<urn:q> [], ([] [])], _:x . [] <urn:p> _:x ."),
        (
            XML,
            rdf_xml('<e:a><e:p rdf:nodeID="x"/><e:q><rdf:Bag><rdf:li><e:b/></rdf:li></rdf:Bag></e:q></e:a>'),
        ),
        (
            JSON,
            json_ld(
                **{"urn:p": [{"urn:q": {}}, {"@list": [{"urn:r": 1}]}], "urn:z": {"@id": "_:x", "urn:y": 2}}
            ),
        ),
    ],
)
def test_the_same_bytes_are_the_same_graph(media_type: str, body: bytes) -> None:
    """The parser gives blank nodes names at random."""
    assert len({decode(body, media_type) for _ in range(20)}) == 1


# --- What is easy to get wrong ---------------------------------------------------------------------------------------

ONE_EDGE = {
    "an integer": ("e:a e:p 01 .", literal("01", XSD + "integer")),
    "a decimal": ("e:a e:p +1.50 .", literal("+1.50", XSD + "decimal")),
    "a double": ("e:a e:p 1e0 .", literal("1e0", XSD + "double")),
    "a boolean": ("e:a e:p true .", literal("true", XSD + "boolean")),
    "a language": ('e:a e:p "x"@EN-gb .', literal("x", language="en-gb")),
    "escapes": (r"e:a e:p '\u00e9\n\"\U0001F600' .", literal('é\n"\U0001f600')),
    "a long string": ('e:a e:p """a"b""c\n<<( """ .', literal('a"b""c\n<<( ')),
    "brackets in a string": ("e:a e:p '<<[[[((({{' .", literal("<<[[[((({{")),
    "brackets in a comment": ("e:a e:p e:b . # <<[[[((({{", e("b")),
    "an escaped name": (r"e:a e:p e:b\#\( .", iri("urn:e:b#(")),
    "brackets in an IRI": ("e:a e:p <urn:e:(b)((c> .", iri("urn:e:(b)((c")),
    "an escaped IRI": (r"e:a e:p <urn:e:\u00e9> .", e("é")),
    "SPARQL's prefix": ("PREFIX x: <urn:x:> e:a e:p x:b .", iri("urn:x:b")),
    "a base": ("@base <http://example.org/x/> . e:a e:p <../y> .", iri("http://example.org/y")),
}


@pytest.mark.parametrize(("text", "value"), ONE_EDGE.values(), ids=ONE_EDGE)
def test_turtle(text: str, value: Term) -> None:
    assert turtle(text) == (Edge(e("a"), e("p"), value),)


RDF_XML_EDGES = {
    "a typed node": ('<e:A rdf:about="urn:e:a"/>', [Edge(e("a"), iri(TYPE), e("A"))]),
    "attributes": ('<rdf:Description rdf:about="urn:e:a" e:p="x"/>', [Edge(e("a"), e("p"), literal("x"))]),
    "a datatype": (
        f'<rdf:Description rdf:about="urn:e:a"><e:p rdf:datatype="{XSD}integer">7</e:p></rdf:Description>',
        [Edge(e("a"), e("p"), literal("7", XSD + "integer"))],
    ),
    "a language": (
        '<rdf:Description rdf:about="urn:e:a" xml:lang="DE"><e:p>x</e:p></rdf:Description>',
        [Edge(e("a"), e("p"), literal("x", language="de"))],
    ),
    "CDATA and references": (
        '<rdf:Description rdf:about="urn:e:a"><e:p>&lt;b&#233;<![CDATA[<!DOCTYPE>&x;]]></e:p></rdf:Description>',
        [Edge(e("a"), e("p"), literal("<bé<!DOCTYPE>&x;"))],
    ),
    "a base": (
        '<e:A xml:base="http://example.org/x/" rdf:about="y"/>',
        [Edge(iri("http://example.org/x/y"), iri(TYPE), e("A"))],
    ),
    "a resource": (
        '<rdf:Description rdf:about="urn:e:a"><e:p rdf:parseType="Resource"><e:q>1</e:q></e:p></rdf:Description>',
        [Edge(e("a"), e("p"), blank("b0")), Edge(blank("b0"), e("q"), literal("1"))],
    ),
}


@pytest.mark.parametrize(("inner", "expected"), RDF_XML_EDGES.values(), ids=RDF_XML_EDGES)
def test_rdf_xml(inner: str, expected: list[Edge]) -> None:
    assert set(decode(rdf_xml(inner), XML).edges) == set(expected)


def test_markup_as_a_literal() -> None:
    inner = '<e:p rdf:parseType="Literal"><b resource="x">y</b></e:p>'
    (edge,) = decode(rdf_xml(f'<rdf:Description rdf:about="urn:e:a">{inner}</rdf:Description>'), XML).edges
    assert edge.object.datatype == RDF + "XMLLiteral"
    assert 'resource="x"' in edge.object.text and edge.object.text.endswith(">y</b>")


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16", "iso-8859-1", "windows-1252"])
def test_encodings_of_rdf_xml(encoding: str) -> None:
    head = f'<?xml version="1.0" encoding="{encoding.removesuffix("-sig")}"?>\n'
    body = head + rdf_xml('<rdf:Description rdf:about="urn:e:a" e:p="é"/>').decode()
    assert decode(body.encode(encoding), XML).edges == (Edge(e("a"), e("p"), literal("é")),)


def test_a_byte_order_mark_is_no_matter() -> None:
    assert len(decode(b"\xef\xbb\xbf<urn:a> <urn:p> 1 .", TTL).edges) == 1
    assert len(decode(b'\xef\xbb\xbf{"@id": "urn:a", "urn:p": 1}', JSON).edges) == 1


def test_json_ld() -> None:
    context = {"@vocab": "urn:e:", "knows": {"@type": "@id"}, "when": {"@type": XSD + "date"}}
    keys = {"@context": context, "@id": "urn:e:a", "@type": "P", "knows": "urn:e:b", "when": "2024-05-01"}
    body = json.dumps(keys | {"age": 7, "size": 1.5, "name": [{"@value": "x", "@language": "FR"}]}).encode()
    assert {edge[1:] for edge in decode(body, JSON).edges} == {
        (iri(TYPE), e("P")),
        (e("knows"), e("b")),
        (e("when"), literal("2024-05-01", XSD + "date")),
        (e("age"), literal("7", XSD + "integer")),
        (e("size"), literal("1.5E0", XSD + "double")),
        (e("name"), literal("x", language="fr")),
    }


def test_an_edge_that_is_written_twice_is_one() -> None:
    assert len(turtle("e:a e:p 1, 1 . e:a e:p 1 .")) == 1
    assert turtle("") == ()


# --- Relative IRIs ---------------------------------------------------------------------------------------------------

RELATIVE = {
    TTL: b"<a> <urn:p> 1 .",
    TRIG: b"<g> { <urn:a> <urn:p> 1 }",
    XML: rdf_xml('<e:A rdf:about="a"/>'),
    JSON: json_ld(at_id="a", at_type="urn:T"),
}


@pytest.mark.parametrize("media_type", RELATIVE)
def test_relative_iris_need_a_base(media_type: str) -> None:
    problem = refusal(RELATIVE[media_type], media_type)
    assert problem.what.startswith("a relative IRI")
    assert problem.received in ("<a>", "<g>")
    ((name, graph),) = decode_graphs(RELATIVE[media_type], media_type, base="http://example.org/x/")
    resolved = {"http://example.org/x/a", "http://example.org/x/g"}
    assert resolved & {term.text for term in (*graph.edges[0], *([name] if name else []))}


@pytest.mark.parametrize("text", ["//host/a", "#a", "?a", "", "../a"])
def test_relative_iris_of_each_form_are_recognised(text: str) -> None:
    assert refusal(rdf_xml(f'<e:A rdf:about="{text}"/>'), XML).what.startswith("a relative IRI")


def test_a_base_that_is_none() -> None:
    assert refusal(b"<a> <b> <c> .", TTL, base="example").what.startswith("not a base")


# --- Several graphs --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("media_type", "body"),
    [
        (TRIG, b"<urn:g> { <urn:a> <urn:p> _:x } _:x <urn:p> 1 ."),
        (NQ, b'<urn:a> <urn:p> _:x <urn:g> .\n_:x <urn:p> "1"^^<http://www.w3.org/2001/XMLSchema#integer> .'),
        (
            JSON,
            b'[{"@id": "urn:g", "@graph": {"@id": "urn:a", "urn:p": {"@id": "_:x"}}}, {"@id": "_:x", "urn:p": 1}]',
        ),
    ],
)
def test_each_graph_has_its_name_and_its_own_blank_nodes(media_type: str, body: bytes) -> None:
    found = dict(decode_graphs(body, media_type))
    assert found == {
        iri("urn:g"): Graph((Edge(iri("urn:a"), iri("urn:p"), blank("b0")),)),
        None: Graph((Edge(blank("b0"), iri("urn:p"), literal("1", XSD + "integer")),)),
    }
    assert refusal(body, media_type).what == "the publication holds several graphs"


def test_one_graph_with_a_name_is_one_graph() -> None:
    assert decode(b"<urn:g> { <urn:a> <urn:p> <urn:b> }", TRIG) == decode(b"<urn:a> <urn:p> <urn:b> .", TTL)


# --- Containers and lists --------------------------------------------------------------------------------------------


def members_of(edges: tuple[Edge, ...]) -> set[tuple[str, str]]:
    return {(edge.subject.text, edge.object.text) for edge in edges if edge.property == MEMBER}


@pytest.mark.parametrize("kind", ["Bag", "Seq", "Alt"])
@pytest.mark.parametrize("attribute", ["rdf:resource", "resource"])
def test_members_of_containers(kind: str, attribute: str) -> None:
    inner = f'<rdf:{kind} rdf:about="urn:e:c"><rdf:li {attribute}="urn:e:x"/><rdf:li>y</rdf:li></rdf:{kind}>'
    found = decode(rdf_xml(inner), XML).edges
    assert members_of(found) == {("urn:e:c", "urn:e:x"), ("urn:e:c", "y")}
    assert Edge(e("c"), iri(RDF + "_1"), e("x")) in found


def test_elements_of_lists() -> None:
    found = turtle("e:a e:p (1 (2 3) e:b) .")
    assert Edge(e("a"), e("p"), blank("b0")) in found
    assert members_of(found) == {("b0", "1"), ("b0", "b2"), ("b0", "urn:e:b"), ("b2", "2"), ("b2", "3")}


CELLS = f"@prefix rdf: <{RDF}> . "
BROKEN = {
    "a circle": (
        "e:a e:p e:l . e:l rdf:first 1 ; rdf:rest e:m . e:m rdf:first 2 ; rdf:rest e:l .",
        {"1", "2"},
    ),
    "a circle by itself": ("e:l rdf:first 1 ; rdf:rest e:l .", set()),
    "no end": ("e:l rdf:first 1 ; rdf:rest e:m . e:m rdf:first 2 .", {"1", "2"}),
    "two ends": (
        "e:l rdf:first 1 ; rdf:rest e:m, e:n . e:m rdf:first 2 . e:n rdf:first 3 .",
        {"1", "2", "3"},
    ),
    "two elements in one cell": ("e:l rdf:first 1, 2 ; rdf:rest () .", {"1", "2"}),
    "a tail that is text": ("e:l rdf:first 1 ; rdf:rest 'x' .", {"1"}),
    "no first": ("e:l rdf:rest (2) .", set()),
    "not a place": ("e:l rdf:_0 1 ; rdf:_01 2 ; rdf:_x 3 ; rdf:_1 4 .", {"4"}),
}


@pytest.mark.parametrize(("text", "expected"), BROKEN.values(), ids=BROKEN)
def test_broken_lists(text: str, expected: set[str]) -> None:
    found = members_of(turtle(CELLS + text))
    assert {value for head, value in found if head == "urn:e:l"} == expected


CELLS_OF = st.tuples(
    st.sampled_from("abcd"), st.sampled_from(["first", "rest", "x"]), st.sampled_from("abcd1")
)


@given(st.lists(CELLS_OF, max_size=8))
def test_members_are_those_that_sparql_finds(made: list[tuple[str, str, str]]) -> None:
    """For every cell that begins a list: what `rdf:rest*/rdf:first` leads to from there."""
    written = [Edge(e(s), iri(RDF + p) if p != "x" else e(p), e(o)) for s, p, o in made]
    graph = to_rdflib(written)
    rows = graph.query(
        f"""PREFIX rdf: <{RDF}> SELECT DISTINCT ?l ?m WHERE {{ ?l rdf:first ?one . ?l rdf:rest*/rdf:first ?m
        FILTER(EXISTS {{ ?x ?p ?l FILTER(?p != rdf:rest) }} || NOT EXISTS {{ ?y rdf:rest ?l }}) }}"""
    )
    assert members_of(tuple(members(written))) == {(str(row[0]), str(row[1])) for row in rows}


# --- Contexts --------------------------------------------------------------------------------------------------------


def test_bundled_contexts() -> None:
    body = json_ld(
        at_context="https://schema.org",
        at_id="urn:e:a",
        at_type="Article",
        url="http://example.org/",
        name="x",
    )
    found = set(decode(body, JSON).edges)
    assert found == {
        Edge(e("a"), iri(TYPE), iri("http://schema.org/Article")),
        Edge(e("a"), iri("http://schema.org/url"), iri("http://example.org/")),
        Edge(e("a"), iri("http://schema.org/name"), literal("x")),
    }


@pytest.mark.parametrize("address", rdf_json.contexts(""))
def test_every_bundled_context_can_be_used(address: str) -> None:
    context = [address, {"mine": "urn:e:mine"}]
    (edge,) = decode(json_ld(at_context=context, id="urn:e:a", mine="x"), JSON).edges
    assert edge == Edge(e("a"), e("mine"), literal("x"))


@pytest.mark.parametrize(
    "context", ["https://example.org/c", [{}, "https://example.org/c"], "file:///etc/passwd"]
)
def test_other_contexts_are_refused_by_name(context: object) -> None:
    problem = refusal(json_ld(at_context=context, at_id="urn:e:a", name="x"), JSON)
    assert problem.received in ("https://example.org/c", "file:///etc/passwd")
    assert "https://schema.org" in str(problem.accepted)
    assert rdf_json.FOLDER in str(problem.hint)


def test_contexts_inside_terms_are_refused_too() -> None:
    inner = {"p": {"@id": "urn:p", "@context": "https://example.org/c"}}
    assert refusal(json_ld(at_context=inner, at_id="urn:e:a", p={}), JSON).received == "https://example.org/c"
    problem = refusal(json_ld(at_context={"@import": "https://example.org/c"}, at_id="urn:e:a"), JSON)
    assert problem.what.startswith("@import")


def test_contexts_of_a_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "contexts.json").write_text('{"mine.jsonld": ["https://example.org/c"]}')
    (tmp_path / "mine.jsonld").write_text('{"@context": {"name": "urn:e:name"}}')
    monkeypatch.setenv(rdf_json.FOLDER, str(tmp_path))
    (edge,) = decode(json_ld(at_context="https://example.org/c", at_id="urn:e:a", name="x"), JSON).edges
    assert edge == Edge(e("a"), e("name"), literal("x"))


@pytest.mark.parametrize("index", [None, "[]", "{", '{"no.jsonld": []}', '{"contexts.json": ["u"]}'])
def test_a_folder_of_contexts_that_is_none(index: str | None, tmp_path: Path) -> None:
    if index is not None:
        (tmp_path / "contexts.json").write_text(index)
    with pytest.raises(SetupError):
        rdf_json.contexts(str(tmp_path))


def test_data_that_looks_like_a_context_is_data() -> None:
    value = {"@type": "@json", "@value": {"@context": "https://example.org/c"}}
    (edge,) = decode(json_ld(**{"at_id": "urn:e:a", "urn:p": value}), JSON).edges
    assert edge.object.datatype == RDF + "JSON" and "example.org" in edge.object.text


def test_json_that_means_nothing() -> None:
    assert "@context" in str(refusal(b'{"name": "x"}', JSON).hint)


# --- What is refused -------------------------------------------------------------------------------------------------

MALFORMED = {
    "turtle": (TTL, b"<urn:a> <urn:p>\n  q .", "line 2, column 3"),
    "turtle ends": (TTL, b"<urn:a> <urn:p> 'x", "column 17"),
    "turtle prefix": (TTL, b"x:a <urn:p> 1 .", "column 1"),
    "turtle triple term": (TTL, b"<urn:a> <urn:p> <<( <urn:a> <urn:p> 1 )>> .", "column 17"),
    "turtle reified": (TTL, b"<< <urn:a> <urn:p> 1 >> <urn:p> 1 .", "column 1"),
    "turtle surrogate": (TTL, b'<urn:a> <urn:p> "\\uD800" .', "column 18"),
    "turtle bytes": (TTL, b'<urn:a> <urn:p> "\xff" .', "column 18"),
    "utf-16": (TTL, "<urn:a> <urn:p> 1 .".encode("utf-16"), "column 1"),
    "n-triples": (NT, b"<urn:a> <urn:p> 1 .", "column 17"),
    "n-triples second": (NT, b"<urn:a> <urn:p> <urn:b> .\n<urn:a> 'x' <urn:b> .", "line 2, column 9"),
    "trig": (TRIG, b"<urn:g> { <urn:a> <urn:p> }", "column 27"),
    "n-quads": (NQ, b"<urn:a> <urn:p> <urn:b> 'x' .", "column 25"),
    "rdf/xml": (XML, rdf_xml("\n<e:a>"), "line 2"),
    "rdf/xml entity": (XML, rdf_xml("<e:a>&nbsp;</e:a>"), "column"),
    "rdf/xml namespace": (XML, rdf_xml('\n<e:a><e:p resource="urn:x"/></e:a>'), "line 2"),
    "rdf/xml twice": (
        XML,
        rdf_xml('\n<rdf:Bag><rdf:li resource="urn:a" rdf:resource="urn:b"/></rdf:Bag>'),
        "line 2",
    ),
    "rdf/xml empty": (XML, b"", "column 1"),
    "json-ld": (JSON, b'{"@id": "urn:a",\n "urn:p": }', "line 2, column 11"),
    "json-ld twice": (JSON, b'{"urn:p": 1, "urn:p": 2}', "column 14"),
}


@pytest.mark.parametrize(("media_type", "body", "where"), MALFORMED.values(), ids=MALFORMED)
def test_malformed(media_type: str, body: bytes, where: str) -> None:
    problem = refusal(body, media_type)
    assert where in str(problem.place.describe() if problem.place else problem.where)


def test_columns_count_characters() -> None:
    problem = refusal('<urn:a> <urn:p> "é日\U0001f600" q'.encode(), TTL)
    assert problem.place is not None and problem.place.column == 23


WITHOUT_PLACE = {
    "rdf/xml": (XML, rdf_xml('<e:a rdf:about="urn:a" rdf:ID="x"/>'), "not RDF/XML"),
    "json-ld": (JSON, b'{"@id": "urn:a", "@reverse": 3}', "not JSON-LD"),
    "direction": (TTL, b'<urn:a> <urn:p> "x"@en--ltr .', "direction"),
}


@pytest.mark.parametrize(("media_type", "body", "what"), WITHOUT_PLACE.values(), ids=WITHOUT_PLACE)
def test_refused_without_a_place(media_type: str, body: bytes, what: str) -> None:
    assert what in refusal(body, media_type).what


TOKENS = (
    *("<<(", ")>>", "<<", ">>", "{|", "|}", "~", "<urn:a>", "'", '"""', '"', "\\", "#", "\n", " ", "e:a\\"),
    *("[", "]", "(", ")", ".", "<", "e:", ":", "1"),
)


@given(st.lists(st.sampled_from(TOKENS), max_size=30))
def test_no_triple_term_gets_past_the_first_look(tokens: list[str]) -> None:
    """Whatever is made of strings, comments and escapes: none reaches the parser."""
    text = "@prefix e: <urn:e:> . e:a e:p " + "".join(tokens)
    try:
        decode(text.encode(), TTL)
    except DecodeProblem as problem:
        assert problem.place is not None or "triple" not in problem.what, text


@pytest.mark.parametrize(
    "written", ["<urn:c> {| <urn:q> 1 |}", "<urn:c> ~ <urn:r>", "<urn:c>~", "<<( <urn:a> <urn:b> 1 )>>"]
)
@pytest.mark.parametrize("media_type", [TTL, TRIG])
def test_what_makes_a_triple_a_term_is_underlined(written: str, media_type: str) -> None:
    problem = refusal(f"<urn:a> <urn:b> {written} .".encode(), media_type)
    assert "triple" in problem.what and "(RDF 1.2)" in problem.what and problem.place is not None


def test_the_same_signs_elsewhere_are_harmless() -> None:
    text = '@prefix e: <urn:e> . # ~ {| <<\n<http://e/~a> e:\\~b \'~ {| <<\', """<< ~""" .'
    assert [edge.subject.text for edge in decode(text.encode(), TTL).edges] == ["http://e/~a"] * 2


BEYOND = {
    "publication": (TTL, b"#" * 401, 400),
    "depth": (TTL, b"<urn:a> <urn:p> [<urn:p> ([])], ([<urn:p> ([])]) .", 3),
    "graphs": (NQ, b"\n".join(b"<urn:a> <urn:a> <urn:a> <urn:%d> ." % i for i in range(3)), 2),
    "edges": (TTL, b"<urn:a> <urn:p> 1, 2, 3, 4, 5, 6 .", 5),
    "nodes": (TTL, b"<urn:1> <urn:p> <urn:2> . <urn:3> <urn:p> <urn:4> . <urn:3> <urn:p> <urn:5> .", 4),
    "term": (TTL, b"<urn:a> <http://example.org/p> '123' .", 19),
    "text": (TTL, b"<urn:a> <urn:p> '1234567890', '1234567890' .", 39),
    "namespaces": (XML, rdf_xml("<a xmlns='urn:u' xmlns:b='urn:u'/>"), 3),
    "attributes": (XML, rdf_xml('<rdf:Description rdf:about="urn:e:a" e:p="" e:q=""/>'), 2),
    "context_terms": (JSON, json_ld(at_context={"a": "urn:a", "b": "urn:b", "c": {"@id": "urn:c"}}, a=1), 2),
    "context_work": (
        JSON,
        json_ld(at_context={"a": {"@id": "urn:a", "@context": {"b": "urn:b"}}}, a=[{}] * 9),
        12,
    ),
}


@pytest.mark.parametrize("limit", BEYOND)
def test_each_limit_is_named_in_its_refusal(limit: str) -> None:
    media_type, body, most = BEYOND[limit]
    with pytest.raises(DecodeProblem) as problem:
        decode_graphs(body, media_type, limits=Limits(**{limit: most}))
    assert problem.value.what == OVER[limit][0]
    assert f"at most {most:,} " in str(problem.value.accepted)
    assert f"(the limit {limit})" in str(problem.value.accepted)
    decode_graphs(body, media_type)  # and nothing else is wrong with it


def test_every_limit_is_tried() -> None:
    assert BEYOND.keys() | {"items"} == OVER.keys() == {field.name for field in fields(Limits)}


def test_members_count_as_edges() -> None:
    """A list of n cells, each pointed at, has n * n / 2 members: the limit is what keeps that from being tried."""
    cells = "".join(f"e:{i} rdf:first {i} ; rdf:rest e:{i + 1} . e:x e:p e:{i} ." for i in range(2_000))
    assert refusal(f"@prefix e: <urn:e:> . {CELLS}{cells}".encode(), TTL).what == OVER["edges"][0]


@pytest.mark.parametrize("limit", MOST)
def test_limits_that_the_parser_cannot_hold(limit: str) -> None:
    with pytest.raises(InputError, match="not a limit"):
        Limits(**{limit: MOST[limit] + 1})


# --- What would end the process, were it not refused first ----------------------------------------------------------

N = 100_000
LAUGHS = "".join(f'<!ENTITY l{i} "{f"&l{i - 1};" * 10}">' for i in range(1, 10))
HARMFUL = {
    "entities": (XML, f'<!DOCTYPE a [<!ENTITY l0 "lol">{LAUGHS}]><a>&l9;</a>', "document type declaration"),
    "external entity": (XML, '<!DOCTYPE a [<!ENTITY x SYSTEM "file:///etc/passwd">]><a>&x;</a>', "document type"),
    "elements": (XML, rdf_xml("<e:a><e:p>" * N + "</e:p></e:a>" * N).decode(), "nested too deeply"),
    "elements within libxml2's depth": (XML, rdf_xml("<e:a><e:p>" * 110 + "</e:p></e:a>" * 110).decode(), "nested"),
    "blank nodes": (TTL, "<urn:a> <urn:p> " + "[<urn:p> " * N + "1" + "]" * N + " .", "nested too deeply"),
    "lists": (TTL, "<urn:a> <urn:p> " + "(" * N + ")" * N + " .", "nested too deeply"),
    "triple terms": (TTL, "<urn:a> <urn:p> " + "<<( <urn:a> <urn:p> " * N + "1" + ")>>" * N + " .", "triple as a term"),
    "triple terms behind a string": (TTL, "<urn:a> <urn:p> '''\\'''', " + "<<( <urn:a> <urn:p> " * N, "triple as"),
    "triple terms in N-Triples": (NT, "<urn:a> <urn:p> " + "<<( <urn:a> <urn:p> " * N + "<urn:a>", "triple"),
    "graphs": (TRIG, "<urn:g> { <urn:a> <urn:p> " + "[ <urn:p> " * N, "nested too deeply"),
    "objects": (JSON, '{"urn:p":' * N + "1" + "}" * N, "nested too deeply"),
    "objects the parser would take": (JSON, '{"urn:p":' * 16_000 + "1" + "}" * 16_000, "nested too deeply"),
    "reverse": (JSON, '{"@reverse":{"urn:p":' * 16_000 + "{}" + "}}" * 16_000, "nested too deeply"),
    "arrays": (JSON, '{"urn:p":' + "[" * N + "]" * N + "}", "nested too deeply"),
    "terms defined by terms": (
        JSON,
        json.dumps({"@context": {f"t{i}": f"t{i + 1}:x" for i in range(20_000)}, "t0": 1}),
        "too many terms",
    ),
    "contexts of terms": (
        JSON,
        json.dumps({"@context": {"p": {"@context": {f"t{i}": f"urn:{i}" for i in range(400)}}}, "p": [{}] * N}),
        "read too often",
    ),
    "long terms": (TTL, "<urn:a> <urn:p> '" + "x" * 2_000_000 + "' .", "a term is too long"),
    "a long prefix": (TTL, f"@prefix e: <urn:{'x' * 900_000}> . e:a e:p " + "e:b, " * N + "e:f .", "too long"),
    "a long vocabulary": (
        JSON,
        json.dumps({"@context": {"@vocab": "urn:" + "x" * 900_000}} | {f"k{i}": 1 for i in range(50_000)}),
        "too long",
    ),
    "closing brackets": (TTL, "<urn:a> <urn:p> " + ")" * 5_000_000, "closed that was not opened"),
    "brackets": (TTL, "<urn:a> <urn:p> " + "(), " * 3_000_000, "too many edges"),
    "attributes": (XML, rdf_xml("<e:a " + " ".join(f'e:a{i}=""' for i in range(N)) + "/>").decode(), "too many attr"),
    "edges": (NT, "".join(f"<urn:a> <urn:{i}> <urn:b> .\n" for i in range(N + 1)), "too many edges"),
    "namespaces": (XML, rdf_xml("<e:a" + "".join(f' xmlns:n{i}="urn:n"' for i in range(N)) + "/>").decode(), "names"),
}  # fmt: skip

CHILD = """
import json, sys
from tidings.errors import DecodeProblem
from tidings.publications.rdf import decode
for name, (media_type, text, _) in json.load(sys.stdin).items():
    try:
        decode(text.encode(), media_type)
        print(json.dumps([name, "accepted"]))
    except DecodeProblem as problem:
        print(json.dumps([name, problem.what]), flush=True)
"""


def test_harmful_publications_are_refused_and_the_process_lives() -> None:
    """In a process of its own, because without the first look some of these would end it, and the tests with it."""
    done = subprocess.run(
        [sys.executable, "-c", CHILD], input=json.dumps(HARMFUL), capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr[-2_000:]
    said = dict(json.loads(line) for line in done.stdout.splitlines())
    assert said.keys() == HARMFUL.keys()
    assert {name: what for name, what in said.items() if HARMFUL[name][2] not in what} == {}


def test_at_the_limits_the_parser_lives() -> None:
    """As deep and as many as the defaults allow."""
    deepest = DEFAULT.depth
    assert decode(b"<urn:a> <urn:p> " + b"[<urn:p> " * deepest + b"1" + b"]" * deepest + b" .", TTL).edges
    terms = DEFAULT.context_terms
    chain = {f"t{i}": f"t{i + 1}:x" for i in range(terms - 1)} | {f"t{terms - 1}": "urn:x"}
    assert decode(json_ld(at_context=chain, t0=1), JSON).edges
    elements = (deepest - 2) // 2
    assert decode(rdf_xml("<e:a><e:p>" * elements + "</e:p></e:a>" * elements), XML).edges


# --- Media types -----------------------------------------------------------------------------------------------------


def test_media_types() -> None:
    assert syntax_of("Text/Turtle; charset=utf-8") is Syntax.TURTLE
    assert set(SYNTAXES.values()) == set(Syntax) == set(rdf._SYNTAXES)
    assert {graph_media_type_of(f"a.b{suffix.upper()}") for suffix in SUFFIXES} == set(SUFFIXES.values())
    assert graph_media_type_of("page.xml") is None and graph_media_type_of("ttl") is None
    assert PYOXIGRAPH.keys() <= SYNTAXES.keys()


@pytest.mark.parametrize("media_type", ["application/xml", "application/json", "", "text/n3"])
def test_other_media_types_are_refused(media_type: str) -> None:
    problem = refusal(b"", media_type)
    assert "text/turtle" in str(problem.accepted)


@given(edges)
def test_an_edge_by_itself(edge: Edge) -> None:
    assert without_members(decode(written_by_pyoxigraph([edge], NT), NT))[0].property == edge.property
