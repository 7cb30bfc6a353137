"""Indexes in groups of segments: equal results, for indexes that are larger than the memory of a worker."""

from __future__ import annotations

import resource
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from pyspark import cloudpickle
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession

from tests.spark import workload
from tidings import Index, Subscription, compile_many
from tidings.spark import Subscriptions, match
from tidings.spark.dataframe import match as match_module
from tidings.spark.dataframe.environment import MatchEnvironment
from tidings.spark.dataframe.match_stage import MatchStage

cloudpickle.register_pickle_by_value(sys.modules[__name__])  # tasks run the stage below

SEGMENTS = 8
WANTED = workload.subscriptions(64)
NAMED = {f"e{number}": body for number, body in enumerate(workload.events(120))}
LONG_SUBSCRIPTIONS, LONG_TEXT = 5_000, 4_000
"""Subscriptions of a segment that no event matches, and the length of a value in each: 20 MB in all."""
SPARE_BYTES = 100_000_000
"""Memory that a worker may use in addition: three to four segments, and what matching itself needs."""


@pytest.fixture
def events(session: SparkSession) -> DataFrame:
    rows = [(name, body.decode()) for name, body in NAMED.items()]
    return session.createDataFrame([*rows, ("bad", "{")], "id string, value string").coalesce(1)


@pytest.fixture(scope="module")
def index() -> Index:
    index = Index.create()
    for number in range(SEGMENTS):
        index.add(compile_many(WANTED[number::SEGMENTS]))
    return index


@pytest.mark.parametrize("groups", [1, 2, 4, 8, 20])
def test_match_groups_give_equal_results(events, index, groups):
    """More groups than segments are as many as there are segments."""
    matches = match(events, index, groups=groups, explain=True, on_error="column")
    rows = matches.collect()
    pairs = [(row.publication, row.subscription) for row in rows if row.problem is None]
    assert set(pairs) == workload.expected(NAMED, WANTED)
    assert len(pairs) == len(set(pairs))
    assert all(row.explanation for row in rows if row.problem is None)
    assert [row.publication for row in rows if row.problem is not None] == ["bad"]
    expected = match(events, index, explain=True, on_error="column").collect()
    assert sorted(map(repr, rows)) == sorted(map(repr, expected))


@dataclass(frozen=True)
class CappedStage(MatchStage):
    """Leaves its worker little more address space than it uses after matching with a small index."""

    warm: MatchEnvironment | None = None

    def __call__(self, batches: Any) -> Iterator[Any]:
        batches = list(batches)
        assert self.warm is not None
        list(MatchStage(self.warm, self.media_type, self.id_field, self.fields)(batches))
        pages = int(Path("/proc/self/statm").read_text().split()[0])
        before = resource.getrlimit(resource.RLIMIT_AS)
        limit = pages * resource.getpagesize() + SPARE_BYTES
        resource.setrlimit(resource.RLIMIT_AS, (limit, before[1]))
        try:
            yield from super().__call__(batches)
        finally:
            resource.setrlimit(resource.RLIMIT_AS, before)


@pytest.fixture(scope="module")
def large(tmp_path_factory: pytest.TempPathFactory) -> Subscriptions:
    index = Index.create(tmp_path_factory.mktemp("large"))
    for number in range(SEGMENTS):
        texts = (f"note = '{number} {each} {'x' * LONG_TEXT}'" for each in range(LONG_SUBSCRIPTIONS))
        long = [
            Subscription(f"long-{number}-{each}", "ana", "predicates", text)
            for each, text in enumerate(texts)
        ]
        index.add(compile_many([*WANTED[number::SEGMENTS], *long]))
    return Subscriptions.from_index(index)


@pytest.fixture
def capped_workers(session: SparkSession, monkeypatch: pytest.MonkeyPatch) -> None:
    """As with `spark.executor.pyspark.memory`, which limits the address space of workers, but on any machine."""
    warm = Subscriptions.compile(WANTED).environment(session)
    monkeypatch.setattr(match_module, "MatchStage", partial(CappedStage, warm=warm))


@pytest.mark.usefixtures("capped_workers")
def test_match_index_larger_than_worker_memory_needs_groups(events, large):
    assert large.nbytes > 1.5 * SPARE_BYTES
    with pytest.raises(PySparkException, match=r"too little memory.*groups="):
        match(events, large).collect()
    rows = match(events, large, groups=SEGMENTS).collect()
    assert {(row.publication, row.subscription) for row in rows} == workload.expected(NAMED, WANTED)
