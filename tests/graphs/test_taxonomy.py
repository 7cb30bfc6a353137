"""Taxonomies: ancestors compared with a walk of all paths, cycles, several files."""

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


def make_taxonomy(*edges: list[Edge]) -> Taxonomy:
    return taxonomy_of(Graph(tuple(edge for each in edges for edge in each)))


def walk_ancestors(taxonomy: Taxonomy, term: Term) -> set[Term]:
    """Return all terms that are reachable by subClassOf."""
    steps = [edge for edge in taxonomy.statements if edge.property == iri(SUBCLASS) and edge.subject == term]
    return {term}.union(*(walk_ancestors(taxonomy, edge.object) for edge in steps))


@given(taxonomies())
def test_ancestors_agree_with_walk(taxonomy: Taxonomy) -> None:
    for term in CLASSES:
        assert taxonomy.ancestors(term) == walk_ancestors(taxonomy, term)
        assert {other for other in CLASSES if taxonomy.is_below(term, other)} == walk_ancestors(
            taxonomy, term
        )


@given(taxonomies())
def test_reach_arrays_agree_with_ancestors(taxonomy: Taxonomy) -> None:
    starts, numbers = taxonomy.reach
    named = dict(enumerate(taxonomy.numbers))
    assert sorted(taxonomy.numbers.values()) == [*named] and len(starts) == len(named) + 1
    for term, number in taxonomy.numbers.items():
        reached = numbers[starts[number] : starts[number + 1]]
        assert list(reached) == sorted(reached)
        assert {named[other] for other in reached} == taxonomy.ancestors(term)


@given(taxonomies(), st.integers(0, 2**32))
def test_taxonomy_of_equal_statements_is_equal(taxonomy: Taxonomy, seed: int) -> None:
    """In any order, in one file or in two, and after pickling."""
    edges = sorted(taxonomy.statements)
    Random(seed).shuffle(edges)
    half = len(edges) // 2
    rebuilt = taxonomy_of(Graph(tuple(edges[:half])), Graph(tuple(edges[half:])))
    assert rebuilt == taxonomy and hash(rebuilt) == hash(taxonomy)
    assert rebuilt.numbers == taxonomy.numbers and rebuilt.reach == taxonomy.reach
    assert pickle.loads(pickle.dumps(taxonomy)) == taxonomy
    assert merged(taxonomy, taxonomy) == taxonomy


def test_ancestors_of_class_with_several_parents() -> None:
    taxonomy = make_taxonomy(below(D, B, C), below(B, A), below(C, A))
    assert taxonomy.ancestors(D) == {A, B, C, D} and taxonomy.ancestors(A) == {A}
    assert taxonomy.ancestors(iri("urn:unknown")) == {iri("urn:unknown")}


def test_classes_of_node_are_types_or_itself() -> None:
    page, other = iri("urn:page"), iri("urn:other")
    taxonomy = make_taxonomy(below(B, A), [Edge(page, iri(TYPE), B)])
    assert taxonomy.classes_of(page) == {page, B}
    assert taxonomy.classes_of(page, [C]) == {page, B, C}
    assert taxonomy.classes_of(B) == {B}
    assert taxonomy.classes_of(other) == frozenset() and taxonomy.classes_of(other, [C]) == {C}
    assert taxonomy.classes_of(literal("B")) == frozenset()


def test_super_properties_are_transitive() -> None:
    taxonomy = make_taxonomy(below(C, B, of=SUBPROPERTY), below(B, A, of=SUBPROPERTY))
    assert taxonomy.super_properties(C) == (C, A, B) and taxonomy.super_properties(A) == (A,)
    assert taxonomy.super_properties(D) == (D,)
    assert taxonomy.ancestors(C) == {C}


CYCLES = [
    (SUBCLASS, "subClassOf"),
    (SUBPROPERTY, "subPropertyOf"),
]


@pytest.mark.parametrize(("of", "name"), CYCLES)
def test_taxonomy_of_cycle_error_lists_cycle(of: str, name: str) -> None:
    """Terms that lead to the cycle are not part of it."""
    with pytest.raises(SchemaError) as caught:
        make_taxonomy(below(A, B, of=of), below(B, C, of=of), below(C, D, of=of), below(D, B, of=of))
    problem = caught.value
    assert (problem.what, problem.where) == ("the taxonomy has a cycle", name)
    assert problem.received == "<urn:B> → <urn:C> → <urn:D> → <urn:B>"


def test_taxonomy_of_cycle_across_files_is_rejected() -> None:
    first, second = Graph(tuple(below(A, B))), Graph(tuple(below(B, A)))
    assert taxonomy_of(first) and taxonomy_of(second)
    with pytest.raises(SchemaError, match="<urn:A> → <urn:B> → <urn:A>"):
        taxonomy_of(first, second)


def test_taxonomy_of_class_below_itself_is_ignored() -> None:
    assert make_taxonomy(below(A, A), below(B, A)) == make_taxonomy(below(B, A))


def test_taxonomy_of_blank_nodes_are_local_to_file() -> None:
    """An unnamed class connects to its ancestors only within its file."""
    first = Graph((*below(A, blank("x")), *below(blank("x"), B)))
    second = Graph(tuple(below(C, blank("x"))))
    taxonomy = taxonomy_of(first, second)
    assert B in taxonomy.ancestors(A) and B not in taxonomy.ancestors(C)


def test_taxonomy_of_other_statements_are_ignored_and_literals_rejected() -> None:
    title = Edge(A, iri("http://purl.org/dc/elements/1.1/title"), literal("A"))
    assert make_taxonomy([title]) == Taxonomy()
    with pytest.raises(
        SchemaError, match=r"a literal cannot be a class or a property \(<urn:A> subClassOf\)"
    ):
        make_taxonomy(below(A, literal("B")))


def test_taxonomy_of_deep_chain_does_not_recurse() -> None:
    chain = [iri(f"urn:{number}") for number in range(3000)]
    taxonomy = make_taxonomy(
        [edge for child, parent in zip(chain[1:], chain, strict=False) for edge in below(child, parent)]
    )
    assert len(taxonomy.ancestors(chain[-1])) == 3000
