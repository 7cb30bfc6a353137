"""One contract for all matching algorithms: the naive one, the seven of the paper, and the index."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from research.events.algorithm import Algorithm
from research.events.catalogue import ALGORITHMS
from research.events.evaluation import satisfies
from tests.support.oracles.index_algorithm import Indexed, compiled_of
from tests.support.strategies import events as generated
from tests.support.strategies.effort import share
from tests.support.strategies.events import SCHEMA, schema_texts, texts
from tests.support.strategies.plans import a_test, events, plans
from tidings.atoms import Aspect, Column, Event
from tidings.errors import SubscriptionError
from tidings.events.predicate_compiler import parse_and_check
from tidings.events.predicate_tree import Tree
from tidings.events.reference_matcher import matches
from tidings.events.schema.event_schema import EventSchema
from tidings.matching.compiler.compilation import compile_text
from tidings.matching.compiler.plan import Plan, Relation
from tidings.matching.index.index import Index

Make = Callable[[], Algorithm]

FEWER = share(3)
"""Nine implementations share these tests, so each runs a third of the usual examples."""

EVERYTHING: dict[str, Make] = {**ALGORITHMS, "index": Indexed}


@pytest.fixture(scope="module", params=EVERYTHING.values(), ids=EVERYTHING.keys())
def make(request: pytest.FixtureRequest) -> Make:
    return request.param


def plan(*clauses: tuple[tuple[str, Relation, object], ...]) -> Plan:
    """Return a plan of plain tests, given as (path, relation, operand)."""
    return Plan(tuple(tuple(a_test(Column(path), rel, to) for path, rel, to in clause) for clause in clauses))


CHEAP = plan((("price", Relation.LT, 200),))
CHEAP_TOY = plan((("price", Relation.LT, 200), ("category", Relation.EQ, "toy")))
TOY_OR_BOOK = plan((("category", Relation.EQ, "toy"),), (("category", Relation.EQ, "book"),))
A_TOY: Event = {"price": [5], "category": ["toy"]}


def test_matcher_added_subscriptions_match(make: Make) -> None:
    algorithm = make()
    for id, each in {"cheap": CHEAP, "cheap toy": CHEAP_TOY, "toy or book": TOY_OR_BOOK}.items():
        algorithm.add(id, each)
    assert algorithm.match(A_TOY) == {"cheap", "cheap toy", "toy or book"}
    assert algorithm.match({"price": [500], "category": ["book"]}) == {"toy or book"}
    assert algorithm.match({"price": [200]}) == set()


def test_matcher_removed_subscriptions_do_not_match(make: Make) -> None:
    algorithm = make()
    algorithm.add("cheap", CHEAP)
    algorithm.add("cheap toy", CHEAP_TOY)
    assert algorithm.remove("cheap")
    assert not algorithm.remove("cheap")
    assert len(algorithm) == 1
    assert algorithm.match(A_TOY) == {"cheap toy"}


def test_matcher_subscription_added_again_after_removal_matches(make: Make) -> None:
    algorithm = make()
    algorithm.add("one", CHEAP)
    algorithm.remove("one")
    algorithm.add("one", TOY_OR_BOOK)
    assert algorithm.match({"category": ["book"]}) == {"one"}
    assert algorithm.match({"price": [5]}) == set()


def test_matcher_same_id_replaces_plan(make: Make) -> None:
    algorithm = make()
    algorithm.add("one", CHEAP)
    algorithm.add("one", TOY_OR_BOOK)
    assert len(algorithm) == 1
    assert algorithm.match({"price": [5]}) == set()


def test_matcher_without_subscriptions_matches_nothing(make: Make) -> None:
    assert make().match(A_TOY) == set()
    assert len(make()) == 0


def test_matcher_size_grows_with_subscriptions(make: Make) -> None:
    algorithm = make()
    sizes = []
    for number in range(64):
        algorithm.add(
            f"s{number}", plan((("price", Relation.LT, number), ("category", Relation.EQ, f"c{number}")))
        )
        sizes.append(algorithm.size())
    assert sizes[0] < sizes[15] < sizes[63]


def test_matcher_plan_with_two_satisfied_clauses_matches_once(make: Make) -> None:
    algorithm = make()
    algorithm.add("one", plan((("a", Relation.EQ, 1),), (("b", Relation.EQ, 1),)))
    assert algorithm.match({"a": [1], "b": [1]}) == {"one"}


def test_matcher_several_values_satisfy_separate_predicates_but_not_one_range(make: Make) -> None:
    algorithm = make()
    algorithm.add("between them", plan((("a", Relation.LT, 3), ("a", Relation.GT, 7))))
    algorithm.add("both", plan((("a", Relation.EQ, 1), ("a", Relation.EQ, 9))))
    algorithm.add("range", plan((("a", Relation.BETWEEN, (4, 6)),)))
    assert algorithm.match({"a": [1, 9]}) == {"between them", "both"}
    assert algorithm.match({"a": [5]}) == {"range"}


def test_matcher_distinguishes_numbers_booleans_and_texts(make: Make) -> None:
    algorithm = make()
    for id, operand in {"number": 1, "true": True, "text": "1"}.items():
        algorithm.add(id, plan((("a", Relation.EQ, operand),)))
    assert algorithm.match({"a": [1.0]}) == {"number"}
    assert algorithm.match({"a": [True]}) == {"true"}
    assert algorithm.match({"a": ["1"]}) == {"text"}


def test_matcher_text_aspects_match_prefix_suffix_and_substring(make: Make) -> None:
    algorithm = make()
    for aspect in (Aspect.PREFIX, Aspect.SUFFIX, Aspect.SUBSTRING):
        test = a_test(Column("a", aspect), Relation.EQ, "ab")
        algorithm.add(aspect.name, Plan(((test,),)))
    assert algorithm.match({"a": ["abc"]}) == {"PREFIX", "SUBSTRING"}
    assert algorithm.match({"a": ["cab", 7]}) == {"SUFFIX", "SUBSTRING"}


@st.composite
def histories(draw: st.DrawFn) -> list[tuple[str, Plan | None]]:
    """Generate additions, where ids may repeat, and removals (None)."""
    ids = st.sampled_from([f"s{number}" for number in range(6)])
    return draw(st.lists(st.tuples(ids, st.one_of(plans, plans, st.none())), max_size=12))


@FEWER
@given(history=histories(), published=st.lists(events, min_size=1, max_size=5))
def test_matcher_agrees_with_definition_for_plans(
    make: Make, history: list[tuple[str, Plan | None]], published: list[Event]
) -> None:
    algorithm, plans_by_id = make(), dict[str, Plan]()
    for id, change in history:
        if change is None:
            assert algorithm.remove(id) == (plans_by_id.pop(id, None) is not None)
        else:
            algorithm.add(id, change)
            plans_by_id[id] = change
        event = published[len(plans_by_id) % len(published)]
        assert algorithm.match(event) == {id for id, each in plans_by_id.items() if satisfies(each, event)}
    assert len(algorithm) == len(plans_by_id)
    for event in published:
        assert algorithm.match(event) == {id for id, each in plans_by_id.items() if satisfies(each, event)}


@FEWER
@given(history=st.lists(st.tuples(st.integers(0, 5), texts()), max_size=8), event=generated.events())
def test_matcher_agrees_with_definition_for_texts(
    make: Make, history: list[tuple[int, str]], event: Event
) -> None:
    algorithm, trees = make(), dict[str, Tree]()
    for number, text in history:
        add_text(algorithm, trees, f"s{number}", text, None)
    assert algorithm.match(event) == {id for id, tree in trees.items() if matches(tree, event)}


@FEWER
@given(history=st.lists(schema_texts(), max_size=6), event=generated.schema_events())
def test_matcher_agrees_with_definition_for_ordered_domains(
    make: Make, history: list[str], event: Event
) -> None:
    algorithm, trees = make(), dict[str, Tree]()
    for number, text in enumerate(history):
        add_text(algorithm, trees, f"s{number}", text, SCHEMA)
    assert algorithm.match(event) == {id for id, tree in trees.items() if matches(tree, event)}


def add_text(
    algorithm: Algorithm, trees: dict[str, Tree], id: str, text: str, schema: EventSchema | None
) -> None:
    """Add a text to an algorithm, and its tree to the definition; neither if the text is invalid."""
    try:
        compiled = compile_text(text, schema)
    except SubscriptionError:
        return
    algorithm.add(id, compiled)
    trees[id] = parse_and_check(text, schema)


@FEWER
@given(all_plans=st.lists(plans, min_size=1, max_size=12), published=st.lists(events, max_size=8))
def test_index_agrees_with_definition_for_one_segment_and_batch(
    all_plans: list[Plan], published: list[Event]
) -> None:
    index = Index.create()
    index.add(compiled_of({f"s{number}": each for number, each in enumerate(all_plans)}))
    matched = index.match(published)
    pairs = sorted(zip(matched.publication.tolist(), matched.ids().to_pylist(), strict=True))
    expected = [
        (at, f"s{n}")
        for at, event in enumerate(published)
        for n, p in enumerate(all_plans)
        if satisfies(p, event)
    ]
    assert pairs == sorted(expected)
