"""The workloads have the stated shapes, shares and probabilities, and all their forms agree."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from benchmarks import engines
from benchmarks.definition import matches
from benchmarks.engines import IndexEngine, PlainEngine, TextEngine
from benchmarks.harness import Bench
from benchmarks.workloads import (
    Attribute,
    Integers,
    Subscriptions,
    Workload,
    ads,
    begen,
    equalities,
    intervals,
    paper004,
    stock,
)
from benchmarks.workloads.begen import predicate_probability
from benchmarks.workloads.draws import chosen, picked, shares, zipf
from research.events.catalogue import ALGORITHMS
from tidings.atoms import Atoms
from tidings.events.json_decoder import decode
from tidings.matching.compiler.plan import Relation

MAKERS: dict[str, Callable[[], Workload]] = {
    "paper 004": lambda: paper004(300, 40),
    "stock": lambda: stock(300, 40),
    "stock, Zipf": lambda: stock(300, 40, skewed=True),
    "equalities": lambda: equalities(300, 40),
    "equalities, Zipf": lambda: equalities(300, 40, skewed=True),
    "intervals": lambda: intervals(300, 40),
    "intervals, Zipf": lambda: intervals(300, 40, skewed=True),
    "BE-Gen": lambda: begen(300, 40, 100, 0.5, 0.1),
    "BE-Gen, sparse": lambda: begen(300, 40, 3000, 0.5, 0.05),
    "ads": lambda: ads(300, 40),
}


def _matches(workload: Workload) -> Integers:
    return matches(workload.subscriptions, workload.events)


@pytest.mark.parametrize("make", MAKERS.values(), ids=MAKERS)
class TestForms:
    def test_columns_texts_and_plans_agree(self, make: Callable[[], Workload]) -> None:
        workload, answers = make(), []
        for engine in (IndexEngine(), TextEngine(), PlainEngine("naive", ALGORITHMS["naive"])):
            engine.prepare(workload.subscriptions)
            engine.build()
            engine.give(workload.events)
            answers.append(engine.counts(engine.match()).tolist())
        assert answers[0] == answers[1] == answers[2]
        assert answers[0] == matches(workload.subscriptions, workload.events).tolist()

    def test_atoms_dictionaries_and_json_agree(self, make: Callable[[], Workload]) -> None:
        events = make().events
        readable = events.readable()
        decoded = [decode(line) for line in events.json_lines().splitlines()]
        assert [{p: list(v) for p, v in e.items() if p != "id"} for e in decoded] == [
            {path: list(values) for path, values in event.items()} for event in readable
        ]
        assert _readable(events.atoms) == _readable(Atoms.of(readable, events.atoms.paths))

    def test_same_seed_gives_same_workload(self, make: Callable[[], Workload]) -> None:
        first, second = make(), make()
        for name in ("starts", "attribute", "relation", "low", "high", "owner"):
            assert np.array_equal(getattr(first.subscriptions, name), getattr(second.subscriptions, name))
        for name in ("starts", "attribute", "value"):
            assert np.array_equal(getattr(first.events, name), getattr(second.events, name))

    def test_part_equals_slice_of_texts(self, make: Callable[[], Workload]) -> None:
        whole = make().subscriptions
        assert list(whole.part(slice(100, 130)).texts()) == list(whole.texts())[100:130]
        assert len(whole.part(slice(290, 400))) == 10

    def test_event_columns_equal_their_values(self, make: Callable[[], Workload]) -> None:
        events = make().events.first(5)
        for at in range(0, len(events.attributes), 7):
            present, value = events.column(at)
            attribute = events.attributes[at]
            for row, event in enumerate(events.dictionaries()):
                assert (attribute.name in event) == present[row]
                assert event.get(attribute.name, attribute.value(0)) == attribute.value(int(value[row]))


def _readable(atoms: Atoms) -> list[tuple[int, int, object]]:
    text = atoms.text.tobytes()
    columns = zip(
        atoms.path.tolist(), atoms.kind.tolist(), atoms.payload.tolist(), atoms.length.tolist(), strict=True
    )
    return [(path, kind, text[at : at + length] if length else at) for path, kind, at, length in columns]


def test_columns_for_join_exist_for_one_shape_only() -> None:
    quotes = stock(50, 1).subscriptions
    columns = quotes.columns()
    assert columns is not None
    assert [test.attribute.name for test in columns] == ["symbol", "price", "open", "high", "volume"]
    assert [int(test.low[7]) for test in columns] == quotes.low[35:40].tolist()
    assert equalities(50, 1).subscriptions.columns() is None
    assert ads(50, 1).subscriptions.columns() is None


def test_compiled_irregular_tests_are_grouped_by_relation() -> None:
    two = (Attribute("a"), Attribute("b"))
    starts, owner = np.array([0, 1, 3, 4, 6]), np.array([0, 0, 1, 2], np.int32)
    attribute, bounds = np.array([0, 0, 1, 0, 0, 1], np.int32), np.array([0, 5, 6, 7, 8, 9])
    relation = np.array(
        [Relation.EQ, Relation.GT, Relation.LE, Relation.EQ, Relation.GT, Relation.LE], np.int8
    )
    subscriptions = Subscriptions(two, starts, attribute, relation, bounds, bounds, owner, 3)
    irregular = subscriptions.compiled().irregular
    assert irregular.rows.tolist() == [0, 0, 1, 2]
    tests_by_relation = {
        test.shape.relation: (test.clauses.tolist(), test.operands.values) for test in irregular.tests
    }
    assert {
        which: (clauses, values.nearest.tolist()) for which, (clauses, values) in tests_by_relation.items()
    } == {
        Relation.EQ: ([0, 2], [0.0, 7.0]),
        Relation.GT: ([1, 3], [5.0, 8.0]),
        Relation.LE: ([1, 3], [6.0, 9.0]),
    }
    assert list(subscriptions.texts()) == ["(a = 0) or (a > 5 and b <= 6)", "a = 7", "a > 8 and b <= 9"]


def test_paper004_subscriptions_have_predicates_and_stated_equality_share() -> None:
    subscriptions = paper004(5000, 1, p=0.25).subscriptions
    assert np.diff(subscriptions.starts).min() == 1
    numeric = subscriptions.attribute >= 3
    assert (subscriptions.relation[numeric] == Relation.EQ).mean() == pytest.approx(0.25, abs=0.03)
    assert set(subscriptions.relation[~numeric].tolist()) == {Relation.EQ}


def test_stock_easier_workload_has_more_matches() -> None:
    assert _matches(stock(20_000, 100, ease=3.0)).mean() > 5 * _matches(stock(20_000, 100)).mean()


def test_stock_match_rate_equals_paper() -> None:
    """9% of 200 subscriptions per symbol: 18 matches per event at a million."""
    assert _matches(stock(20_000, 300, symbols=100)).mean() == pytest.approx(18, rel=0.1)


def test_stock_skewed_symbols_are_popular_on_both_sides() -> None:
    popular = stock(20_000, 20_000, skewed=True)
    subscribed, quoted = popular.subscriptions.low[::5], popular.events.value[::7]
    for symbols in (subscribed, quoted):
        assert (symbols == 0).mean() == pytest.approx(shares(5000)[0], rel=0.1)


def test_equalities_every_other_event_is_planted() -> None:
    counts = _matches(equalities(3000, 400))
    assert (counts[::2] >= 1).all()
    assert counts[1::2].sum() == 0


def test_equalities_use_five_distinct_attributes_of_ten() -> None:
    subscriptions = equalities(2000, 1).subscriptions
    rows = subscriptions.attribute.reshape(-1, 5)
    assert (np.diff(rows, axis=1) > 0).all()
    assert np.bincount(subscriptions.attribute).tolist() == pytest.approx([1000] * 10, rel=0.15)
    assert np.bincount(subscriptions.low, minlength=200) == pytest.approx(np.full(200, 50), abs=35)


@pytest.mark.parametrize("skewed", [False, True])
def test_intervals_have_stated_width_and_stay_in_domain(skewed: bool) -> None:
    workload = intervals(3000, 300, skewed=skewed)
    subscriptions = workload.subscriptions
    assert (subscriptions.high - subscriptions.low == 300_000).all()
    assert subscriptions.low.min() >= 0 and subscriptions.high.max() <= 1_000_000
    assert np.bincount(subscriptions.attribute).tolist() == pytest.approx([1500] * 20, rel=0.15)
    value = workload.events.value.reshape(300, 20)
    rows = np.arange(3000).repeat(10)
    contained = (value[:, subscriptions.attribute] >= subscriptions.low) & (
        value[:, subscriptions.attribute] <= subscriptions.high
    )
    assert contained.mean() == pytest.approx(0.35 if skewed else 0.3, abs=0.06 if skewed else 0.01)
    assert len(rows) == contained.shape[1]


@pytest.mark.parametrize("attributes", [100, 30_000])
@pytest.mark.parametrize("equality", [0.0, 0.5, 1.0])
@pytest.mark.parametrize("probability", [0.001, 0.1])
def test_begen_match_rate_is_as_requested(attributes: int, equality: float, probability: float) -> None:
    workload = begen(3000, 600, attributes, equality, probability)
    subscriptions = workload.subscriptions
    lengths = np.diff(subscriptions.starts)
    assert (lengths.min(), lengths.max()) == (5, 30)
    assert (subscriptions.relation == Relation.EQ).mean() == pytest.approx(equality, abs=0.02)
    rate = matches(subscriptions, workload.events).mean() / len(subscriptions)
    assert rate == pytest.approx(probability, rel=0.35)


def test_predicate_probability_gives_match_probability() -> None:
    holds = predicate_probability(0.1)
    assert np.mean([holds**count for count in range(5, 31)]) == pytest.approx(0.1)
    with pytest.raises(ValueError, match="no probability"):
        predicate_probability(1.2)


def test_ads_have_stated_predicates_and_clauses() -> None:
    subscriptions = ads(20_000, 1).subscriptions
    clauses = np.bincount(subscriptions.owner, minlength=len(subscriptions))
    assert (clauses.min(), clauses.max()) == (1, 4)
    assert (clauses > 1).mean() == pytest.approx(1 / 3, abs=0.02)
    assert len(subscriptions.attributes) == 122 and set(subscriptions.attribute.tolist()) == set(range(122))
    offers = subscriptions.attribute >= 110  # the attributes in which the clauses of an expression differ
    common = np.add.reduceat(~offers, subscriptions.starts[:-1])[
        np.searchsorted(subscriptions.owner, np.arange(len(subscriptions)))
    ]
    alternatives = np.bincount(
        np.repeat(subscriptions.owner, np.diff(subscriptions.starts))[offers], minlength=len(subscriptions)
    )
    assert (common + alternatives).min() == 1 and 35 < (common + alternatives).max() <= 56


def test_ads_share_predicates() -> None:
    subscriptions = ads(20_000, 1).subscriptions
    tests = np.column_stack([subscriptions.attribute, subscriptions.low, subscriptions.high])
    assert len(np.unique(tests, axis=0)) < len(tests) / 10


def test_random_draws_have_stated_distributions() -> None:
    rng = np.random.default_rng(1)
    assert picked(rng, np.array([0, 3, 5]), 5).sum(axis=1).tolist() == [0, 3, 5]
    rows = chosen(rng, 1000, 3, 6)
    assert (np.diff(rows, axis=1) > 0).all() and np.bincount(rows.ravel()).min() > 400
    frequencies = np.bincount(zipf(rng, 4, 20_000), minlength=4) / 20_000
    assert frequencies.tolist() == pytest.approx(shares(4).tolist(), abs=0.02)
    assert shares(4).tolist() == pytest.approx([12 / 25, 6 / 25, 4 / 25, 3 / 25])


def test_index_engine_large_workload_uses_several_segments(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(engines, "MOST_TESTS", 2000)
    workload, engine = ads(700, 50), IndexEngine()
    engine.prepare(workload.subscriptions)
    engine.build()
    engine.give(workload.events)
    assert len(engine.index.describe()) > 2
    assert engine.counts(engine.match()).tolist() == _matches(workload).tolist()


def test_measure_reports_matches_per_event() -> None:
    workload = equalities(1000, 100)
    row = Bench(1, say=lambda _: None).measure(IndexEngine(), workload, 100)
    assert row.matches_per_event == _matches(workload).mean()
