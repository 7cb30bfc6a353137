"""SPARQL over resources: what rdflib finds in the same triples, and what is refused and stopped."""

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
THERE = (
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
GRAPH = ResourceGraph(THERE, SCHEMA)
CROSS = " . ".join(f"?a{n} ?b{n} ?c{n}" for n in range(12))


def rows(text: str) -> list[list[str]]:
    return [line.split(",") for line in GRAPH.ask(P + text, CSV).body.decode().split("\r\n")[1:-1]]


def test_select() -> None:
    assert rows("SELECT ?c { ?c a s:Provider }") == [[f"{H}host"]]
    assert rows("SELECT ?m { ?c s:serverInformation/s:memory ?m FILTER(?m > 2) }") == [["2.5"]]
    assert rows("SELECT ?t { ?c s:tags ?t FILTER CONTAINS(?t, 'as') }") == [["fast"]]
    assert rows("SELECT ?b { ?i s:backup ?b FILTER NOT EXISTS { ?b a ?class } }") == [[f"{H}gone"]]
    instant = '"2004-05-30T22:00:00-02:00"^^xsd:dateTime'
    assert rows(f"SELECT ?c {{ ?c s:since ?d FILTER(?d = {instant}) }}") == [[f"{H}host"]]


def test_what_is_no_iri_is_left_out() -> None:
    """The others are asked all the same, and it is said how many are missing."""
    wrong = Resource(f"{H}a b", "ServerInformation", {"memory": (4,)})
    refers = Resource(f"{H}c", "CycleProvider", {"serverInformation": (Ref(wrong.uri),), "serverPort": (8,)})
    found = ResourceGraph((*THERE, wrong, refers), SCHEMA).ask(
        f"{P}SELECT ?c ?p {{ ?c ?x ?p FILTER isNumeric(?p) }}", CSV
    )
    assert sorted(found.body.decode().split("\r\n")[1:-1]) == [f"{H}c,8", f"{H}host,80", f"{H}info,2.5"]
    assert found.left_out == 2 and GRAPH.ask("ASK {}").left_out == 0


def test_other_forms() -> None:
    assert json.loads(GRAPH.ask(P + "ASK { ?c s:open true }").body) == {"head": {}, "boolean": True}
    made = GRAPH.ask(P + "CONSTRUCT { ?c s:x ?p } WHERE { ?c s:serverPort ?p }")
    assert made.media_type == "application/n-triples"
    assert made.body.decode().startswith(f"<{H}host> <{S}x> ")
    described = rdflib.Graph().parse(data=GRAPH.ask(f"DESCRIBE <{H}info>").body, format="nt")
    assert (rdflib.URIRef(f"{H}info"), RDF.type, rdflib.URIRef(f"{S}ServerInformation")) in described


@pytest.mark.parametrize(
    ("text", "told"),
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
def test_what_is_refused(text: str, told: str) -> None:
    with pytest.raises(NotSupported) as problem:
        GRAPH.ask(text)
    assert told in str(problem.value)


def test_words_in_other_places_are_no_keywords() -> None:
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
def test_service_is_found_wherever_it_stands(pieces: list[str], data: st.DataObject) -> None:
    head = "PREFIX x: <http://example.org/SERVICE#> SELECT * {"
    harmless = " ".join((head, *pieces, "}"))
    pyoxigraph.Store().query(harmless)
    check_sparql(harmless)
    at = data.draw(st.integers(0, len(pieces)))
    word = data.draw(st.sampled_from(("SERVICE", "service", "SerVice", "SERVICE SILENT", "\\u0053ERVICE")))
    asked = (head, *pieces[:at], f"{word} <http://example.org/> {{ ?s ?p ?o }}", *pieces[at:], "}")
    with pytest.raises(NotSupported, match="SERVICE"):
        check_sparql(" ".join(asked))


@pytest.mark.parametrize("piece", ["1.", ".", "-", '"\\', "'\\", '"""\\', "<a", "a:", "service:a ", "#", "?"])
def test_long_texts_are_read_once(piece: str) -> None:
    """With a token that is looked for again at each character this would take minutes."""
    with pytest.raises(SyntaxProblem):
        GRAPH.ask(piece * (MAX_QUERY_LENGTH // len(piece)))


def test_an_unknown_prefix_behind_a_long_text() -> None:
    with pytest.raises(SyntaxProblem, match="a:b"):
        GRAPH.ask(f"SELECT * {{ ?s ?p '{'.' * (MAX_QUERY_LENGTH - 100)}' . ?s a:b ?o }}")


def test_a_query_that_does_not_parse() -> None:
    with pytest.raises(SyntaxProblem, match=r"invalid SPARQL.*\(line 2, column 1\d\)"):
        GRAPH.ask("SELECT *\nWHERE { ?s ?p")
    with pytest.raises(SyntaxProblem, match="too long"):
        GRAPH.ask("SELECT * { ?s ?p ?o } #" + "x" * 200_000)


def test_time_answers_and_memory_have_limits() -> None:
    """Each would take longer than anybody lives."""
    with pytest.raises(TooLarge, match="takes too long"):
        GRAPH.ask(f"SELECT (COUNT(*) AS ?n) {{ {CROSS} }}", limits=Limits(seconds=1))
    with pytest.raises(TooLarge, match="too large an answer"):
        GRAPH.ask(f"SELECT * {{ {CROSS} }}", limits=Limits(seconds=100, answer=1))
    with pytest.raises(TooLarge, match="too much memory"):
        GRAPH.ask(f"SELECT * {{ {CROSS} }} ORDER BY ?a1", limits=Limits(seconds=100, memory=50))
    assert rows("SELECT ?c { ?c a s:Provider }") == [[f"{H}host"]]


def test_nobody_is_asked_even_if_the_words_were_overlooked(monkeypatch: pytest.MonkeyPatch) -> None:
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
    """Basic graph patterns over a schema: classes, properties in either direction, some of them optional."""
    numbers = count(1)
    parts, variables = [], ["?v0"]
    iris = [each.iri for found in schema.properties.values() for each in found]
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
def test_answers_are_those_of_rdflib(data: st.DataObject) -> None:
    schema = data.draw(schemas())
    there = [each for uri in DOCUMENTS[:2] for each in data.draw(resources(schema, uri))]
    graph = document_graph(there, schema)
    for each in there:
        for above in schema.at_or_above(each.cls):
            graph.add((rdflib.URIRef(each.uri), RDF.type, rdflib.URIRef(schema.classes[above].iri)))
    ours = ResourceGraph(there, schema)
    for _ in range(2):
        text = data.draw(patterns(schema))
        told = json.loads(ours.ask(text, JSON).body)["results"]["bindings"]
        found = [
            {str(name): _plain(value) for name, value in row.items()} for row in graph.query(text).bindings
        ]
        assert _counted([{name: _told(value) for name, value in row.items()} for row in told]) == _counted(
            found
        )


def _counted(found: list[dict[str, object]]) -> list[str]:
    return sorted(repr(sorted(row.items())) for row in found)


def _plain(value: rdflib.term.Identifier) -> object:
    if isinstance(value, rdflib.URIRef):
        return f"<{value}>"
    return _meant(str(value), str(value.datatype))


def _told(value: dict[str, str]) -> object:
    if value["type"] == "uri":
        return f"<{value['value']}>"
    return _meant(value["value"], value.get("datatype", ""))


def _meant(text: str, datatype: str) -> object:
    """What a literal means: each of the two writes numbers and instants in its own way."""
    kind = datatype.rpartition("#")[2]
    if kind == "dateTime":
        return parse_instant(text).micros
    return float(text) if kind in ("integer", "double", "decimal") else text
