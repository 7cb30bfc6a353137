"""Choice of the engine: as requested, else by the sizes of the file and the memory, with the reason."""

from __future__ import annotations

import json

import pytest

from tidings.errors import InputError
from tidings.relational.branches import predicate_sets_of
from tidings.relational.engine_choice import (
    Choice,
    Engine,
    Sizes,
    asked_for,
    choose,
    choose_engine,
    free_memory,
    sizes_of,
)
from tidings.relational.tables import Layout, Plan
from tidings.spark.batch.job import BatchRequest


@pytest.fixture
def make_request(tmp_path):
    def write(*texts, language="xpath"):
        file = tmp_path / "subs.jsonl"
        fields = [
            {"id": f"s{n}", "subscriber": "ana", "language": language, "text": t} for n, t in enumerate(texts)
        ]
        file.write_text("".join(json.dumps(each) + "\n" for each in fields))
        return BatchRequest(file, tmp_path, tmp_path / "out")

    return write


TEXTS = ("/a/b = 'v' and /a/c > 1 and /a/d", "/a/b = 'w'", "/a[")


def test_choose_engine_small_file_is_not_opened(make_request):
    request = make_request("no", "XPath [")
    choice = choose_engine(request, memory=1_000_000)
    size = request.subscriptions.stat().st_size
    assert choice.engine is Engine.INDEX
    assert choice.why == f"index: {size} bytes of subscriptions fit where 1.0 MB are free"


def test_choose_engine_large_file_is_judged_by_predicates(make_request):
    choice = choose_engine(make_request(*TEXTS), memory=100)
    assert choice.engine is Engine.RELATIONAL
    assert choice.layout == Layout(Plan.UNROLL, unroll=3)
    assert choice.why.startswith("relational, unroll: 2.0 predicates each")


def test_choose_engine_other_languages_use_index(make_request):
    choice = choose_engine(make_request("price < 5", language="predicates"), memory=10)
    assert (
        choice.why
        == "index: the relational engine only supports XPath, and some subscriptions are not XPaths"
    )


def test_choose_engine_relational_with_other_languages_is_rejected_early(make_request):
    request = make_request("price < 5", "price < 6", language="predicates")
    for engine, plan in ((Engine.RELATIONAL, None), (None, Plan.SHARE)):
        with pytest.raises(
            InputError, match="only supports XPath; received 2 subscriptions of 2 in other languages"
        ):
            choose_engine(request, engine, plan)


def test_choose_engine_requested_engine_and_plan_are_used(make_request):
    request = make_request(*TEXTS)
    assert choose_engine(request, Engine.INDEX).layout is None
    assert choose_engine(request, plan=Plan.SHARE).layout.plan is Plan.SHARE
    assert choose_engine(request, Engine.RELATIONAL, unroll=2).layout == Layout(Plan.UNROLL, unroll=2)
    assert choose_engine(request, unroll=9).layout == Layout(Plan.UNROLL, unroll=9)


@pytest.mark.parametrize(
    ("engine", "plan", "unroll"),
    [
        (Engine.INDEX, Plan.SHARE, None),
        (Engine.INDEX, None, 3),
        (None, Plan.SHARE, 3),
        (None, None, 0),
    ],
)
def test_choose_engine_contradictory_request_is_rejected(make_request, engine, plan, unroll):
    with pytest.raises(InputError):
        choose_engine(make_request(*TEXTS), engine, plan, unroll)


def test_asked_for_names_of_engines_and_plans(make_request):
    request = make_request(*TEXTS)
    assert asked_for(request, "relational", "share-bucket", None).layout.plan is Plan.SHARE_BUCKET
    assert asked_for(request, "index", None, None).why == "index: as requested"
    with pytest.raises(InputError, match=r"no such plan.*accepted: share, share-bucket, unroll"):
        asked_for(request, None, "unrol", None)
    with pytest.raises(InputError, match=r"no such engine.*accepted: index, relational"):
        asked_for(request, "rational", None, None)


def test_free_memory_is_positive():
    assert free_memory() > 1_000_000


GB = 1_000_000_000
MIXED = Sizes(100_000_000, 5.0, 8, 0.0, 0.5)


def test_choose_subscriptions_that_fit_memory_use_index():
    choice = choose(Sizes(1_000_000, 5.0, 5, 0.0, 0.5), 8 * GB)
    assert choice == Choice(
        Engine.INDEX,
        "index: 1,000,000 subscriptions take about 420 MB in an index, which is less than half of the 8.0 GB that"
        " are free",
    )


def test_choose_subscriptions_beyond_memory_use_relational_engine():
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
def test_choose_plan_depends_on_subscriptions(sizes, plan, why):
    choice = choose(sizes, GB, Engine.RELATIONAL)
    assert choice.layout is not None and choice.layout.plan is plan
    assert f"relational as requested, {plan.value}: {why}" in choice.why


def test_choose_requested_engine_and_plan_are_used():
    assert choose(MIXED, 1, Engine.INDEX) == Choice(Engine.INDEX, "index: as requested")
    choice = choose(MIXED, 1_000 * GB, plan=Plan.SHARE)
    assert (choice.engine, choice.why) == (Engine.RELATIONAL, "relational, share: as requested")


def test_sizes_of_sample_has_averages():
    texts = ["/a/b = 'v' and /a/c > 1", "/a/b = 'v'", "/a/c > 1 or /a/d < 2", "not(/a)"]
    sizes = sizes_of([predicate_sets_of(text) for text in texts], 400)
    assert sizes == Sizes(400, 5 / 4, 2, 0.5, 0.5)


def test_sizes_of_empty_sample_uses_index():
    assert choose(sizes_of([], 0), GB).engine is Engine.INDEX
