"""`tidings feeds` tells where the feeds are, and `tidings serve` serves them there."""

from __future__ import annotations

import json
import re
import signal
from pathlib import Path

import feedparser
import httpx
import pytest

from tests.support.processes.command_line import Tidings, listens_at, start
from tests.support.servers.provider_server import SCHEMA
from tidings.store.database import sqlite_url
from tidings.store.encoding import MatchRow
from tidings.store.store import open_store

ADDRESS = re.compile(r"http://127\.0\.0\.1:8080/(feeds|opml)/[A-Za-z0-9_-]{32}")


@pytest.fixture
def subscribed(tidings: Tidings) -> Tidings:
    for id in ("s-1", "s-2"):
        assert tidings("subscribe", "--as", "cy", "--id", id, "price < 200").exit_code == 0
    return tidings


def test_feeds_are_listed_the_same_each_time(subscribed: Tidings) -> None:
    done = subscribed("feeds", "--as", "cy")
    rows = [re.split(" {2,}", row) for row in done.stdout.splitlines()]
    assert len({row.index("http") for row in done.stdout.splitlines()}) == 1, "one below the other"
    assert len({row.index("(") for row in done.stdout.splitlines()}) == 1
    assert [(name, formats) for name, _, formats in rows] == [
        ("s-1", "(Atom, RSS, JSON)"),
        ("s-2", "(Atom, RSS, JSON)"),
        ("all", "(OPML)"),
    ]
    assert all(ADDRESS.fullmatch(address) for _, address, _ in rows)
    assert len({address for _, address, _ in rows}) == 3
    assert subscribed("feeds", "--as", "cy").stdout == done.stdout


def test_an_address_is_revoked_alone(subscribed: Tidings) -> None:
    before = subscribed("feeds", "--as", "cy").stdout.splitlines()
    after = subscribed("feeds", "--as", "cy", "--revoke", "s-1").stdout.splitlines()
    assert [a == b for a, b in zip(before, after, strict=True)] == [False, True, True]
    last = subscribed("feeds", "--as", "cy", "--revoke-list").stdout.splitlines()
    assert [a == b for a, b in zip(after, last, strict=True)] == [True, True, False]


def test_only_what_is_ones_own_is_revoked(subscribed: Tidings) -> None:
    before = subscribed("feeds", "--as", "cy").stdout
    refused = subscribed("feeds", "--as", "bo", "--revoke", "s-1")
    assert refused.exit_code == 2 and "bo has no subscription 's-1'" in refused.stderr
    assert subscribed("feeds", "--as", "cy").stdout == before


def test_addresses_for_machines_and_below_another_address(subscribed: Tidings) -> None:
    done = subscribed("feeds", "--as", "cy", "--json", "--public-url", "https://tidings.example.org/a/")
    records = [json.loads(row) for row in done.stdout.splitlines()]
    assert [(one["kind"], one["subscription"]) for one in records] == [
        ("feed", "s-1"),
        ("feed", "s-2"),
        ("opml", None),
    ]
    assert all(one["address"].startswith("https://tidings.example.org/a/") for one in records)


@pytest.mark.parametrize(
    ("settings", "address"),
    [
        ('public_url = "https://tidings.example.org"', "https://tidings.example.org/feeds/"),
        ('host = "0.0.0.0"\nport = 8093', "http://127.0.0.1:8093/feeds/"),
        ('host = "::1"', "http://[::1]:8080/feeds/"),
    ],
)
def test_addresses_are_those_that_the_settings_say(subscribed: Tidings, settings: str, address: str) -> None:
    Path(".tidings/tidings.toml").write_text(settings)
    assert subscribed("feeds", "--as", "cy").stdout.startswith(f"s-1  {address}")


@pytest.mark.parametrize(
    "url", ["nonsense", "ftp://x.example", "http://", "http://x.example/?a=1", "http://[", "http://x y"]
)
def test_what_is_no_public_address_is_refused(subscribed: Tidings, url: str) -> None:
    done = subscribed("feeds", "--as", "cy", "--public-url", url)
    assert done.exit_code == 2 and "no address that readers could use" in done.stderr


def test_a_password_in_the_public_address_would_stand_in_every_feed(tidings: Tidings) -> None:
    for url in ("https://ann:secret@example.org", "ftp://ann:secret@example.org"):
        done = tidings("feeds", "--as", "cy", "--public-url", url)
        assert done.exit_code == 2 and "secret" not in done.output


def test_nobody_has_no_feeds(tidings: Tidings) -> None:
    done = tidings("feeds", "--as", "nobody")
    assert (done.exit_code, done.stdout) == (0, "") and "no subscriptions for nobody" in done.stderr


def test_an_address_of_another_home_is_not_made_up(subscribed: Tidings, tmp_path: Path) -> None:
    subscribed("feeds", "--as", "cy")
    store = f"sqlite:///{tmp_path}/.tidings/store.db"
    done = subscribed("feeds", "--as", "cy", "--store", store, "--home", "elsewhere")
    assert "http" not in done.stdout and "copy its feeds.key here" in done.stdout


def test_listening_everywhere_needs_a_public_address(tidings: Tidings) -> None:
    done = tidings("serve", "--host", "0.0.0.0")
    assert done.exit_code == 2 and "--public-url" in done.stderr


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_serve_until_a_signal_comes(subscribed: Tidings, tmp_path: Path, number: signal.Signals) -> None:
    """A process of its own, as a user starts it: a reader follows the feed, and the end is clean."""
    with open_store(sqlite_url(tmp_path / ".tidings" / "store.db")) as store:
        store.notifications.commit_batch("test", 0, [MatchRow("p-1", "s-1", "cy")])
    server = start("serve", "--port", "0", "--only", "api", "--only", "delivery", cwd=tmp_path)
    try:
        address = listens_at(server)
        assert f"{address}/browse" in httpx.get(address).text
        listed = subscribed("feeds", "--as", "cy", "--public-url", address).stdout.split()
        feed = feedparser.parse(listed[1])
        assert (feed.bozo, feed.status, [entry.title for entry in feed.entries]) == (
            False,
            200,
            ["Publication p-1"],
        )
        assert httpx.get(f"{listed[1]}.json").json()["items"][0]["title"] == "Publication p-1"
        taken = subscribed("serve", "--port", address.rpartition(":")[2])
        assert (
            taken.exit_code == 4
            and "received Address already in use; it may be served already" in taken.stderr
        )
    finally:
        server.send_signal(number)
        _, errors = server.communicate(timeout=60)
    assert server.returncode == (130 if number == signal.SIGINT else 0)
    assert errors == ""


def test_feeds_of_somebody_with_rules_only_says_that_rules_have_none(tidings: Tidings) -> None:
    assert tidings("provider", "schema", str(SCHEMA)).exit_code == 0
    rule = "search CycleProvider c register c where c.serverPort > 5"
    assert tidings("subscribe", "--as", "ana", "--language", "rules", rule).exit_code == 0
    none = "the rules of ana have no feeds: tidings notifications prints their notifications\n"
    done = tidings("feeds", "--as", "ana")
    assert (done.stdout, done.stderr) == ("", none)
    assert tidings("subscribe", "--as", "ana", "--id", "s-1", "price < 200").exit_code == 0
    both = tidings("feeds", "--as", "ana")
    assert both.stdout.startswith("s-1") and both.stderr == none
    assert tidings("feeds", "--as", "bo").stderr == "no subscriptions for bo\n"
