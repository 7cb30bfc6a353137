"""Properties of each algorithm of paper 004, section 3: counts, clusters, sharing, limits."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from research.events.aguilera import Aguilera
from research.events.algorithm import Interval, deep_size
from research.events.catalogue import ALGORITHMS
from research.events.counting import EqualityPreferred, FairPredicate, Quarantining
from research.events.evaluation import EventView
from research.events.gough import Gough
from research.events.hanson import Hanson, IbsTree
from research.events.neon import Neon
from tests.support.strategies.plans import a_test
from tidings.atoms import Column
from tidings.errors import SchemaError, TooLarge
from tidings.events.schema.domains import Domain, DomainKind
from tidings.matching.compiler.plan import Plan, Relation

EQ, LT, LE, GT, GE = Relation.EQ, Relation.LT, Relation.LE, Relation.GT, Relation.GE
Predicate = tuple[str, Relation, object]


def plan(*predicates: Predicate) -> Plan:
    return Plan((tuple(a_test(Column(path), relation, to) for path, relation, to in predicates),))


class TestFairPredicate:
    def test_fair_predicate_shared_predicate_is_stored_once(self) -> None:
        fair = FairPredicate()
        for number in range(50):
            fair.add(f"s{number}", plan(("price", LT, 10), ("category", EQ, "toy")))
        assert len(fair.equalities) == 1
        assert len(fair.comparisons) == 1

    def test_fair_predicate_counts_satisfied_predicates(self) -> None:
        fair = FairPredicate()
        fair.add("both", plan(("price", LT, 10), ("category", EQ, "toy")))
        fair.add("one", plan(("price", LT, 20), ("category", EQ, "car")))
        fair.add("none", plan(("price", GT, 20)))
        assert fair.hit_counts(EventView({"price": [5], "category": ["toy"]}, {})) == {0: 2, 1: 1}

    def test_fair_predicate_smaller_bounds_imply_larger_bounds(self) -> None:
        fair = FairPredicate()
        fair.add("10", plan(("price", LE, 10)))
        fair.add("20", plan(("price", LE, 20)))
        fair.add("below 10", plan(("price", LT, 10)))
        assert fair.match({"price": [10]}) == {"10", "20"}

    def test_fair_predicate_remove_deletes_unused_predicates(self) -> None:
        fair = FairPredicate()
        fair.add("one", plan(("price", LT, 10), ("category", EQ, "toy")))
        fair.remove("one")
        assert len(fair.equalities) == len(fair.comparisons) == 0


class TestEqualityPreferred:
    def test_equality_preferred_same_equality_attributes_share_cluster(self) -> None:
        preferred = EqualityPreferred()
        preferred.add("toy in red", plan(("category", EQ, "toy"), ("colour", EQ, "red")))
        preferred.add("blue car", plan(("colour", EQ, "blue"), ("category", EQ, "car"), ("price", LT, 5)))
        preferred.add("toy", plan(("category", EQ, "toy")))
        preferred.add("cheap", plan(("price", LT, 5)))
        assert len(preferred.clusters) == 2
        assert len(preferred.without_equality) == 1

    def test_equality_preferred_counts_comparisons_of_all_subscriptions(self) -> None:
        preferred = EqualityPreferred()
        preferred.add("cheap toy", plan(("category", EQ, "toy"), ("price", LT, 5)))
        preferred.add("cheap", plan(("price", LT, 7)))
        assert len(preferred.comparisons) == 2


class TestQuarantining:
    def test_quarantining_quarantine_has_only_clauses_without_equality(self) -> None:
        quarantining = Quarantining()
        quarantining.add("cheap toy", plan(("category", EQ, "toy"), ("price", LT, 5)))
        quarantining.add("cheap", plan(("price", LT, 7)))
        assert len(quarantining.clusters) == 1
        (only,) = quarantining.quarantine.values()
        assert [each.bound for each in only.comparisons] == [7]

    def test_quarantining_without_comparisons_has_empty_quarantine(self) -> None:
        quarantining = Quarantining()
        quarantining.add("toy", plan(("category", EQ, "toy")))
        assert not quarantining.quarantine


class TestHanson:
    def test_hanson_prefers_equality_to_comparison(self) -> None:
        hanson = Hanson()
        hanson.add("cheap toy", plan(("price", LT, 5), ("category", EQ, "toy")))
        ((column, _kind),) = hanson.trees
        assert column.path == "category"

    def test_hanson_prefers_attribute_with_more_values(self) -> None:
        hanson = Hanson()
        for number in range(10):
            hanson.add(f"s{number}", plan(("number", EQ, number)))
        hanson.add("red", plan(("colour", EQ, "red")))
        hanson.add("red 3", plan(("colour", EQ, "red"), ("number", EQ, 3)))
        assert {axis[0].path: len(tree) for axis, tree in hanson.trees.items()} == {"number": 11, "colour": 1}


class TestGough:
    def test_gough_event_has_one_path(self) -> None:
        gough = Gough()
        gough.add("low", plan(("price", LT, 10), ("colour", EQ, "red")))
        gough.add("high", plan(("price", GT, 10)))
        node = gough.tree()
        assert node.bounds == ["red"]
        assert gough.match({"price": [5], "colour": ["red"]}) == {"low"}
        assert gough.match({"price": [10], "colour": ["red"]}) == set()

    def test_gough_beyond_limit_is_rejected(self) -> None:
        gough = Gough(limit=1000)
        for number in range(100):
            gough.add(f"s{number}", plan(*((f"a{(number + i) % 7}", GE, number) for i in range(3))))
        with pytest.raises(TooLarge, match="100 clauses has more than 1,000 cells"):
            gough.match({"a1": [50]})

    def test_gough_below_limit_after_removals_matches(self) -> None:
        gough = Gough(limit=30)
        for number in range(20):
            gough.add(f"s{number}", plan(("a", EQ, number)))
        with pytest.raises(TooLarge):
            gough.match({"a": [1]})
        for number in range(10):
            gough.remove(f"s{number}")
        assert gough.match({"a": [11]}) == {"s11"}


class TestAguilera:
    def test_aguilera_shares_common_prefixes(self) -> None:
        def size(beginning: Predicate) -> int:
            tree = Aguilera()
            for number in range(30):
                second = ("b", EQ, number) if beginning[2] is None else beginning
                tree.add(f"s{number}", plan(("a", EQ, 1), second, ("c", EQ, number)))
            return deep_size(tree._root)

        assert size(("b", EQ, 2)) < size(("b", EQ, None))

    def test_aguilera_remove_all_leaves_root(self) -> None:
        tree = Aguilera()
        empty = deep_size(tree._root)
        for number in range(20):
            tree.add(f"s{number}", plan(("a", EQ, number % 3), ("b", LT, number), ("c", GT, number % 5)))
        for number in range(20):
            tree.remove(f"s{number}")
        assert not tree._root.edges
        assert deep_size(tree._root) == pytest.approx(empty, rel=0.5)


class TestNeon:
    def test_neon_repeated_predicates_are_separate_rows(self) -> None:
        neon = Neon()
        for number in range(50):
            neon.add(f"s{number}", plan(("price", LT, 10), ("category", EQ, "toy")))
        assert [len(rows) for rows in neon.predicates.values()] == [50, 50]
        assert set(neon.n_predicates.values()) == {2}

    def test_neon_skips_subscriptions_of_other_event_types(self) -> None:
        neon = Neon()
        neon.add("old", plan(("event_type", EQ, "antiques"), ("price", LT, 10)))
        neon.add("any", plan(("price", LT, 10)))
        view = EventView({"event_type": ["furniture"], "price": [5]}, {})
        assert [operation.event_type for operation in neon._operations_for(view)] == [None]


bounds = st.one_of(st.none(), st.integers(0, 30))


@st.composite
def intervals(draw: st.DrawFn) -> Interval:
    low, high = draw(bounds), draw(bounds)
    if low is None and high is None:
        low = 0  # no predicate is unbounded on both sides
    if low is not None and high is not None and low >= high:
        return Interval(low, low)
    return Interval(low, high, draw(st.booleans()), draw(st.booleans()))


class TestIbsTree:
    @given(history=st.lists(st.tuples(st.booleans(), intervals()), max_size=60))
    def test_ibs_tree_search_finds_intervals_with_value(self, history: list[tuple[bool, Interval]]) -> None:
        tree, intervals_by_number = IbsTree(), dict[int, Interval]()
        for number, (remove, interval) in enumerate(history):
            if remove and intervals_by_number:
                oldest = next(iter(intervals_by_number))
                tree.remove(oldest)
                del intervals_by_number[oldest]
            else:
                tree.add(number, interval)
                intervals_by_number[number] = interval
        for value in range(-1, 32):
            numbers = sorted(tree.search(value))
            assert numbers == sorted(
                number for number, each in intervals_by_number.items() if each.has(value)
            )

    def test_ibs_tree_stays_balanced_for_sorted_values(self) -> None:
        tree = IbsTree()
        for number in range(1000):
            tree.add(number, Interval(number, number + 0.5))
        assert tree.depth() <= 22
        assert list(tree.search(500.25)) == [500]


def test_algorithm_different_domains_of_one_name_are_rejected() -> None:
    domain = Domain("rooms", DomainKind.HIERARCHICAL, {"room": ()})
    other_domain = Domain("rooms", DomainKind.HIERARCHICAL, {"room": (), "hall": ("room",)})
    algorithm = ALGORITHMS["naive"]()
    algorithm.add("one", Plan(((),), (domain,)))
    with pytest.raises(SchemaError, match="two different domains are named rooms"):
        algorithm.add("two", Plan(((),), (other_domain,)))
