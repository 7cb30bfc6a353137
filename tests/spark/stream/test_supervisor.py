"""The activity of a stream between batches, and its restart on a busy machine."""

from __future__ import annotations

from pathlib import Path
from threading import Event
from typing import Any, Self, cast

import pytest
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession

from tidings.cli.operations.run import show_activity
from tidings.errors import SlowStart
from tidings.spark.stream.query import BatchHandler, Query
from tidings.spark.stream.runner import _follow
from tidings.spark.stream.stream_events import StreamProgress
from tidings.spark.stream.supervisor import describe_activity


@pytest.mark.parametrize(
    ("waiting", "is_busy", "is_started", "words"),
    [
        (0, False, False, "starting Spark's workers ..."),
        (1, False, False, "starting Spark's workers ..."),
        (0, True, False, "starting Spark's workers ..."),
        (1, True, False, "matching 1 publication ..."),
        (1_200, True, True, "matching 1,200 publications ..."),
        (None, True, True, "matching publications ..."),
        (None, False, True, "waiting for publications ..."),
        (0, True, True, "waiting for publications ..."),
    ],
)
def test_describe_activity_names_activity(
    waiting: int | None, is_busy: bool, is_started: bool, words: str
) -> None:
    assert show_activity(describe_activity(waiting, is_busy=is_busy, is_started=is_started)) == words


class SlowQueries:
    """Queries whose Python processes start too slowly the given number of times."""

    def __init__(self, times: int) -> None:
        self.times = times

    def __call__(self) -> Self:
        return self

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None: ...

    def follow(self, *_: object) -> StreamProgress:
        self.times -= 1
        if self.times >= 0:
            raise SlowStart("the stream ended", hint="Python worker failed to connect back.")
        return StreamProgress(batch=7)


def follow(slow: Any, pauses: int) -> StreamProgress:
    return _follow(slow, None, Event(), lambda news: None, [0.0] * pauses)  # type: ignore[arg-type]


def test_follow_slow_queries_are_restarted() -> None:
    assert follow(SlowQueries(3), 3).batch == 7
    with pytest.raises(SlowStart):
        follow(SlowQueries(4), 3)


class SlowSource:
    """A query whose source process does not start in time."""

    name, checkpoint, status = "slow", Path("checkpoint"), Path("status")

    def rows(self, session: SparkSession) -> DataFrame:
        raise PySparkException("Job aborted\nPython worker failed to connect back.\n\tat java")

    def open(self) -> BatchHandler:
        raise AssertionError("there is no batch")

    def progress(self, fields: dict[str, Any]) -> Any:
        raise AssertionError("there is no batch")


def test_query_slow_planning_of_source_is_slow_start() -> None:
    with pytest.raises(SlowStart, match="failed to connect back"):
        Query(cast(SparkSession, None), SlowSource(), once=False)
