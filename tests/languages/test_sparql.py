"""The second spelling: what is taken is SPARQL to two engines, and what they know is taken here or refused by name."""

from __future__ import annotations

from pathlib import Path

import pyoxigraph as ox
import pytest
from hypothesis import given
from hypothesis import strategies as st
from rdflib.plugins.sparql import prepareQuery

from tests.generated_graphs import graphs, patterns, sparql
from tests.languages.any_text import check_words
from tests.pairs import Pair, read_pairs
from tidings.errors import NotSupported, SubscriptionError
from tidings.languages.gql import PREFIXES, parse, show

DECLARED = "".join(f"PREFIX {prefix}: <{space}>\n" for prefix, space in PREFIXES.items())
BRACED = [pair for pair in read_pairs(Path(__file__).with_name("gql.txt")) if "{" in pair.given]
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
