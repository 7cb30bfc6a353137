"""The graph workload has the stated sizes, matches, variables, overlap and constraints, and is reproducible."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

import numpy as np
import pytest

from benchmarks.workloads.graph_draws import random_places
from benchmarks.workloads.graph_patterns import NONE, GraphSubscriptions, GraphWorkload
from benchmarks.workloads.graphs import FIGURE_9E, Size, Table1, graphs
from tidings.graphs.model import TYPE, Graph
from tidings.graphs.patterns.pattern_parser import parse
from tidings.graphs.patterns.pattern_tree import ConstraintKind, variables
from tidings.graphs.reference_matcher import Explainer, matches
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
    """Return the matching subscriptions by the definition."""
    definition = Explainer(workload.publications[publication], taxonomy_of(workload.taxonomy))
    patterns = enumerate(workload.subscriptions.patterns())
    return [row for row, pattern in patterns if definition.bindings(pattern).bindings]


def named_edges(subscriptions: GraphSubscriptions, row: int) -> list[tuple[int, int, int]]:
    nodes = subscriptions.nodes[row]
    return [(int(nodes[s]), label, int(nodes[t])) for s, label, t in subscriptions.edges(row)]


def random_rows(subscriptions: GraphSubscriptions) -> Iterator[int]:
    return (row for row in range(len(subscriptions)) if subscriptions.core[row] == NONE)


def connected(graph: Graph) -> bool:
    ends = [(edge.subject, edge.object) for edge in graph.edges]
    reached, before = {ends[0][0]}, 0
    while len(reached) > before:
        before = len(reached)
        reached.update(end for pair in ends if reached & set(pair) for end in pair)
    return reached == {end for pair in ends for end in pair}


class TestSizes:
    def test_publication_has_stated_size_and_is_connected(
        self, workload: GraphWorkload, table: Table1
    ) -> None:
        for graph in workload.publications:
            nodes = {end for edge in graph.edges for end in (edge.subject, edge.object)}
            assert Size(len(nodes), len(set(graph.edges))) == table.publication
            assert connected(graph)

    def test_random_subscription_has_stated_size(self, workload: GraphWorkload, table: Table1) -> None:
        subscriptions = workload.subscriptions
        for row in random_rows(subscriptions):
            edges = named_edges(subscriptions, row)
            nodes = {end for source, _, target in edges for end in (source, target)}
            assert Size(len(nodes), len(set(edges))) == table.subscription

    def test_planted_subscription_has_edges_of_publication(
        self, workload: GraphWorkload, table: Table1
    ) -> None:
        subscriptions = workload.subscriptions
        for row in workload.made_to_match(0):
            edges = set(named_edges(subscriptions, row))
            assert len(set(subscriptions.nodes[row].tolist())) == table.subscription.nodes
            assert table.subscription.nodes - 1 <= len(edges) <= table.subscription.edges
            names = {f"http://example.org/n{node}" for node in subscriptions.nodes[row]}
            available = [
                edge
                for edge in workload.publications[0].edges
                if edge.subject.text in names and edge.object.text in names
            ]
            assert len(edges) == min(len(available), table.subscription.edges)

    def test_random_places_begin_with_path_and_repeat_no_edge(self) -> None:
        size = Size(4, 20)
        source, target = size.ends()
        pair, nth = random_places(np.random.default_rng(1), size, 50)
        assert (source[pair[:, :3]] == [0, 1, 2]).all()
        assert (target[pair[:, :3]] == [1, 2, 3]).all()
        assert all(len(set(zip(*row, strict=True))) == 20 for row in zip(pair, nth, strict=True))
        assert nth.max() == size.parallel - 1

    def test_parallel_edges_have_different_labels(self) -> None:
        subscriptions = graphs(Table1(subscriptions=200, labels=3), 1).subscriptions
        assert max(Counter((s, t) for s, _, t in subscriptions.edges(0)).values()) > 1
        assert all(len(set(edges)) == len(edges) for row in range(200) if (edges := subscriptions.edges(row)))


class TestMatches:
    def test_publication_matches_stated_ratio_by_definition(
        self, workload: GraphWorkload, table: Table1
    ) -> None:
        assert workload.cores == 10
        for publication in (0, 7, 11):
            matches_found = matched(workload, publication)
            assert len(matches_found) == table.matched * table.subscriptions
            assert matches_found == workload.made_to_match(publication).tolist()

    def test_high_match_ratio_is_reached(self) -> None:
        workload = graphs(Table1(subscriptions=100, matched=0.4, subscription=FIGURE_9E), 3)
        assert workload.cores == 1
        assert [len(matched(workload, each)) for each in range(3)] == [40, 40, 40]

    def test_publications_of_one_core_differ(self, workload: GraphWorkload) -> None:
        first, last = (set(workload.publications[at].edges) for at in (0, 10))
        assert 0 < len(first & last) < len(first) / 2
        assert not first & set(workload.publications[1].edges)


class TestVariables:
    @pytest.mark.parametrize("count", [1, 2, 4])
    def test_variables_have_stated_count_and_share(self, count: int) -> None:
        subscriptions = graphs(
            Table1(subscriptions=500, variables=count, with_variables=0.8), 1
        ).subscriptions
        assert Counter(subscriptions.variable.sum(axis=1).tolist()) == {count: 400, 0: 100}
        assert Counter(len(variables(each)) for each in subscriptions.patterns()) == {count: 400, 0: 100}

    def test_workload_without_variables_matches_stated_ratio(self) -> None:
        workload = graphs(Table1(subscriptions=200, matched=0.05, with_variables=0), 1)
        assert not workload.subscriptions.variable.any()
        assert len(matched(workload, 0)) == 10


class TestOverlap:
    @pytest.mark.parametrize("overlap", [0.0, 0.3, 1.0])
    def test_stated_share_of_subscriptions_has_shared_edges(self, overlap: float) -> None:
        subscriptions = graphs(Table1(subscriptions=1000, overlap=overlap, matched=0), 1).subscriptions
        edges = [named_edges(subscriptions, row) for row in range(len(subscriptions))]
        having = Counter(edge for own in edges for edge in own)
        sharing = sum(any(having[edge] > 1 for edge in own) for own in edges)
        assert sharing == overlap * len(subscriptions)


class TestConstraints:
    @pytest.fixture(scope="class")
    def constrained(self) -> GraphWorkload:
        return graphs(Table1(subscriptions=600, matched=0.05, values=0.5, classes=0.5), 4)

    def test_planted_subscriptions_match_with_constraints(self, constrained: GraphWorkload) -> None:
        assert matched(constrained, 3) == constrained.made_to_match(3).tolist()
        rows = constrained.made_to_match(3)
        assert (constrained.subscriptions.value_at[rows] != NONE).any()
        assert (constrained.subscriptions.class_at[rows] != NONE).any()

    def test_constraints_are_half_numbers_and_half_classes(self, constrained: GraphWorkload) -> None:
        kinds = Counter(each.kind for p in constrained.subscriptions.patterns() for each in p.constraints)
        assert kinds[ConstraintKind.AT_LEAST] == pytest.approx(270, abs=40)
        assert kinds[ConstraintKind.AT_OR_BELOW] == pytest.approx(270, abs=40)

    def test_constraints_can_fail(self, constrained: GraphWorkload) -> None:
        """Without class edges, a publication matches fewer subscriptions."""
        graph = constrained.publications[0]
        bare = Graph(tuple(edge for edge in graph.edges if edge.property.text != TYPE))
        taxonomy = taxonomy_of(constrained.taxonomy)
        rows = constrained.made_to_match(0).tolist()
        remaining = [row for row in rows if matches(constrained.subscriptions.pattern(row), bare, taxonomy)]
        assert remaining == [row for row in rows if constrained.subscriptions.class_at[row] == NONE]

    def test_every_node_has_number_and_class(self, constrained: GraphWorkload) -> None:
        for graph in constrained.publications:
            assert len(graph.edges) == 90 + 35 + 35

    def test_workload_without_constraints_has_no_taxonomy(self, workload: GraphWorkload) -> None:
        assert workload.taxonomy == Graph(())


def test_texts_parse_to_patterns() -> None:
    subscriptions = graphs(Table1(subscriptions=100, values=0.5, classes=0.5), 1).subscriptions
    assert [parse(text) for text in subscriptions.texts()] == list(subscriptions.patterns())


def test_same_seed_gives_same_workload() -> None:
    first, same, different = (graphs(Table1(subscriptions=50), 3, seed=seed) for seed in (5, 5, 6))
    assert list(first.subscriptions.texts()) == list(same.subscriptions.texts())
    assert first.publications == same.publications
    assert list(first.subscriptions.texts()) != list(different.subscriptions.texts())
    assert first.publications != different.publications


def test_first_returns_leading_subscriptions() -> None:
    subscriptions = graphs(Table1(subscriptions=50), 1).subscriptions
    assert list(subscriptions.first(10).patterns()) == list(subscriptions.patterns())[:10]
    assert len(subscriptions.first(80)) == 50


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"subscription": Size(5, 3)}, "is no path"),
        ({"labels": 2}, "needs 3 labels"),
        ({"subscription": Size(20, 30)}, "does not fit into the first half"),
        ({"variables": 6}, "has no 6 nodes"),
    ],
)
def test_table1_impossible_parameters_raise_value_error(wrong: dict[str, object], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        Table1(**wrong)  # type: ignore[arg-type]
