"""The SPARQL notation of patterns, compared with two SPARQL engines: accepted texts, rejected parts, terminals."""

from __future__ import annotations

from collections.abc import Callable

import pyoxigraph as ox
import pytest
import rdflib
from hypothesis import assume, example, given
from hypothesis import strategies as st
from rdflib.plugins.sparql import prepareQuery

from tests.support.pairs import Pair, read_pairs
from tests.support.paths import PAIRS_FOLDER
from tests.support.strategies.any_text import check_words
from tests.support.strategies.graphs import graphs, patterns, sparql
from tidings.errors import CheckProblem, NotSupported, SubscriptionError
from tidings.graphs.model import LANGUAGE_STRING, STRING, Term, TermKind
from tidings.graphs.patterns.pattern_parser import parse
from tidings.graphs.patterns.pattern_tree import BLANK, PREFIXES, Variable, show

DECLARED = "".join(f"PREFIX {prefix}: <{space}>\n" for prefix, space in PREFIXES.items())
BRACED = [pair for pair in read_pairs(PAIRS_FOLDER / "gql.txt") if "{" in pair.given]
ACCEPTED = [pair for pair in BRACED if "\n" not in pair.expected]
REJECTED = [pair for pair in BRACED if "not supported" in pair.expected]


@pytest.mark.parametrize("pair", ACCEPTED, ids=str)
def test_parse_accepted_text_is_valid_sparql(pair: Pair) -> None:
    prepareQuery(DECLARED + pair.given)
    ox.Store().query(DECLARED + pair.given)


INVALID_SPARQL = {
    # The error names the part of SPARQL that was probably meant, but the text is no valid SPARQL.
    "SELECT ?x WHERE { ?x dc:title ?t . UNION }",
    "SELECT ?x WHERE { ?x dc:title ?t FILTER(STARTS(?t, \"en\")) }",
    "SELECT ?x WHERE { (?x, dc:title, ?t) }",
}  # fmt: skip


@pytest.mark.parametrize("pair", [pair for pair in REJECTED if pair.given not in INVALID_SPARQL], ids=str)
def test_parse_unsupported_part_is_valid_sparql(pair: Pair) -> None:
    """Errors about parts of SPARQL only occur for parts that an engine accepts. Updates and SERVICE are not run."""
    if pair.given.startswith(("INSERT", "DELETE")):
        ox.Store().update(DECLARED + pair.given)
    elif "COUNT(?t)" not in pair.given and "SERVICE" not in pair.given:
        ox.Store().query(DECLARED + pair.given)


@given(graphs, st.data())
def test_parse_sparql_and_gql_notation_give_same_pattern(graph: object, data: st.DataObject) -> None:
    pattern = data.draw(patterns(graph))
    assert parse(sparql(pattern)) == pattern == parse(show(pattern))


OUTSIDE = [
    "OPTIONAL {",
    "UNION",
    "MINUS {",
    "BIND(",
    "VALUES ?x {",
    "||",
    "!",
    "/dc:date",
    "}",
    "LIMIT 1",
    "GRAPH ?g {",
]


@given(graphs, st.data())
def test_parse_query_with_inserted_part_is_pattern_or_error_with_place(
    graph: object, data: st.DataObject
) -> None:
    words = sparql(data.draw(patterns(graph))).split(" ")
    words.insert(data.draw(st.integers(0, len(words))), data.draw(st.sampled_from(OUTSIDE)))
    check_words(parse, " ".join(words))


SAME = [
    # two ways to write one pattern
    ("?x dc:title ?t ; dc:date ?d", "?x dc:title ?t . ?x dc:date ?d"),
    ("?x dc:title ?t , ?u", "?x dc:title ?t . ?x dc:title ?u"),
    ("?x a rss:item", "?x rdf:type rss:item"),
    ("?x a rss:item ; ; dc:date ?d ;", "?x a rss:item . ?x dc:date ?d ."),
    ("?x dc:date ?d FILTER(?d > 5 && ?d < 7)", "?x dc:date ?d FILTER(?d > 5) FILTER(7 > ?d)"),
    ("?x dc:date ?d . FILTER((?d > 5))", "FILTER(?d > 5) ?x dc:date ?d"),
    ("[ dc:title ?t ] dc:date ?d", "_:1 dc:title ?t . _:1 dc:date ?d"),
    ('?x dc:title "a"', "?x dc:title '''a'''"),
    ('?x dc:date "5"^^xsd:integer', "?x dc:date 5"),
    ('?x dc:title ?t FILTER CONTAINS(?t, "a")', '?x dc:title ?t FILTER(contains(str(?t), "a"))'),
]


@pytest.mark.parametrize(("short", "long"), SAME)
def test_parse_abbreviations_give_same_pattern(short: str, long: str) -> None:
    assert parse(f"SELECT * {{ {short} }}") == parse(f"SELECT * WHERE {{ {long} }}")


def test_parse_order_with_class_in_sparql_suggests_gql() -> None:
    with pytest.raises(NotSupported, match="in GQL it is a class"):
        parse("SELECT ?s { ?x dc:subject ?s FILTER(?s >= skos:Concept) }")
    assert parse("SELECT ?s WHERE (?x, dc:subject, ?s) AND ?s >= skos:Concept")


def test_parse_text_in_neither_notation_is_rejected() -> None:
    with pytest.raises(SubscriptionError, match=r"expected '\(' and an edge, or '{'"):
        parse("SELECT ?x WHERE [ ?x ]")


# The terminals of SPARQL 1.1: where both engines agree, Tidings accepts the same texts with the same meaning.
ODD = "\u0301\u00b7\u203f\u200cé日µª€²٣😀"
NAME_PARTS = [
    *"aZ_-.:09",
    *ODD,
    "%41",
    "%4",
    "\\-",
    "\\#",
    "\\~",
    "\\:",
    "\\u00e9",
    "\\U0001F600",
    "\\u0301",
    "#",
]
names = st.lists(st.sampled_from(NAME_PARTS), max_size=5).map("".join)
numbers = st.lists(
    st.sampled_from(["5", "0", "12", ".", ".", "e", "E", "+", "-"]), min_size=1, max_size=6
).map("".join)
SPACES = f"PREFIX ex: <http://ex.org/> PREFIX : <#> PREFIX e\u0301.\u00b7-x: <urn:x:> PREFIX xsd: <{PREFIXES['xsd']}>"
DECLARING = f"BASE <http://ex.org/b> {SPACES}"
terms = st.one_of(
    numbers,
    st.builds("{}:{}".format, st.sampled_from(["ex", "", "_", "e\u0301.\u00b7-x"]), names),
    st.builds("{0}{1}{0}".format, st.sampled_from(["'", '"', "'''", '"""']), names),
    st.builds('"a"@{}'.format, names),
    st.builds('"5"^^xsd:{}'.format, st.sampled_from(["integer", "date", "\\u0064ate"])),
    st.builds("<{}>".format, names),
)


@given(terms)
@example("5.0e-3")
@example("100e-3")
@example(".5e3")
@example("1.e5")
@example("ex:a\u0301\u00b7b")
@example("ex:caf\\u00e9")
@example("ex:a\\#b")
def test_parse_terms_agree_with_two_engines(term: str) -> None:
    expected = term_by_pyoxigraph(term)
    assume(expected == term_by_rdflib(term))
    assert term_by_tidings(term) == expected


def term_by_pyoxigraph(term: str) -> tuple[str, ...] | None:
    store = ox.Store()
    try:
        store.update(f"{DECLARING} INSERT DATA {{ <urn:s> <urn:p> {term} }}")
    except SyntaxError:
        return None
    values = [quad.object for quad in store]
    if len(values) != 1:
        return ("several",)
    value = values[0]
    if isinstance(value, ox.Literal):
        return ("literal", value.datatype.value, value.language or "")
    return ("iri", value.value) if isinstance(value, ox.NamedNode) else ("blank",)


def term_by_rdflib(term: str) -> tuple[str, ...] | None:
    graph = rdflib.Graph()
    try:
        graph.update(f"{DECLARING} INSERT DATA {{ <urn:s> <urn:p> {term} }}")
    except Exception:  # noqa: BLE001 (its parser and its algebra raise many types)
        return None
    values = list(graph.objects())
    if len(values) != 1:
        return ("several",)
    value = values[0]
    if isinstance(value, rdflib.Literal):
        untyped = LANGUAGE_STRING if value.language else STRING
        return ("literal", str(value.datatype or untyped), value.language or "")
    return ("iri", str(value)) if isinstance(value, rdflib.URIRef) else ("blank",)


def term_by_tidings(term: str) -> tuple[str, ...] | None:
    try:
        edges = parse(f"{DECLARING} SELECT * WHERE {{ <urn:s> <urn:p> {term} }}").edges
    except SubscriptionError:
        return None
    value = edges[0].object
    if isinstance(value, Variable):
        return ("blank",) if value.name.startswith(BLANK) else ("variable", value.name)
    assert isinstance(value, Term) and len(edges) == 1
    if value.kind is TermKind.LITERAL:
        return ("literal", value.datatype, value.language)
    return ("iri", value.text)


GROUPS = [
    "?s",
    "ex:p",
    "a",
    "?o",
    '"x"',
    "5",
    ";",
    ";",
    ",",
    ".",
    ".",
    "[",
    "]",
    "FILTER(?o > 5)",
    "FILTER(?s != 1)",
]


@given(st.lists(st.sampled_from(GROUPS), max_size=9).map(" ".join))
@example("?s ex:p ?o ; FILTER(?o > 5)")
@example("?s ex:p ?o ;; FILTER(?o > 5) ?s ex:p ?o ;")
@example("?s ex:p [ ex:p ?o ; ] ; . FILTER(?o > 5)")
def test_parse_groups_agree_with_two_engines(group: str) -> None:
    """One difference: Tidings rejects a literal as subject or property with an error of its own."""
    text = f"{DECLARING} SELECT * WHERE {{ ?s ex:p ?o . {group} }}"
    accepted = _accepts(ox.Store().query, text)
    assume(accepted == _accepts(prepareQuery, text))
    try:
        pattern = parse(text)
    except CheckProblem as problem:
        assert "cannot be the" in problem.what
    except SubscriptionError:
        assert not accepted
    else:
        assert accepted and pattern


def _accepts(read: Callable[[str], object], text: str) -> bool:
    try:
        read(text)
    except Exception:  # noqa: BLE001 (three parsers with their own exceptions)
        return False
    return True


@given(st.builds("?{}".format, names))
@example("?a\u0301\u00b7")
def test_parse_variables_agree_with_two_engines(name: str) -> None:
    text = f"SELECT * WHERE {{ ?s <urn:p> {name} }}"
    accepted = _accepts(ox.Store().query, text)
    assume(accepted == _accepts(prepareQuery, text))
    assert _accepts(parse, text) == accepted
