"""The planner: what it chooses, and that its sentence says why."""

from __future__ import annotations

import pytest

from tidings.relational.planner import Choice, Engine, Sizes, choose, sizes_of
from tidings.relational.tables import Layout, Plan
from tidings.relational.templates import asked_by

GB = 1_000_000_000
MIXED = Sizes(100_000_000, 5.0, 8, 0.0, 0.5)


def test_what_fits_into_memory_is_indexed():
    choice = choose(Sizes(1_000_000, 5.0, 5, 0.0, 0.5), 8 * GB)
    assert choice == Choice(
        Engine.INDEX,
        "index: 1,000,000 subscriptions take about 420 MB in an index, which is less than half of the 8.0 GB that"
        " are free",
    )


def test_what_does_not_fit_is_joined():
    choice = choose(MIXED, 8 * GB)
    assert (choice.engine, choice.layout) == (Engine.RELATIONAL, Layout(Plan.UNROLL, unroll=6))
    assert choice.why == (
        "relational, unroll: 5.0 predicates each, so rows of 6 hold most subscriptions; 100,000,000 subscriptions"
        " take about 42 GB in an index, more than half of the 8.0 GB that are free"
    )


PLANS = [
    (
        Sizes(10, 3.0, 4, 0.8, 0.0),
        Plan.SHARE_BUCKET,
        "80% of the subscriptions have no equality to begin with",
    ),
    (Sizes(10, 7.2, 10, 0.1, 0.2), Plan.SHARE, "with 7.2 predicates each, unrolled rows would not hold them"),
    (
        Sizes(10, 1.5, 3, 0.0, 0.95),
        Plan.SHARE,
        "95% of the subscriptions begin with a predicate that others have",
    ),
    (Sizes(10, 4.0, 4, 0.0, 0.95), Plan.UNROLL, "4.0 predicates each, so rows of 4 hold most subscriptions"),
]


@pytest.mark.parametrize(("sizes", "plan", "why"), PLANS)
def test_plans_by_what_subscriptions_look_like(sizes, plan, why):
    choice = choose(sizes, GB, Engine.RELATIONAL)
    assert choice.layout is not None and choice.layout.plan is plan
    assert f"relational as asked for, {plan.value}: {why}" in choice.why


def test_what_is_asked_for_is_kept_to():
    assert choose(MIXED, 1, Engine.INDEX) == Choice(Engine.INDEX, "index: as asked for")
    choice = choose(MIXED, 1_000 * GB, plan=Plan.SHARE)
    assert (choice.engine, choice.why) == (Engine.RELATIONAL, "relational, share: as asked for")


def test_sizes_of_a_sample():
    texts = ["/a/b = 'v' and /a/c > 1", "/a/b = 'v'", "/a/c > 1 or /a/d < 2", "not(/a)"]
    sizes = sizes_of([asked_by(text) for text in texts], 400)
    assert sizes == Sizes(400, 5 / 4, 2, 0.5, 0.5)


def test_sizes_of_nothing():
    assert choose(sizes_of([], 0), GB).engine is Engine.INDEX
