"""The contract of all graph algorithms, and properties of each, including the figures of paper 002."""

from __future__ import annotations

from collections.abc import Callable, Iterable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from research.graphs.algorithm import Bindings, GraphAlgorithm, TaxonomyWalk
from research.graphs.catalogue import GRAPH_ALGORITHMS
from research.graphs.g_topss import GTopss, Label, MergedGraph, Row, Star, Table, join_tables, order_tables
from research.graphs.ops import Ops, Structure
from tests.support.strategies.effort import share
from tests.support.strategies.graphs import patterns, taxonomies, typed_graphs
from tidings.graphs.model import TYPE, XSD, Edge, Graph, Term, iri, literal
from tidings.graphs.patterns.pattern_parser import parse
from tidings.graphs.patterns.pattern_tree import Pattern, selected
from tidings.graphs.reference_matcher import bindings
from tidings.graphs.taxonomy import SUBCLASS, SUBPROPERTY, Taxonomy, taxonomy_of

Make = Callable[[Taxonomy], GraphAlgorithm]
History = list[tuple[str, Pattern | None]]

EX = "http://example.org/"
NO_TAXONOMY = Taxonomy()
FEWER = share(3)
"""Several implementations share these tests; each gets a third of the usual examples."""


@pytest.fixture(scope="module", params=GRAPH_ALGORITHMS.values(), ids=GRAPH_ALGORITHMS.keys())
def make(request: pytest.FixtureRequest) -> Make:
    return request.param


def gql(body: str) -> Pattern:
    return parse(f"PREFIX : <{EX}> SELECT * WHERE {body}")


def term(text: str) -> Term:
    return literal(text, XSD + "integer") if text.isdigit() else iri(EX + text)


def graph(*edges: str) -> Graph:
    """Create a graph from texts such as `A p B`; a number is a literal."""
    return Graph(tuple(Edge(*map(term, edge.split())) for edge in edges))


def expected_bindings(pattern: Pattern, published: Graph, taxonomy: Taxonomy) -> Bindings:
    rows = bindings(pattern, published, taxonomy)
    return frozenset(tuple(row[variable] for variable in selected(pattern)) for row in rows)


def expected_matches(
    patterns_by_id: dict[str, Pattern], published: Graph, taxonomy: Taxonomy
) -> dict[str, Bindings]:
    bindings_by_id = {
        id: expected_bindings(pattern, published, taxonomy) for id, pattern in patterns_by_id.items()
    }
    return {id: rows for id, rows in bindings_by_id.items() if rows}


def show_bindings(bindings_by_id: dict[str, Bindings]) -> dict[str, set[str]]:
    """Show the bindings of each subscription as local names with spaces, such as `B C`."""
    return {
        id: {" ".join(show_label(each) for each in row) for row in rows}
        for id, rows in bindings_by_id.items()
    }


def show_label(label: Label) -> str:
    return f"⋆{label.number}" if isinstance(label, Star) else label.text.removeprefix(EX)


class TestContract:
    def test_match_added_subscriptions_have_bindings(self, make: Make) -> None:
        algorithm = make(NO_TAXONOMY)
        algorithm.add("from A", gql("(:A, :p, ?x)"))
        algorithm.add("two steps", gql("(?x, :p, ?y) (?y, :q, ?z)"))
        algorithm.add("named", gql("(:A, :p, :B)"))
        algorithm.add("none", gql("(:B, :p, :A)"))
        assert show_bindings(algorithm.match(graph("A p B", "A p C", "C q D"))) == {
            "from A": {"B", "C"},
            "two steps": {"A C D"},
            "named": {""},
        }

    def test_match_removed_subscriptions_do_not_match(self, make: Make) -> None:
        algorithm = make(NO_TAXONOMY)
        algorithm.add("one", gql("(:A, :p, ?x)"))
        algorithm.add("two", gql("(:A, :p, ?y)"))
        assert algorithm.remove("one")
        assert not algorithm.remove("one")
        assert len(algorithm) == 1
        assert show_bindings(algorithm.match(graph("A p B"))) == {"two": {"B"}}

    def test_add_existing_id_replaces_pattern(self, make: Make) -> None:
        algorithm = make(NO_TAXONOMY)
        algorithm.add("one", gql("(:A, :p, ?x)"))
        algorithm.add("one", gql("(:A, :q, ?x)"))
        assert len(algorithm) == 1
        assert algorithm.match(graph("A p B")) == {}
        assert show_bindings(algorithm.match(graph("A q B"))) == {"one": {"B"}}

    def test_match_publications_are_independent(self, make: Make) -> None:
        """Paper 002 only resets the counters of matches, so the second publication would complete the first."""
        algorithm = make(NO_TAXONOMY)
        algorithm.add("both", gql("(:A, :p, ?x) (?x, :q, :C)"))
        assert algorithm.match(graph("A p B")) == {}
        assert algorithm.match(graph("B q C")) == {}
        assert show_bindings(algorithm.match(graph("A p B", "B q C"))) == {"both": {"B"}}
        assert show_bindings(algorithm.match(graph("A p D", "D q C"))) == {"both": {"D"}}

    def test_match_several_edges_for_one_pattern_edge_do_not_count_twice(self, make: Make) -> None:
        algorithm = make(NO_TAXONOMY)
        algorithm.add("both", gql("(:A, :p, ?x) (?x, :q, :E)"))
        assert algorithm.match(graph("A p B", "A p C", "A p D")) == {}

    def test_match_repeated_edge_in_pattern_counts_once(self, make: Make) -> None:
        algorithm = make(NO_TAXONOMY)
        algorithm.add("twice", gql("(:A, :p, ?x) (:A, :p, ?x)"))
        assert show_bindings(algorithm.match(graph("A p B"))) == {"twice": {"B"}}

    def test_match_reversed_edge_does_not_match(self, make: Make) -> None:
        algorithm = make(NO_TAXONOMY)
        algorithm.add("back", gql("(:B, :p, :A)"))
        algorithm.add("to A", gql("(?x, :p, :A)"))
        assert algorithm.match(graph("A p B")) == {}

    def test_match_variable_has_same_term_everywhere(self, make: Make) -> None:
        algorithm = make(NO_TAXONOMY)
        algorithm.add("loop", gql("(?x, :p, ?x)"))
        algorithm.add("property", gql("(?x, ?x, ?y)"))
        algorithm.add("two", gql("(?x, :p, ?y)"))
        assert show_bindings(algorithm.match(graph("A p B"))) == {"two": {"A B"}}
        assert show_bindings(algorithm.match(graph("p p p"))) == {
            "loop": {"p"},
            "property": {"p p"},
            "two": {"p p"},
        }

    def test_match_unconnected_edges_bind_all_combinations(self, make: Make) -> None:
        algorithm = make(NO_TAXONOMY)
        algorithm.add("apart", gql("(:A, :p, ?x) (:B, :q, ?y)"))
        assert show_bindings(algorithm.match(graph("A p C", "A p D", "B q E", "B q F"))) == {
            "apart": {"C E", "C F", "D E", "D F"}
        }

    def test_match_all_constraints_must_hold(self, make: Make) -> None:
        """CheckConstraint of the paper returns the result for the first variable."""
        algorithm = make(NO_TAXONOMY)
        algorithm.add("both", gql("(:A, :year, ?x) (:A, :price, ?y) AND ?x >= 2004 AND ?y < 10"))
        assert show_bindings(algorithm.match(graph("A year 2005", "A price 5"))) == {"both": {"2005 5"}}
        assert algorithm.match(graph("A year 2005", "A price 15")) == {}
        assert algorithm.match(graph("A year 2003", "A price 5")) == {}

    @pytest.mark.parametrize(
        ("sign", "holds_for"),
        [("=", "B"), ("!=", "AC"), ("<=", "AB"), ("<", "A"), (">=", "BC"), (">", "C")],
    )
    @pytest.mark.parametrize("node", ["Y", "B"])
    def test_match_constraints_on_classes(self, make: Make, sign: str, holds_for: str, node: str) -> None:
        """C is below B, and B is below A. In the publication, Y is an instance of B; the class B is at itself."""
        above = [Edge(term(each), iri(SUBCLASS), term(of)) for each, of in ("BA", "CB")]
        algorithm = make(taxonomy_of(Graph(tuple(above))))
        for of in "ABC":
            algorithm.add(of, gql(f"(:X, :p, ?y) AND ?y {sign} :{of}"))
        typed = Edge(term("Y"), iri(TYPE), term("B"))
        assert set(algorithm.match(Graph((*graph(f"X p {node}").edges, typed)))) == set(holds_for)

    def test_match_property_implies_super_properties(self, make: Make) -> None:
        algorithm = make(taxonomy_of(Graph((Edge(term("writes"), iri(SUBPROPERTY), term("makes")),))))
        algorithm.add("maker", gql("(?x, :makes, :B)"))
        algorithm.add("how", gql("(:A, ?how, :B)"))
        assert show_bindings(algorithm.match(graph("A writes B"))) == {
            "maker": {"A"},
            "how": {"writes", "makes"},
        }

    def test_match_without_subscriptions_is_empty(self, make: Make) -> None:
        algorithm = make(NO_TAXONOMY)
        assert algorithm.match(graph("A p B")) == {}
        assert len(algorithm) == 0

    def test_size_grows_with_subscriptions(self, make: Make) -> None:
        algorithm, sizes = make(NO_TAXONOMY), []
        for number in range(32):
            algorithm.add(f"s{number}", gql(f"(:A{number}, :p, ?x) (?x, :q, :B{number})"))
            sizes.append(algorithm.size())
        assert sizes[0] < sizes[15] < sizes[31]


@st.composite
def histories(draw: st.DrawFn) -> tuple[History, list[Graph], Taxonomy]:
    """Additions (ids may repeat) and removals (None), the publications from which they are drawn, and a taxonomy."""
    published = draw(st.lists(typed_graphs, min_size=1, max_size=3))
    drawn_patterns = st.sampled_from(published).flatmap(lambda each: patterns(each, of_classes=True))
    ids = st.sampled_from([f"s{number}" for number in range(5)])
    changes = st.lists(
        st.tuples(ids, st.one_of(drawn_patterns, drawn_patterns, drawn_patterns, st.none())), max_size=10
    )
    return draw(changes), published, draw(taxonomies())


@FEWER
@given(drawn=histories())
def test_match_agrees_with_specification(make: Make, drawn: tuple[History, list[Graph], Taxonomy]) -> None:
    history, published, taxonomy = drawn
    algorithm, patterns_by_id = make(taxonomy), dict[str, Pattern]()
    for id, change in history:
        if change is None:
            assert algorithm.remove(id) == (patterns_by_id.pop(id, None) is not None)
        else:
            algorithm.add(id, change)
            patterns_by_id[id] = change
        publication = published[len(patterns_by_id) % len(published)]
        assert algorithm.match(publication) == expected_matches(patterns_by_id, publication, taxonomy)
    assert len(algorithm) == len(patterns_by_id)
    for each in published:
        assert algorithm.match(each) == expected_matches(patterns_by_id, each, taxonomy)


@given(drawn=histories())
def test_remove_all_leaves_empty_structures(drawn: tuple[History, list[Graph], Taxonomy]) -> None:
    history, _, taxonomy = drawn
    g_topss, ops = GTopss(taxonomy), Ops(taxonomy)
    for id, change in history:
        if change is not None:
            g_topss.add(id, change)
            ops.add(id, change)
    for id, _ in history:
        assert g_topss.remove(id) == ops.remove(id)
    assert (g_topss.merged.pairs, g_topss.merged.stars) == ({}, ())
    assert ops.structures == Structure()


WEB_PAGE = "(:HomePage325, :project, :G-ToPSS) (:G-ToPSS, :supervisor, :ArnoJacobsen) (:G-ToPSS, :year, ?z)"
NEW_PROJECT = "(?x, :project, :G-ToPSS) (:G-ToPSS, :year, ?y)"
FIGURE_5A = f"{WEB_PAGE} AND ?z > 2003"
FIGURE_5B = f"{NEW_PROJECT} AND ?x <= :Academia AND ?y > 2004"
FIGURE_5C = graph("HomePage325 project G-ToPSS", "G-ToPSS supervisor ArnoJacobsen", "G-ToPSS year 2005")


def figure_6() -> Taxonomy:
    below = {
        "ResearchLab": "Academia",
        "University": "Academia",
        "UofT": "University",
        "MiddlewareGroup": "ResearchLab",
        "PubSubSystemDevelopment": "MiddlewareGroup",
        "AspectOrientedSoftwareDevelopment": "MiddlewareGroup",
    }
    edges = [Edge(term(each), iri(SUBCLASS), term(above)) for each, above in below.items()]
    page = term("HomePage325")
    edges += [Edge(page, iri(TYPE), term(of)) for of in ("UofT", "PubSubSystemDevelopment")]
    return taxonomy_of(Graph(tuple(edges)))


def show_graph(merged: MergedGraph) -> list[str]:
    """Show a graph as in figure 7, a line for each edge: the two nodes, the label, the subscriptions."""
    return sorted(
        f"({show_label(source)}, {show_label(target)}) {show_label(label)} -> {' '.join(edge.subscriptions)}"
        for (source, target), labels in merged.pairs.items()
        for label, edge in labels.items()
    )


def show_table(columns: Iterable[Label], rows: Iterable[Row]) -> list[str]:
    """Show a table as in figure 8: a heading, then the sorted rows."""
    return [" ".join(map(show_label, columns)), *sorted(" ".join(map(show_label, row)) for row in rows)]


class TestGTopss:
    def test_g_topss_figure_5_merges_subscriptions(self) -> None:
        g_topss = GTopss(figure_6())
        g_topss.add("s1", gql(FIGURE_5A))
        g_topss.add("s2", gql(FIGURE_5B))
        assert show_graph(g_topss.merged) == [
            "(G-ToPSS, ArnoJacobsen) supervisor -> s1",
            "(G-ToPSS, ⋆1) year -> s1",
            "(G-ToPSS, ⋆2) year -> s2",
            "(HomePage325, G-ToPSS) project -> s1",
            "(⋆1, G-ToPSS) project -> s2",
        ]
        assert [star.number for star in g_topss.merged.stars] == [1, 2]

    def test_g_topss_figure_5_publication_matches_both(self) -> None:
        g_topss = GTopss(figure_6())
        g_topss.add("s1", gql(FIGURE_5A))
        g_topss.add("s2", gql(FIGURE_5B))
        assert show_bindings(g_topss.match(FIGURE_5C)) == {"s1": {"2005"}, "s2": {"HomePage325 2005"}}

    def test_g_topss_figure_5_without_taxonomy_does_not_match(self) -> None:
        g_topss = GTopss(NO_TAXONOMY)
        g_topss.add("s2", gql(FIGURE_5B))
        assert g_topss.match(FIGURE_5C) == {}

    def test_g_topss_figure_7_has_two_levels_of_hashing(self) -> None:
        merged = GTopss(NO_TAXONOMY)
        merged.add("s1", gql("(:A, :a, :B) (:A, :b, :B)"))
        merged.add("s2", gql("(:A, :a, :B) (:B, :c, ?x)"))
        assert show_graph(merged.merged) == ["(A, B) a -> s1 s2", "(A, B) b -> s1", "(B, ⋆1) c -> s2"]
        assert len(merged.merged.pairs) == 2

    def test_g_topss_figure_8_joins_binding_tables(self) -> None:
        g_topss = GTopss(NO_TAXONOMY)
        g_topss.add("s", gql("(:A, :a, ?x) (?x, :b, :B)"))
        published = graph("A a B", "A a C", "A a E", "C b B", "D b B", "E b B", "F b B", "G b B")
        reached = g_topss.reach_edges(published.edges)
        tables = {edge.property: Table(edge.columns(), rows) for edge, rows in reached.tables.items()}
        assert show_table(*tables[term("a")]) == ["A ⋆1", "A B", "A C", "A E"]
        assert show_table(*tables[term("b")]) == ["⋆1 B", "C B", "D B", "E B", "F B", "G B"]
        assert show_table(*join_tables([tables[term("a")], tables[term("b")]])) == [
            "A ⋆1 B",
            "A C B",
            "A E B",
        ]
        assert reached.counts == {"s": 2}
        assert show_bindings(g_topss.match(published)) == {"s": {"C", "E"}}

    def test_g_topss_stars_are_independent_of_names_of_variables(self) -> None:
        g_topss = GTopss(NO_TAXONOMY)
        g_topss.add("s1", gql("(:A, :p, ?x) (?x, :q, ?y)"))
        g_topss.add("s2", gql("(:A, :p, ?u) (?u, :q, ?v)"))
        assert show_graph(g_topss.merged) == ["(A, ⋆1) p -> s1 s2", "(⋆1, ⋆2) q -> s1 s2"]

    def test_g_topss_row_of_shared_edge_is_added_once(self) -> None:
        g_topss = GTopss(NO_TAXONOMY)
        for number in range(3):
            g_topss.add(f"s{number}", gql("(:A, :p, ?x)"))
        ((_, rows),) = g_topss.reach_edges(graph("A p B").edges).tables.items()
        assert rows == [(term("A"), term("B"))]

    def test_g_topss_remove_deletes_unused_stars(self) -> None:
        g_topss = GTopss(NO_TAXONOMY)
        g_topss.add("many", gql("(?a, :p, ?b) (?b, :p, ?c) (?c, :p, ?d)"))
        g_topss.add("one", gql("(?a, :p, :B)"))
        assert len(g_topss.merged.stars) == 4
        g_topss.remove("many")
        assert g_topss.merged.stars == (Star(1),)

    def test_g_topss_property_variables_are_second_level_stars(self) -> None:
        g_topss = GTopss(NO_TAXONOMY)
        g_topss.add("s", gql("(:A, ?p, :B) (:B, ?p, ?x)"))
        assert show_graph(g_topss.merged) == ["(A, B) ⋆1 -> s", "(B, ⋆2) ⋆1 -> s"]
        assert show_bindings(g_topss.match(graph("A p B", "A q B", "B q C"))) == {"s": {"q C"}}

    def test_order_tables_joins_tables_with_common_stars_first(self) -> None:
        x, y = Star(1), Star(2)
        some = [(term("A"), term(each)) for each in "BCD"]
        from_a, from_b = Table((term("A"), x), some), Table((term("B"), y), some)
        between = Table((x, y), some * 2)
        assert [table.columns for table in order_tables([from_a, from_b, between])] == [
            (term("A"), x),
            (x, y),
            (term("B"), y),
        ]


class TestWalk:
    def test_taxonomy_walk_figure_6_finds_descendants(self) -> None:
        walk = TaxonomyWalk(figure_6())
        assert walk.is_descendant(term("UofT"), term("Academia"))
        assert walk.is_descendant(term("UofT"), term("UofT"))
        assert not walk.is_descendant(term("Academia"), term("UofT"))
        assert not walk.is_descendant(term("UofT"), term("ResearchLab"))

    def test_taxonomy_walk_classes_with_many_paths_are_visited_once(self) -> None:
        """Sixty diamonds in a row have 2^60 paths."""
        edges = [
            Edge(term(f"{below}{level}"), iri(SUBCLASS), term(f"{above}{level + 1}"))
            for level in range(60)
            for below in "LR"
            for above in "LR"
        ]
        assert not TaxonomyWalk(taxonomy_of(Graph(tuple(edges)))).is_descendant(term("L0"), term("elsewhere"))


class TestOps:
    def test_ops_structures_share_common_prefix(self) -> None:
        ops = Ops(NO_TAXONOMY)
        ops.add("s1", gql("(:A, :p, ?x) (?x, :q, :B)"))
        ops.add("s2", gql("(?x, :p, :C) (:C, :q, :D)"))
        ops.add("s3", gql("(:A, :p, ?x) (:A, :r, ?y)"))
        assert show_structures(ops.structures) == ["0 p 1", "  1 q 2: s1 s2", "  0 r 2: s3"]

    def test_ops_bare_structures_ignore_labels(self) -> None:
        ops = Ops(NO_TAXONOMY, bare=True)
        ops.add("s1", gql("(:A, :p, ?x) (?x, :q, :B)"))
        ops.add("s2", gql("(?x, :r, :C) (:C, :p, :D)"))
        ops.add("s3", gql("(?x, ?p, :C)"))
        assert show_structures(ops.structures) == ["0 any 1", "  1 any 2: s1 s2", "0 (1) 2: s3"]

    def test_ops_edge_follows_edges_to_source(self) -> None:
        ops = Ops(NO_TAXONOMY)
        ops.add("s", gql("(:A, :p, ?x) (?y, :q, ?z) (?x, :r, ?y)"))
        assert show_structures(ops.structures) == ["0 p 1", "  1 r 2", "    2 q 3: s"]


def show_structures(structure: Structure, depth: int = 0) -> list[str]:
    lines = []
    for step, deeper in structure.steps.items():
        label = "any" if step.property is None else step.property
        shown = (
            f"({label})" if isinstance(label, int) else label if isinstance(label, str) else show_label(label)
        )
        ends = f": {' '.join(deeper.leaves)}" if deeper.leaves else ""
        lines += [f"{'  ' * depth}{step.source} {shown} {step.target}{ends}"]
        lines += show_structures(deeper, depth + 1)
    return lines
