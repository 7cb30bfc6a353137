"""Tasks that read ranges of the journal from the store, with a plan that is created once."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyspark.errors import PySparkException

from tidings.matching.compiler.compilation import compile_many
from tidings.matching.index.index import Index
from tidings.model import Publication, Subscription
from tidings.spark import checkpoint
from tidings.spark.sources import position_reader
from tidings.spark.stream.journal_task import REQUEST_PROPERTY, JournalTasks
from tidings.spark.stream.match_output import MATCHES, MatchReport
from tidings.spark.stream.match_task import MatchJob
from tidings.store.database import sqlite_url
from tidings.store.store import open_store

PRICES = [10, 70, 30, 80, 90, 20, 60]


@pytest.fixture
def job(tmp_path: Path) -> MatchJob:
    index = Index.create(tmp_path / "segments")
    index.add(compile_many([Subscription("s", "ana", "predicates", "price > 50")]))
    results = tmp_path / "results"
    results.mkdir()
    return MatchJob(str(index.folder), index.version, None, "id", str(results), True)


@pytest.fixture
def tasks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> JournalTasks:
    """Tasks of two publications each, over a journal with a few publications."""
    monkeypatch.setattr(position_reader, "PUBLICATIONS_A_TASK", 2)
    url = sqlite_url(tmp_path / "store.db")
    with open_store(url) as store:
        bodies = enumerate(b'{"price": %d}' % price for price in PRICES)
        store.journal.append([Publication(f"p{n}", "application/json", body) for n, body in bodies])
    return JournalTasks(url)


def matched_publications(reports: list[MatchReport]) -> list[str]:
    """Return the publications that matched, in the order of the journal."""
    ordered = sorted(reports, key=lambda report: report.first)
    files = [f"{report.output}-{MATCHES}" for report in ordered if report.found]
    return [
        row["publication"]
        for file in files
        for row in pa.ipc.open_stream(pa.OSFile(file)).read_all().to_pylist()
    ]


def test_journal_tasks_match_own_ranges(session: Any, tasks: JournalTasks, job: MatchJob) -> None:
    reports = tasks.match(session, job, 1, 7)
    ranges = sorted((report.first, report.last, report.events) for report in reports)
    assert ranges == [(2, 3, 2), (4, 5, 2), (6, 7, 2)]
    assert matched_publications(reports) == ["p1", "p3", "p4", "p6"]
    assert matched_publications(tasks.match(session, job, 0, 1)) == []
    assert matched_publications(tasks.match(session, job, 1, 2)) == ["p1"], "same plan, different range"
    assert tasks.match(session, job, 7, 7) == []


def test_journal_tasks_request_ends_with_its_job(session: Any, tasks: JournalTasks, job: MatchJob) -> None:
    """Other jobs of the session, such as a user's, do not carry it."""
    tasks.match(session, job, 0, 1)
    assert session.sparkContext.getLocalProperty(REQUEST_PROPERTY) is None
    with pytest.raises(PySparkException):
        tasks.match(session, replace(job, results="/nonexistent"), 0, 1)
    assert session.sparkContext.getLocalProperty(REQUEST_PROPERTY) is None


def test_read_planned_position_returns_end_of_batch(tmp_path: Path) -> None:
    offsets = tmp_path / "offsets"
    offsets.mkdir()
    (offsets / "3").write_text('v1\n{"batchWatermarkMs":0}\n{"position": 12, "run": "ab"}')
    assert (checkpoint.read_planned_position(tmp_path, 3), checkpoint.read_planned_position(tmp_path, 4)) == (
        12,
        None,
    )
