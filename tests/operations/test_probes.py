"""Probes, metrics, the pipeline over time, and what is logged of requests: over HTTP, on a real server."""

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
from tidings.service.pipeline import record_heartbeat
from tidings.store.encoding import MatchRow
from tidings.store.telemetry import RETENTION

DOCS = ROOT / "docs" / "operating.md"


@pytest.fixture(scope="module")
def service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    with served(tmp_path_factory.mktemp("home")) as opened:
        yield opened


def values(service: Served) -> dict[str, float]:
    """Each sample by its name and labels."""
    text = service.get("/metrics").text
    return {
        sample.name
        + "".join(f" {name}={value}" for name, value in sorted(sample.labels.items())): sample.value
        for family in text_string_to_metric_families(text)
        for sample in family.samples
    }


def test_a_process_that_lives_and_one_that_can_work(service: Served) -> None:
    assert httpx.get(f"{service.url}/healthz").json() == {"status": "alive"}
    answer = httpx.get(f"{service.url}/readyz")
    parts = ("store", "hub", "delivery", "objects")
    assert answer.json() == {"status": "ready", "checks": dict.fromkeys(parts, "ok")}
    assert answer.headers["cache-control"] == "no-store"


def test_what_is_wrong_is_said_with_503(tmp_path: Path) -> None:
    """A store whose tables a newer Tidings has changed; then one that is gone."""
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


def test_a_store_that_takes_nothing_is_not_ready_until_it_does(tmp_path: Path) -> None:
    """As on a full disk, or one that can only be read any more. Nobody publishes meanwhile to find out."""
    with served(tmp_path, frozenset({ServicePart.API})) as service:
        store, is_full = service.context.tidings.store, Event()

        @event.listens_for(store.database.engine, "checkout")
        def look(connection: sqlite3.Connection, *_: object) -> None:
            connection.execute(f"PRAGMA query_only = {int(is_full.is_set())}")

        def ready() -> tuple[int, str]:
            answer = httpx.get(f"{service.url}/readyz")
            return answer.status_code, answer.json()["checks"]["store"]

        is_full.set()
        assert ready() == (200, "ok"), "nobody has tried to write"
        with pytest.raises(StoreError, match="readonly"):
            store.journal.append([])
        for _ in range(2):
            status, said = ready()
            assert status == 503 and "attempt to write a readonly database" in said
        is_full.clear()
        assert ready() == (200, "ok")
        assert store.journal.head() == 0


def test_a_disk_with_room_for_a_page_is_full(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    """What is small is still written now and then, by whoever; no publication is, so nobody is to be sent here."""
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
        told = [record.getMessage() for record in caplog.records if record.name == "tidings.store"]
        assert len(told) == 2 and str(tmp_path) in told[0] and "again" in told[1]


def test_a_part_that_has_ended_wants_a_new_start(tmp_path: Path) -> None:
    """A loop that an error of the program has ended, in a thread that is no more; what is away for a while is none."""
    with served(tmp_path, frozenset({ServicePart.API})) as service:
        service.context.health.watch("delivery", lambda: "the store is away")
        assert httpx.get(f"{service.url}/healthz").status_code == 200
        thread = Thread(target=lambda: None)
        service.context.health.watch("delivery", lambda: "it has ended", thread.is_alive)
        answer = httpx.get(f"{service.url}/healthz")
        assert (answer.status_code, answer.json()) == (503, {"status": "ended", "parts": ["delivery"]})


def test_metrics_are_for_administrators_unless_a_setting_opens_them(service: Served, tmp_path: Path) -> None:
    assert httpx.get(f"{service.url}/metrics").status_code == 401
    assert service.get("/metrics").headers["content-type"].startswith("text/plain; version=0.0.4")
    with served(tmp_path, frozenset({ServicePart.DELIVERY}), metrics="open") as alone:
        assert httpx.get(f"{alone.url}/metrics").status_code == 200


def test_what_is_counted(service: Served) -> None:
    store, metrics = service.context.tidings.store, service.context.metrics
    for number in range(3):
        service.context.tidings.publish(json.dumps({"price": number}))
    store.notifications.commit_batch("s", 0, [MatchRow("p-1", "s-1", "ana")], position=2)
    metrics.batch(matches=4, seconds=0.2, latency=0.6, sizes=(5, 1))
    metrics.delivered("hub", "failed")
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


def test_open_metrics_for_those_who_accept_them(service: Served) -> None:
    """The same counts, as Prometheus asks for them by itself."""
    answer = service.get("/metrics", headers={"accept": ASKED_BY_PROMETHEUS})
    assert answer.headers["content-type"] == "application/openmetrics-text; version=1.0.0; charset=utf-8"
    opened, plain = list(open_metrics(answer.text)), service.get("/metrics").text
    assert {one.name: one.documentation for one in opened} == {
        one.name: one.documentation for one in text_string_to_metric_families(plain)
    }
    for other in ("*/*", "text/plain;version=0.0.4", "application/openmetrics;q=1"):
        kind = service.get("/metrics", headers={"accept": other}).headers["content-type"]
        assert kind == "text/plain; version=0.0.4; charset=utf-8"


def test_every_metric_has_its_docs(service: Served) -> None:
    said = DOCS.read_text()
    for family in text_string_to_metric_families(service.get("/metrics").text):
        name = family.name + ("_total" if family.type == "counter" else "")
        assert f"| `{name}` | {family.documentation} |" in said, name


def test_the_pipeline_over_time(service: Served) -> None:
    store = service.context.tidings.store
    assert httpx.get(f"{service.url}/v1/pipeline").status_code == 401
    record_heartbeat(store, RETENTION)
    store.time_series.add({"publications": 3, "batch_seconds": 0.5, "segments": 2, "subscriptions": 6})
    store.time_series.add({"publications": 1, "batch_seconds": 0.1})
    found = service.get("/v1/pipeline", params={"minutes": 5, "points": 10}).json()
    assert found["step"] == 30 and found["now"]["runs"] and found["now"]["segments"] == 2
    assert found["now"]["head"] == store.journal.head()
    points = found["series"]["batch_seconds"]
    assert sum(point["count"] for point in points) == 2 and max(point["most"] for point in points) == 0.5
    assert sum(point["total"] for point in found["series"]["publications"]) == 4
    assert service.get("/v1/pipeline", params={"minutes": 0}).status_code in (400, 422)


Lines = list[dict[str, Any]]


def requests_in(lines: Lines, *answers: httpx.Response) -> Lines:
    """The lines of the requests that were answered, of each that is there."""
    found = {line["request"]: line for line in lines if line["event"] == "request"}
    ids = [answer.headers["x-request-id"] for answer in answers]
    return [found[id] for id in ids if id in found]


def logged(capsys: pytest.CaptureFixture[str], *answers: httpx.Response) -> Lines:
    """What is logged, up to these requests: the line of one comes when its answer is on its way already. So that of one
    before them may be there, too.
    """
    turn, lines = Event(), Lines()
    while len(requests_in(lines, *answers)) < len(answers):
        lines += map(json.loads, capsys.readouterr().err.splitlines())
        turn.wait(0.01)
    return lines


def test_requests_are_logged_by_their_routes_and_ids(
    service: Served, capsys: pytest.CaptureFixture[str]
) -> None:
    """The address of a feed is a secret, and so is a token."""
    address = f"{service.url}/feeds/4Qx9Zb0STx8ZutXF8gGeXyGBnY4Qx9Zb"
    with logs.configure_logging("info", "json"):
        answer = httpx.get(address, headers={"x-request-id": "from-the-proxy"})
        asked = service.get("/v1/pipeline")
        odd = httpx.get(address, headers={"x-request-id": "x" * 100})
        lines = logged(capsys, answer, asked, odd)
    first, second, third = requests_in(lines, answer, asked, odd)
    assert (first["route"], first["status"], first["request"]) == ("/feeds/{name}", 404, "from-the-proxy")
    assert answer.headers["x-request-id"] == "from-the-proxy"
    assert re.fullmatch("[0-9a-f]{16}", odd.headers["x-request-id"]) and third["request"] != "x" * 100
    assert second["route"] == "/v1/pipeline" and second["milliseconds"] >= 0
    said = json.dumps(lines)
    assert "4Qx9Zb0STx8" not in said and service.token not in said


def test_what_a_request_was_about_stands_in_its_line(
    service: Served, capsys: pytest.CaptureFixture[str]
) -> None:
    headers = {"authorization": f"Bearer {service.token}"}
    with logs.configure_logging("info", "json"):
        taken = httpx.post(f"{service.url}/v1/publications", json={"price": 1}, headers=headers)
        subscription = service.get("/v1/subscriptions/s-404")
        destination = service.get("/v1/destinations/d-404")
        answers = taken, subscription, destination
        first, second, third = requests_in(logged(capsys, *answers), *answers)
    assert first["publication"] == taken.json()["id"]
    assert second["subscription"] == "s-404" and third["destination"] == "d-404"


def test_what_delivery_tells_is_counted_logged_and_kept(
    service: Served, capsys: pytest.CaptureFixture[str]
) -> None:
    heard = DeliveryTelemetry(service.context)
    with logs.configure_logging("info", "json"):
        heard(DeliveryEvent("delivered", "webhook", "d-1", "s-1", ("n-1",), 0.2))
        heard(
            DeliveryEvent(
                "dead", "webhook", "d-1", "s-1", ("n-2",), 0.2, "status 500 at https://x.example/hook/geheim"
            )
        )
        heard.close()
    first, second = (json.loads(line) for line in capsys.readouterr().err.splitlines())
    assert (
        first["destination"] == "d-1" and first["notifications"] == ["n-1"] and first["subscription"] == "s-1"
    )
    assert second["outcome"] == "dead" and "geheim" not in json.dumps(second)
    counted = values(service)
    assert counted["tidings_deliveries_total channel=webhook outcome=delivered"] == 1
    kept = service.context.tidings.store.time_series.latest(("deliveries_delivered", "deliveries_dead"))
    assert {name: one.total for name, one in kept.items()} == {
        "deliveries_delivered": 1,
        "deliveries_dead": 1,
    }
