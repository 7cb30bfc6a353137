"""Subscribe, publish and read: the calls that all interfaces use."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from tests.objects.test_notices import LABELS, NEW_TITLE
from tests.objects.test_propagation import MODEL, S3
from tests.support.paths import ROOT
from tidings.errors import (
    CheckProblem,
    ConsistencyProblem,
    DecodeProblem,
    IdConflict,
    InputError,
    PublicationError,
    SchemaError,
    SetupError,
    SyntaxProblem,
)
from tidings.metadata.provider.provider import Provider
from tidings.model import Reject, Subscription
from tidings.objects.sql.object_store import NotificationOutcome
from tidings.service.tidings import Tidings
from tidings.store.encoding import MatchRow
from tidings.store.journal import AppendResult
from tidings.store.store import open_store

METADATA = ROOT / "examples" / "metadata"
FURNITURE = """
attributes: {price: numeric, period: string}
event_types:
  antiques:
    attributes: {price: mandatory, period: optional}
"""


@pytest.fixture
def tidings(tmp_path: Path) -> Tidings:
    return Tidings(tmp_path / "deep" / "home")


def test_home_folder_is_created_on_first_use(tidings: Tidings) -> None:
    assert not tidings.home.exists()
    tidings.publish("{}")
    assert (tidings.home / "store.db").exists()
    assert (tidings.segments, tidings.checkpoint) == (tidings.home / "segments", tidings.home / "checkpoint")


def test_subscribe_returns_id_and_access_path(tidings: Tidings) -> None:
    created = tidings.subscribe("ana", "price < 200 and (period = 'XVI' or period = 'XVII')")
    assert (created.subscriber, created.language, created.predicates) == ("ana", "predicates", 3)
    assert created.reached_through == "period"
    assert created.id.startswith("s-") and len(created.id) == 10
    with_id = tidings.subscribe("bo", "price < 100", id="cheap")
    assert tidings.subscriptions() == [
        Subscription(created.id, "ana", "predicates", created.text),
        Subscription("cheap", "bo", "predicates", "price < 100"),
    ]
    assert tidings.subscriptions("bo") == [Subscription(with_id.id, "bo", "predicates", "price < 100")]


@pytest.mark.parametrize(
    ("arguments", "problem"),
    [
        (("ana", "price < 200 and"), SyntaxProblem),
        (("ana", "prise < 200"), CheckProblem),
        (("ana", "price < 200", "klingon"), InputError),
        (("", "price < 200"), InputError),
        (("ana", "price < 200", "predicates", ""), InputError),
        (("ana", "period = '\x00'"), InputError),
    ],
)
def test_subscribe_invalid_arguments_are_rejected_and_not_stored(
    tidings: Tidings, arguments: tuple[str, ...], problem: type[InputError]
) -> None:
    tidings.extend_schema(FURNITURE)
    with pytest.raises(problem):
        tidings.subscribe(*arguments)
    assert tidings.subscriptions() == []


def test_unsubscribe_removes_own_subscriptions_only(tidings: Tidings) -> None:
    tidings.subscribe("ana", "a = 1", id="s-1")
    tidings.subscribe("bo", "a = 1", id="s-2")
    assert tidings.unsubscribe(["s-2", "s-1", "s-3"], subscriber="ana") == ["s-1"]
    assert tidings.unsubscribe(["s-2"]) == ["s-2"]
    assert tidings.subscriptions() == []


def test_subscribe_rule_is_metadata_subscription(tidings: Tidings) -> None:
    text = "search ServerInformation s register s where s.memory > 64 and s.cpu = 600"
    with pytest.raises(SetupError, match="no schema for metadata yet"):
        tidings.subscribe("ana", text, "rules")
    provider = Provider(tidings.store)
    provider.load_schema((METADATA / "schema.ttl").read_bytes(), "text/turtle")
    provider.register(
        "http://example.org/doc.rdf", (METADATA / "host.rdf").read_bytes(), "application/rdf+xml"
    )
    large = tidings.subscribe("ana", text, "rules", "large", "1 hour")
    assert (large.id, large.predicates, large.reached_through, large.within) == (
        "large",
        2,
        "ServerInformation",
        3600,
    )
    created = tidings.subscribe("bo", "search ServerInformation s register s", "rules")
    [notification] = tidings.notifications("bo")
    assert (notification.kind, notification.subscription, notification.publication) == (
        "entered",
        created.id,
        "http://example.org/doc.rdf#info",
    )
    with pytest.raises(IdConflict):
        tidings.subscribe("bo", text, "rules", "large")
    event = tidings.subscribe("ana", "price < 200").id
    assert [one.id for one in tidings.subscriptions("ana")] == [event, "large"]
    assert tidings.subscriptions()[1] == Subscription("large", "ana", "rules", text, 3600)
    assert tidings.unsubscribe(["large", event, "none"], "bo") == []
    assert tidings.unsubscribe(["large", event, "none"]) == [event, "large"]
    assert [one.id for one in tidings.subscriptions()] == [created.id]


def test_publish_returns_id_and_position_and_is_idempotent(tidings: Tidings) -> None:
    first = tidings.publish('{"price": 180, "name": "é"}')
    assert first.position == 1 and first.id.startswith("p-") and len(first.id) == 10
    assert tidings.publish(b"{}", id="mine") == AppendResult("mine", 2, new=True)
    assert tidings.publish(b"{}", id="mine") == AppendResult("mine", 2, new=False)
    with pytest.raises(IdConflict):
        tidings.publish(b'{"other": 1}', id="mine")
    assert [one.body for one in tidings.store.journal.read(0)] == [
        '{"price": 180, "name": "é"}'.encode(),
        b"{}",
    ]


@pytest.mark.parametrize(
    ("body", "problem"),
    [
        ("not JSON", DecodeProblem),
        ("[1]", DecodeProblem),
        ('{"name": "\ud800"}', DecodeProblem),
        ('{"event_type": "antiques", "period": "XVI"}', ConsistencyProblem),
    ],
)
def test_publish_invalid_event_is_not_stored(tidings: Tidings, body: str, problem: type[InputError]) -> None:
    tidings.extend_schema(FURNITURE)
    with pytest.raises(problem):
        tidings.publish(body)
    with pytest.raises(InputError, match="application/json"):
        tidings.publish("a,b", media_type="text/csv")
    assert tidings.store.journal.head() == 0


def test_publish_invalid_document_is_not_stored(tidings: Tidings) -> None:
    for body in ("<a><b></a>", "", '<!DOCTYPE a [<!ENTITY x "y">]><a>&x;</a>', "<a/><b/>"):
        with pytest.raises(PublicationError):
            tidings.publish(body, media_type="application/xml")
    assert tidings.store.journal.head() == 0
    assert tidings.publish("<a/>", media_type="application/xml").position == 1


def test_publish_many_returns_one_outcome_per_line(tidings: Tidings) -> None:
    lines = [
        b'{"id": "a", "n": 1}',
        b"{",
        b'{"id": "a", "n": 2}',
        b'{"n": 3}',
        b'{"id": "x\\n"}',
        b'{"id": "a", "n": 1}',
    ]
    first, broken, taken, generated, unprintable, again = tidings.publish_many(lines, id_field="id")
    assert first == AppendResult("a", 1, new=True)
    assert again == AppendResult("a", 1, new=False)
    assert isinstance(generated, AppendResult) and generated.position == 2 and generated.id.startswith("p-")
    rejects = [broken, taken, unprintable]
    assert [one.id for one in rejects if isinstance(one, Reject)] == ["line 2", "line 3", "line 5"]
    assert isinstance(taken, Reject) and taken.facts["error"] == "IdConflict"


def test_publish_many_in_chunks_keeps_order_and_line_numbers(
    tidings: Tidings, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tidings.ingest.publisher.APPEND_CHUNK", 10)
    lines = [b"{" if number % 7 == 0 else b'{"n": %d}' % number for number in range(1, 36)]
    outcomes = list(tidings.publish_many(lines))
    assert [one.id for one in outcomes if isinstance(one, Reject)] == [
        f"line {n}" for n in (7, 14, 21, 28, 35)
    ]
    assert [one.position for one in outcomes if isinstance(one, AppendResult)] == list(range(1, 31))
    assert list(tidings.publish_many([])) == []


def test_notifications_page_follow_and_dead_letters(tidings: Tidings) -> None:
    tidings.store.notifications.commit_batch("main", 0, [MatchRow(f"p-{n}", "s-1", "ana") for n in range(5)])
    assert [one.sequence for one in tidings.notifications("ana", after=2, limit=2)] == [3, 4]
    stop = threading.Event()
    following = tidings.follow("ana", after=4, stop=stop)
    assert next(following).sequence == 5
    stop.set()
    assert list(following) == []
    assert tidings.dead_letters() == []


def test_subscribe_within_defers_notifications(tidings: Tidings) -> None:
    created = tidings.subscribe("ana", "price < 200", id="calm", within="10 minutes")
    assert created.within == 600
    assert tidings.subscriptions() == [Subscription("calm", "ana", "predicates", "price < 200", 600)]
    with pytest.raises(InputError, match="not a duration; received 'soon'"):
        tidings.subscribe("ana", "price < 200", within="soon")
    tidings.store.notifications.commit_batch(
        "main", 0, [MatchRow("p-1", "calm", "ana"), MatchRow("p-1", "s", "ana")]
    )
    assert [one.subscription for one in tidings.notifications("ana")] == ["s"]
    assert tidings.deferred("ana").count == 1
    tidings.close()
    with open_store(tidings.store_url, lambda: datetime.now(UTC) + timedelta(minutes=10)) as later:
        assert [one.subscription for one in later.notifications.read("ana")] == ["s", "calm"]
    assert tidings.deferred("ana").count == 0


def test_extend_schema_is_visible_to_other_processes_at_once(tidings: Tidings) -> None:
    with Tidings(tidings.home) as other:
        assert tidings.schema().is_empty
        tidings.subscribe("ana", "price < 200")
        other.extend_schema(FURNITURE)
        assert set(tidings.schema().attributes) == {"price", "period"}
        with pytest.raises(CheckProblem):
            tidings.subscribe("ana", "prise < 200")
        with pytest.raises(SchemaError):
            tidings.extend_schema("attributes: {price: string}")


def test_extend_schema_orphaning_subscriptions_is_rejected(tidings: Tidings) -> None:
    tidings.subscribe("ana", "price < 200")
    orphan = tidings.subscribe("bo", "colour = 'red'")
    with pytest.raises(SchemaError) as refused:
        tidings.extend_schema(FURNITURE)
    assert "this schema would make 1 subscription invalid" in str(refused.value)
    assert f"{orphan.id}: no event type has an attribute 'colour'" in str(refused.value)
    assert tidings.schema().is_empty
    tidings.unsubscribe([orphan.id])
    tidings.extend_schema(FURNITURE)
    assert not tidings.schema().is_empty


def test_store_url_elsewhere_creates_no_home(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path / 'elsewhere.db'}"
    with Tidings(tmp_path / "home", url) as tidings:
        assert tidings.store_url == url
        tidings.publish("{}")
    assert not (tmp_path / "home").exists()
    with open_store(url) as store:
        assert store.journal.head() == 1


def test_close_allows_further_use(tidings: Tidings) -> None:
    tidings.close()
    with tidings:
        tidings.publish("{}")
    assert tidings.publish("{}").position == 2
    tidings.close()


def test_home_uncreatable_folder_is_setup_error(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(SetupError, match="the folder cannot be created"):
        Tidings(tmp_path / "file" / "home").publish("{}")
    with pytest.raises(SetupError, match="the folder cannot be created"):
        Tidings(tmp_path / "file").publish("{}")


def test_import_of_service_loads_no_slow_library() -> None:
    """Slow imports stay out of the commands that do not need them."""
    slow = "{'numba', 'pyspark', 'pandas', 'psycopg'}"
    code = f"import sys, tidings.metadata.provider, tidings.service; print({slow} & set(sys.modules))"
    process = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, env=os.environ
    )
    assert process.stdout.strip() == "set()"


def test_notify_of_changes_notifies_affected_subscribers_except_author(tidings: Tidings) -> None:
    change = replace(NEW_TITLE, author=S3)
    assert tidings.notify_of_changes("university", MODEL, [change], LABELS) == NotificationOutcome(2, 0)
    assert tidings.notifications("Student:S3") == []
    assert tidings.notify_of_changes(
        "university", MODEL, [change], LABELS, notify_author=True
    ) == NotificationOutcome(1, 2)
    [notification] = tidings.notifications("Student:S3")
    assert notification.because[0].predicate == "Second edition -usedIn-> Data structures <-attends- you"
