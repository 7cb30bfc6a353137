"""Taxonomies: what stands above what, against a walk of every path; circles; several files."""

from __future__ import annotations

import pickle
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.support.strategies.graphs import CLASSES, taxonomies
from tidings.errors import SchemaError
from tidings.graphs.model import TYPE, Edge, Graph, Term, blank, iri, literal
from tidings.graphs.taxonomy import SUBCLASS, SUBPROPERTY, Taxonomy, merged, taxonomy_of

A, B, C, D = (iri(f"urn:{name}") for name in "ABCD")


def below(child: Term, *parents: Term, of: str = SUBCLASS) -> list[Edge]:
    return [Edge(child, iri(of), parent) for parent in parents]


def made(*edges: list[Edge]) -> Taxonomy:
    return taxonomy_of(Graph(tuple(edge for each in edges for edge in each)))


def walked(taxonomy: Taxonomy, term: Term) -> set[Term]:
    """All that is reached by following subClassOf, step by step."""
    steps = [edge for edge in taxonomy.statements if edge.property == iri(SUBCLASS) and edge.subject == term]
    return {term}.union(*(walked(taxonomy, edge.object) for edge in steps))


@given(taxonomies())
def test_ancestors_are_those_that_a_walk_reaches(taxonomy: Taxonomy) -> None:
    for term in CLASSES:
        assert taxonomy.ancestors(term) == walked(taxonomy, term)
        assert {other for other in CLASSES if taxonomy.is_below(term, other)} == walked(taxonomy, term)


@given(taxonomies())
def test_arrays_say_the_same(taxonomy: Taxonomy) -> None:
    starts, numbers = taxonomy.reach
    named = dict(enumerate(taxonomy.numbers))
    assert sorted(taxonomy.numbers.values()) == [*named] and len(starts) == len(named) + 1
    for term, number in taxonomy.numbers.items():
        reached = numbers[starts[number] : starts[number + 1]]
        assert list(reached) == sorted(reached)
        assert {named[other] for other in reached} == taxonomy.ancestors(term)


@given(taxonomies(), st.integers(0, 2**32))
def test_equal_statements_make_equal_taxonomies(taxonomy: Taxonomy, seed: int) -> None:
    """In any order, in one file or in two, and after a journey between processes."""
    edges = sorted(taxonomy.statements)
    Random(seed).shuffle(edges)
    half = len(edges) // 2
    again = taxonomy_of(Graph(tuple(edges[:half])), Graph(tuple(edges[half:])))
    assert again == taxonomy and hash(again) == hash(taxonomy)
    assert again.numbers == taxonomy.numbers and again.reach == taxonomy.reach
    assert pickle.loads(pickle.dumps(taxonomy)) == taxonomy
    assert merged(taxonomy, taxonomy) == taxonomy


def test_several_parents() -> None:
    taxonomy = made(below(D, B, C), below(B, A), below(C, A))
    assert taxonomy.ancestors(D) == {A, B, C, D} and taxonomy.ancestors(A) == {A}
    assert taxonomy.ancestors(iri("urn:unknown")) == {iri("urn:unknown")}


def test_where_a_node_stands() -> None:
    page, other = iri("urn:page"), iri("urn:other")
    taxonomy = made(below(B, A), [Edge(page, iri(TYPE), B)])
    assert taxonomy.classes_of(page) == {page, B}
    assert taxonomy.classes_of(page, [C]) == {page, B, C}
    assert taxonomy.classes_of(B) == {B}
    assert taxonomy.classes_of(other) == frozenset() and taxonomy.classes_of(other, [C]) == {C}
    assert taxonomy.classes_of(literal("B")) == frozenset()


def test_properties() -> None:
    taxonomy = made(below(C, B, of=SUBPROPERTY), below(B, A, of=SUBPROPERTY))
    assert taxonomy.super_properties(C) == (C, A, B) and taxonomy.super_properties(A) == (A,)
    assert taxonomy.super_properties(D) == (D,)
    assert taxonomy.ancestors(C) == {C}


CIRCLES = [
    (SUBCLASS, "subClassOf"),
    (SUBPROPERTY, "subPropertyOf"),
]


@pytest.mark.parametrize(("of", "name"), CIRCLES)
def test_a_circle_is_refused_and_written_out(of: str, name: str) -> None:
    """What leads to the circle is not part of it."""
    with pytest.raises(SchemaError) as refused:
        made(below(A, B, of=of), below(B, C, of=of), below(C, D, of=of), below(D, B, of=of))
    problem = refused.value
    assert (problem.what, problem.where) == ("the taxonomy has a cycle", name)
    assert problem.received == "<urn:B> → <urn:C> → <urn:D> → <urn:B>"


def test_a_circle_over_two_files_is_one() -> None:
    one, other = Graph(tuple(below(A, B))), Graph(tuple(below(B, A)))
    assert taxonomy_of(one) and taxonomy_of(other)
    with pytest.raises(SchemaError, match="<urn:A> → <urn:B> → <urn:A>"):
        taxonomy_of(one, other)


def test_every_class_is_below_itself_anyway() -> None:
    assert made(below(A, A), below(B, A)) == made(below(B, A))


def test_blank_nodes_of_two_files_are_two() -> None:
    """A class without a name leads on to those above it, but only in its own file."""
    one = Graph((*below(A, blank("x")), *below(blank("x"), B)))
    other = Graph(tuple(below(C, blank("x"))))
    taxonomy = taxonomy_of(one, other)
    assert B in taxonomy.ancestors(A) and B not in taxonomy.ancestors(C)


def test_what_is_no_taxonomy_is_left_out() -> None:
    title = Edge(A, iri("http://purl.org/dc/elements/1.1/title"), literal("A"))
    assert made([title]) == Taxonomy()
    with pytest.raises(
        SchemaError, match=r"a literal cannot be a class or a property \(<urn:A> subClassOf\)"
    ):
        made(below(A, literal("B")))


def test_deep_taxonomies_are_no_problem() -> None:
    chain = [iri(f"urn:{number}") for number in range(3000)]
    taxonomy = made(
        [edge for child, parent in zip(chain[1:], chain, strict=False) for edge in below(child, parent)]
    )
    assert len(taxonomy.ancestors(chain[-1])) == 3000
