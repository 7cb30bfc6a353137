"""The stream into PostgreSQL: rows of failed attempts are not committed, and the folder source stages, too."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import select

from tests.spark import workload
from tests.spark.poison import EXPLAIN, poisoned
from tests.support.processes import streams
from tests.support.processes.streams import check_gapless, read_notifications, running
from tests.support.stores.ready_stores import ReadyStores
from tidings.model import Publication, Subscription
from tidings.spark.sources import position_reader
from tidings.spark.stream import journal_task
from tidings.spark.stream.runner import run_stream
from tidings.store.store import Store, open_store
from tidings.store.tables import staged_attempts, staged_matches

pytestmark = pytest.mark.spark


@pytest.fixture
def url(postgres_places: ReadyStores) -> str:
    return postgres_places.empty()


@pytest.fixture
def store(url: str) -> Iterator[Store]:
    with open_store(url) as opened:
        yield opened


def read_staged(store: Store) -> list[Any]:
    with store.database.read() as connection:
        return [
            row for table in (staged_attempts, staged_matches) for row in connection.execute(select(table))
        ]


@pytest.mark.timeout(900)
def test_stream_rows_of_failed_attempts_are_not_committed(
    session: Any, tmp_path: Path, store: Store, url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Several tasks succeed in attempts in which another one dies: their rows are staged again and again."""
    monkeypatch.setattr(streams, "PATIENCE", 600.0)
    monkeypatch.setattr(position_reader, "PUBLICATIONS_A_TASK", 2)
    poisoned(monkeypatch, journal_task, "_build_stage", EXPLAIN)
    store.subscriptions.add(Subscription("good", "ana", "predicates", "price = 7"))
    store.subscriptions.add(Subscription("deadly", "bo", "xpath", "/order[die]"))
    bodies = [("application/json", b'{"price": 7}')] * 9
    bodies[6] = ("application/xml", b"<order><die/></order>")
    store.journal.append([Publication(f"p{n}", *body) for n, body in enumerate(bodies)])
    with running(session, tmp_path, url) as stream:
        stream.until(lambda: len(read_notifications(store, "ana")["ana"]) == 8)
        store.journal.append([Publication("last", "application/json", b'{"price": 7}')])
        stream.until(lambda: len(read_notifications(store, "ana")["ana"]) == 9)
    ids = [f"p{n}" for n in range(9) if n != 6] + ["last"]
    assert read_notifications(store, "ana", "bo") == {
        "ana": [(n, id, "good") for n, id in enumerate(ids, start=1)],
        "bo": [],
    }
    assert [(one.publication, one.subscription) for one in store.dead_letters.read()] == [("p6", "deadly")]
    assert store.overruns.count("deadly") == 1
    assert read_staged(store) == []


def test_stream_of_folder_agrees_with_specification(
    session: Any, tmp_path: Path, store: Store, url: str
) -> None:
    subscriptions = workload.subscriptions(40)
    store.subscriptions.add_many(subscriptions)
    incoming = tmp_path / "in"
    incoming.mkdir()
    bodies = [*workload.events(60), b'{"symbol": ']
    (incoming / "a.jsonl").write_bytes(b"\n".join(bodies))
    summary = run_stream(session, tmp_path / "home", url, folder=incoming, most_publications=25, once=True)
    assert (summary.total_events, summary.total_dead_letters) == (61, 1)
    names = [f"e{n}" if n % 3 else f"a.jsonl:{n + 1}" for n in range(60)]
    people = sorted({one.subscriber for one in subscriptions})
    pairs = {row[1:] for rows in read_notifications(store, *people).values() for row in rows}
    assert pairs == workload.expected(dict(zip(names, bodies, strict=False)), subscriptions)
    check_gapless(store, *people)
    assert [one.publication for one in store.dead_letters.read()] == ["a.jsonl:61"]
    assert read_staged(store) == []
    assert list((tmp_path / "home" / "batches").rglob("*.arrow")) == []
