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


def test_query_prints_resources_with_strong_references(query) -> None:
    referenced = f"serverInformation -> {INFO} (cpu 600, memory 92)"
    line = f"{HOST}  serverHost pirates.uni-passau.de  {referenced}  serverPort 5874\n"
    assert query(ALL).stdout == line
    assert query("-", given=ALL).stdout == line
    assert (query(f"{ALL} where c.serverPort = 80").stdout, query(f"{ALL} limit 1").stdout) == ("", line)


def test_query_select_prints_table(query) -> None:
    result = query("search CycleProvider c select c.serverPort, c.serverInformation.memory")
    assert [line.split() for line in result.stdout.splitlines()] == [
        ["c.serverPort", "c.serverInformation.memory"],
        ["5874", "92"],
    ]


def test_query_json_and_csv_have_same_facts(query) -> None:
    [record] = map(json.loads, query(ALL, "--json").stdout.splitlines())
    assert (record["uri"], record["values"]["serverInformation"]) == (HOST, [{"ref": INFO}])
    result = query("search CycleProvider c select c, c.serverInformation.memory", "--json")
    assert json.loads(result.stdout) == {"c": {"ref": HOST}, "c.serverInformation.memory": 92}
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


def test_query_sparql_prints_all_result_forms(query) -> None:
    assert query("--sparql", MEMORY).stdout.split() == ["m", "92"]
    assert query("--sparql", MEMORY, "--csv").stdout.splitlines() == ["m", "92"]
    assert json.loads(query("--sparql", MEMORY, "--json").stdout)["head"] == {"vars": ["m"]}
    assert query("--sparql", "ASK { ?s ?p ?o }").stdout == "true\n"
    constructed = query("--sparql", f"CONSTRUCT {{ ?i <{S}x> 1 }} WHERE {{ ?i <{S}memory> ?m }}")
    assert constructed.stdout.startswith(f"<{INFO}> <{S}x>")


@pytest.mark.parametrize(
    ("words", "message"),
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
def test_query_invalid_input_is_rejected(query, words: tuple[str, ...], message: str) -> None:
    result = query(*words)
    assert result.exit_code == 2 and message in result.output


def test_query_without_repository_creates_none(tidings: Tidings) -> None:
    result = tidings("query", ALL)
    assert result.exit_code == 4 and "no repository here" in result.output
    assert tidings("query", ALL, "--at-provider", "--home", "nowhere").exit_code == 4
    assert list(Path().iterdir()) == []


@pytest.fixture
def address(query):
    with (
        open_store(sqlite_url(Path(".tidings") / "store.db")) as store,
        served(query_router_for(QueryEngine.at_provider(store), TrustPolicy(None))) as url,
    ):
        yield url


def test_query_endpoint_accepts_all_methods_and_formats(address: str) -> None:
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


def test_sparql_resources_with_invalid_uris_are_counted(query, address: str) -> None:
    """No document has such URIs; they come from providers of another implementation."""
    with open_store(sqlite_url(Path(".tidings") / "store.db")) as store:
        schema = Provider(store).schema
        odd = Document(
            "http://x.org/a b", (Resource("http://x.org/a b", "ServerInformation", {"cpu": (1,)}),)
        )
        store.metadata.transact(lambda work: work.register(schema, [odd], TriggerIndex(schema)))
    answer = httpx.get(f"{address}/sparql", params={"query": MEMORY})
    assert (answer.status_code, answer.headers["tidings-left-out"]) == (200, "1")
    assert "1 URI left out" in query("--sparql", "ASK {}").stderr


def test_sparql_endpoint_negotiates_format(address: str) -> None:
    answer = httpx.get(f"{address}/sparql", params={"query": MEMORY})
    assert answer.headers["content-type"] == "application/sparql-results+json"
    assert answer.json()["results"]["bindings"][0]["m"]["value"] == "92"
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
def test_query_endpoints_invalid_request_is_rejected(
    address: str, path: str, params: dict[str, str], headers: dict[str, str], status: int
) -> None:
    result = httpx.get(f"{address}/{path}", params=params, headers=headers)
    assert result.status_code == status and result.json()["error"]


def test_query_endpoints_invalid_body_is_rejected(address: str) -> None:
    raw = {"Content-Type": "application/sparql-query"}
    assert httpx.post(f"{address}/sparql", content=b"\xff", headers=raw).status_code == 400
    assert httpx.post(f"{address}/sparql", content=b"x" * 500_000, headers=raw).status_code == 413
    assert httpx.post(f"{address}/query", content=b"{}", headers={"Content-Type": "a/b"}).status_code == 415
    problem = httpx.get(f"{address}/query", params={"query": f"{ALL} where c.prt = 80"}).json()
    assert problem["place"] == {"line": 1, "column": 32, "length": 3}


@pytest.fixture
def repository(query):
    """The repository in the default folder, with the results of a rule; its provider is gone."""
    with open_store(sqlite_url(Path(".tidings") / "store.db")) as store, Repository(HOME) as opened:
        link = DirectLink(store, opened.store.repository.name("passau"))
        rule = "large: search CycleProvider c register c where c.serverInformation.memory > 64"
        Synchronizer(opened.store, [link], RuleFile(rule, "rules.txt")).catch_up_once()
    rmtree(".tidings")
    with Repository(HOME) as opened:
        yield opened


def test_query_repository_works_without_provider(repository: Repository, tidings: Tidings) -> None:
    query = "search large c select c.serverHost"
    assert tidings("query", query, "--csv").stdout.splitlines() == ["c.serverHost", "pirates.uni-passau.de"]
    assert tidings("query", query, "--csv", "--home", str(HOME)).exit_code == 0
    assert tidings("query", "--sparql", MEMORY).stdout.split() == ["m", "92"]
    with served(create_repository_app(repository, FollowState()).router) as url:
        rows = httpx.get(f"{url}/query", params={"query": query}).json()["rows"]
        assert rows == [["pirates.uni-passau.de"]]
        answer = httpx.post(f"{url}/sparql", data={"query": MEMORY}, headers={"Accept": "text/csv"})
        assert answer.text.split() == ["m", "92"]


def test_query_endpoints_answer_concurrent_requests(address: str) -> None:
    """SPARQL runs in processes, which are started while other threads send requests."""
    with ThreadPoolExecutor(8) as threads:
        requests = [("sparql", MEMORY), ("query", ALL)] * 20
        answers = list(
            threads.map(lambda each: httpx.get(f"{address}/{each[0]}", params={"query": each[1]}), requests)
        )
    assert {each.status_code for each in answers} == {200}
    assert len({each.text for each in answers}) == 2
