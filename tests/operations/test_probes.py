"""Probes, metrics, the pipeline over time, and request logs: over HTTP, on a real server."""

from __future__ import annotations

import json
import re
import resource
import sqlite3
from collections.abc import Iterator
from pathlib import Path
from threading import Event, Thread
from typing import Any

import httpx
import pytest
from prometheus_client.openmetrics.parser import text_string_to_metric_families as open_metrics
from prometheus_client.parser import text_string_to_metric_families
from sqlalchemy import event

from tests.support.paths import ROOT
from tests.support.servers.application import Served, served
from tidings.delivery.dispatcher import DeliveryEvent
from tidings.errors import StoreError
from tidings.operations import logs
from tidings.operations.settings import ServicePart
from tidings.service.authorization import Access
from tidings.service.delivery import DeliveryTelemetry
from tidings.service.pipeline_status import record_heartbeat
from tidings.store.encoding import MatchRow
from tidings.store.telemetry import RETENTION

DOCS = ROOT / "docs" / "operating.md"


@pytest.fixture(scope="module")
def service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    with served(tmp_path_factory.mktemp("home")) as opened:
        yield opened


def values(service: Served) -> dict[str, float]:
    """Return the value of each sample by its name and labels."""
    text = service.get("/metrics").text
    return {
        sample.name
        + "".join(f" {name}={value}" for name, value in sorted(sample.labels.items())): sample.value
        for family in text_string_to_metric_families(text)
        for sample in family.samples
    }


def test_healthz_and_readyz_report_running_service(service: Served) -> None:
    assert httpx.get(f"{service.url}/healthz").json() == {"status": "alive"}
    answer = httpx.get(f"{service.url}/readyz")
    parts = ("store", "hub", "delivery", "objects")
    assert answer.json() == {"status": "ready", "checks": dict.fromkeys(parts, "ok")}
    assert answer.headers["cache-control"] == "no-store"


def test_readyz_reports_problems_with_503(tmp_path: Path) -> None:
    """A store that a newer Tidings has migrated, and one whose migrations are missing."""
    with served(tmp_path, frozenset({ServicePart.API})) as service:
        service.context.health.watch("stream", lambda: "Spark is starting")
        answer = httpx.get(f"{service.url}/readyz")
        assert answer.status_code == 503
        assert answer.json() == {
            "status": "not ready",
            "checks": {"store": "ok", "stream": "Spark is starting"},
        }
        with sqlite3.connect(tmp_path / "store.db") as database:
            database.execute("INSERT INTO tidings_migrations VALUES (999, 'later', '')")
        answer = httpx.get(f"{service.url}/readyz")
        assert "the store has version 999" in answer.json()["checks"]["store"]
        with sqlite3.connect(tmp_path / "store.db") as database:
            database.execute("DELETE FROM tidings_migrations WHERE version >= 24")
        answer = httpx.get(f"{service.url}/readyz")
        assert answer.status_code == 503 and "this Tidings needs version" in answer.json()["checks"]["store"]


def test_readyz_store_rejecting_writes_is_not_ready_until_recovery(tmp_path: Path) -> None:
    """As on a full or read-only disk, with no publisher that would notice."""
    with served(tmp_path, frozenset({ServicePart.API})) as service:
        store, is_full = service.context.tidings.store, Event()

        @event.listens_for(store.database.engine, "checkout")
        def look(connection: sqlite3.Connection, *_: object) -> None:
            connection.execute(f"PRAGMA query_only = {int(is_full.is_set())}")

        def ready() -> tuple[int, str]:
            answer = httpx.get(f"{service.url}/readyz")
            return answer.status_code, answer.json()["checks"]["store"]

        is_full.set()
        assert ready() == (200, "ok"), "no write was attempted"
        with pytest.raises(StoreError, match="readonly"):
            store.journal.append([])
        for _ in range(2):
            status, message = ready()
            assert status == 503 and "attempt to write a readonly database" in message
        is_full.clear()
        assert ready() == (200, "ok")
        assert store.journal.head() == 0


def test_readyz_nearly_full_disk_is_not_ready(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    """Small writes still succeed now and then, but no publication does, so the service must get no traffic."""
    with served(tmp_path, frozenset({ServicePart.API})) as service:
        store, before = service.context.tidings.store, resource.getrlimit(resource.RLIMIT_FSIZE)
        largest = max(file.stat().st_size for file in tmp_path.glob("store.db*"))
        headers = {"Authorization": f"Bearer {Access(store).make('shop', ['publish'], None).secret}"}

        def publish(length: int) -> httpx.Response:
            event = {"words": "x" * length}
            return httpx.post(f"{service.url}/v1/publications", json=event, headers=headers)

        assert publish(1).status_code == 201
        resource.setrlimit(resource.RLIMIT_FSIZE, (largest + 200_000, before[1]))
        try:
            refused = publish(900_000)
            store.time_series.add({"small": 1.0})
            answers = [httpx.get(f"{service.url}/readyz") for _ in range(2)]
        finally:
            resource.setrlimit(resource.RLIMIT_FSIZE, before)
        assert refused.status_code == 503 and str(tmp_path) not in refused.text
        for answer in answers:
            assert answer.status_code == 503 and "disk" in answer.json()["checks"]["store"]
        assert httpx.get(f"{service.url}/readyz").status_code == 200
        messages = [record.getMessage() for record in caplog.records if record.name == "tidings.store"]
        assert len(messages) == 2 and str(tmp_path) in messages[0] and "again" in messages[1]


def test_healthz_ended_part_answers_503(tmp_path: Path) -> None:
    """A worker whose thread has died; a temporary problem is not an end."""
    with served(tmp_path, frozenset({ServicePart.API})) as service:
        service.context.health.watch("delivery", lambda: "the store is away")
        assert httpx.get(f"{service.url}/healthz").status_code == 200
        thread = Thread(target=lambda: None)
        service.context.health.watch("delivery", lambda: "it has ended", thread.is_alive)
        answer = httpx.get(f"{service.url}/healthz")
        assert (answer.status_code, answer.json()) == (503, {"status": "ended", "parts": ["delivery"]})


def test_metrics_require_administrator_unless_opened_by_setting(service: Served, tmp_path: Path) -> None:
    assert httpx.get(f"{service.url}/metrics").status_code == 401
    assert service.get("/metrics").headers["content-type"].startswith("text/plain; version=0.0.4")
    with served(tmp_path, frozenset({ServicePart.DELIVERY}), metrics="open") as alone:
        assert httpx.get(f"{alone.url}/metrics").status_code == 200


def test_metrics_count_publications_matches_deliveries_and_requests(service: Served) -> None:
    store, metrics = service.context.tidings.store, service.context.metrics
    for number in range(3):
        service.context.tidings.publish(json.dumps({"price": number}))
    store.notifications.commit_batch("s", 0, [MatchRow("p-1", "s-1", "ana")], position=2)
    metrics.batch(matches=4, seconds=0.2, latency=0.6, sizes=(5, 1))
    metrics.count_delivery("hub", "failed")
    before = values(service)
    assert before["tidings_publications_total"] == 3 and before["tidings_notifications_total"] == 1
    assert (before["tidings_stream_position"], before["tidings_stream_lag"]) == (2, 1)
    assert before["tidings_matches_total"] == 4 and before["tidings_batch_seconds_count"] == 1
    assert before["tidings_batch_seconds_bucket le=0.25"] == 1
    assert before["tidings_latency_seconds_bucket le=0.5"] == 0
    assert before["tidings_segments"] == 2 and before["tidings_subscriptions"] == 6
    assert before["tidings_segment_subscriptions segment=0"] == 5
    assert before["tidings_deliveries_total channel=hub outcome=failed"] == 1
    httpx.get(f"{service.url}/feeds/nobody")
    httpx.get(f"{service.url}/nowhere/at/all")
    after = values(service)
    assert after["tidings_requests_total method=GET route=/feeds/{name} status=404"] == 1
    assert after["tidings_requests_total method=GET route=(none) status=404"] == 1
    assert not [name for name in after if "nobody" in name or "nowhere" in name]


ASKED_BY_PROMETHEUS = (
    "application/openmetrics-text;version=1.0.0;escaping=allow-utf-8;q=0.6,"
    "application/openmetrics-text;version=0.0.1;q=0.5,text/plain;version=0.0.4;q=0.3,*/*;q=0.2"
)


def test_metrics_openmetrics_is_negotiated(service: Served) -> None:
    """The same counts, in the format that Prometheus requests by default."""
    answer = service.get("/metrics", headers={"accept": ASKED_BY_PROMETHEUS})
    assert answer.headers["content-type"] == "application/openmetrics-text; version=1.0.0; charset=utf-8"
    opened, plain = list(open_metrics(answer.text)), service.get("/metrics").text
    assert {one.name: one.documentation for one in opened} == {
        one.name: one.documentation for one in text_string_to_metric_families(plain)
    }
    for other in ("*/*", "text/plain;version=0.0.4", "application/openmetrics;q=1"):
        kind = service.get("/metrics", headers={"accept": other}).headers["content-type"]
        assert kind == "text/plain; version=0.0.4; charset=utf-8"


def test_docs_describe_every_metric(service: Served) -> None:
    page = DOCS.read_text()
    for family in text_string_to_metric_families(service.get("/metrics").text):
        name = family.name + ("_total" if family.type == "counter" else "")
        assert f"| `{name}` | {family.documentation} |" in page, name


def test_pipeline_endpoint_returns_state_and_time_series(service: Served) -> None:
    store = service.context.tidings.store
    assert httpx.get(f"{service.url}/v1/pipeline").status_code == 401
    record_heartbeat(store, RETENTION)
    store.time_series.add({"publications": 3, "batch_seconds": 0.5, "segments": 2, "subscriptions": 6})
    store.time_series.add({"publications": 1, "batch_seconds": 0.1})
    pipeline = service.get("/v1/pipeline", params={"minutes": 5, "points": 10}).json()
    assert pipeline["step"] == 30 and pipeline["now"]["runs"] and pipeline["now"]["segments"] == 2
    assert pipeline["now"]["head"] == store.journal.head()
    points = pipeline["series"]["batch_seconds"]
    assert sum(point["count"] for point in points) == 2 and max(point["most"] for point in points) == 0.5
    assert sum(point["total"] for point in pipeline["series"]["publications"]) == 4
    assert service.get("/v1/pipeline", params={"minutes": 0}).status_code in (400, 422)


Lines = list[dict[str, Any]]


def requests_in(lines: Lines, *answers: httpx.Response) -> Lines:
    """Return the log lines of these requests, as far as they are there."""
    lines_by_id = {line["request"]: line for line in lines if line["event"] == "request"}
    ids = [answer.headers["x-request-id"] for answer in answers]
    return [lines_by_id[id] for id in ids if id in lines_by_id]


def logged(capsys: pytest.CaptureFixture[str], *answers: httpx.Response) -> Lines:
    """Return the log up to the lines of these requests: a line is written after its answer is sent, so lines of
    earlier requests may be among them.
    """
    turn, lines = Event(), Lines()
    while len(requests_in(lines, *answers)) < len(answers):
        lines += map(json.loads, capsys.readouterr().err.splitlines())
        turn.wait(0.01)
    return lines


def test_request_log_has_route_and_id_and_no_secrets(
    service: Served, capsys: pytest.CaptureFixture[str]
) -> None:
    """The address of a feed is a secret, like a token."""
    address = f"{service.url}/feeds/4Qx9Zb0STx8ZutXF8gGeXyGBnY4Qx9Zb"
    with logs.configure_logging("info", "json"):
        answer = httpx.get(address, headers={"x-request-id": "from-the-proxy"})
        authenticated = service.get("/v1/pipeline")
        odd = httpx.get(address, headers={"x-request-id": "x" * 100})
        lines = logged(capsys, answer, authenticated, odd)
    first, second, third = requests_in(lines, answer, authenticated, odd)
    assert (first["route"], first["status"], first["request"]) == ("/feeds/{name}", 404, "from-the-proxy")
    assert answer.headers["x-request-id"] == "from-the-proxy"
    assert re.fullmatch("[0-9a-f]{16}", odd.headers["x-request-id"]) and third["request"] != "x" * 100
    assert second["route"] == "/v1/pipeline" and second["milliseconds"] >= 0
    text = json.dumps(lines)
    assert "4Qx9Zb0STx8" not in text and service.token not in text


def test_request_log_has_ids_of_affected_objects(service: Served, capsys: pytest.CaptureFixture[str]) -> None:
    headers = {"authorization": f"Bearer {service.token}"}
    with logs.configure_logging("info", "json"):
        published = httpx.post(f"{service.url}/v1/publications", json={"price": 1}, headers=headers)
        subscription = service.get("/v1/subscriptions/s-404")
        destination = service.get("/v1/destinations/d-404")
        answers = published, subscription, destination
        first, second, third = requests_in(logged(capsys, *answers), *answers)
    assert first["publication"] == published.json()["id"]
    assert second["subscription"] == "s-404" and third["destination"] == "d-404"


def test_delivery_events_are_counted_logged_and_stored(
    service: Served, capsys: pytest.CaptureFixture[str]
) -> None:
    telemetry = DeliveryTelemetry(service.context)
    with logs.configure_logging("info", "json"):
        telemetry(DeliveryEvent("delivered", "webhook", "d-1", "s-1", ("n-1",), 0.2))
        telemetry(
            DeliveryEvent(
                "dead", "webhook", "d-1", "s-1", ("n-2",), 0.2, "status 500 at https://x.example/hook/geheim"
            )
        )
        telemetry.close()
    lines = map(json.loads, capsys.readouterr().err.splitlines())
    first, second = (line for line in lines if "destination" in line)  # others are of earlier requests
    assert (
        first["destination"] == "d-1" and first["notifications"] == ["n-1"] and first["subscription"] == "s-1"
    )
    assert second["outcome"] == "dead" and "geheim" not in json.dumps(second)
    counted = values(service)
    assert counted["tidings_deliveries_total channel=webhook outcome=delivered"] == 1
    stored = service.context.tidings.store.time_series.latest(("deliveries_delivered", "deliveries_dead"))
    assert {name: one.total for name, one in stored.items()} == {
        "deliveries_delivered": 1,
        "deliveries_dead": 1,
    }
