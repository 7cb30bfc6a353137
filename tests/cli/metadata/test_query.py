"""Queries on the command line and over HTTP."""

from __future__ import annotations

import csv
import json
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from shutil import rmtree

import httpx
import pytest

from tests.support.processes.command_line import EXAMPLES, Tidings
from tests.support.servers.http_server import served
from tidings.api.authentication import TrustPolicy
from tidings.api.metadata.repository import FollowState, create_repository_app, query_router_for
from tidings.metadata.documents import Document
from tidings.metadata.filter.trigger_index import TriggerIndex
from tidings.metadata.provider.provider import Provider
from tidings.metadata.queries.engine import QueryEngine
from tidings.metadata.repository.links import DirectLink
from tidings.metadata.repository.repository import Repository
from tidings.metadata.repository.synchronization import Synchronizer
from tidings.metadata.resources import Resource
from tidings.metadata.rules.rule_files import RuleFile
from tidings.store.database import sqlite_url
from tidings.store.store import open_store

DOC = "http://example.org/doc.rdf"
HOST, INFO = f"{DOC}#host", f"{DOC}#info"
S = "http://example.org/servers#"
HOME = Path(".tidings-repository")
ALL = "search CycleProvider c"
MEMORY = f"SELECT ?m {{ ?i <{S}memory> ?m }}"


@pytest.fixture
def query(tidings: Tidings):
    metadata = EXAMPLES / "metadata"
    tidings("provider", "schema", str(metadata / "schema.ttl"))
    tidings("provider", "register", DOC, str(metadata / "host.rdf"))
    return lambda *words, given=None: tidings("query", "--at-provider", *words, given=given)


def test_resources_are_shown_with_what_they_refer_to(query) -> None:
    told = f"serverInformation -> {INFO} (cpu 600, memory 92)"
    line = f"{HOST}  serverHost pirates.uni-passau.de  {told}  serverPort 5874\n"
    assert query(ALL).stdout == line
    assert query("-", given=ALL).stdout == line
    assert (query(f"{ALL} where c.serverPort = 80").stdout, query(f"{ALL} limit 1").stdout) == ("", line)


def test_rows_are_a_table(query) -> None:
    done = query("search CycleProvider c select c.serverPort, c.serverInformation.memory")
    assert [line.split() for line in done.stdout.splitlines()] == [
        ["c.serverPort", "c.serverInformation.memory"],
        ["5874", "92"],
    ]


def test_machines_are_told_the_same(query) -> None:
    [record] = map(json.loads, query(ALL, "--json").stdout.splitlines())
    assert (record["uri"], record["values"]["serverInformation"]) == (HOST, [{"ref": INFO}])
    done = query("search CycleProvider c select c, c.serverInformation.memory", "--json")
    assert json.loads(done.stdout) == {"c": {"ref": HOST}, "c.serverInformation.memory": 92}
    rows = list(csv.DictReader(query(ALL, "--csv").stdout.splitlines()))
    assert rows == [
        {
            "uri": HOST,
            "class": "CycleProvider",
            "serverHost": "pirates.uni-passau.de",
            "serverInformation": INFO,
            "serverPort": "5874",
        }
    ]


def test_sparql(query) -> None:
    assert query("--sparql", MEMORY).stdout.split() == ["m", "92"]
    assert query("--sparql", MEMORY, "--csv").stdout.splitlines() == ["m", "92"]
    assert json.loads(query("--sparql", MEMORY, "--json").stdout)["head"] == {"vars": ["m"]}
    assert query("--sparql", "ASK { ?s ?p ?o }").stdout == "true\n"
    made = query("--sparql", f"CONSTRUCT {{ ?i <{S}x> 1 }} WHERE {{ ?i <{S}memory> ?m }}")
    assert made.stdout.startswith(f"<{INFO}> <{S}x>")


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (("search CycleProvider c where c.serverPrt = 80",), "column 32"),
        (("search Nothing n",), "no class or rule 'Nothing'"),
        (("select c",), "expected 'search'"),
        ((ALL, "--json", "--csv"), "exclude each other"),
        (("--sparql", "SELECT * {"), "invalid SPARQL"),
        (("SELECT ?c { ?c a ?t }",), "for SPARQL add --sparql"),
        (("--sparql", ALL), "omit --sparql"),
        (("--sparql", "SELECT * {\n  ?c s:memory ?m }"), "undeclared prefix 's:' (line 2, column 6)"),
        (("--sparql", "SELECT * { ?c :memory ?m }"), "^^^^^^^   start with PREFIX : <...>"),
        (("--sparql", "SELECT * { SERVICE <a:b> { ?s ?p ?o } }"), "column 12"),
    ],
)
def test_what_is_wrong_is_said(query, words: tuple[str, ...], told: str) -> None:
    done = query(*words)
    assert done.exit_code == 2 and told in done.output


def test_no_repository_is_made_by_asking(tidings: Tidings) -> None:
    done = tidings("query", ALL)
    assert done.exit_code == 4 and "no repository here" in done.output
    assert tidings("query", ALL, "--at-provider", "--home", "nowhere").exit_code == 4
    assert list(Path().iterdir()) == []


@pytest.fixture
def address(query):
    with (
        open_store(sqlite_url(Path(".tidings") / "store.db")) as store,
        served(query_router_for(QueryEngine.at_provider(store), TrustPolicy(None))) as url,
    ):
        yield url


def test_queries_over_http(address: str) -> None:
    rows = "search CycleProvider c select c, c.serverPort"
    expected = {"columns": ["c", "c.serverPort"], "rows": [[{"ref": HOST}, 5874]]}
    assert httpx.get(f"{address}/query", params={"query": rows}).json() == expected
    plain = {"Content-Type": "text/plain; charset=utf-8"}
    assert httpx.post(f"{address}/query", content=rows, headers=plain).json() == expected
    assert httpx.post(f"{address}/query", data={"query": rows}).json() == expected
    [resource] = httpx.get(f"{address}/query", params={"query": ALL}).json()["resources"]
    assert resource["uri"] == HOST
    table = httpx.get(f"{address}/query", params={"query": rows}, headers={"Accept": "text/csv"})
    assert table.text.splitlines() == ["c,c.serverPort", f"{HOST},5874"]
    assert table.headers["content-type"].startswith("text/csv")


def test_what_sparql_cannot_name_is_counted(query, address: str) -> None:
    """No document has such URIs; they come from a provider that is none of ours."""
    with open_store(sqlite_url(Path(".tidings") / "store.db")) as store:
        schema = Provider(store).schema
        odd = Document(
            "http://x.org/a b", (Resource("http://x.org/a b", "ServerInformation", {"cpu": (1,)}),)
        )
        store.metadata.transact(lambda work: work.register(schema, [odd], TriggerIndex(schema)))
    found = httpx.get(f"{address}/sparql", params={"query": MEMORY})
    assert (found.status_code, found.headers["tidings-left-out"]) == (200, "1")
    assert "1 URI left out" in query("--sparql", "ASK {}").stderr


def test_sparql_over_http(address: str) -> None:
    found = httpx.get(f"{address}/sparql", params={"query": MEMORY})
    assert found.headers["content-type"] == "application/sparql-results+json"
    assert found.json()["results"]["bindings"][0]["m"]["value"] == "92"
    raw = {"Content-Type": "application/sparql-query", "Accept": "text/csv;q=0.5, text/tab-separated-values"}
    assert httpx.post(f"{address}/sparql", content=MEMORY, headers=raw).text == "?m\n92\n"
    described = httpx.post(
        f"{address}/sparql",
        data={"query": f"DESCRIBE <{INFO}>"},
        headers={"Accept": "text/turtle, */*;q=0.1"},
    )
    assert described.headers["content-type"].startswith("text/turtle")
    xml = httpx.get(
        f"{address}/sparql", params={"query": "ASK {}"}, headers={"Accept": "application/sparql-results+xml"}
    )
    assert "<boolean>true</boolean>" in xml.text


@pytest.mark.parametrize(
    ("path", "params", "headers", "status"),
    [
        ("query", {}, {}, 400),
        ("query", {"query": "search Nothing n"}, {}, 422),
        ("query", {"query": ALL}, {"Accept": "image/png"}, 406),
        ("sparql", {"query": "SELECT * {"}, {}, 422),
        ("sparql", {"query": "DROP ALL"}, {}, 422),
        ("sparql", {"query": MEMORY}, {"Accept": "image/png"}, 406),
        ("sparql", {"query": MEMORY, "default-graph-uri": DOC}, {}, 400),
        ("query", {"query": ALL}, {"Host": "example.org"}, 401),
    ],
)
def test_what_is_wrong_is_said_over_http(
    address: str, path: str, params: dict[str, str], headers: dict[str, str], status: int
) -> None:
    done = httpx.get(f"{address}/{path}", params=params, headers=headers)
    assert done.status_code == status and done.json()["error"]


def test_wrong_bodies(address: str) -> None:
    raw = {"Content-Type": "application/sparql-query"}
    assert httpx.post(f"{address}/sparql", content=b"\xff", headers=raw).status_code == 400
    assert httpx.post(f"{address}/sparql", content=b"x" * 500_000, headers=raw).status_code == 413
    assert httpx.post(f"{address}/query", content=b"{}", headers={"Content-Type": "a/b"}).status_code == 415
    problem = httpx.get(f"{address}/query", params={"query": f"{ALL} where c.prt = 80"}).json()
    assert problem["place"] == {"line": 1, "column": 32, "length": 3}


@pytest.fixture
def repository(query):
    """What a rule registers, in the usual place; the provider is gone when this is handed over."""
    with open_store(sqlite_url(Path(".tidings") / "store.db")) as store, Repository(HOME) as opened:
        link = DirectLink(store, opened.store.repository.name("passau"))
        rule = "large: search CycleProvider c register c where c.serverInformation.memory > 64"
        Synchronizer(opened.store, [link], RuleFile(rule, "rules.txt")).once()
    rmtree(".tidings")
    with Repository(HOME) as opened:
        yield opened


def test_a_repository_is_asked_without_its_provider(repository: Repository, tidings: Tidings) -> None:
    asked = "search large c select c.serverHost"
    assert tidings("query", asked, "--csv").stdout.splitlines() == ["c.serverHost", "pirates.uni-passau.de"]
    assert tidings("query", asked, "--csv", "--home", str(HOME)).exit_code == 0
    assert tidings("query", "--sparql", MEMORY).stdout.split() == ["m", "92"]
    with served(create_repository_app(repository, FollowState()).router) as url:
        rows = httpx.get(f"{url}/query", params={"query": asked}).json()["rows"]
        assert rows == [["pirates.uni-passau.de"]]
        found = httpx.post(f"{url}/sparql", data={"query": MEMORY}, headers={"Accept": "text/csv"})
        assert found.text.split() == ["m", "92"]


def test_answers_to_many_at_once(address: str) -> None:
    """Processes are made for SPARQL while other threads ask, too."""
    with ThreadPoolExecutor(8) as threads:
        asked = [("sparql", MEMORY), ("query", ALL)] * 20
        done = list(
            threads.map(lambda each: httpx.get(f"{address}/{each[0]}", params={"query": each[1]}), asked)
        )
    assert {each.status_code for each in done} == {200}
    assert len({each.text for each in done}) == 2
