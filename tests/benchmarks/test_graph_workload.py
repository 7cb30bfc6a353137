"""The workload of graphs is what it claims: sizes, matches, variables, overlap, constraints; the same each time."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

import numpy as np
import pytest

from benchmarks.workloads.graph_draws import random_places
from benchmarks.workloads.graph_patterns import NONE, GraphSubscriptions, GraphWorkload
from benchmarks.workloads.graphs import FIGURE_9E, Size, Table1, graphs
from tidings.graphs.explanation import Explainer, matches
from tidings.graphs.model import TYPE, Graph
from tidings.graphs.patterns.pattern_parser import parse
from tidings.graphs.patterns.pattern_tree import ConstraintKind, variables
from tidings.graphs.taxonomy import taxonomy_of

TABLE = Table1(subscriptions=1000, matched=0.01)
SMALL = Table1(subscriptions=1000, matched=0.01, subscription=FIGURE_9E)


@pytest.fixture(scope="module", params=[TABLE, SMALL], ids=["table 1", "figure 9(e)"])
def table(request: pytest.FixtureRequest) -> Table1:
    return request.param


@pytest.fixture(scope="module")
def workload(table: Table1) -> GraphWorkload:
    return graphs(table, 12)


def matched(workload: GraphWorkload, publication: int) -> list[int]:
    """By the definition."""
    definition = Explainer(workload.publications[publication], taxonomy_of(workload.taxonomy))
    asked = enumerate(workload.subscriptions.patterns())
    return [row for row, pattern in asked if definition.bindings(pattern).bindings]


def named_edges(made: GraphSubscriptions, row: int) -> list[tuple[int, int, int]]:
    nodes = made.nodes[row]
    return [(int(nodes[s]), label, int(nodes[t])) for s, label, t in made.edges(row)]


def drawn_at_random(made: GraphSubscriptions) -> Iterator[int]:
    return (row for row in range(len(made)) if made.core[row] == NONE)


def connected(graph: Graph) -> bool:
    ends = [(edge.subject, edge.object) for edge in graph.edges]
    reached, before = {ends[0][0]}, 0
    while len(reached) > before:
        before = len(reached)
        reached.update(end for pair in ends if reached & set(pair) for end in pair)
    return reached == {end for pair in ends for end in pair}


class TestSizes:
    def test_a_publication_has_so_many_nodes_and_edges_and_hangs_together(
        self, workload: GraphWorkload, table: Table1
    ) -> None:
        for graph in workload.publications:
            nodes = {end for edge in graph.edges for end in (edge.subject, edge.object)}
            assert Size(len(nodes), len(set(graph.edges))) == table.publication
            assert connected(graph)

    def test_a_subscription_has_so_many_nodes_and_edges(self, workload: GraphWorkload, table: Table1) -> None:
        made = workload.subscriptions
        for row in drawn_at_random(made):
            edges = named_edges(made, row)
            nodes = {end for source, _, target in edges for end in (source, target)}
            assert Size(len(nodes), len(set(edges))) == table.subscription

    def test_one_made_to_match_has_as_many_as_the_publication_has_there(
        self, workload: GraphWorkload, table: Table1
    ) -> None:
        made = workload.subscriptions
        for row in workload.made_to_match(0):
            edges = set(named_edges(made, row))
            assert len(set(made.nodes[row].tolist())) == table.subscription.nodes
            assert table.subscription.nodes - 1 <= len(edges) <= table.subscription.edges
            between = {f"http://example.org/n{node}" for node in made.nodes[row]}
            there = [
                edge
                for edge in workload.publications[0].edges
                if edge.subject.text in between and edge.object.text in between
            ]
            assert len(edges) == min(len(there), table.subscription.edges)

    def test_the_path_comes_first_and_no_edge_twice(self) -> None:
        size = Size(4, 20)
        source, target = size.ends()
        pair, nth = random_places(np.random.default_rng(1), size, 50)
        assert (source[pair[:, :3]] == [0, 1, 2]).all()
        assert (target[pair[:, :3]] == [1, 2, 3]).all()
        assert all(len(set(zip(*row, strict=True))) == 20 for row in zip(pair, nth, strict=True))
        assert nth.max() == size.parallel - 1

    def test_edges_between_the_same_nodes_have_different_labels(self) -> None:
        made = graphs(Table1(subscriptions=200, labels=3), 1).subscriptions
        assert max(Counter((s, t) for s, _, t in made.edges(0)).values()) > 1
        assert all(len(set(edges)) == len(edges) for row in range(200) if (edges := made.edges(row)))


class TestMatches:
    def test_each_publication_matches_the_ratio_by_the_definition(
        self, workload: GraphWorkload, table: Table1
    ) -> None:
        assert workload.cores == 10
        for publication in (0, 7, 11):
            found = matched(workload, publication)
            assert len(found) == table.matched * table.subscriptions
            assert found == workload.made_to_match(publication).tolist()

    def test_a_high_ratio(self) -> None:
        workload = graphs(Table1(subscriptions=100, matched=0.4, subscription=FIGURE_9E), 3)
        assert workload.cores == 1
        assert [len(matched(workload, each)) for each in range(3)] == [40, 40, 40]

    def test_publications_of_one_core_are_different(self, workload: GraphWorkload) -> None:
        first, last = (set(workload.publications[at].edges) for at in (0, 10))
        assert 0 < len(first & last) < len(first) / 2
        assert not first & set(workload.publications[1].edges)


class TestVariables:
    @pytest.mark.parametrize("count", [1, 2, 4])
    def test_so_many_in_so_many_subscriptions(self, count: int) -> None:
        made = graphs(Table1(subscriptions=500, variables=count, with_variables=0.8), 1).subscriptions
        assert Counter(made.variable.sum(axis=1).tolist()) == {count: 400, 0: 100}
        assert Counter(len(variables(each)) for each in made.patterns()) == {count: 400, 0: 100}

    def test_without_variables(self) -> None:
        workload = graphs(Table1(subscriptions=200, matched=0.05, with_variables=0), 1)
        assert not workload.subscriptions.variable.any()
        assert len(matched(workload, 0)) == 10


class TestOverlap:
    @pytest.mark.parametrize("overlap", [0.0, 0.3, 1.0])
    def test_so_many_have_an_edge_in_common_with_others(self, overlap: float) -> None:
        made = graphs(Table1(subscriptions=1000, overlap=overlap, matched=0), 1).subscriptions
        edges = [named_edges(made, row) for row in range(len(made))]
        having = Counter(edge for mine in edges for edge in mine)
        sharing = sum(any(having[edge] > 1 for edge in mine) for mine in edges)
        assert sharing == overlap * len(made)


class TestConstraints:
    @pytest.fixture(scope="class")
    def constrained(self) -> GraphWorkload:
        return graphs(Table1(subscriptions=600, matched=0.05, values=0.5, classes=0.5), 4)

    def test_what_was_made_to_match_still_does(self, constrained: GraphWorkload) -> None:
        assert matched(constrained, 3) == constrained.made_to_match(3).tolist()
        rows = constrained.made_to_match(3)
        assert (constrained.subscriptions.value_at[rows] != NONE).any()
        assert (constrained.subscriptions.class_at[rows] != NONE).any()

    def test_half_of_those_with_variables_ask_for_a_number_and_half_for_a_class(
        self, constrained: GraphWorkload
    ) -> None:
        asked = Counter(each.asked for p in constrained.subscriptions.patterns() for each in p.constraints)
        assert asked[ConstraintKind.AT_LEAST] == pytest.approx(270, abs=40)
        assert asked[ConstraintKind.AT_OR_BELOW] == pytest.approx(270, abs=40)

    def test_constraints_can_fail(self, constrained: GraphWorkload) -> None:
        """Without its classes, a publication matches fewer."""
        graph = constrained.publications[0]
        bare = Graph(tuple(edge for edge in graph.edges if edge.property.text != TYPE))
        taxonomy = taxonomy_of(constrained.taxonomy)
        rows = constrained.made_to_match(0).tolist()
        left = [row for row in rows if matches(constrained.subscriptions.pattern(row), bare, taxonomy)]
        assert left == [row for row in rows if constrained.subscriptions.class_at[row] == NONE]

    def test_every_node_has_a_number_and_a_class(self, constrained: GraphWorkload) -> None:
        for graph in constrained.publications:
            assert len(graph.edges) == 90 + 35 + 35

    def test_without_them_there_is_no_taxonomy(self, workload: GraphWorkload) -> None:
        assert workload.taxonomy == Graph(())


def test_texts_say_what_patterns_say() -> None:
    made = graphs(Table1(subscriptions=100, values=0.5, classes=0.5), 1).subscriptions
    assert [parse(text) for text in made.texts()] == list(made.patterns())


def test_the_same_seed_makes_the_same() -> None:
    one, other, third = (graphs(Table1(subscriptions=50), 3, seed=seed) for seed in (5, 5, 6))
    assert list(one.subscriptions.texts()) == list(other.subscriptions.texts())
    assert one.publications == other.publications
    assert list(one.subscriptions.texts()) != list(third.subscriptions.texts())
    assert one.publications != third.publications


def test_the_first_of_many() -> None:
    made = graphs(Table1(subscriptions=50), 1).subscriptions
    assert list(made.first(10).patterns()) == list(made.patterns())[:10]
    assert len(made.first(80)) == 50


@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        ({"subscription": Size(5, 3)}, "is no path"),
        ({"labels": 2}, "needs 3 labels"),
        ({"subscription": Size(20, 30)}, "no part of the first half"),
        ({"variables": 6}, "has no 6 nodes"),
    ],
)
def test_what_cannot_be_made_is_refused(wrong: dict[str, object], said: str) -> None:
    with pytest.raises(ValueError, match=said):
        Table1(**wrong)  # type: ignore[arg-type]
