"""One contract for all algorithms for graphs; and what is particular to each, the figures of paper 002 among it."""

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
from tidings.graphs.explanation import bindings
from tidings.graphs.model import TYPE, XSD, Edge, Graph, Term, iri, literal
from tidings.graphs.patterns.pattern_parser import parse
from tidings.graphs.patterns.pattern_tree import Pattern, selected
from tidings.graphs.taxonomy import SUBCLASS, SUBPROPERTY, Taxonomy, taxonomy_of

Make = Callable[[Taxonomy], GraphAlgorithm]
History = list[tuple[str, Pattern | None]]

EX = "http://example.org/"
NO_TAXONOMY = Taxonomy()
FEWER = share(3)
"""Several implementations share these tests; each is given a third of the usual examples."""


@pytest.fixture(scope="module", params=GRAPH_ALGORITHMS.values(), ids=GRAPH_ALGORITHMS.keys())
def make(request: pytest.FixtureRequest) -> Make:
    return request.param


def gql(body: str) -> Pattern:
    return parse(f"PREFIX : <{EX}> SELECT * WHERE {body}")


def term(text: str) -> Term:
    return literal(text, XSD + "integer") if text.isdigit() else iri(EX + text)


def graph(*edges: str) -> Graph:
    """`A p B` is one edge; a number is a literal."""
    return Graph(tuple(Edge(*map(term, edge.split())) for edge in edges))


def by_definition(pattern: Pattern, published: Graph, taxonomy: Taxonomy) -> Bindings:
    rows = bindings(pattern, published, taxonomy)
    return frozenset(tuple(row[name] for name in selected(pattern)) for row in rows)


def defined(held: dict[str, Pattern], published: Graph, taxonomy: Taxonomy) -> dict[str, Bindings]:
    found = {id: by_definition(pattern, published, taxonomy) for id, pattern in held.items()}
    return {id: rows for id, rows in found.items() if rows}


def shown(found: dict[str, Bindings]) -> dict[str, set[str]]:
    """The bindings of each subscription, as `B C`: local names with spaces between them."""
    return {id: {" ".join(name(each) for each in row) for row in rows} for id, rows in found.items()}


def name(label: Label) -> str:
    return f"⋆{label.number}" if isinstance(label, Star) else label.text.removeprefix(EX)


class TestContract:
    def test_added_subscriptions_match_with_their_bindings(self, make: Make) -> None:
        found = make(NO_TAXONOMY)
        found.add("from A", gql("(:A, :p, ?x)"))
        found.add("two steps", gql("(?x, :p, ?y) (?y, :q, ?z)"))
        found.add("named", gql("(:A, :p, :B)"))
        found.add("none", gql("(:B, :p, :A)"))
        assert shown(found.match(graph("A p B", "A p C", "C q D"))) == {
            "from A": {"B", "C"},
            "two steps": {"A C D"},
            "named": {""},
        }

    def test_removed_subscriptions_do_not_match(self, make: Make) -> None:
        found = make(NO_TAXONOMY)
        found.add("one", gql("(:A, :p, ?x)"))
        found.add("two", gql("(:A, :p, ?y)"))
        assert found.remove("one")
        assert not found.remove("one")
        assert len(found) == 1
        assert shown(found.match(graph("A p B"))) == {"two": {"B"}}

    def test_an_id_given_again_takes_the_place_of_the_old_pattern(self, make: Make) -> None:
        found = make(NO_TAXONOMY)
        found.add("one", gql("(:A, :p, ?x)"))
        found.add("one", gql("(:A, :q, ?x)"))
        assert len(found) == 1
        assert found.match(graph("A p B")) == {}
        assert shown(found.match(graph("A q B"))) == {"one": {"B"}}

    def test_publications_leave_nothing_behind(self, make: Make) -> None:
        """Paper 002 sets back only the counters of what matched: then the second half would complete the first."""
        found = make(NO_TAXONOMY)
        found.add("both", gql("(:A, :p, ?x) (?x, :q, :C)"))
        assert found.match(graph("A p B")) == {}
        assert found.match(graph("B q C")) == {}
        assert shown(found.match(graph("A p B", "B q C"))) == {"both": {"B"}}
        assert shown(found.match(graph("A p D", "D q C"))) == {"both": {"D"}}

    def test_one_edge_that_is_there_often_is_not_several_edges(self, make: Make) -> None:
        found = make(NO_TAXONOMY)
        found.add("both", gql("(:A, :p, ?x) (?x, :q, :E)"))
        assert found.match(graph("A p B", "A p C", "A p D")) == {}

    def test_an_edge_written_twice_is_there_once(self, make: Make) -> None:
        found = make(NO_TAXONOMY)
        found.add("twice", gql("(:A, :p, ?x) (:A, :p, ?x)"))
        assert shown(found.match(graph("A p B"))) == {"twice": {"B"}}

    def test_edges_have_a_direction(self, make: Make) -> None:
        found = make(NO_TAXONOMY)
        found.add("back", gql("(:B, :p, :A)"))
        found.add("to A", gql("(?x, :p, :A)"))
        assert found.match(graph("A p B")) == {}

    def test_a_variable_is_one_term_throughout(self, make: Make) -> None:
        found = make(NO_TAXONOMY)
        found.add("loop", gql("(?x, :p, ?x)"))
        found.add("property", gql("(?x, ?x, ?y)"))
        found.add("two", gql("(?x, :p, ?y)"))
        assert shown(found.match(graph("A p B"))) == {"two": {"A B"}}
        assert shown(found.match(graph("p p p"))) == {"loop": {"p"}, "property": {"p p"}, "two": {"p p"}}

    def test_edges_with_nothing_in_common_are_bound_in_all_combinations(self, make: Make) -> None:
        found = make(NO_TAXONOMY)
        found.add("apart", gql("(:A, :p, ?x) (:B, :q, ?y)"))
        assert shown(found.match(graph("A p C", "A p D", "B q E", "B q F"))) == {
            "apart": {"C E", "C F", "D E", "D F"}
        }

    def test_all_constraints_must_hold(self, make: Make) -> None:
        """The paper's CheckConstraint returns with the answer for the first variable."""
        found = make(NO_TAXONOMY)
        found.add("both", gql("(:A, :year, ?x) (:A, :price, ?y) AND ?x >= 2004 AND ?y < 10"))
        assert shown(found.match(graph("A year 2005", "A price 5"))) == {"both": {"2005 5"}}
        assert found.match(graph("A year 2005", "A price 15")) == {}
        assert found.match(graph("A year 2003", "A price 5")) == {}

    @pytest.mark.parametrize(
        ("sign", "holds_for"),
        [("=", "B"), ("!=", "AC"), ("<=", "AB"), ("<", "A"), (">=", "BC"), (">", "C")],
    )
    @pytest.mark.parametrize("node", ["Y", "B"])
    def test_classes_above_and_below(self, make: Make, sign: str, holds_for: str, node: str) -> None:
        """C is below B is below A. Y is an instance of B, so says the publication; B itself stands at itself."""
        above = [Edge(term(each), iri(SUBCLASS), term(of)) for each, of in ("BA", "CB")]
        found = make(taxonomy_of(Graph(tuple(above))))
        for of in "ABC":
            found.add(of, gql(f"(:X, :p, ?y) AND ?y {sign} :{of}"))
        typed = Edge(term("Y"), iri(TYPE), term("B"))
        assert set(found.match(Graph((*graph(f"X p {node}").edges, typed)))) == set(holds_for)

    def test_properties_above_others(self, make: Make) -> None:
        found = make(taxonomy_of(Graph((Edge(term("writes"), iri(SUBPROPERTY), term("makes")),))))
        found.add("maker", gql("(?x, :makes, :B)"))
        found.add("how", gql("(:A, ?how, :B)"))
        assert shown(found.match(graph("A writes B"))) == {"maker": {"A"}, "how": {"writes", "makes"}}

    def test_match_without_subscriptions_is_empty(self, make: Make) -> None:
        found = make(NO_TAXONOMY)
        assert found.match(graph("A p B")) == {}
        assert len(found) == 0

    def test_size_grows_with_the_subscriptions(self, make: Make) -> None:
        found, sizes = make(NO_TAXONOMY), []
        for number in range(32):
            found.add(f"s{number}", gql(f"(:A{number}, :p, ?x) (?x, :q, :B{number})"))
            sizes.append(found.size())
        assert sizes[0] < sizes[15] < sizes[31]


@st.composite
def histories(draw: st.DrawFn) -> tuple[History, list[Graph], Taxonomy]:
    """Additions (an id may come again) and removals (None), publications that they are made from, and a taxonomy."""
    published = draw(st.lists(typed_graphs, min_size=1, max_size=3))
    asked = st.sampled_from(published).flatmap(lambda each: patterns(each, of_classes=True))
    ids = st.sampled_from([f"s{number}" for number in range(5)])
    changes = st.lists(st.tuples(ids, st.one_of(asked, asked, asked, st.none())), max_size=10)
    return draw(changes), published, draw(taxonomies())


@FEWER
@given(drawn=histories())
def test_match_agrees_with_the_specification(
    make: Make, drawn: tuple[History, list[Graph], Taxonomy]
) -> None:
    history, published, taxonomy = drawn
    found, held = make(taxonomy), dict[str, Pattern]()
    for id, change in history:
        if change is None:
            assert found.remove(id) == (held.pop(id, None) is not None)
        else:
            found.add(id, change)
            held[id] = change
        at = published[len(held) % len(published)]
        assert found.match(at) == defined(held, at, taxonomy)
    assert len(found) == len(held)
    for each in published:
        assert found.match(each) == defined(held, each, taxonomy)


@given(drawn=histories())
def test_remove_of_all_leaves_nothing(drawn: tuple[History, list[Graph], Taxonomy]) -> None:
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


def drawn_graph(merged: MergedGraph) -> list[str]:
    """Figure 7, a line for each edge: the two nodes, the label, the subscriptions."""
    return sorted(
        f"({name(source)}, {name(target)}) {name(label)} -> {' '.join(edge.subscriptions)}"
        for (source, target), labels in merged.pairs.items()
        for label, edge in labels.items()
    )


def drawn_table(columns: Iterable[Label], rows: Iterable[Row]) -> list[str]:
    """Figure 8: a heading, then the rows in order."""
    return [" ".join(map(name, columns)), *sorted(" ".join(map(name, row)) for row in rows)]


class TestGTopss:
    def test_figure_5_two_subscriptions_merged(self) -> None:
        g_topss = GTopss(figure_6())
        g_topss.add("s1", gql(FIGURE_5A))
        g_topss.add("s2", gql(FIGURE_5B))
        assert drawn_graph(g_topss.merged) == [
            "(G-ToPSS, ArnoJacobsen) supervisor -> s1",
            "(G-ToPSS, ⋆1) year -> s1",
            "(G-ToPSS, ⋆2) year -> s2",
            "(HomePage325, G-ToPSS) project -> s1",
            "(⋆1, G-ToPSS) project -> s2",
        ]
        assert [star.number for star in g_topss.merged.stars] == [1, 2]

    def test_figure_5_the_publication_matches_both(self) -> None:
        g_topss = GTopss(figure_6())
        g_topss.add("s1", gql(FIGURE_5A))
        g_topss.add("s2", gql(FIGURE_5B))
        assert shown(g_topss.match(FIGURE_5C)) == {"s1": {"2005"}, "s2": {"HomePage325 2005"}}

    def test_figure_6_without_the_taxonomy_no_class_is_below_academia(self) -> None:
        g_topss = GTopss(NO_TAXONOMY)
        g_topss.add("s2", gql(FIGURE_5B))
        assert g_topss.match(FIGURE_5C) == {}

    def test_figure_7_two_levels_of_hashing(self) -> None:
        merged = GTopss(NO_TAXONOMY)
        merged.add("s1", gql("(:A, :a, :B) (:A, :b, :B)"))
        merged.add("s2", gql("(:A, :a, :B) (:B, :c, ?x)"))
        assert drawn_graph(merged.merged) == ["(A, B) a -> s1 s2", "(A, B) b -> s1", "(B, ⋆1) c -> s2"]
        assert len(merged.merged.pairs) == 2

    def test_figure_8_binding_tables_and_their_join(self) -> None:
        g_topss = GTopss(NO_TAXONOMY)
        g_topss.add("s", gql("(:A, :a, ?x) (?x, :b, :B)"))
        published = graph("A a B", "A a C", "A a E", "C b B", "D b B", "E b B", "F b B", "G b B")
        reached = g_topss.reach_edges(published.edges)
        tables = {edge.property: Table(edge.columns(), rows) for edge, rows in reached.tables.items()}
        assert drawn_table(*tables[term("a")]) == ["A ⋆1", "A B", "A C", "A E"]
        assert drawn_table(*tables[term("b")]) == ["⋆1 B", "C B", "D B", "E B", "F B", "G B"]
        assert drawn_table(*join_tables([tables[term("a")], tables[term("b")]])) == [
            "A ⋆1 B",
            "A C B",
            "A E B",
        ]
        assert reached.counts == {"s": 2}
        assert shown(g_topss.match(published)) == {"s": {"C", "E"}}

    def test_subscriptions_share_stars_whatever_their_variables_are_called(self) -> None:
        g_topss = GTopss(NO_TAXONOMY)
        g_topss.add("s1", gql("(:A, :p, ?x) (?x, :q, ?y)"))
        g_topss.add("s2", gql("(:A, :p, ?u) (?u, :q, ?v)"))
        assert drawn_graph(g_topss.merged) == ["(A, ⋆1) p -> s1 s2", "(⋆1, ⋆2) q -> s1 s2"]

    def test_a_row_is_added_once_however_many_have_the_edge(self) -> None:
        g_topss = GTopss(NO_TAXONOMY)
        for number in range(3):
            g_topss.add(f"s{number}", gql("(:A, :p, ?x)"))
        ((_, rows),) = g_topss.reach_edges(graph("A p B").edges).tables.items()
        assert rows == [(term("A"), term("B"))]

    def test_stars_go_with_the_last_subscription_that_has_them(self) -> None:
        g_topss = GTopss(NO_TAXONOMY)
        g_topss.add("many", gql("(?a, :p, ?b) (?b, :p, ?c) (?c, :p, ?d)"))
        g_topss.add("one", gql("(?a, :p, :B)"))
        assert len(g_topss.merged.stars) == 4
        g_topss.remove("many")
        assert g_topss.merged.stars == (Star(1),)

    def test_properties_that_are_variables_are_stars_of_the_second_level(self) -> None:
        g_topss = GTopss(NO_TAXONOMY)
        g_topss.add("s", gql("(:A, ?p, :B) (:B, ?p, ?x)"))
        assert drawn_graph(g_topss.merged) == ["(A, B) ⋆1 -> s", "(B, ⋆2) ⋆1 -> s"]
        assert shown(g_topss.match(graph("A p B", "A q B", "B q C"))) == {"s": {"q C"}}

    def test_tables_that_share_stars_are_joined_before_others(self) -> None:
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
    def test_figure_6(self) -> None:
        walk = TaxonomyWalk(figure_6())
        assert walk.is_descendant(term("UofT"), term("Academia"))
        assert walk.is_descendant(term("UofT"), term("UofT"))
        assert not walk.is_descendant(term("Academia"), term("UofT"))
        assert not walk.is_descendant(term("UofT"), term("ResearchLab"))

    def test_classes_with_many_ways_up_are_visited_once(self) -> None:
        """Sixty diamonds, one above the other, have 2^60 ways through them."""
        edges = [
            Edge(term(f"{below}{level}"), iri(SUBCLASS), term(f"{above}{level + 1}"))
            for level in range(60)
            for below in "LR"
            for above in "LR"
        ]
        assert not TaxonomyWalk(taxonomy_of(Graph(tuple(edges)))).is_descendant(term("L0"), term("elsewhere"))


class TestOps:
    def test_structures_that_begin_alike_share_the_beginning(self) -> None:
        ops = Ops(NO_TAXONOMY)
        ops.add("s1", gql("(:A, :p, ?x) (?x, :q, :B)"))
        ops.add("s2", gql("(?x, :p, :C) (:C, :q, :D)"))
        ops.add("s3", gql("(:A, :p, ?x) (:A, :r, ?y)"))
        assert drawn_structures(ops.structures) == ["0 p 1", "  1 q 2: s1 s2", "  0 r 2: s3"]

    def test_bare_structures_share_whatever_their_edges_are_called(self) -> None:
        ops = Ops(NO_TAXONOMY, bare=True)
        ops.add("s1", gql("(:A, :p, ?x) (?x, :q, :B)"))
        ops.add("s2", gql("(?x, :r, :C) (:C, :p, :D)"))
        ops.add("s3", gql("(?x, ?p, :C)"))
        assert drawn_structures(ops.structures) == ["0 any 1", "  1 any 2: s1 s2", "0 (1) 2: s3"]

    def test_an_edge_waits_for_those_that_lead_to_it(self) -> None:
        ops = Ops(NO_TAXONOMY)
        ops.add("s", gql("(:A, :p, ?x) (?y, :q, ?z) (?x, :r, ?y)"))
        assert drawn_structures(ops.structures) == ["0 p 1", "  1 r 2", "    2 q 3: s"]


def drawn_structures(structure: Structure, depth: int = 0) -> list[str]:
    lines = []
    for step, deeper in structure.steps.items():
        label = "any" if step.property is None else step.property
        called = f"({label})" if isinstance(label, int) else label if isinstance(label, str) else name(label)
        ends = f": {' '.join(deeper.leaves)}" if deeper.leaves else ""
        lines += [f"{'  ' * depth}{step.source} {called} {step.target}{ends}"]
        lines += drawn_structures(deeper, depth + 1)
    return lines
