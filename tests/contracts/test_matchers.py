"""One contract for everything that matches: the naive algorithm, the paper's seven, and the index."""

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
from tidings.events.explanation import matches
from tidings.events.predicate_compiler import parse_and_check
from tidings.events.predicate_tree import Tree
from tidings.events.schema.event_schema import EventSchema
from tidings.matching.compiler.compilation import compile_text
from tidings.matching.compiler.plan import Plan, Relation
from tidings.matching.index.index import Index

Make = Callable[[], Algorithm]

FEWER = share(3)
"""Nine implementations share these tests; each is given a third of the usual examples."""

EVERYTHING: dict[str, Make] = {**ALGORITHMS, "index": Indexed}


@pytest.fixture(scope="module", params=EVERYTHING.values(), ids=EVERYTHING.keys())
def make(request: pytest.FixtureRequest) -> Make:
    return request.param


def plan(*clauses: tuple[tuple[str, Relation, object], ...]) -> Plan:
    """A plan of plain tests, as (path, relation, operand)."""
    return Plan(tuple(tuple(a_test(Column(path), rel, to) for path, rel, to in one) for one in clauses))


CHEAP = plan((("price", Relation.LT, 200),))
CHEAP_TOY = plan((("price", Relation.LT, 200), ("category", Relation.EQ, "toy")))
TOY_OR_BOOK = plan((("category", Relation.EQ, "toy"),), (("category", Relation.EQ, "book"),))
A_TOY: Event = {"price": [5], "category": ["toy"]}


def test_added_subscriptions_match(make: Make) -> None:
    found = make()
    for id, each in {"cheap": CHEAP, "cheap toy": CHEAP_TOY, "toy or book": TOY_OR_BOOK}.items():
        found.add(id, each)
    assert found.match(A_TOY) == {"cheap", "cheap toy", "toy or book"}
    assert found.match({"price": [500], "category": ["book"]}) == {"toy or book"}
    assert found.match({"price": [200]}) == set()


def test_removed_subscriptions_do_not_match(make: Make) -> None:
    found = make()
    found.add("cheap", CHEAP)
    found.add("cheap toy", CHEAP_TOY)
    assert found.remove("cheap")
    assert not found.remove("cheap")
    assert len(found) == 1
    assert found.match(A_TOY) == {"cheap toy"}


def test_subscriptions_can_be_added_again_after_removal(make: Make) -> None:
    found = make()
    found.add("one", CHEAP)
    found.remove("one")
    found.add("one", TOY_OR_BOOK)
    assert found.match({"category": ["book"]}) == {"one"}
    assert found.match({"price": [5]}) == set()


def test_an_id_given_again_takes_the_place_of_the_old_plan(make: Make) -> None:
    found = make()
    found.add("one", CHEAP)
    found.add("one", TOY_OR_BOOK)
    assert len(found) == 1
    assert found.match({"price": [5]}) == set()


def test_nothing_matches_where_nothing_was_added(make: Make) -> None:
    assert make().match(A_TOY) == set()
    assert len(make()) == 0


def test_size_grows_with_the_subscriptions(make: Make) -> None:
    found = make()
    sizes = []
    for number in range(64):
        found.add(
            f"s{number}", plan((("price", Relation.LT, number), ("category", Relation.EQ, f"c{number}")))
        )
        sizes.append(found.size())
    assert sizes[0] < sizes[15] < sizes[63]


def test_a_plan_with_two_satisfied_clauses_matches_once(make: Make) -> None:
    found = make()
    found.add("one", plan((("a", Relation.EQ, 1),), (("b", Relation.EQ, 1),)))
    assert found.match({"a": [1], "b": [1]}) == {"one"}


def test_values_of_one_attribute_satisfy_predicates_between_them_but_not_a_range(make: Make) -> None:
    found = make()
    found.add("between them", plan((("a", Relation.LT, 3), ("a", Relation.GT, 7))))
    found.add("both", plan((("a", Relation.EQ, 1), ("a", Relation.EQ, 9))))
    found.add("range", plan((("a", Relation.BETWEEN, (4, 6)),)))
    assert found.match({"a": [1, 9]}) == {"between them", "both"}
    assert found.match({"a": [5]}) == {"range"}


def test_kinds_are_kept_apart(make: Make) -> None:
    found = make()
    for id, operand in {"number": 1, "true": True, "text": "1"}.items():
        found.add(id, plan((("a", Relation.EQ, operand),)))
    assert found.match({"a": [1.0]}) == {"number"}
    assert found.match({"a": [True]}) == {"true"}
    assert found.match({"a": ["1"]}) == {"text"}


def test_text_aspects_are_lookups_and_mean_the_same(make: Make) -> None:
    found = make()
    for aspect in (Aspect.PREFIX, Aspect.SUFFIX, Aspect.SUBSTRING):
        test = a_test(Column("a", aspect), Relation.EQ, "ab")
        found.add(aspect.name, Plan(((test,),)))
    assert found.match({"a": ["abc"]}) == {"PREFIX", "SUBSTRING"}
    assert found.match({"a": ["cab", 7]}) == {"SUFFIX", "SUBSTRING"}


@st.composite
def histories(draw: st.DrawFn) -> list[tuple[str, Plan | None]]:
    """Additions (an id may come again) and removals (None)."""
    ids = st.sampled_from([f"s{number}" for number in range(6)])
    return draw(st.lists(st.tuples(ids, st.one_of(plans, plans, st.none())), max_size=12))


@FEWER
@given(history=histories(), published=st.lists(events, min_size=1, max_size=5))
def test_same_answers_as_the_definition(
    make: Make, history: list[tuple[str, Plan | None]], published: list[Event]
) -> None:
    found, held = make(), dict[str, Plan]()
    for id, change in history:
        if change is None:
            assert found.remove(id) == (held.pop(id, None) is not None)
        else:
            found.add(id, change)
            held[id] = change
        event = published[len(held) % len(published)]
        assert found.match(event) == {id for id, each in held.items() if satisfies(each, event)}
    assert len(found) == len(held)
    for event in published:
        assert found.match(event) == {id for id, each in held.items() if satisfies(each, event)}


@FEWER
@given(history=st.lists(st.tuples(st.integers(0, 5), texts()), max_size=8), event=generated.events())
def test_same_answers_as_the_definition_for_texts(
    make: Make, history: list[tuple[int, str]], event: Event
) -> None:
    found, held = make(), dict[str, Tree]()
    for number, text in history:
        take(found, held, f"s{number}", text, None)
    assert found.match(event) == {id for id, tree in held.items() if matches(tree, event)}


@FEWER
@given(history=st.lists(schema_texts(), max_size=6), event=generated.schema_events())
def test_same_answers_as_the_definition_where_domains_have_orders(
    make: Make, history: list[str], event: Event
) -> None:
    found, held = make(), dict[str, Tree]()
    for number, text in enumerate(history):
        take(found, held, f"s{number}", text, SCHEMA)
    assert found.match(event) == {id for id, tree in held.items() if matches(tree, event)}


def take(found: Algorithm, held: dict[str, Tree], id: str, text: str, schema: EventSchema | None) -> None:
    """Add a text to an algorithm, and its tree to what the definition is asked about; neither if it is refused."""
    try:
        compiled = compile_text(text, schema)
    except SubscriptionError:
        return
    found.add(id, compiled)
    held[id] = parse_and_check(text, schema)


@FEWER
@given(held=st.lists(plans, min_size=1, max_size=12), published=st.lists(events, max_size=8))
def test_the_index_answers_the_same_for_a_segment_of_many_and_a_batch(
    held: list[Plan], published: list[Event]
) -> None:
    index = Index.create()
    index.add(compiled_of({f"s{number}": each for number, each in enumerate(held)}))
    found = index.match(published)
    pairs = sorted(zip(found.publication.tolist(), found.ids().to_pylist(), strict=True))
    wanted = [
        (at, f"s{n}") for at, event in enumerate(published) for n, p in enumerate(held) if satisfies(p, event)
    ]
    assert pairs == sorted(wanted)
