"""Which engine a request gets: as asked for, else by what the file and the memory are like."""

from __future__ import annotations

import json

import pytest

from tidings.errors import InputError
from tidings.relational.engine_choice import asked_for, choose_engine, free_memory
from tidings.relational.planner import Engine
from tidings.relational.tables import Layout, Plan
from tidings.spark.batch.job import BatchRequest


@pytest.fixture
def request_of(tmp_path):
    def write(*texts, language="xpath"):
        file = tmp_path / "subs.jsonl"
        fields = [
            {"id": f"s{n}", "subscriber": "ana", "language": language, "text": t} for n, t in enumerate(texts)
        ]
        file.write_text("".join(json.dumps(each) + "\n" for each in fields))
        return BatchRequest(file, tmp_path, tmp_path / "out")

    return write


TEXTS = ("/a/b = 'v' and /a/c > 1 and /a/d", "/a/b = 'w'", "/a[")


def test_a_small_file_is_not_opened(request_of):
    request = request_of("no", "XPath [")
    choice = choose_engine(request, memory=1_000_000)
    size = request.subscriptions.stat().st_size
    assert choice.engine is Engine.INDEX
    assert choice.why == f"index: {size} bytes of subscriptions are little where 1.0 MB are free"


def test_a_large_file_is_judged_by_what_it_asks(request_of):
    choice = choose_engine(request_of(*TEXTS), memory=100)
    assert choice.engine is Engine.RELATIONAL
    assert choice.layout == Layout(Plan.UNROLL, unroll=3)
    assert choice.why.startswith("relational, unroll: 2.0 predicates each")


def test_other_languages_are_the_indexs(request_of):
    choice = choose_engine(request_of("price < 5", language="predicates"), memory=10)
    assert choice.why == "index: the other engine knows XPath only, and not all subscriptions are XPaths"


def test_choose_engine_relational_with_other_languages_is_refused_at_once(request_of):
    request = request_of("price < 5", "price < 6", language="predicates")
    for engine, plan in ((Engine.RELATIONAL, None), (None, Plan.SHARE)):
        with pytest.raises(
            InputError, match="matches XPaths only; received 2 subscriptions of 2 in other languages"
        ):
            choose_engine(request, engine, plan)


def test_what_is_asked_for(request_of):
    request = request_of(*TEXTS)
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
def test_what_contradicts_itself_is_refused(request_of, engine, plan, unroll):
    with pytest.raises(InputError):
        choose_engine(request_of(*TEXTS), engine, plan, unroll)


def test_names(request_of):
    request = request_of(*TEXTS)
    assert asked_for(request, "relational", "share-bucket", None).layout.plan is Plan.SHARE_BUCKET
    assert asked_for(request, "index", None, None).why == "index: as asked for"
    with pytest.raises(InputError, match=r"no such plan.*accepted: share, share-bucket, unroll"):
        asked_for(request, None, "unrol", None)
    with pytest.raises(InputError, match=r"no such engine.*accepted: index, relational"):
        asked_for(request, "rational", None, None)


def test_some_memory_is_free():
    assert free_memory() > 1_000_000
