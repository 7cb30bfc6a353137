"""`tidings destination` and `tidings quiet`: made, listed, tested, replayed; what is wrong is said."""

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
    """Somebody allows what is on this machine."""
    monkeypatch.setenv("TIDINGS_DELIVERY__PRIVATE_CALLBACKS", "true")


def added(tidings: Tidings, site: Site, *more: str) -> dict[str, Any]:
    site.pages.setdefault("/", Response(204))
    done = tidings("destination", "add", "webhook", site.url("/"), "--as", "ana", "--json", *more)
    assert done.exit_code == 0, done.stderr
    found: dict[str, Any] = json.loads(done.stdout)
    return found


def test_made_tested_rotated_and_removed(tidings: Tidings, private: None) -> None:
    with a_site() as site:
        made = added(tidings, site, "--name", "phone")
        assert made["secret"].startswith("whsec_") and made["state"] == "active"
        listed = tidings("destination", "list", "--as", "ana", "--json").stdout
        assert made["secret"] not in listed
        assert json.loads(listed)["target"] == site.url("/") and json.loads(listed)["dead_letters"] == 0
        assert "no destinations" in tidings("destination", "list", "--as", "bo").stderr
        tested = tidings("destination", "test", made["id"])
        assert tested.exit_code == 0 and "status 204" in tested.stdout
        site.pages["/"] = Response(500, b"oh")
        failed = json.loads(tidings("destination", "test", made["id"], "--json").stdout)
        assert (failed["taken"], failed["status"], failed["problem"]) == (False, 500, "status 500: oh")
        rotated = json.loads(tidings("destination", "rotate", made["id"], "--json").stdout)
        tidings("destination", "test", made["id"])
        last = site.requests[-1]
        for secret in (made["secret"], rotated["secret"]):
            assert Webhook(secret).verify(last.body, dict(last.headers))["type"] == "tidings.test"
        assert "has ended" in tidings("destination", "rotate", made["id"], "--drop").stdout
        assert "paused" in tidings("destination", "pause", made["id"]).stdout
        assert "paused" in tidings("destination", "list").stdout
        assert "active" in tidings("destination", "resume", made["id"]).stdout
        assert tidings("destination", "remove", made["id"]).exit_code == 0
        assert tidings("destination", "remove", made["id"]).exit_code == 3
        assert tidings("destination", "pause", made["id"]).exit_code == 2


def test_dead_letters_are_listed_and_replayed(tidings: Tidings, private: None, tmp_path: Path) -> None:
    with a_site() as site:
        made = added(tidings, site)
        with open_store(sqlite_url(tmp_path / ".tidings/store.db")) as store:
            store.journal.append([Publication("p-1", "application/json", b"{}")])
            store.notifications.commit_batch("test", 1, [MatchRow("p-1", "s-1", "ana", BECAUSE)])
            store.delivery_cursors.wake(10)
            [lane] = store.delivery_cursors.take(1, timedelta(minutes=1))
            letter = DeadDelivery(
                made["id"], "s-1", "ana", lane.place, 1, 1, False, "n-1", "status 500", 9, "2999"
            )
            assert store.delivery_cursors.finish([(lane, RunOutcome(1, 0, "status 500", letter=letter))]) == [
                True
            ]
        shown = tidings("destination", "letters", made["id"])
        assert shown.stdout == "#1  s-1 1  9 attempts  status 500\n"
        assert json.loads(tidings("destination", "letters", made["id"], "--json").stdout)["message"] == "n-1"
        absent = tidings("destination", "replay", made["id"], "7")
        assert (absent.exit_code, absent.stdout) == (3, "")
        assert absent.stderr.startswith(
            "#7  there is no such dead letter that waits; tidings destination letters"
        )
        replayed = tidings("destination", "replay", made["id"], "1")
        assert replayed.exit_code == 0 and "1 dead letter to be retried" in replayed.stdout
        assert "is tried again" in tidings("destination", "letters", made["id"]).stdout
        assert json.loads(tidings("destination", "replay", made["id"], "--json").stdout)["replayed"] == 0
        failing = tidings("destination", "list").stdout
        assert "failing: status 500" in failing


def test_the_service_delivers_until_it_is_asked_to_end(
    tmp_path: Path, tidings: Tidings, private: None
) -> None:
    """Delivery alone, as a process of its own: what is told while it runs arrives, and it ends when it is asked to."""
    with a_site() as site:
        made = added(tidings, site)
        serving = start("serve", "--only", "delivery", "--port", "0", cwd=tmp_path)
        try:
            listens_at(serving)
            with open_store(sqlite_url(tmp_path / ".tidings/store.db")) as store:
                store.journal.append([Publication("p-1", "application/json", b'{"price": 180}')])
                store.notifications.commit_batch("test", 1, [MatchRow("p-1", "s-1", "ana", BECAUSE)])
            [request] = site.wait_for(1)
            told = Webhook(made["secret"]).verify(request.body, dict(request.headers))
            assert told["data"]["publication"]["body"] == {"price": 180}
            serving.terminate()
            assert serving.wait(120) == 0
        finally:
            serving.kill()
            serving.communicate()
    assert json.loads(tidings("destination", "list", "--json").stdout)["delivered"] == 1


def test_what_is_wrong_is_said(tidings: Tidings) -> None:
    inside = tidings("destination", "add", "webhook", "http://127.0.0.1/", "--as", "ana")
    assert (inside.exit_code, "private network" in inside.stderr) == (2, True)
    kind = tidings("destination", "add", "pigeon", "x", "--as", "ana")
    assert (kind.exit_code, "accepted: webhook, apprise, kafka" in kind.stderr) == (2, True)
    unknown = tidings("destination", "letters", "d-1")
    assert (unknown.exit_code, "no such destination" in unknown.stderr) == (2, True)


def test_quiet_hours(tidings: Tidings) -> None:
    assert "no quiet hours" in tidings("quiet", "--as", "ana").stderr
    said = tidings("quiet", "--as", "ana", "22:00-07:00", "--zone", "Europe/Berlin")
    assert said.stdout == "ana  quiet from 22:00 to 07:00 in Europe/Berlin\n"
    shown = json.loads(tidings("quiet", "--as", "ana", "--json").stdout)
    assert shown == {"subscriber": "ana", "from": "22:00", "to": "07:00", "zone": "Europe/Berlin"}
    for words in (("22:00",), ("22:00-07:00",), ("22:00-07:00", "--zone", "Mars/Olympus")):
        assert tidings("quiet", "--as", "ana", *words).exit_code == 2
    assert json.loads(tidings("quiet", "--as", "ana", "--off", "--json").stdout)["zone"] is None
