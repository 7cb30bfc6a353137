"""SPARQL over resources: results of rdflib, unsupported keywords, and limits."""

from __future__ import annotations

import json
from itertools import count
from socket import create_server

import pyoxigraph
import pytest
import rdflib
from hypothesis import given
from hypothesis import strategies as st
from rdflib.namespace import RDF

from tests.support.stores.cycle_providers import SCHEMA
from tests.support.strategies.effort import share
from tests.support.strategies.metadata import DOCUMENTS, document_graph, resources, schemas
from tidings.errors import InputError, NotSupported, SyntaxProblem, TooLarge
from tidings.metadata.queries import sparql
from tidings.metadata.queries.sparql import CSV, JSON, Limits, ResourceGraph
from tidings.metadata.queries.sparql_syntax import MAX_QUERY_LENGTH, check_sparql
from tidings.metadata.resources import Ref, Resource
from tidings.metadata.schema.model import Schema
from tidings.values import parse_instant

H = "http://example.org/doc.rdf#"
S = "http://example.org/servers#"
P = f"PREFIX s: <{S}> "
RESOURCES = (
    Resource(
        f"{H}host",
        "CycleProvider",
        {
            "serverPort": (80,),
            "open": (True,),
            "since": ("2004-05-31T00:00:00.000000Z",),
            "tags": ("fast", "it's"),
            "serverInformation": (Ref(f"{H}info"),),
        },
    ),
    Resource(f"{H}info", "ServerInformation", {"memory": (2.5,), "backup": (Ref(f"{H}gone"),)}),
)
GRAPH = ResourceGraph(RESOURCES, SCHEMA)
CROSS = " . ".join(f"?a{n} ?b{n} ?c{n}" for n in range(12))


def rows(text: str) -> list[list[str]]:
    return [line.split(",") for line in GRAPH.ask(P + text, CSV).body.decode().split("\r\n")[1:-1]]


def test_ask_select_returns_rows() -> None:
    assert rows("SELECT ?c { ?c a s:Provider }") == [[f"{H}host"]]
    assert rows("SELECT ?m { ?c s:serverInformation/s:memory ?m FILTER(?m > 2) }") == [["2.5"]]
    assert rows("SELECT ?t { ?c s:tags ?t FILTER CONTAINS(?t, 'as') }") == [["fast"]]
    assert rows("SELECT ?b { ?i s:backup ?b FILTER NOT EXISTS { ?b a ?class } }") == [[f"{H}gone"]]
    instant = '"2004-05-30T22:00:00-02:00"^^xsd:dateTime'
    assert rows(f"SELECT ?c {{ ?c s:since ?d FILTER(?d = {instant}) }}") == [[f"{H}host"]]


def test_ask_resources_with_invalid_iri_are_left_out_and_counted() -> None:
    """The other resources are still queried."""
    wrong = Resource(f"{H}a b", "ServerInformation", {"memory": (4,)})
    refers = Resource(f"{H}c", "CycleProvider", {"serverInformation": (Ref(wrong.uri),), "serverPort": (8,)})
    answer = ResourceGraph((*RESOURCES, wrong, refers), SCHEMA).ask(
        f"{P}SELECT ?c ?p {{ ?c ?x ?p FILTER isNumeric(?p) }}", CSV
    )
    assert sorted(answer.body.decode().split("\r\n")[1:-1]) == [f"{H}c,8", f"{H}host,80", f"{H}info,2.5"]
    assert answer.left_out == 2 and GRAPH.ask("ASK {}").left_out == 0


def test_ask_supports_ask_construct_and_describe() -> None:
    assert json.loads(GRAPH.ask(P + "ASK { ?c s:open true }").body) == {"head": {}, "boolean": True}
    constructed = GRAPH.ask(P + "CONSTRUCT { ?c s:x ?p } WHERE { ?c s:serverPort ?p }")
    assert constructed.media_type == "application/n-triples"
    assert constructed.body.decode().startswith(f"<{H}host> <{S}x> ")
    described = rdflib.Graph().parse(data=GRAPH.ask(f"DESCRIBE <{H}info>").body, format="nt")
    assert (rdflib.URIRef(f"{H}info"), RDF.type, rdflib.URIRef(f"{S}ServerInformation")) in described


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("SELECT * { SERVICE <http://example.org/> { ?s ?p ?o } }", "SERVICE is not supported (column 12)"),
        ("SELECT * { service silent ?x { ?s ?p ?o } }", "SERVICE is not supported"),
        ("SELECT * { \\u0053ERVICE <http://example.org/> { ?s ?p ?o } }", "SERVICE is not supported"),
        ('SELECT * { ?s ?p "a\\"b" SERVICE <x:y> { } }', "SERVICE is not supported"),
        ("SELECT * FROM <http://example.org/> { ?s ?p ?o }", "FROM is not supported (column 10)"),
        ("SELECT * { GRAPH ?g { ?s ?p ?o } }", "GRAPH is not supported"),
        ("INSERT DATA { <a:b> <a:b> <a:b> }", "INSERT is not supported (column 1)"),
        ("PREFIX a: <a:b> DELETE WHERE { ?s ?p ?o }", "DELETE is not supported"),
        ("LOAD <http://example.org/>", "LOAD is not supported"),
        ("DROP ALL", "DROP is not supported"),
        (
            "SELECT * { ?s ?p 1SERVICE<http://example.org/>{ ?s ?p ?o } }",
            "SERVICE is not supported (column 19)",
        ),
        ("SELECT * { ?s ?p trueSERVICE?x{ ?s ?p ?o } }", "SERVICE is not supported"),
        ("SELECT * { ?s ?p 1.SERVICEs:x{ ?s ?p ?o } }", "SERVICE is not supported"),
        ("SELECT * { SERVICESILENT<a:b>{ ?s ?p ?o } }", "SERVICE is not supported"),
        ("SELECT * { SERVICEs:x # or so\n{ ?s ?p ?o } }", "SERVICE is not supported"),
        ("SELECT * { SERVICE:x{ ?s ?p ?o } }", "SERVICE is not supported"),
        ("SELECT * FROMNAMED<a:b>{ ?s ?p ?o }", "FROM is not supported"),
    ],
)
def test_ask_unsupported_keyword_is_rejected(text: str, message: str) -> None:
    with pytest.raises(NotSupported) as problem:
        GRAPH.ask(text)
    assert message in str(problem.value)


def test_check_sparql_keywords_in_names_and_strings_are_accepted() -> None:
    check_sparql(
        "PREFIX service: <http://example.org/SERVICE#> SELECT ?service { ?service service:load 'SERVICE', "
        '"""a "SERVICE" \' """, \'\'\'FROM\'\'\'@en ; <http://example.org/insert> $from . # SERVICE\n }'
    )


PIECES = (
    "?s ?p ?o .",
    "?service a <http://example.org/SERVICE> .",
    "?s <x:y#SERVICE> 'SERVICE', \"it's\", 'a\\'b', '''it's 'SERVICE\" '''@en .",
    '?s <x:y> """a "quote" \\""" SERVICE""" .',
    "# SERVICE ' \" <\n",
    "x:SERVICE x:service x:a\\-b .",
    "FILTER(?s<?o&&?p>5)",
    "FILTER(?s < 3 && ?o > 2)",
    "?s x:a 1.5e3, -2, true .",
)


@given(st.lists(st.sampled_from(PIECES), min_size=1, max_size=6), st.data())
def test_check_sparql_finds_service_at_any_position(pieces: list[str], data: st.DataObject) -> None:
    head = "PREFIX x: <http://example.org/SERVICE#> SELECT * {"
    harmless = " ".join((head, *pieces, "}"))
    pyoxigraph.Store().query(harmless)
    check_sparql(harmless)
    at = data.draw(st.integers(0, len(pieces)))
    word = data.draw(st.sampled_from(("SERVICE", "service", "SerVice", "SERVICE SILENT", "\\u0053ERVICE")))
    query = (head, *pieces[:at], f"{word} <http://example.org/> {{ ?s ?p ?o }}", *pieces[at:], "}")
    with pytest.raises(NotSupported, match="SERVICE"):
        check_sparql(" ".join(query))


@pytest.mark.parametrize("piece", ["1.", ".", "-", '"\\', "'\\", '"""\\', "<a", "a:", "service:a ", "#", "?"])
def test_ask_long_invalid_query_is_rejected_in_linear_time(piece: str) -> None:
    """A tokenizer that scans ahead from each character would need minutes."""
    with pytest.raises(SyntaxProblem):
        GRAPH.ask(piece * (MAX_QUERY_LENGTH // len(piece)))


def test_ask_unknown_prefix_after_long_text_is_rejected() -> None:
    with pytest.raises(SyntaxProblem, match="a:b"):
        GRAPH.ask(f"SELECT * {{ ?s ?p '{'.' * (MAX_QUERY_LENGTH - 100)}' . ?s a:b ?o }}")


def test_ask_invalid_query_is_rejected_with_position() -> None:
    with pytest.raises(SyntaxProblem, match=r"invalid SPARQL.*\(line 2, column 1\d\)"):
        GRAPH.ask("SELECT *\nWHERE { ?s ?p")
    with pytest.raises(SyntaxProblem, match="too long"):
        GRAPH.ask("SELECT * { ?s ?p ?o } #" + "x" * 200_000)


def test_ask_exceeding_time_size_or_memory_is_stopped() -> None:
    """Without limits, each of these queries would practically never end."""
    with pytest.raises(TooLarge, match="takes too long"):
        GRAPH.ask(f"SELECT (COUNT(*) AS ?n) {{ {CROSS} }}", limits=Limits(seconds=1))
    with pytest.raises(TooLarge, match="too large an answer"):
        GRAPH.ask(f"SELECT * {{ {CROSS} }}", limits=Limits(seconds=100, answer=1))
    with pytest.raises(TooLarge, match="too much memory"):
        GRAPH.ask(f"SELECT * {{ {CROSS} }} ORDER BY ?a1", limits=Limits(seconds=100, memory=50))
    assert rows("SELECT ?c { ?c a s:Provider }") == [[f"{H}host"]]


def test_ask_service_opens_no_connection_even_without_check(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sparql, "check_sparql", lambda text: None)
    with create_server(("127.0.0.1", 0)) as listening:
        listening.setblocking(False)
        address = f"http://127.0.0.1:{listening.getsockname()[1]}/"
        with pytest.raises(InputError, match="cannot be evaluated"):
            GRAPH.ask(f"SELECT * {{ SERVICE <{address}> {{ ?s ?p ?o }} }}")
        with pytest.raises(BlockingIOError):
            listening.accept()


@st.composite
def patterns(draw: st.DrawFn, schema: Schema) -> str:
    """Draw basic graph patterns: classes, properties in either direction, some of them optional."""
    numbers = count(1)
    parts, variables = [], ["?v0"]
    iris = [property.iri for properties in schema.properties.values() for property in properties]
    for _ in range(draw(st.integers(1, 4))):
        variable = draw(st.sampled_from(variables))
        kind = draw(st.sampled_from(("class", "along", "back", "optional")))
        if kind == "class":
            parts.append(
                f"{variable} a <{draw(st.sampled_from(sorted(schema.classes.values(), key=str))).iri}> ."
            )
            continue
        new = f"?v{next(numbers)}"
        ends = (new, variable) if kind == "back" else (variable, new)
        triple = f"{ends[0]} <{draw(st.sampled_from(iris))}> {ends[1]} ."
        parts.append(f"OPTIONAL {{ {triple} }}" if kind == "optional" else triple)
        variables.append(new)
    return f"SELECT DISTINCT {' '.join(variables)} {{ {' '.join(parts)} }}"


@share(2)
@given(st.data())
def test_ask_random_patterns_give_results_of_rdflib(data: st.DataObject) -> None:
    schema = data.draw(schemas())
    drawn = [each for uri in DOCUMENTS[:2] for each in data.draw(resources(schema, uri))]
    graph = document_graph(drawn, schema)
    for each in drawn:
        for above in schema.at_or_above(each.cls):
            graph.add((rdflib.URIRef(each.uri), RDF.type, rdflib.URIRef(schema.classes[above].iri)))
    graph_of_resources = ResourceGraph(drawn, schema)
    for _ in range(2):
        text = data.draw(patterns(schema))
        bindings = json.loads(graph_of_resources.ask(text, JSON).body)["results"]["bindings"]
        expected = [
            {str(name): _plain(value) for name, value in row.items()} for row in graph.query(text).bindings
        ]
        assert _sorted_rows(
            [{name: _value_of_json(value) for name, value in row.items()} for row in bindings]
        ) == _sorted_rows(expected)


def _sorted_rows(rows: list[dict[str, object]]) -> list[str]:
    return sorted(repr(sorted(row.items())) for row in rows)


def _plain(value: rdflib.term.Identifier) -> object:
    if isinstance(value, rdflib.URIRef):
        return f"<{value}>"
    return _value_of_literal(str(value), str(value.datatype))


def _value_of_json(value: dict[str, str]) -> object:
    if value["type"] == "uri":
        return f"<{value['value']}>"
    return _value_of_literal(value["value"], value.get("datatype", ""))


def _value_of_literal(text: str, datatype: str) -> object:
    """Return the value of a literal.

    Both implementations write numbers and instants in their own way.
    """
    kind = datatype.rpartition("#")[2]
    if kind == "dateTime":
        return parse_instant(text).micros
    return float(text) if kind in ("integer", "double", "decimal") else text
