"""The second spelling: what is taken is SPARQL to two engines, and what they know is taken here or refused by name."""

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
TAKEN = [pair for pair in BRACED if "\n" not in pair.expected]
REFUSED = [pair for pair in BRACED if "not supported" in pair.expected]


@pytest.mark.parametrize("pair", TAKEN, ids=str)
def test_what_is_taken_is_sparql(pair: Pair) -> None:
    prepareQuery(DECLARED + pair.given)
    ox.Store().query(DECLARED + pair.given)


NO_SPARQL = {
    # Refused by the name of what was probably meant, though not SPARQL either.
    "SELECT ?x WHERE { ?x dc:title ?t . UNION }",
    "SELECT ?x WHERE { ?x dc:title ?t FILTER(STARTS(?t, \"en\")) }",
    "SELECT ?x WHERE { (?x, dc:title, ?t) }",
}  # fmt: skip


@pytest.mark.parametrize("pair", [pair for pair in REFUSED if pair.given not in NO_SPARQL], ids=str)
def test_what_is_refused_by_name_is_sparql(pair: Pair) -> None:
    """The refusals are about parts of SPARQL, so an engine must know them; updates and SERVICE it need not run."""
    if pair.given.startswith(("INSERT", "DELETE")):
        ox.Store().update(DECLARED + pair.given)
    elif "COUNT(?t)" not in pair.given and "SERVICE" not in pair.given:
        ox.Store().query(DECLARED + pair.given)


@given(graphs, st.data())
def test_both_spellings_of_a_pattern_are_one(graph: object, data: st.DataObject) -> None:
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
def test_a_query_with_more_in_it_gives_a_pattern_or_a_place(graph: object, data: st.DataObject) -> None:
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


@pytest.mark.parametrize(("one", "other"), SAME)
def test_abbreviations(one: str, other: str) -> None:
    assert parse(f"SELECT * {{ {one} }}") == parse(f"SELECT * WHERE {{ {other} }}")


def test_order_with_a_class_leads_to_gql() -> None:
    with pytest.raises(NotSupported, match="in GQL it is a class"):
        parse("SELECT ?s { ?x dc:subject ?s FILTER(?s >= skos:Concept) }")
    assert parse("SELECT ?s WHERE (?x, dc:subject, ?s) AND ?s >= skos:Concept")


def test_what_is_neither_spelling_is_a_problem() -> None:
    with pytest.raises(SubscriptionError, match=r"expected '\(' and an edge, or '{'"):
        parse("SELECT ?x WHERE [ ?x ]")


# The terminals of SPARQL 1.1: what both engines take is taken here and means the same; what both refuse is refused.
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
def test_terms_are_read_as_two_engines_read_them(term: str) -> None:
    expected = by_pyoxigraph(term)
    assume(expected == by_rdflib(term))
    assert by_tidings(term) == expected


def by_pyoxigraph(term: str) -> tuple[str, ...] | None:
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


def by_rdflib(term: str) -> tuple[str, ...] | None:
    graph = rdflib.Graph()
    try:
        graph.update(f"{DECLARING} INSERT DATA {{ <urn:s> <urn:p> {term} }}")
    except Exception:  # noqa: BLE001 (whatever its parser, or what it makes of the parsed text, raises)
        return None
    values = list(graph.objects())
    if len(values) != 1:
        return ("several",)
    value = values[0]
    if isinstance(value, rdflib.Literal):
        untyped = LANGUAGE_STRING if value.language else STRING
        return ("literal", str(value.datatype or untyped), value.language or "")
    return ("iri", str(value)) if isinstance(value, rdflib.URIRef) else ("blank",)


def by_tidings(term: str) -> tuple[str, ...] | None:
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
def test_groups_are_taken_and_refused_as_by_two_engines(group: str) -> None:
    """Except that a literal as subject or property is refused by that name here: no graph has one."""
    text = f"{DECLARING} SELECT * WHERE {{ ?s ex:p ?o . {group} }}"
    taken = _takes(ox.Store().query, text)
    assume(taken == _takes(prepareQuery, text))
    try:
        read = parse(text)
    except CheckProblem as problem:
        assert "cannot be the" in problem.what
    except SubscriptionError:
        assert not taken
    else:
        assert taken and read


def _takes(read: Callable[[str], object], text: str) -> bool:
    try:
        read(text)
    except Exception:  # noqa: BLE001 (three parsers, three ways to refuse)
        return False
    return True


@given(st.builds("?{}".format, names))
@example("?a\u0301\u00b7")
def test_variables_are_read_as_two_engines_read_them(name: str) -> None:
    text = f"SELECT * WHERE {{ ?s <urn:p> {name} }}"
    taken = _takes(ox.Store().query, text)
    assume(taken == _takes(prepareQuery, text))
    assert _takes(parse, text) == taken
