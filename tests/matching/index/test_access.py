"""The access path of a subscription, as it is reported, against the one that the index chooses."""

from __future__ import annotations

import pytest

from tidings import Subscription, compile_many
from tidings.matching.compiler.context import Context
from tidings.matching.compiler.pipeline import LANGUAGES
from tidings.matching.compiler.plan import Plan, Relation, Test, TestShape
from tidings.matching.index.access import reached_through
from tidings.matching.index.access_paths import AccessPath
from tidings.matching.index.builder import SegmentContent, build

REPORTED = [
    ("gql", "SELECT ?x WHERE (?x, dcterms:replaces, ?b)", "dcterms:replaces"),
    ("gql", "SELECT ?x WHERE (?x, dc:title, ?t) (?x, dc:date, ?d)", "dc:date"),
    ("gql", "SELECT ?x WHERE (?x, dc:date, ?d) AND ?d != 5", "dc:date"),
    ("gql", "SELECT ?x WHERE (?x, dc:title, ?t) (?x, dc:date, ?d) AND ?d > 5", "dc:date"),
    ("gql", "SELECT ?x WHERE (?x, ?p, ?o)", "edges of all properties"),
    ("gql", "SELECT ?x WHERE { ?x dc:date ?d ; dc:title 'oak' }", "dc:title"),
    ("predicates", "exists price", "price"),
    ("predicates", "price != 5", "price"),
    ("predicates", "price > 5 and exists colour", "price"),
    ("predicates", "price != 5 and colour = 'red'", "colour"),
    ("predicates", "not price = 5", "every publication"),
    ("predicates", "not exists price", "every publication"),
    ("predicates", "not exists colour and price != 5 or not price > 7", "every publication, price"),
    ("xpath", "/a[not(b)]", "/a"),
    ("xpath", "/a[b != 5]", "/a/b"),
    ("xpath", "//*", "//*"),
]


@pytest.mark.parametrize(("language", "text", "expected"), REPORTED)
def test_reached_through_names_what_the_index_chooses(language: str, text: str, expected: str) -> None:
    assert reached_through(LANGUAGES[language].compile(Context(text, None))) == expected
    built = build(compile_many([Subscription("s", "ana", language, text)]))
    assert {_chosen(built, way) for way in built.ways} == set(expected.split(", "))


def _chosen(built: SegmentContent, way: AccessPath) -> str:
    """The column of a way of the index, shown as if a plan had a test of nothing else."""
    tests = way.key if way.key is not None else way.cut
    number = way.column if tests is None else int(built.clauses.column[tests[0]])
    if number is None:
        return "every publication"
    shape = TestShape(built.columns[number], Relation.EXISTS, None)
    return reached_through(Plan(((Test(shape, None),),)))
