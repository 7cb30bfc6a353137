"""The described access path of a subscription is the one that the index chooses."""

from __future__ import annotations

import pytest

from tidings import Subscription, compile_many
from tidings.kinds import LANGUAGES
from tidings.matching.compiler.language import Context
from tidings.matching.compiler.pipeline import describe_access
from tidings.matching.compiler.plan import Plan, Relation, Test, TestShape
from tidings.matching.index.builder.access_paths import AccessPath
from tidings.matching.index.builder.segment_builder import SegmentContent, build_segment

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
def test_describe_access_names_what_the_index_chooses(language: str, text: str, expected: str) -> None:
    assert describe_access(LANGUAGES[language].compile(Context(text, None))) == expected
    built = build_segment(compile_many([Subscription("s", "ana", language, text)]))
    assert {_chosen_column(built, path) for path in built.access_paths} == set(expected.split(", "))


def _chosen_column(built: SegmentContent, path: AccessPath) -> str:
    """Return the column of an access path, shown as if a plan had only a test of it."""
    tests = path.key if path.key is not None else path.cut
    number = path.column if tests is None else int(built.clauses.column[tests[0]])
    if number is None:
        return "every publication"
    shape = TestShape(built.columns[number], Relation.EXISTS, None)
    return describe_access(Plan(((Test(shape, None),),)))
