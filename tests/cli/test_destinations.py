"""`tidings destination` and `tidings quiet`: create, list, test, replay, and invalid input."""

from __future__ import annotations

import json
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from standardwebhooks.webhooks import Webhook

from tests.support.processes.command_line import Tidings, listens_at, start
from tests.support.servers.site import Response, Site, a_site
from tests.support.stores.notified_store import BECAUSE
from tidings.delivery.sql.cursors import RunOutcome
from tidings.delivery.sql.dead_deliveries import DeadDelivery
from tidings.model import Publication
from tidings.store.database import sqlite_url
from tidings.store.encoding import MatchRow
from tidings.store.store import open_store


@pytest.fixture
def private(monkeypatch: pytest.MonkeyPatch) -> None:
    """Allow destinations on this machine."""
    monkeypatch.setenv("TIDINGS_DELIVERY__PRIVATE_CALLBACKS", "true")


def add_webhook(tidings: Tidings, site: Site, *more: str) -> dict[str, Any]:
    site.pages.setdefault("/", Response(204))
    result = tidings("destination", "add", "webhook", site.url("/"), "--as", "ana", "--json", *more)
    assert result.exit_code == 0, result.stderr
    destination: dict[str, Any] = json.loads(result.stdout)
    return destination


def test_destination_add_test_rotate_pause_and_remove(tidings: Tidings, private: None) -> None:
    with a_site() as site:
        created = add_webhook(tidings, site, "--name", "phone")
        assert created["secret"].startswith("whsec_") and created["state"] == "active"
        listed = tidings("destination", "list", "--as", "ana", "--json").stdout
        assert created["secret"] not in listed
        assert json.loads(listed)["target"] == site.url("/") and json.loads(listed)["dead_letters"] == 0
        assert "no destinations" in tidings("destination", "list", "--as", "bo").stderr
        tested = tidings("destination", "test", created["id"])
        assert tested.exit_code == 0 and "status 204" in tested.stdout
        site.pages["/"] = Response(500, b"oh")
        failed = json.loads(tidings("destination", "test", created["id"], "--json").stdout)
        assert (failed["taken"], failed["status"], failed["problem"]) == (False, 500, "status 500: oh")
        rotated = json.loads(tidings("destination", "rotate", created["id"], "--json").stdout)
        tidings("destination", "test", created["id"])
        last = site.requests[-1]
        for secret in (created["secret"], rotated["secret"]):
            assert Webhook(secret).verify(last.body, dict(last.headers))["type"] == "tidings.test"
        assert "has ended" in tidings("destination", "rotate", created["id"], "--drop").stdout
        assert "paused" in tidings("destination", "pause", created["id"]).stdout
        assert "paused" in tidings("destination", "list").stdout
        assert "active" in tidings("destination", "resume", created["id"]).stdout
        assert tidings("destination", "remove", created["id"]).exit_code == 0
        assert tidings("destination", "remove", created["id"]).exit_code == 3
        assert tidings("destination", "pause", created["id"]).exit_code == 2


def test_destination_letters_are_listed_and_replayed(tidings: Tidings, private: None, tmp_path: Path) -> None:
    with a_site() as site:
        created = add_webhook(tidings, site)
        with open_store(sqlite_url(tmp_path / ".tidings/store.db")) as store:
            store.journal.append([Publication("p-1", "application/json", b"{}")])
            store.notifications.commit_batch("test", 1, [MatchRow("p-1", "s-1", "ana", BECAUSE)])
            store.delivery_cursors.wake(10)
            [lane] = store.delivery_cursors.take(1, timedelta(minutes=1))
            letter = DeadDelivery(
                created["id"], "s-1", "ana", lane.host, 1, 1, False, "n-1", "status 500", 9, "2999"
            )
            assert store.delivery_cursors.finish([(lane, RunOutcome(1, 0, "status 500", letter=letter))]) == [
                True
            ]
        shown = tidings("destination", "dead-letters", created["id"])
        assert shown.stdout == "#1  s-1 1  9 attempts  status 500\n"
        assert (
            json.loads(tidings("destination", "dead-letters", created["id"], "--json").stdout)["message"]
            == "n-1"
        )
        absent = tidings("destination", "replay", created["id"], "7")
        assert (absent.exit_code, absent.stdout) == (3, "")
        assert absent.stderr.startswith(
            "#7  there is no such dead letter that waits; tidings destination dead-letters"
        )
        replayed = tidings("destination", "replay", created["id"], "1")
        assert replayed.exit_code == 0 and "1 dead letter to be retried" in replayed.stdout
        assert "is tried again" in tidings("destination", "dead-letters", created["id"]).stdout
        assert json.loads(tidings("destination", "replay", created["id"], "--json").stdout)["replayed"] == 0
        failing = tidings("destination", "list").stdout
        assert "failing: status 500" in failing


def test_serve_only_delivery_delivers_until_sigterm(tmp_path: Path, tidings: Tidings, private: None) -> None:
    """In a process of its own: notifications arrive while it runs, and it ends on SIGTERM."""
    with a_site() as site:
        created = add_webhook(tidings, site)
        serving = start("serve", "--only", "delivery", "--port", "0", cwd=tmp_path)
        try:
            listens_at(serving)
            with open_store(sqlite_url(tmp_path / ".tidings/store.db")) as store:
                store.journal.append([Publication("p-1", "application/json", b'{"price": 180}')])
                store.notifications.commit_batch("test", 1, [MatchRow("p-1", "s-1", "ana", BECAUSE)])
            [request] = site.wait_for(1)
            payload = Webhook(created["secret"]).verify(request.body, dict(request.headers))
            assert payload["data"]["publication"]["body"] == {"price": 180}
            serving.terminate()
            assert serving.wait(120) == 0
        finally:
            serving.kill()
            serving.communicate()
    assert json.loads(tidings("destination", "list", "--json").stdout)["delivered"] == 1


def test_destination_invalid_input_is_rejected(tidings: Tidings) -> None:
    inside = tidings("destination", "add", "webhook", "http://127.0.0.1/", "--as", "ana")
    assert (inside.exit_code, "private network" in inside.stderr) == (2, True)
    kind = tidings("destination", "add", "pigeon", "x", "--as", "ana")
    assert (kind.exit_code, "accepted: webhook, apprise, kafka" in kind.stderr) == (2, True)
    unknown = tidings("destination", "dead-letters", "d-1")
    assert (unknown.exit_code, "no such destination" in unknown.stderr) == (2, True)


def test_quiet_sets_shows_and_clears_quiet_hours(tidings: Tidings) -> None:
    assert "no quiet hours" in tidings("quiet", "--as", "ana").stderr
    result = tidings("quiet", "--as", "ana", "22:00-07:00", "--zone", "Europe/Berlin")
    assert result.stdout == "ana  quiet from 22:00 to 07:00 in Europe/Berlin\n"
    shown = json.loads(tidings("quiet", "--as", "ana", "--json").stdout)
    assert shown == {"subscriber": "ana", "from": "22:00", "to": "07:00", "zone": "Europe/Berlin"}
    for words in (("22:00",), ("22:00-07:00",), ("22:00-07:00", "--zone", "Mars/Olympus")):
        assert tidings("quiet", "--as", "ana", *words).exit_code == 2
    assert json.loads(tidings("quiet", "--as", "ana", "--off", "--json").stdout)["zone"] is None
