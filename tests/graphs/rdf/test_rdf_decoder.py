"""Decoding of RDF: all syntaxes, relative IRIs, several graphs, lists, JSON-LD contexts."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from rdflib.compare import isomorphic

from tests.graphs.rdf.graph_bodies import (
    CELLS,
    JSON,
    MEMBER,
    NQ,
    NT,
    TRIG,
    TTL,
    XML,
    Writer,
    decode_error,
    e,
    json_ld,
    rdf_xml,
    turtle,
    without_members,
)
from tests.support.strategies.rdf import (
    PYOXIGRAPH,
    RDFLIB,
    edge_lists,
    edges,
    to_rdflib,
    written_by_pyoxigraph,
    written_by_rdflib,
)
from tidings.errors import DecodeProblem, SetupError
from tidings.graphs.model import RDF, TYPE, XSD, Edge, Graph, Term, TermKind, blank, iri, literal
from tidings.graphs.rdf import json_ld as rdf_json
from tidings.graphs.rdf import rdf_decoder
from tidings.graphs.rdf.media_types import SUFFIXES, SYNTAXES, Syntax, graph_media_type_of, syntax_of
from tidings.graphs.rdf.rdf_decoder import decode, decode_graphs, members

# --- The same graph in every syntax ----------------------------------------------------------------------------------


@pytest.mark.parametrize("write", [written_by_rdflib, written_by_pyoxigraph])
@given(media_type=st.sampled_from(list(RDFLIB)), original=edge_lists)
def test_decode_generated_graph_is_same_in_every_syntax(
    write: Writer, media_type: str, original: list[Edge]
) -> None:
    if write is written_by_rdflib and media_type == JSON:  # rdflib loses cycles of blank nodes
        assume(not any(edge.subject.kind is edge.object.kind is TermKind.BLANK for edge in original))
    body = write(original, media_type)
    decoded = decode(body, media_type)
    assert isomorphic(to_rdflib(decoded.edges), to_rdflib(original)), body.decode()
    assert len(set(decoded.edges)) == len(decoded.edges) == len(original)
    assert decode(body, media_type) == decoded


@given(original=edge_lists)
def test_decode_blank_nodes_are_numbered_in_order_of_appearance(original: list[Edge]) -> None:
    decoded = decode(written_by_pyoxigraph(original, NT), NT)
    labels = [
        term.text
        for edge in decoded.edges
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
def test_decode_same_bytes_give_same_graph(media_type: str, body: bytes) -> None:
    """The parser gives random names to blank nodes."""
    assert len({decode(body, media_type) for _ in range(20)}) == 1


# --- Details of each syntax ------------------------------------------------------------------------------------------

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
def test_decode_turtle_gives_edge(text: str, value: Term) -> None:
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
def test_decode_rdf_xml_gives_edges(inner: str, expected: list[Edge]) -> None:
    assert set(decode(rdf_xml(inner), XML).edges) == set(expected)


def test_decode_rdf_xml_literal_keeps_markup() -> None:
    inner = '<e:p rdf:parseType="Literal"><b resource="x">y</b></e:p>'
    (edge,) = decode(rdf_xml(f'<rdf:Description rdf:about="urn:e:a">{inner}</rdf:Description>'), XML).edges
    assert edge.object.datatype == RDF + "XMLLiteral"
    assert 'resource="x"' in edge.object.text and edge.object.text.endswith(">y</b>")


NORMALISED = {
    "line ends": ("<e:p>a\r\nb\rc&#13;d</e:p>", "a\nb\nc\rd"),
    "an instruction": ("<e:p>a<?pi x?>b</e:p>", "ab"),
    "comments, sections and instructions": (
        "<e:p><!-- c -->a<![CDATA[\r\n<]]>b<?pi?><!-- d --></e:p>",
        "a\n<b",
    ),
    "an instruction first": ("<?pi x?><e:p>a</e:p>", "a"),
}


@pytest.mark.parametrize("before", ["", "<!-- unrelated -->", "<?unrelated?>", "<?xml version='1.0'?>\r\n"])
@pytest.mark.parametrize(("inner", "expected"), NORMALISED.values(), ids=NORMALISED)
def test_decode_rdf_xml_texts_are_normalised_as_in_xml(inner: str, expected: str, before: str) -> None:
    body = before.encode() + rdf_xml(f'<rdf:Description rdf:about="urn:e:a">{inner}</rdf:Description>')
    assert decode(body, XML).edges == (Edge(e("a"), e("p"), literal(expected)),)


@pytest.mark.parametrize("before", ["", "<!-- unrelated -->"])
def test_decode_rdf_xml_attributes_are_normalised_as_in_xml(before: str) -> None:
    body = before.encode() + rdf_xml('<rdf:Description rdf:about="urn:e:a" e:p="a\r\n\tb&#10;c"/>')
    assert decode(body, XML).edges == (Edge(e("a"), e("p"), literal("a  b\nc")),)


@pytest.mark.parametrize("write", [written_by_rdflib, written_by_pyoxigraph])
@given(original=edge_lists, noise=st.sampled_from(["<!-- x -->", "<?p x?>", "<!--\r\n-->"]))
def test_decode_rdf_xml_comment_does_not_change_graph(
    write: Writer, original: list[Edge], noise: str
) -> None:
    body = write(original, XML)
    start = body.index(b">", body.index(b"<rdf:RDF")) + 1
    assert decode(body[:start] + noise.encode() + body[start:], XML) == decode(body, XML)


def test_decode_rdf_xml_many_namespace_declarations_are_accepted() -> None:
    """Raptor declares the namespace of each property where it is used, so a vocabulary of 2,000 statements has 2,000
    declarations.
    """
    inner = "".join(f'<n:p{i} xmlns:n="urn:e:">xmlns</n:p{i}>' for i in range(2_000))
    assert (
        len(decode(rdf_xml(f'<rdf:Description rdf:about="urn:e:a">{inner}</rdf:Description>'), XML).edges)
        == 2_000
    )


def test_decode_rdf_xml_error_has_line_of_publication() -> None:
    """Not the line of the rewritten text that the parser receives, in which a start tag is one line."""
    body = rdf_xml('\n<e:a\n rdf:about="urn:e:a"\n e:p="x"/>\n<e:b bare="x"/>')
    with pytest.raises(DecodeProblem, match="a name without a namespace") as problem:
        decode(body, XML)
    assert problem.value.where == "line 5"


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16", "iso-8859-1", "windows-1252"])
def test_decode_rdf_xml_declared_encoding_is_used(encoding: str) -> None:
    head = f'<?xml version="1.0" encoding="{encoding.removesuffix("-sig")}"?>\n'
    body = head + rdf_xml('<rdf:Description rdf:about="urn:e:a" e:p="é"/>').decode()
    assert decode(body.encode(encoding), XML).edges == (Edge(e("a"), e("p"), literal("é")),)


def test_decode_byte_order_mark_is_ignored() -> None:
    assert len(decode(b"\xef\xbb\xbf<urn:a> <urn:p> 1 .", TTL).edges) == 1
    assert len(decode(b'\xef\xbb\xbf{"@id": "urn:a", "urn:p": 1}', JSON).edges) == 1


def test_decode_json_ld_gives_edges() -> None:
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


def test_decode_repeated_edge_is_one_edge() -> None:
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
def test_decode_relative_iri_without_base_is_rejected(media_type: str) -> None:
    problem = decode_error(RELATIVE[media_type], media_type)
    assert problem.what.startswith("a relative IRI")
    assert problem.received in ("<a>", "<g>")
    ((name, graph),) = decode_graphs(RELATIVE[media_type], media_type, base="http://example.org/x/")
    resolved = {"http://example.org/x/a", "http://example.org/x/g"}
    assert resolved & {term.text for term in (*graph.edges[0], *([name] if name else []))}


@pytest.mark.parametrize("text", ["//host/a", "#a", "?a", "", "../a"])
def test_decode_relative_iri_of_any_form_is_recognised(text: str) -> None:
    assert decode_error(rdf_xml(f'<e:A rdf:about="{text}"/>'), XML).what.startswith("a relative IRI")


def test_decode_invalid_base_is_rejected() -> None:
    assert decode_error(b"<a> <b> <c> .", TTL, base="example").what.startswith("invalid base")


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
def test_decode_graphs_have_names_and_own_blank_nodes(media_type: str, body: bytes) -> None:
    decoded = dict(decode_graphs(body, media_type))
    assert decoded == {
        iri("urn:g"): Graph((Edge(iri("urn:a"), iri("urn:p"), blank("b0")),)),
        None: Graph((Edge(blank("b0"), iri("urn:p"), literal("1", XSD + "integer")),)),
    }
    assert decode_error(body, media_type).what == "the publication has several graphs"


def test_decode_single_named_graph_is_decoded() -> None:
    assert decode(b"<urn:g> { <urn:a> <urn:p> <urn:b> }", TRIG) == decode(b"<urn:a> <urn:p> <urn:b> .", TTL)


# --- Containers and lists --------------------------------------------------------------------------------------------


def member_texts(edges: tuple[Edge, ...]) -> set[tuple[str, str]]:
    return {(edge.subject.text, edge.object.text) for edge in edges if edge.property == MEMBER}


@pytest.mark.parametrize("kind", ["Bag", "Seq", "Alt"])
@pytest.mark.parametrize("attribute", ["rdf:resource", "resource"])
def test_decode_container_has_members(kind: str, attribute: str) -> None:
    inner = f'<rdf:{kind} rdf:about="urn:e:c"><rdf:li {attribute}="urn:e:x"/><rdf:li>y</rdf:li></rdf:{kind}>'
    decoded = decode(rdf_xml(inner), XML).edges
    assert member_texts(decoded) == {("urn:e:c", "urn:e:x"), ("urn:e:c", "y")}
    assert Edge(e("c"), iri(RDF + "_1"), e("x")) in decoded


def test_decode_nested_lists_have_members() -> None:
    decoded = turtle("e:a e:p (1 (2 3) e:b) .")
    assert Edge(e("a"), e("p"), blank("b0")) in decoded
    assert member_texts(decoded) == {("b0", "1"), ("b0", "b2"), ("b0", "urn:e:b"), ("b2", "2"), ("b2", "3")}


MALFORMED_LISTS = {
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


@pytest.mark.parametrize(("text", "expected"), MALFORMED_LISTS.values(), ids=MALFORMED_LISTS)
def test_decode_malformed_list_has_reachable_members(text: str, expected: set[str]) -> None:
    decoded = member_texts(turtle(CELLS + text))
    assert {value for head, value in decoded if head == "urn:e:l"} == expected


CELLS_OF = st.tuples(
    st.sampled_from("abcd"), st.sampled_from(["first", "rest", "x"]), st.sampled_from("abcd1")
)


@given(st.lists(CELLS_OF, max_size=8))
def test_members_agree_with_sparql_property_path(cells: list[tuple[str, str, str]]) -> None:
    """Compare with `rdf:rest*/rdf:first` from each cell that starts a list."""
    cell_edges = [Edge(e(s), iri(RDF + p) if p != "x" else e(p), e(o)) for s, p, o in cells]
    graph = to_rdflib(cell_edges)
    rows = graph.query(
        f"""PREFIX rdf: <{RDF}> SELECT DISTINCT ?l ?m WHERE {{ ?l rdf:first ?one . ?l rdf:rest*/rdf:first ?m
        FILTER(EXISTS {{ ?x ?p ?l FILTER(?p != rdf:rest) }} || NOT EXISTS {{ ?y rdf:rest ?l }}) }}"""
    )
    assert member_texts(tuple(members(cell_edges))) == {(str(row[0]), str(row[1])) for row in rows}


# --- Contexts --------------------------------------------------------------------------------------------------------


def test_decode_json_ld_bundled_context_is_applied() -> None:
    body = json_ld(
        at_context="https://schema.org",
        at_id="urn:e:a",
        at_type="Article",
        url="http://example.org/",
        name="x",
    )
    decoded = set(decode(body, JSON).edges)
    assert decoded == {
        Edge(e("a"), iri(TYPE), iri("http://schema.org/Article")),
        Edge(e("a"), iri("http://schema.org/url"), iri("http://example.org/")),
        Edge(e("a"), iri("http://schema.org/name"), literal("x")),
    }


@pytest.mark.parametrize("address", rdf_json.contexts(""))
def test_decode_json_ld_every_bundled_context_is_available(address: str) -> None:
    context = [address, {"mine": "urn:e:mine"}]
    (edge,) = decode(json_ld(at_context=context, id="urn:e:a", mine="x"), JSON).edges
    assert edge == Edge(e("a"), e("mine"), literal("x"))


@pytest.mark.parametrize(
    "context", ["https://example.org/c", [{}, "https://example.org/c"], "file:///etc/passwd"]
)
def test_decode_json_ld_other_context_is_rejected_by_name(context: object) -> None:
    problem = decode_error(json_ld(at_context=context, at_id="urn:e:a", name="x"), JSON)
    assert problem.received in ("https://example.org/c", "file:///etc/passwd")
    assert "https://schema.org" in str(problem.accepted)
    assert rdf_json.FOLDER in str(problem.hint)


def test_decode_json_ld_other_context_inside_term_is_rejected() -> None:
    inner = {"p": {"@id": "urn:p", "@context": "https://example.org/c"}}
    assert (
        decode_error(json_ld(at_context=inner, at_id="urn:e:a", p={}), JSON).received
        == "https://example.org/c"
    )
    problem = decode_error(json_ld(at_context={"@import": "https://example.org/c"}, at_id="urn:e:a"), JSON)
    assert problem.what.startswith("@import")


def test_decode_json_ld_context_of_folder_is_applied(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "contexts.json").write_text('{"mine.jsonld": ["https://example.org/c"]}')
    (tmp_path / "mine.jsonld").write_text('{"@context": {"name": "urn:e:name"}}')
    monkeypatch.setenv(rdf_json.FOLDER, str(tmp_path))
    (edge,) = decode(json_ld(at_context="https://example.org/c", at_id="urn:e:a", name="x"), JSON).edges
    assert edge == Edge(e("a"), e("name"), literal("x"))


@pytest.mark.parametrize("index", [None, "[]", "{", '{"no.jsonld": []}', '{"contexts.json": ["u"]}'])
def test_contexts_invalid_folder_is_rejected(index: str | None, tmp_path: Path) -> None:
    if index is not None:
        (tmp_path / "contexts.json").write_text(index)
    with pytest.raises(SetupError):
        rdf_json.contexts(str(tmp_path))


def test_decode_json_ld_context_in_json_literal_is_data() -> None:
    value = {"@type": "@json", "@value": {"@context": "https://example.org/c"}}
    (edge,) = decode(json_ld(**{"at_id": "urn:e:a", "urn:p": value}), JSON).edges
    assert edge.object.datatype == RDF + "JSON" and "example.org" in edge.object.text


def test_decode_json_ld_without_context_has_hint() -> None:
    assert "@context" in str(decode_error(b'{"name": "x"}', JSON).hint)


# --- Media types -----------------------------------------------------------------------------------------------------


def test_syntax_of_media_types_and_file_suffixes() -> None:
    assert syntax_of("Text/Turtle; charset=utf-8") is Syntax.TURTLE
    assert set(SYNTAXES.values()) == set(Syntax) == set(rdf_decoder._SYNTAXES)
    assert {graph_media_type_of(f"a.b{suffix.upper()}") for suffix in SUFFIXES} == set(SUFFIXES.values())
    assert graph_media_type_of("page.xml") is None and graph_media_type_of("ttl") is None
    assert PYOXIGRAPH.keys() <= SYNTAXES.keys()


@pytest.mark.parametrize("media_type", ["application/xml", "application/json", "", "text/n3"])
def test_decode_other_media_type_is_rejected(media_type: str) -> None:
    problem = decode_error(b"", media_type)
    assert "text/turtle" in str(problem.accepted)


@given(edges)
def test_decode_single_edge_round_trips(edge: Edge) -> None:
    assert without_members(decode(written_by_pyoxigraph([edge], NT), NT))[0].property == edge.property
