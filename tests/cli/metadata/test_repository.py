"""`tidings repository` with providers on real servers that are absent, restored or replaced, and with kills."""

from __future__ import annotations

import json
import shutil
import signal
import subprocess
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx
import pytest

from tests.support.processes.command_line import Tidings, start
from tests.support.servers.provider_server import EXAMPLES, LARGE, provided
from tidings.metadata.provider.provider import DocumentSource, Provider
from tidings.metadata.repository.repository import Repository
from tidings.metadata.resources import strong_closure
from tidings.metadata.rules.rule_parser import parse_rule
from tidings.metadata.rules.semantics import evaluate_rule
from tidings.store.database import sqlite_url
from tidings.store.store import open_store

ALL = "search CycleProvider c register c"
INFOS = "search ServerInformation s register s"
TURTLE = "text/turtle"


def at(number: int) -> str:
    return f"http://example.org/{number}.rdf"


def server(number: int, memory: int = 92, info: str = "#info") -> DocumentSource:
    """Return a document of a server with its information, or with that of another server."""
    body = f"""@prefix s: <http://example.org/servers#> .
        <#host> a s:CycleProvider ; s:serverPort {number} ; s:serverInformation <{info}> .
        <#info> a s:ServerInformation ; s:memory {memory} ."""
    return DocumentSource(at(number), body.encode(), TURTLE)


@contextmanager
def provider_at(file: Path) -> Iterator[Provider]:
    with open_store(sqlite_url(file)) as store:
        provider = Provider(store)
        if store.metadata.schema() is None:
            provider.load_schema((EXAMPLES / "schema.ttl").read_bytes(), TURTLE)
        yield provider


@contextmanager
def serving(file: Path, port: int = 0) -> Iterator[str]:
    with open_store(sqlite_url(file)) as store, provided(store, port=port) as client:
        yield str(client.base_url).rstrip("/")


def port_of(address: str) -> int:
    return int(address.rpartition(":")[2])


class Running:
    """A repository as a process, and the JSON lines that it prints."""

    def __init__(self, folder: Path, *words: str) -> None:
        self.process = start("repository", *words, "--json", cwd=folder, stderr=subprocess.DEVNULL)
        self.news: list[dict[str, Any]] = []

    def until(self, condition: Callable[[dict[str, Any]], bool]) -> dict[str, Any]:
        """Return the first line that fulfils a condition."""
        assert self.process.stdout is not None
        for line in self.process.stdout:
            self.news.append(json.loads(line))
            if condition(self.news[-1]):
                return self.news[-1]
        raise AssertionError(f"the process ended before; it printed {self.news}")

    def until_at(self, position: int) -> dict[str, Any]:
        return self.until(lambda news: news.get("position", 0) >= position and news["event"] != "cutoff")

    def __enter__(self) -> Running:
        return self

    def __exit__(self, *failure: object) -> None:
        self.process.terminate()
        self.process.communicate()


def expected(file: Path, rules: dict[str, str]) -> dict[str, dict[str, Any]]:
    """Return what a repository must hold, computed from scratch: results of rules and their strong closure."""
    with provider_at(file) as provider, open_store(sqlite_url(file)) as store:
        uris = [uri for uri, _ in provider.documents()]
        every = {each.uri: each for uri in uris for each in store.metadata.resources(uri)}
        trees = {name: parse_rule(text) for name, text in rules.items()}
        results = [evaluate_rule(tree, every.values(), provider.schema, trees) for tree in trees.values()]
        closure = strong_closure(set[str]().union(*results), every, provider.schema)
        return {uri: dict(every[uri].values) for uri in closure}


def stored_resources(folder: Path) -> dict[str, dict[str, Any]]:
    with Repository(folder / ".tidings-repository") as repository:
        return {each.uri: dict(each.values) for each in repository.cache.resources()}


def write_rules(folder: Path, **rules: str) -> dict[str, str]:
    (folder / "rules.txt").write_text("".join(f"{name}: {text}\n" for name, text in rules.items()))
    return rules


def once(tidings: Tidings, *addresses: str) -> list[dict[str, Any]]:
    options = [word for address in addresses for word in ("--provider", address)]
    result = tidings("repository", *options, "--rules", "rules.txt", "--once", "--json")
    assert result.exit_code == 0, result.stderr
    return [json.loads(line) for line in result.stdout.splitlines()]


def test_repository_killed_while_catching_up_recovers(tidings: Tidings, tmp_path: Path) -> None:
    file, rules = tmp_path / "p.db", write_rules(tmp_path, large=LARGE, infos=INFOS)
    with provider_at(file) as provider:
        provider.register_many([server(number) for number in range(3)])
    with serving(file) as address:
        once(tidings, address)
        with provider_at(file) as provider:
            provider.register_many([server(number, info=f"{at(number + 1)}#info") for number in range(60)])
            provider.register_many([server(number, memory=number) for number in range(0, 60, 2)])
        for kills in (1, 3, 7):
            options = ("--provider", address, "--rules", "rules.txt", "--batch", "5")
            with Running(tmp_path, *options) as running:
                for _ in range(kills):
                    running.until(lambda news: news["event"] == "followed")
                running.process.send_signal(signal.SIGKILL)
            assert stored_resources(tmp_path).items() != expected(file, rules).items()
        news = once(tidings, address)
    assert {each["event"] for each in news} == {"begins", "connected", "followed"}
    assert stored_resources(tmp_path) == expected(file, rules)


def test_repository_killed_during_refresh_has_all_or_nothing(tidings: Tidings, tmp_path: Path) -> None:
    file, rules = tmp_path / "p.db", write_rules(tmp_path, large=LARGE)
    with provider_at(file) as provider:
        provider.register_many([server(number, info=f"{at(number + 1)}#info") for number in range(200)])
    with serving(file) as address:
        for _ in range(3):
            with Running(tmp_path, "--provider", address, "--rules", "rules.txt") as running:
                running.until(lambda news: news["event"] == "begins")
                running.process.send_signal(signal.SIGKILL)
            assert stored_resources(tmp_path) in ({}, expected(file, rules))
        once(tidings, address)
    assert stored_resources(tmp_path) == expected(file, rules) != {}


def test_repository_reconnects_when_provider_returns(tidings: Tidings, tmp_path: Path) -> None:
    file, rules = tmp_path / "p.db", write_rules(tmp_path, large=LARGE)
    with provider_at(file) as provider:
        provider.register_many([server(1), server(2, memory=16)])
    with serving(file) as address:
        port = port_of(address)
    with Running(tmp_path, "--provider", address, "--rules", "rules.txt", "--port", "0") as running:
        answers = running.until(lambda news: news["event"] == "answers")["address"]
        assert running.until(lambda news: news["event"] == "cutoff")["resources"] == 0
        with serving(file, port):
            assert running.until_at(2)["because"] == "this is the first time"
            assert stored_resources(tmp_path) == expected(file, rules)
            status = httpx.get(f"{answers}/status").json()
            assert (status["following"], status["position"], status["rules"]) == (address, 3, {"large": 1})
        assert running.until(lambda news: news["event"] == "cutoff")["resources"] == 2
        with provider_at(file) as provider:
            provider.register_many([server(1, memory=16), server(2, memory=128), server(3)])
        status = httpx.get(f"{answers}/status").json()
        assert (status["following"], status["resources"]) == (None, 2) and "respond" in status["problem"]
        query = "search CycleProvider c where c.serverInformation.memory > 64 select c.serverPort"
        answer = httpx.get(f"{answers}/query", params={"query": query})
        assert answer.status_code == 200 and answer.json()["rows"] == [[1]]
        with serving(file, port):
            running.until(lambda news: news["event"] == "followed")
            assert stored_resources(tmp_path) == expected(file, rules)
        running.process.send_signal(signal.SIGINT)
        assert running.process.wait() == 130


def test_repository_refreshes_when_provider_is_restored_from_backup(tidings: Tidings, tmp_path: Path) -> None:
    file, rules = tmp_path / "p.db", write_rules(tmp_path, all=ALL)
    with provider_at(file) as provider:
        provider.register_many([server(1)])
    with serving(file) as address:
        once(tidings, address)
    port = port_of(address)
    shutil.copy(file, tmp_path / "older.db")
    with provider_at(file) as provider:
        provider.register_many([server(1, memory=7), server(2)])
    with serving(file, port):
        assert [news["event"] for news in once(tidings, address)] == ["begins", "connected", "followed"]
    shutil.copy(tmp_path / "older.db", file)
    with serving(file, port):
        assert "restored" in once(tidings, address)[-1]["because"]
    assert stored_resources(tmp_path) == expected(file, rules) and len(stored_resources(tmp_path)) == 2
    shutil.copy(tmp_path / "older.db", file)
    with provider_at(file) as provider:
        for number in range(3, 6):  # its log is longer than before, with other entries
            provider.register_many([server(number)])
    with serving(file, port):
        once(tidings, address)
    assert stored_resources(tmp_path) == expected(file, rules) and len(stored_resources(tmp_path)) == 8


def test_repository_fails_over_to_provider_that_caught_up(tidings: Tidings, tmp_path: Path) -> None:
    one, two, rules = tmp_path / "one.db", tmp_path / "two.db", write_rules(tmp_path, large=LARGE)
    with provider_at(one) as leader:
        leader.register_many([server(1), server(2)])
        entries = leader.log.read(0, 100)
        with open_store(sqlite_url(two)) as store:
            store.replication.follow("http://one.example.org")
            Provider(store).apply(entries[:2])
        leader.register_many([server(2, memory=16), server(3)])
        entries = leader.log.read(0, 100)
    with serving(two) as second:
        with serving(one) as first:
            options = ("--provider", first, "--provider", second, "--rules", "rules.txt")
            running = Running(tmp_path, *options)
            assert running.until_at(5)["link"] == first
        with running:
            behind = running.until(lambda news: news["event"] == "cutoff" and news["link"] == second)
            assert "position 2, but the repository already at 5" in behind["problem"]
            assert stored_resources(tmp_path) == expected(one, rules)
            with open_store(sqlite_url(two)) as store:
                Provider(store).apply(entries)
                refreshed = running.until(lambda news: news["event"] == "refreshed")
                assert (
                    refreshed["link"] == second
                    and refreshed["because"] == "it is another provider than before"
                )
                assert refreshed["applied"] == {"new": 0, "changed": 0, "gone": 0}
                with provider_at(one) as leader:
                    leader.register_many([server(1, memory=16), server(4)])
                    Provider(store).apply(leader.log.read(5, 100))
            running.until(lambda news: news["event"] == "followed")
            assert stored_resources(tmp_path) == expected(one, rules) == expected(two, rules)


def test_repository_fails_over_to_provider_ahead_of_it(tidings: Tidings, tmp_path: Path) -> None:
    one, two, rules = tmp_path / "one.db", tmp_path / "two.db", write_rules(tmp_path, large=LARGE)
    with provider_at(one) as leader:
        leader.register_many([server(1), server(2)])
        with serving(one) as first:
            once(tidings, first)
        leader.register_many([server(2, memory=16), server(3)])
        with open_store(sqlite_url(two)) as store:
            store.replication.follow("http://one.example.org")
            Provider(store).apply(leader.log.read(0, 100))
    with serving(two) as second:
        news = once(tidings, first, second)
    assert (news[-1]["link"], news[-1]["applied"]) == (second, {"new": 2, "changed": 0, "gone": 2})
    assert stored_resources(tmp_path) == expected(two, rules)


def test_repository_removed_rule_removes_its_resources_only(tidings: Tidings, tmp_path: Path) -> None:
    file = tmp_path / "p.db"
    write_rules(tmp_path, large=LARGE, first="search CycleProvider c register c where c.serverPort = 1")
    with provider_at(file) as provider:
        provider.register_many([server(1), server(2, info=f"{at(1)}#info"), server(3), server(4, memory=16)])
    with serving(file) as address:
        once(tidings, address)
        assert stored_resources(tmp_path).keys() == {
            f"{at(1)}#host",
            f"{at(1)}#info",
            f"{at(2)}#host",
            f"{at(3)}#host",
            f"{at(3)}#info",
        }
        first = write_rules(tmp_path, first="search CycleProvider c register c where c.serverPort = 1")
        assert once(tidings, address)[-1]["applied"] == {"new": 0, "changed": 0, "gone": 3}
        assert stored_resources(tmp_path).keys() == {f"{at(1)}#host", f"{at(1)}#info"}
        assert stored_resources(tmp_path) == expected(file, first)
        other = write_rules(tmp_path, first="search CycleProvider c register c where c.serverPort = 2")
        assert once(tidings, address)[-1]["applied"] == {"new": 1, "changed": 0, "gone": 1}
        assert stored_resources(tmp_path).keys() == {f"{at(2)}#host", f"{at(1)}#info"}
        assert stored_resources(tmp_path) == expected(file, other)
        write_rules(tmp_path)
        once(tidings, address)
        assert stored_resources(tmp_path) == {}
        assert tidings("repository", "leave", address).exit_code == 0
    with provider_at(file) as provider:
        assert provider.rules() == ()


def test_two_repositories_may_share_rule_names(tidings: Tidings, tmp_path: Path) -> None:
    file = tmp_path / "p.db"
    with provider_at(file) as provider:
        provider.register_many([server(1), server(2)])
    with serving(file) as address:
        for number in (1, 2):
            write_rules(tmp_path, mine=f"{ALL} where c.serverPort = {number}")
            options = ("--provider", address, "--rules", "rules.txt", "--once", "--home", f"r{number}")
            assert tidings("repository", *options).exit_code == 0
            listed = tidings("repository", "list", "CycleProvider", "--home", f"r{number}").stdout
            assert listed == f"{at(number)}#host  CycleProvider  rule mine registers it\n"


def test_repository_local_documents_shadow_provider(tidings: Tidings, tmp_path: Path) -> None:
    file = tmp_path / "p.db"
    write_rules(tmp_path, all=ALL)
    (tmp_path / "mine.ttl").write_bytes(server(1, memory=1).body)
    with provider_at(file) as provider:
        provider.register_many([server(1)])
    refused = tidings("repository", "register", "--local", at(9), "mine.ttl")
    assert refused.exit_code == 4 and "no repository here" in refused.stderr
    with serving(file) as address:
        once(tidings, address)
        assert tidings("repository", "register", at(9), "mine.ttl").exit_code == 2
        assert tidings("repository", "register", "--local", at(9), "mine.ttl").exit_code == 0
        assert tidings("repository", "register", "--local", at(1), "mine.ttl").exit_code == 0
        once(tidings, address)
        assert (
            stored_resources(tmp_path)[f"{at(1)}#info"]
            == stored_resources(tmp_path)[f"{at(9)}#info"]
            == {"memory": (1,)}
        )
        assert "because  it is local" in tidings("repository", "show", f"{at(1)}#host").stdout
        status = json.loads(tidings("repository", "status", "--json").stdout)
        assert (status["resources"], status["local"]) == (4, 4)
        assert [(each["uri"], each["shadows"]) for each in status["documents"]] == [
            (at(1), True),
            (at(9), False),
        ]
        write_rules(tmp_path)
        once(tidings, address)
        assert stored_resources(tmp_path).keys() == {
            f"{at(n)}#{name}" for n in (1, 9) for name in ("host", "info")
        }
        write_rules(tmp_path, all=ALL)
        for number in (1, 9):
            assert tidings("repository", "remove", at(number)).exit_code == 0
        assert tidings("repository", "remove", at(9)).exit_code == 3
        once(tidings, address)
        assert (
            stored_resources(tmp_path)[f"{at(1)}#info"] == {"memory": (92,)}
            and len(stored_resources(tmp_path)) == 2
        )
    with provider_at(file) as provider:
        assert [uri for uri, _ in provider.documents()] == [at(1)]


@pytest.mark.parametrize(
    "words", [("status",), ("list",), ("show", "a:b"), ("remove", "a:b"), ("leave", "http://127.0.0.1:1")]
)
def test_repository_commands_without_repository_create_none(
    tidings: Tidings, tmp_path: Path, words: tuple[str, ...]
) -> None:
    result = tidings("repository", *words)
    assert result.exit_code == 4 and "there is no repository here (.tidings-repository)" in result.stderr
    assert list(tmp_path.iterdir()) == []


def test_repository_invalid_input_is_rejected(tidings: Tidings, tmp_path: Path) -> None:
    file = tmp_path / "p.db"
    write_rules(tmp_path, all=ALL)
    assert tidings("repository").exit_code == 2
    assert "--rules is missing" in tidings("repository", "--provider", "http://localhost:1").stderr
    assert "--provider is missing" in tidings("repository", "--rules", "rules.txt").stderr
    assert "options follow the command" in tidings("repository", "--home", "x", "status").stderr
    absent = ("repository", "--provider", "http://127.0.0.1:1", "--rules")
    result = tidings(*absent, "rules.txt", "--once")
    assert result.exit_code == 1 and "the provider does not respond" in result.stderr
    assert tidings(*absent, "missing.txt").exit_code == 2
    assert tidings("repository", "--provider", "ftp://x", "--rules", "rules.txt").exit_code == 2
    assert tidings(*absent, "rules.txt", "--name", "a b").exit_code == 2
    result = tidings("repository", "show", f"{at(1)}#host")
    assert result.exit_code == 4 and "no schema" in result.stderr
    with provider_at(file), serving(file) as address:
        options = ("repository", "--provider", address, "--rules", "rules.txt", "--once")
        write_rules(tmp_path, all=ALL, wrong=f"{ALL} where c.serverHots = 'x'")
        result = tidings(*options)
        assert (
            result.exit_code == 2 and "line 2, column 50" in result.stderr and "serverHost" in result.stderr
        )
        write_rules(tmp_path, all=ALL, wrong="search theirs t register t")
        result = tidings(*options)
        message = (
            f"the provider at {address} rejects the rules: rule 'wrong': there is no class or rule 'theirs'"
        )
        assert result.exit_code == 2 and message in result.stderr
        write_rules(tmp_path, all=ALL)
        assert tidings(*options).exit_code == 0
        assert tidings("repository", "show", f"{at(1)}#host").exit_code == 2
        assert tidings("repository", "list", "Disk").exit_code == 2
