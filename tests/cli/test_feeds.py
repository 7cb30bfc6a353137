"""`tidings feeds` prints the addresses of feeds, and `tidings serve` serves them there."""

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
def with_subscriptions(tidings: Tidings) -> Tidings:
    for id in ("s-1", "s-2"):
        assert tidings("subscribe", "--as", "cy", "--id", id, "price < 200").exit_code == 0
    return tidings


def test_feeds_list_is_stable_and_aligned(with_subscriptions: Tidings) -> None:
    result = with_subscriptions("feeds", "--as", "cy")
    rows = [re.split(" {2,}", row) for row in result.stdout.splitlines()]
    assert len({row.index("http") for row in result.stdout.splitlines()}) == 1, "columns are aligned"
    assert len({row.index("(") for row in result.stdout.splitlines()}) == 1
    assert [(name, formats) for name, _, formats in rows] == [
        ("s-1", "(Atom, RSS, JSON)"),
        ("s-2", "(Atom, RSS, JSON)"),
        ("all", "(OPML)"),
    ]
    assert all(ADDRESS.fullmatch(address) for _, address, _ in rows)
    assert len({address for _, address, _ in rows}) == 3
    assert with_subscriptions("feeds", "--as", "cy").stdout == result.stdout


def test_feeds_revoke_changes_one_address_only(with_subscriptions: Tidings) -> None:
    before = with_subscriptions("feeds", "--as", "cy").stdout.splitlines()
    after = with_subscriptions("feeds", "--as", "cy", "--revoke", "s-1").stdout.splitlines()
    assert [a == b for a, b in zip(before, after, strict=True)] == [False, True, True]
    last = with_subscriptions("feeds", "--as", "cy", "--revoke-list").stdout.splitlines()
    assert [a == b for a, b in zip(after, last, strict=True)] == [True, True, False]


def test_feeds_revoke_of_other_subscriber_is_rejected(with_subscriptions: Tidings) -> None:
    before = with_subscriptions("feeds", "--as", "cy").stdout
    refused = with_subscriptions("feeds", "--as", "bo", "--revoke", "s-1")
    assert refused.exit_code == 2 and "bo has no subscription 's-1'" in refused.stderr
    assert with_subscriptions("feeds", "--as", "cy").stdout == before


def test_feeds_json_uses_public_url(with_subscriptions: Tidings) -> None:
    result = with_subscriptions(
        "feeds", "--as", "cy", "--json", "--public-url", "https://tidings.example.org/a/"
    )
    records = [json.loads(row) for row in result.stdout.splitlines()]
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
def test_feeds_addresses_follow_settings(with_subscriptions: Tidings, settings: str, address: str) -> None:
    Path(".tidings/tidings.toml").write_text(settings)
    assert with_subscriptions("feeds", "--as", "cy").stdout.startswith(f"s-1  {address}")


@pytest.mark.parametrize(
    "url", ["nonsense", "ftp://x.example", "http://", "http://x.example/?a=1", "http://[", "http://x y"]
)
def test_feeds_invalid_public_url_is_rejected(with_subscriptions: Tidings, url: str) -> None:
    result = with_subscriptions("feeds", "--as", "cy", "--public-url", url)
    assert result.exit_code == 2 and "no address that readers could use" in result.stderr


def test_feeds_public_url_with_password_is_rejected(tidings: Tidings) -> None:
    for url in ("https://ann:secret@example.org", "ftp://ann:secret@example.org"):
        result = tidings("feeds", "--as", "cy", "--public-url", url)
        assert result.exit_code == 2 and "secret" not in result.output


def test_feeds_without_subscriptions_states_so(tidings: Tidings) -> None:
    result = tidings("feeds", "--as", "nobody")
    assert (result.exit_code, result.stdout) == (0, "") and "no subscriptions for nobody" in result.stderr


def test_feeds_with_key_of_other_home_prints_no_address(with_subscriptions: Tidings, tmp_path: Path) -> None:
    with_subscriptions("feeds", "--as", "cy")
    store = f"sqlite:///{tmp_path}/.tidings/store.db"
    result = with_subscriptions("feeds", "--as", "cy", "--store", store, "--home", "elsewhere")
    assert "http" not in result.stdout and "copy its feeds.key here" in result.stdout


def test_serve_on_all_interfaces_requires_public_url(tidings: Tidings) -> None:
    result = tidings("serve", "--host", "0.0.0.0")
    assert result.exit_code == 2 and "--public-url" in result.stderr


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_serve_serves_feeds_and_ends_on_signal(
    with_subscriptions: Tidings, tmp_path: Path, number: signal.Signals
) -> None:
    """In a process of its own: a reader follows the feed, and the shutdown is clean."""
    with open_store(sqlite_url(tmp_path / ".tidings" / "store.db")) as store:
        store.notifications.commit_batch("test", 0, [MatchRow("p-1", "s-1", "cy")])
    server = start("serve", "--port", "0", "--only", "api", "--only", "delivery", cwd=tmp_path)
    try:
        address = listens_at(server)
        assert f"{address}/browse" in httpx.get(address).text
        listed = with_subscriptions("feeds", "--as", "cy", "--public-url", address).stdout.split()
        feed = feedparser.parse(listed[1])
        assert (feed.bozo, feed.status, [entry.title for entry in feed.entries]) == (
            False,
            200,
            ["Publication p-1"],
        )
        assert httpx.get(f"{listed[1]}.json").json()["items"][0]["title"] == "Publication p-1"
        second = with_subscriptions("serve", "--port", address.rpartition(":")[2])
        assert (
            second.exit_code == 4
            and "received Address already in use; it may be served already" in second.stderr
        )
    finally:
        server.send_signal(number)
        _, errors = server.communicate(timeout=60)
    assert server.returncode == (130 if number == signal.SIGINT else 0)
    assert errors == ""


def test_feeds_of_subscriber_with_rules_only_explains_absence(tidings: Tidings) -> None:
    assert tidings("provider", "schema", str(SCHEMA)).exit_code == 0
    rule = "search CycleProvider c register c where c.serverPort > 5"
    assert tidings("subscribe", "--as", "ana", "--language", "rules", rule).exit_code == 0
    none = "the rules of ana have no feeds: tidings notifications prints their notifications\n"
    result = tidings("feeds", "--as", "ana")
    assert (result.stdout, result.stderr) == ("", none)
    assert tidings("subscribe", "--as", "ana", "--id", "s-1", "price < 200").exit_code == 0
    both = tidings("feeds", "--as", "ana")
    assert both.stdout.startswith("s-1") and both.stderr == none
    assert tidings("feeds", "--as", "bo").stderr == "no subscriptions for bo\n"
