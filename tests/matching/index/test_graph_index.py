"""Graphs in the index: it finds the same matches as the specification."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.support.strategies.effort import share
from tests.support.strategies.graphs import graphs, patterns, taxonomies, typed_graphs
from tidings.atoms import Atoms
from tidings.errors import BudgetExceeded
from tidings.graphs import pattern_words
from tidings.graphs.atoms import AtomReader
from tidings.graphs.keys import Related, TermMeaning, term_text
from tidings.graphs.model import XSD, Edge, Graph, Term, blank, iri, literal
from tidings.graphs.pattern_compiler import plan_of
from tidings.graphs.patterns.pattern_parser import parse
from tidings.graphs.patterns.pattern_tree import Pattern, show
from tidings.graphs.reference_matcher import Explainer, explain, matches
from tidings.graphs.taxonomy import Taxonomy
from tidings.matching.compiler.compilation import compile_many
from tidings.matching.index.index import Index
from tidings.matching.kernels.shapes import graph_patterns as kernel
from tidings.model import Subscription

WORDS = ("GRAPH", "SIZE_MASK", "VARIABLES_SHIFT", "COUNT_MASK", "ASKED_SHIFT", "HEAD", "EDGE", "CONSTRAINT")
NAMES = {"AT_CLASS": "AT_CLASS", "BELOW": "BELOW_CLASS", "ABOVE": "ABOVE_CLASS"}


def test_pattern_word_constants_equal_those_of_compiler() -> None:
    assert all(
        getattr(kernel, name) == getattr(pattern_words, name) for name in (*WORDS, "OPERAND", "BEGINS")
    )
    for number, kind in enumerate(pattern_words.CONSTRAINT_KINDS):
        assert getattr(kernel, NAMES.get(kind.name, kind.name)) == number
    assert all(getattr(kernel, each.name) == each for each in (*TermMeaning, *Related))


def index_patterns(queries: Sequence[Pattern], *more: Subscription) -> Index:
    """Create an index of two segments with patterns, whose ids are their positions."""
    index = Index.create()
    subscriptions = [Subscription(str(i), "ana", "gql", show(pattern)) for i, pattern in enumerate(queries)]
    for part in ([*subscriptions[::2], *more], subscriptions[1::2]):
        compiled = compile_many(part)
        assert not compiled.rejects, compiled.rejects
        index.add(compiled)
    return index


def atoms_of(index: Index, published: Sequence[Graph], taxonomy: Taxonomy = Taxonomy()) -> Atoms:  # noqa: B008 - frozen
    return AtomReader(index.graph_paths, taxonomy).atoms(published)


def matched_pairs(
    index: Index,
    published: Sequence[Graph],
    taxonomy: Taxonomy = Taxonomy(),  # noqa: B008 - frozen
) -> set[tuple[int, str]]:
    pairs = list(index.match(atoms_of(index, published, taxonomy)).pairs())
    assert len(pairs) == len(set(pairs)), "a subscription is matched once by a graph"
    return set(pairs)


def expected_pairs(
    queries: Sequence[Pattern], published: Sequence[Graph], taxonomy: Taxonomy
) -> set[tuple[int, str]]:
    return {
        (place, str(number))
        for place, graph in enumerate(published)
        for number, pattern in enumerate(queries)
        if matches(pattern, graph, taxonomy)
    }


@given(st.data())
def test_index_match_agrees_with_specification(data: st.DataObject) -> None:
    published = data.draw(st.lists(graphs, min_size=1, max_size=4))
    queries = [
        data.draw(patterns(data.draw(st.sampled_from(published))))
        for _ in range(data.draw(st.integers(1, 12)))
    ]
    index = index_patterns(queries)
    assert matched_pairs(index, published) == expected_pairs(queries, published, Taxonomy())
    assert matched_pairs(index, published) == {
        (place, str(number))
        for place, explainer in enumerate(map(Explainer, published))
        for number, pattern in enumerate(queries)
        if explainer.matches(pattern)
    }
    many = published * 20
    assert matched_pairs(index, many) == expected_pairs(queries, many, Taxonomy())


@given(st.data())
def test_index_match_with_taxonomy_agrees_with_specification(data: st.DataObject) -> None:
    taxonomy = data.draw(taxonomies())
    published = data.draw(st.lists(typed_graphs, min_size=1, max_size=3))
    drawn = patterns(data.draw(st.sampled_from(published)), of_classes=True)
    queries = [data.draw(drawn) for _ in range(data.draw(st.integers(1, 8)))]
    assert matched_pairs(index_patterns(queries), published, taxonomy) == expected_pairs(
        queries, published, taxonomy
    )


@share(3)
@given(st.data())
def test_index_after_removal_and_compaction_agrees_with_specification(data: st.DataObject) -> None:
    published = data.draw(st.lists(graphs, min_size=1, max_size=3))
    queries = [data.draw(patterns(data.draw(st.sampled_from(published)))) for _ in range(8)]
    others = [
        Subscription("event", "bo", "predicates", "price > 5"),
        Subscription("document", "bo", "xpath", "//a[b = 'c' and d = 1]"),
    ]
    index = index_patterns(queries, *others)
    removed = data.draw(st.sets(st.integers(0, 7).map(str)))
    index.remove(removed)
    expected = {pair for pair in expected_pairs(queries, published, Taxonomy()) if pair[1] not in removed}
    assert matched_pairs(index, published) == expected
    index.compact()
    assert index.segments == 1 and matched_pairs(index, published) == expected
    assert set(index.match([{"price": [7]}]).pairs()) == {(0, "event")}


def term(text: str) -> Term:
    return iri("http://example.org/" + text)


def graph(*edges: tuple[Term, str, Term]) -> Graph:
    return Graph(tuple(Edge(subject, term(property), value) for subject, property, value in edges))


PREFIX = "PREFIX ex: <http://example.org/> SELECT * WHERE "


@pytest.mark.parametrize(
    ("text", "value", "holds"),
    [
        ("?v > 5", literal("INF", XSD + "double"), True),
        ("?v >= 1.0e308", literal("INF", XSD + "double"), True),
        ("?v < 1.7976931348623157e308", literal("INF", XSD + "double"), False),
        ("?v = 9007199254740993", literal("9007199254740993", XSD + "integer"), True),
        ("?v = 9007199254740992", literal("9007199254740993", XSD + "integer"), False),
        ("?v > 9007199254740992", literal("9007199254740993", XSD + "integer"), True),
        ("?v != 5", literal("NaN", XSD + "double"), True),
        ("?v != 5", literal("5.0", XSD + "decimal"), False),
        ("?v >= 2004-05-01", literal("2004-05-01", XSD + "date"), True),
        ("?v > 2004-05-01", literal("2004-05-01T00:00:01Z", XSD + "dateTime"), True),
        ("?v < 2004-05-01", literal("2004-05-01+14:00", XSD + "date"), True),
        ("?v contains 'ä'", literal("Märchen", language="de"), True),
        ("?v starts with 'M'", literal("Märchen"), True),
        ("?v < 'b'", literal("a"), True),
        ("?v < 'b'", literal("a", language="en"), False),
        ("?v in (5, 'x', ex:a)", literal("x"), True),
        ("?v in (5, 'x', ex:a)", term("a"), True),
        ("?v in (5, 7)", literal("7.0", XSD + "double"), True),
        ("?v = true", literal("1", XSD + "boolean"), True),
    ],
)
def test_graph_index_compares_values(text: str, value: Term, holds: bool) -> None:
    published = graph((term("s"), "p", value))
    pattern = parse(f"{PREFIX}(?s, ex:p, ?v) AND {text}")
    assert matches(pattern, published) == holds
    assert matched_pairs(index_patterns([pattern]), [published]) == ({(0, "0")} if holds else set())


def test_index_match_joins_edges_at_common_node() -> None:
    """All tests hold for the second graph; only the join shows that no single page satisfies both."""
    pattern = parse(f"{PREFIX}(?page, ex:topic, ex:ai) (?page, ex:year, 2005)")
    year = literal("2005", XSD + "integer")
    together = graph((term("one"), "topic", term("ai")), (term("one"), "year", year))
    separate = graph((term("one"), "topic", term("ai")), (term("two"), "year", year))
    assert matched_pairs(index_patterns([pattern]), [together, separate, separate, together]) == {
        (0, "0"),
        (3, "0"),
    }


def test_index_match_blank_nodes_of_two_graphs_differ() -> None:
    pattern = parse(f"{PREFIX}(?x, ex:knows, ?y) (?y, ex:knows, ?x)")
    first, second = (graph((blank(a), "knows", blank(b))) for a, b in (("b0", "b1"), ("b1", "b0")))
    both = graph((blank("b0"), "knows", blank("b1")), (blank("b1"), "knows", blank("b0")))
    assert matched_pairs(index_patterns([pattern]), [first, second, both]) == {(2, "0")}


def test_plan_of_exact_tests_needs_no_join() -> None:
    exact = [plan_of(parse(PREFIX + text)).exact[0] for text in EXACT]
    assert all(exact)
    joined = [plan_of(parse(PREFIX + text)).exact[0] for text in JOINED]
    assert not any(joined)


EXACT = (
    "(?x, ex:p, ex:a)",
    "(?x, ex:p, ?y) AND ?y > 5",
    "(?x, ex:p, ex:a) (?z, ex:q, ?y) AND ?y contains 'oak'",
    "(?x, ?p, ?y)",
    "(ex:a, ?p, ?y)",
)
JOINED = (
    "(ex:a, ex:p, ex:b)",
    "(?x, ex:p, ?x)",
    "(?x, ex:p, ?y) (?x, ex:q, ?z)",
    "(?x, ex:p, ?y) AND ?y != 5",
    "(?x, ex:p, ?y) AND ?y > 5 AND ?y < 9",
    "(?x, ?p, ?y) AND ?p is ex:p",
)


def test_index_match_unconnected_parts_are_not_combined() -> None:
    """Twelve parts of forty edges each, and one without a match: 40^12 combinations would not end."""
    edges = [(term(f"n{number}"), "p", literal(str(number), XSD + "integer")) for number in range(40)]
    parts = " ".join(f"(?a{n}, ex:p, ?b{n})" for n in range(12))
    pattern = parse(f"{PREFIX}{parts} (?x, ex:p, ?y) (?y, ex:p, ?x)")
    assert matched_pairs(index_patterns([pattern]), [graph(*edges)]) == set()


def test_term_text_is_unique() -> None:
    """For example, the text of a literal may end like the language or datatype of another."""
    terms = [
        literal('a"@en'), literal("a", language="en"), literal("a"), literal("a", XSD + "token"),
        literal(f'a"^^<{XSD}token>'), iri("a"), blank("a"), literal("<a>"), literal("_:a"),
    ]  # fmt: skip
    assert len({term_text(each) for each in terms}) == len(terms)


def test_index_match_at_step_limit_is_undecided_and_explain_raises() -> None:
    """Six groups of eight, each person knows all of the other groups: no seven know each other, but proving it takes
    hundreds of millions of steps. The index lists the pair as undecided, and so does the bounded specification.
    """
    names = "abcdefg"
    pattern = parse(PREFIX + " ".join(f"(?{a}, ex:knows, ?{b})" for a in names for b in names if a < b))
    people = [(group, term(f"n{group}.{number}")) for group in range(6) for number in range(8)]
    edges = [(person, "knows", other) for a, person in people for b, other in people if a != b]
    published = graph(*edges)
    index = index_patterns([pattern])
    matched = index.match(atoms_of(index, [published, graph(edges[0])]))
    assert (len(matched), list(matched.undecided.pairs())) == (0, [(0, "0")])
    with pytest.raises(BudgetExceeded, match="could not be decided"):
        explain(pattern, published)
    with pytest.raises(BudgetExceeded, match="could not be decided"):
        Explainer(published, most=10_000).matches(pattern)
