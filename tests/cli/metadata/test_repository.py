"""`tidings repository` beside providers on real servers: absent, restored, or others; and what a kill does to it."""

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
    """A server with its information, or with that of another one."""
    body = f"""@prefix s: <http://example.org/servers#> .
        <#host> a s:CycleProvider ; s:serverPort {number} ; s:serverInformation <{info}> .
        <#info> a s:ServerInformation ; s:memory {memory} ."""
    return DocumentSource(at(number), body.encode(), TURTLE)


@contextmanager
def provider_at(file: Path) -> Iterator[Provider]:
    with open_store(sqlite_url(file)) as store:
        found = Provider(store)
        if store.metadata.schema() is None:
            found.load_schema((EXAMPLES / "schema.ttl").read_bytes(), TURTLE)
        yield found


@contextmanager
def serving(file: Path, port: int = 0) -> Iterator[str]:
    with open_store(sqlite_url(file)) as store, provided(store, port=port) as client:
        yield str(client.base_url).rstrip("/")


def port_of(address: str) -> int:
    return int(address.rpartition(":")[2])


class Running:
    """A repository as a process, and what it says."""

    def __init__(self, folder: Path, *words: str) -> None:
        self.process = start("repository", *words, "--json", cwd=folder, stderr=subprocess.DEVNULL)
        self.heard: list[dict[str, Any]] = []

    def until(self, wanted: Callable[[dict[str, Any]], bool]) -> dict[str, Any]:
        """The first piece of news that is wanted."""
        assert self.process.stdout is not None
        for line in self.process.stdout:
            self.heard.append(json.loads(line))
            if wanted(self.heard[-1]):
                return self.heard[-1]
        raise AssertionError(f"it ended before; it said {self.heard}")

    def until_at(self, position: int) -> dict[str, Any]:
        return self.until(lambda news: news.get("position", 0) >= position and news["news"] != "cutoff")

    def __enter__(self) -> Running:
        return self

    def __exit__(self, *failure: object) -> None:
        self.process.terminate()
        self.process.communicate()


def expected(file: Path, rules: dict[str, str]) -> dict[str, dict[str, Any]]:
    """What has to be held, from scratch: what the rules mean, and what belongs to it."""
    with provider_at(file) as provider, open_store(sqlite_url(file)) as store:
        uris = [uri for uri, _ in provider.documents()]
        every = {each.uri: each for uri in uris for each in store.metadata.resources(uri)}
        trees = {name: parse_rule(text) for name, text in rules.items()}
        found = [evaluate_rule(tree, every.values(), provider.schema, trees) for tree in trees.values()]
        held = strong_closure(set[str]().union(*found), every, provider.schema)
        return {uri: dict(every[uri].values) for uri in held}


def held(folder: Path) -> dict[str, dict[str, Any]]:
    with Repository(folder / ".tidings-repository") as repository:
        return {each.uri: dict(each.values) for each in repository.cache.resources()}


def write_rules(folder: Path, **rules: str) -> dict[str, str]:
    (folder / "rules.txt").write_text("".join(f"{name}: {text}\n" for name, text in rules.items()))
    return rules


def once(tidings: Tidings, *addresses: str) -> list[dict[str, Any]]:
    asked = [word for address in addresses for word in ("--provider", address)]
    done = tidings("repository", *asked, "--rules", "rules.txt", "--once", "--json")
    assert done.exit_code == 0, done.stderr
    return [json.loads(line) for line in done.stdout.splitlines()]


def test_killed_while_it_catches_up(tidings: Tidings, tmp_path: Path) -> None:
    file, rules = tmp_path / "p.db", write_rules(tmp_path, large=LARGE, infos=INFOS)
    with provider_at(file) as provider:
        provider.register_many([server(number) for number in range(3)])
    with serving(file) as address:
        once(tidings, address)
        with provider_at(file) as provider:
            provider.register_many([server(number, info=f"{at(number + 1)}#info") for number in range(60)])
            provider.register_many([server(number, memory=number) for number in range(0, 60, 2)])
        for kills in (1, 3, 7):
            asked = ("--provider", address, "--rules", "rules.txt", "--batch", "5")
            with Running(tmp_path, *asked) as running:
                for _ in range(kills):
                    running.until(lambda news: news["news"] == "followed")
                running.process.send_signal(signal.SIGKILL)
            assert held(tmp_path).items() != expected(file, rules).items()
        news = once(tidings, address)
    assert {each["news"] for each in news} == {"begins", "connected", "followed"}
    assert held(tmp_path) == expected(file, rules)


def test_killed_while_it_takes_everything(tidings: Tidings, tmp_path: Path) -> None:
    """It has nothing then, or everything."""
    file, rules = tmp_path / "p.db", write_rules(tmp_path, large=LARGE)
    with provider_at(file) as provider:
        provider.register_many([server(number, info=f"{at(number + 1)}#info") for number in range(200)])
    with serving(file) as address:
        for _ in range(3):
            with Running(tmp_path, "--provider", address, "--rules", "rules.txt") as running:
                running.until(lambda news: news["news"] == "begins")
                running.process.send_signal(signal.SIGKILL)
            assert held(tmp_path) in ({}, expected(file, rules))
        once(tidings, address)
    assert held(tmp_path) == expected(file, rules) != {}


def test_a_provider_that_comes_goes_and_comes_back(tidings: Tidings, tmp_path: Path) -> None:
    file, rules = tmp_path / "p.db", write_rules(tmp_path, large=LARGE)
    with provider_at(file) as provider:
        provider.register_many([server(1), server(2, memory=16)])
    with serving(file) as address:
        port = port_of(address)
    with Running(tmp_path, "--provider", address, "--rules", "rules.txt", "--port", "0") as running:
        answers = running.until(lambda news: news["news"] == "answers")["address"]
        assert running.until(lambda news: news["news"] == "cutoff")["resources"] == 0
        with serving(file, port):
            assert running.until_at(2)["because"] == "this is the first time"
            assert held(tmp_path) == expected(file, rules)
            status = httpx.get(f"{answers}/status").json()
            assert (status["following"], status["position"], status["rules"]) == (address, 3, {"large": 1})
        assert running.until(lambda news: news["news"] == "cutoff")["resources"] == 2
        with provider_at(file) as provider:
            provider.register_many([server(1, memory=16), server(2, memory=128), server(3)])
        status = httpx.get(f"{answers}/status").json()
        assert (status["following"], status["resources"]) == (None, 2) and "respond" in status["problem"]
        asked = "search CycleProvider c where c.serverInformation.memory > 64 select c.serverPort"
        answer = httpx.get(f"{answers}/query", params={"query": asked})
        assert answer.status_code == 200 and answer.json()["rows"] == [[1]]
        with serving(file, port):
            running.until(lambda news: news["news"] == "followed")
            assert held(tmp_path) == expected(file, rules)
        running.process.send_signal(signal.SIGINT)
        assert running.process.wait() == 130


def test_a_provider_that_was_restored_from_an_older_store(tidings: Tidings, tmp_path: Path) -> None:
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
        assert [news["news"] for news in once(tidings, address)] == ["begins", "connected", "followed"]
    shutil.copy(tmp_path / "older.db", file)
    with serving(file, port):
        assert "restored" in once(tidings, address)[-1]["because"]
    assert held(tmp_path) == expected(file, rules) and len(held(tmp_path)) == 2
    shutil.copy(tmp_path / "older.db", file)
    with provider_at(file) as provider:
        for number in range(3, 6):  # it is further on than it was, by another way
            provider.register_many([server(number)])
    with serving(file, port):
        once(tidings, address)
    assert held(tmp_path) == expected(file, rules) and len(held(tmp_path)) == 8


def test_moving_to_another_provider(tidings: Tidings, tmp_path: Path) -> None:
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
            asked = ("--provider", first, "--provider", second, "--rules", "rules.txt")
            running = Running(tmp_path, *asked)
            assert running.until_at(5)["link"] == first
        with running:
            behind = running.until(lambda news: news["news"] == "cutoff" and news["link"] == second)
            assert "position 2, but the repository already at 5" in behind["problem"]
            assert held(tmp_path) == expected(one, rules)
            with open_store(sqlite_url(two)) as store:
                Provider(store).apply(entries)
                moved = running.until(lambda news: news["news"] == "refreshed")
                assert moved["link"] == second and moved["because"] == "it is another provider than before"
                assert moved["applied"] == {"new": 0, "changed": 0, "gone": 0}
                with provider_at(one) as leader:
                    leader.register_many([server(1, memory=16), server(4)])
                    Provider(store).apply(leader.log.read(5, 100))
            running.until(lambda news: news["news"] == "followed")
            assert held(tmp_path) == expected(one, rules) == expected(two, rules)


def test_another_provider_may_be_ahead(tidings: Tidings, tmp_path: Path) -> None:
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
    assert held(tmp_path) == expected(two, rules)


def test_a_rule_that_goes_takes_what_it_alone_held(tidings: Tidings, tmp_path: Path) -> None:
    file = tmp_path / "p.db"
    write_rules(tmp_path, large=LARGE, first="search CycleProvider c register c where c.serverPort = 1")
    with provider_at(file) as provider:
        provider.register_many([server(1), server(2, info=f"{at(1)}#info"), server(3), server(4, memory=16)])
    with serving(file) as address:
        once(tidings, address)
        assert held(tmp_path).keys() == {
            f"{at(1)}#host",
            f"{at(1)}#info",
            f"{at(2)}#host",
            f"{at(3)}#host",
            f"{at(3)}#info",
        }
        first = write_rules(tmp_path, first="search CycleProvider c register c where c.serverPort = 1")
        assert once(tidings, address)[-1]["applied"] == {"new": 0, "changed": 0, "gone": 3}
        assert held(tmp_path).keys() == {f"{at(1)}#host", f"{at(1)}#info"}
        assert held(tmp_path) == expected(file, first)
        other = write_rules(tmp_path, first="search CycleProvider c register c where c.serverPort = 2")
        assert once(tidings, address)[-1]["applied"] == {"new": 1, "changed": 0, "gone": 1}
        assert held(tmp_path).keys() == {f"{at(2)}#host", f"{at(1)}#info"}
        assert held(tmp_path) == expected(file, other)
        write_rules(tmp_path)
        once(tidings, address)
        assert held(tmp_path) == {}
        assert tidings("repository", "leave", address).exit_code == 0
    with provider_at(file) as provider:
        assert provider.rules() == ()


def test_two_repositories_may_call_their_rules_the_same(tidings: Tidings, tmp_path: Path) -> None:
    file = tmp_path / "p.db"
    with provider_at(file) as provider:
        provider.register_many([server(1), server(2)])
    with serving(file) as address:
        for number in (1, 2):
            write_rules(tmp_path, mine=f"{ALL} where c.serverPort = {number}")
            asked = ("--provider", address, "--rules", "rules.txt", "--once", "--home", f"r{number}")
            assert tidings("repository", *asked).exit_code == 0
            listed = tidings("repository", "list", "CycleProvider", "--home", f"r{number}").stdout
            assert listed == f"{at(number)}#host  CycleProvider  rule mine registers it\n"


def test_local_documents(tidings: Tidings, tmp_path: Path) -> None:
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
        assert held(tmp_path)[f"{at(1)}#info"] == held(tmp_path)[f"{at(9)}#info"] == {"memory": (1,)}
        assert "because  it is local" in tidings("repository", "show", f"{at(1)}#host").stdout
        status = json.loads(tidings("repository", "status", "--json").stdout)
        assert (status["resources"], status["local"]) == (4, 4)
        assert [(each["uri"], each["shadows"]) for each in status["documents"]] == [
            (at(1), True),
            (at(9), False),
        ]
        write_rules(tmp_path)
        once(tidings, address)
        assert held(tmp_path).keys() == {f"{at(n)}#{name}" for n in (1, 9) for name in ("host", "info")}
        write_rules(tmp_path, all=ALL)
        for number in (1, 9):
            assert tidings("repository", "remove", at(number)).exit_code == 0
        assert tidings("repository", "remove", at(9)).exit_code == 3
        once(tidings, address)
        assert held(tmp_path)[f"{at(1)}#info"] == {"memory": (92,)} and len(held(tmp_path)) == 2
    with provider_at(file) as provider:
        assert [uri for uri, _ in provider.documents()] == [at(1)]


@pytest.mark.parametrize(
    "words", [("status",), ("list",), ("show", "a:b"), ("remove", "a:b"), ("leave", "http://127.0.0.1:1")]
)
def test_no_repository_is_made_by_looking(tidings: Tidings, tmp_path: Path, words: tuple[str, ...]) -> None:
    done = tidings("repository", *words)
    assert done.exit_code == 4 and "there is no repository here (.tidings-repository)" in done.stderr
    assert list(tmp_path.iterdir()) == []


def test_wrong_input(tidings: Tidings, tmp_path: Path) -> None:
    file = tmp_path / "p.db"
    write_rules(tmp_path, all=ALL)
    assert tidings("repository").exit_code == 2
    assert "--rules is missing" in tidings("repository", "--provider", "http://localhost:1").stderr
    assert "--provider is missing" in tidings("repository", "--rules", "rules.txt").stderr
    assert "options follow the command" in tidings("repository", "--home", "x", "status").stderr
    absent = ("repository", "--provider", "http://127.0.0.1:1", "--rules")
    done = tidings(*absent, "rules.txt", "--once")
    assert done.exit_code == 1 and "the provider does not respond" in done.stderr
    assert tidings(*absent, "missing.txt").exit_code == 2
    assert tidings("repository", "--provider", "ftp://x", "--rules", "rules.txt").exit_code == 2
    assert tidings(*absent, "rules.txt", "--name", "a b").exit_code == 2
    done = tidings("repository", "show", f"{at(1)}#host")
    assert done.exit_code == 4 and "no schema" in done.stderr
    with provider_at(file), serving(file) as address:
        asked = ("repository", "--provider", address, "--rules", "rules.txt", "--once")
        write_rules(tmp_path, all=ALL, wrong=f"{ALL} where c.serverHots = 'x'")
        done = tidings(*asked)
        assert done.exit_code == 2 and "line 2, column 50" in done.stderr and "serverHost" in done.stderr
        write_rules(tmp_path, all=ALL, wrong="search theirs t register t")
        done = tidings(*asked)
        said = (
            f"the provider at {address} rejects the rules: rule 'wrong': there is no class or rule 'theirs'"
        )
        assert done.exit_code == 2 and said in done.stderr
        write_rules(tmp_path, all=ALL)
        assert tidings(*asked).exit_code == 0
        assert tidings("repository", "show", f"{at(1)}#host").exit_code == 2
        assert tidings("repository", "list", "Disk").exit_code == 2
