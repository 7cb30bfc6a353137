"""Replication of providers on the command line: `provider follow`, `lead` and `status`, and `serve --follow`."""

from __future__ import annotations

import json
import signal
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest

from tests.support.processes.command_line import Tidings, listens_at, start
from tests.support.servers.ports import free_port
from tests.support.servers.provider_server import DOC, provided, register, with_schema
from tidings.store.database import sqlite_url
from tidings.store.store import Store, open_store


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    with open_store(sqlite_url(tmp_path / "leader.db")) as opened:
        yield opened


@pytest.fixture
def leader(store: Store) -> Iterator[httpx.Client]:
    with provided(store) as client:
        register(with_schema(client))
        yield client


def url(client: httpx.Client) -> str:
    return str(client.base_url).rstrip("/")


def test_follow_once_applies_entries_and_makes_read_only(tidings: Tidings, leader: httpx.Client) -> None:
    result = tidings("provider", "follow", url(leader), "--once")
    assert result.stdout == "position  2: 2 entries applied\n"
    assert DOC in tidings("provider", "documents").stdout
    result = tidings("provider", "follow", "--once", "--json")
    assert json.loads(result.stdout) == {"position": 2, "before": 2}
    refused = tidings("provider", "remove", DOC)
    assert refused.exit_code == 2 and "follows another one" in refused.stderr


def test_follow_with_shared_log_reads_it(
    tidings: Tidings, store: Store, leader: httpx.Client, tmp_path: Path
) -> None:
    """Any store can hold the shared log; here it is that of a provider."""
    log = sqlite_url(tmp_path / "leader.db")
    assert "2 entries applied" in tidings("provider", "follow", "--once", "--metadata-log", log).stdout
    assert DOC in tidings("provider", "documents").stdout
    again = tidings("provider", "follow", "--once")
    assert again.exit_code == 2 and "--metadata-log" in again.stderr
    own = tidings("provider", "follow", "--once", "--metadata-log", sqlite_url(Path(".tidings/store.db")))
    assert own.exit_code == 2 and "own store" in own.stderr


def test_lead_ends_following(tidings: Tidings, leader: httpx.Client) -> None:
    tidings("provider", "follow", url(leader), "--once")
    assert tidings("provider", "lead").stdout == f"position  2: does not follow {url(leader)} any more\n"
    assert tidings("provider", "remove", DOC).exit_code == 0
    assert json.loads(tidings("provider", "lead", "--json").stdout) == {"followed": None, "position": 3}
    refused = tidings("provider", "follow", url(leader), "--once")
    assert refused.exit_code == 2 and "differs from the one to follow" in refused.stderr


def test_status_of_several_providers_shows_lag(tidings: Tidings, leader: httpx.Client) -> None:
    tidings("provider", "follow", url(leader), "--once")
    leader.delete("/metadata/documents", params={"uri": DOC})
    with open_store(sqlite_url(Path(".tidings/store.db"))) as store, provided(store) as second:
        result = tidings("provider", "status", url(leader), url(second), "--json")
    first, behind = map(json.loads, result.stdout.splitlines())
    assert (first["position"], first["lag"], first["leader"]) == (3, 0, None)
    assert (behind["position"], behind["lag"], behind["leader"]) == (2, 1, url(leader))


def test_status_of_unreachable_provider_is_reported(tidings: Tidings, leader: httpx.Client) -> None:
    result = tidings("provider", "status", url(leader), "http://127.0.0.1:1")
    assert (
        result.exit_code == 3
        and "no answer" in result.stdout
        and "is `tidings serve` running there" in result.stderr
    )


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("follow",), "does not follow another one yet"),
        (("follow", "--once"), "does not follow another one yet"),
        (("follow", "nowhere", "--once"), "not an address of a provider"),
        (("status", "nowhere"), "not an address of a provider"),
        (("follow", "http://127.0.0.1:1", "--metadata-log", "sqlite:///log.db"), "not both"),
    ],
)
def test_follow_invalid_leader_is_rejected(tidings: Tidings, words: tuple[str, ...], message: str) -> None:
    result = tidings("provider", *words)
    assert result.exit_code == 2 and message in result.stderr


@pytest.mark.parametrize("more", [(), ("--once",)])
def test_follow_own_address_is_rejected(tidings: Tidings, more: tuple[str, ...]) -> None:
    tidings("provider", "status")
    with open_store(sqlite_url(Path(".tidings/store.db"))) as store, provided(store) as here:
        result = tidings("provider", "follow", url(here), *more)
    assert result.exit_code == 2 and "cannot follow itself" in result.stderr
    assert "tidings provider lead" in result.stderr


@pytest.mark.parametrize("own", ["http://localhost:PORT/", "http://127.0.0.1:PORT", "http://example.org"])
def test_serve_follow_own_address_is_rejected(tidings: Tidings, own: str) -> None:
    port = free_port()
    words = ("--port", str(port), "--public-url", "http://example.org/")
    result = tidings("serve", *words, "--follow", own.replace("PORT", str(port)))
    assert result.exit_code == 2 and "cannot follow itself" in result.stderr


def test_follow_unreachable_leader_fails(tidings: Tidings) -> None:
    result = tidings("provider", "follow", "http://127.0.0.1:1", "--once")
    assert result.exit_code == 1 and "is `tidings serve` running there?" in result.stderr


def test_serve_follow_serves_replicated_log(leader: httpx.Client, tmp_path: Path) -> None:
    words = ("serve", "--only", "api", "--port", "0", "--home", "second", "--follow", url(leader))
    with start(*words, cwd=tmp_path) as process:
        here = listens_at(process)
        log = httpx.get(f"{here}/metadata/log", params={"after": 1, "wait": 30}, timeout=60).json()
        assert [each["position"] for each in log["entries"]] == [2]
        process.send_signal(signal.SIGTERM)
        assert process.wait(30) == 0


def test_follow_ends_on_sigint(leader: httpx.Client, tmp_path: Path) -> None:
    with start("provider", "follow", url(leader), cwd=tmp_path) as process:
        assert process.stderr is not None and "following" in process.stderr.readline()
        process.send_signal(signal.SIGINT)
        assert process.wait(30) == 130
