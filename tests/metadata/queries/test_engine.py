"""Queries to a provider and to a repository: rules by name, and SPARQL after changes."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.paths import ROOT
from tidings.errors import CheckProblem, InputError, SetupError
from tidings.metadata.provider.provider import Provider
from tidings.metadata.queries.engine import QueryEngine
from tidings.metadata.repository.links import DirectLink
from tidings.metadata.repository.repository import Repository
from tidings.metadata.repository.synchronization import Synchronizer
from tidings.metadata.resources import Ref
from tidings.metadata.rules.rule_files import RuleFile
from tidings.store.database import sqlite_url
from tidings.store.store import Store, open_store

EXAMPLES = ROOT / "examples" / "metadata"
DOC = "http://example.org/doc.rdf"
HOST = Ref(f"{DOC}#host")
LARGE = "search CycleProvider c register c where c.serverInformation.memory > 64"


@pytest.fixture
def store(tmp_path):
    with open_store(sqlite_url(tmp_path / "store.db")) as opened:
        yield opened


@pytest.fixture
def provider(store: Store) -> Provider:
    opened = Provider(store)
    opened.load_schema((EXAMPLES / "schema.ttl").read_bytes(), "text/turtle")
    return opened


def register(provider: Provider, file: str) -> None:
    provider.register(DOC, (EXAMPLES / file).read_bytes(), "application/rdf+xml")


def test_ask_provider_searches_rules_by_name(store: Store, provider: Provider) -> None:
    queries = QueryEngine.at_provider(store)
    register(provider, "host.rdf")
    provider.add_rules({"large": LARGE, "large2": "search large l register l where l.serverPort > 80"}, "ana")
    provider.add_rules(
        {"mine": "search large l register l", "large": "search CycleProvider c register c"}, "r", "r/"
    )
    for name in ("large", "large2", "r/mine", "r/large"):
        assert queries.ask(f'search "{name}" c select c').rows == ((HOST,),), name
    query = "search large2 l, ServerInformation s register s where l.serverInformation = s select s.memory"
    assert queries.ask(query).rows == ((92,),)
    with pytest.raises(CheckProblem, match="no class or rule 'larger'"):
        queries.ask("search larger l")
    register(provider, "host-with-32MB.rdf")
    assert queries.ask("search large c").resources == ()
    assert queries.ask('search "r/large" c select c').rows == ((HOST,),)


def test_sparql_follows_changes_of_documents(store: Store, provider: Provider) -> None:
    queries = QueryEngine.at_provider(store)
    query = "SELECT ?m { ?i <http://example.org/servers#memory> ?m }"
    assert queries.sparql(query, "text/csv").body == b"m\r\n"
    register(provider, "host.rdf")
    assert queries.sparql(query, "text/csv").body == b"m\r\n92\r\n"
    register(provider, "host-with-32MB.rdf")
    assert queries.sparql(query, "text/csv").body == b"m\r\n32\r\n"
    provider.remove(DOC)
    assert queries.sparql(query, "text/csv").body == b"m\r\n"


def test_referred_returns_strongly_referenced_resources(store: Store, provider: Provider) -> None:
    queries = QueryEngine.at_provider(store)
    register(provider, "host.rdf")
    result = queries.ask("search CycleProvider c")
    assert {uri: each.cls for uri, each in queries.find_referred(result).items()} == {
        f"{DOC}#info": "ServerInformation"
    }
    assert queries.find_referred(queries.ask("search ServerInformation s")) == {}


@pytest.fixture
def repository(store: Store, provider: Provider, tmp_path: Path):
    """A repository with the results of two rules and a document of its own."""
    register(provider, "host.rdf")
    with Repository(tmp_path / "repository") as opened:
        link = DirectLink(store, opened.store.repository.name("passau"))
        rules = RuleFile(f"large: {LARGE}\nmine: search large l register l", "rules.txt")
        Synchronizer(opened.store, [link], rules).catch_up_once()
        opened.register_local("http://example.org/mine.ttl", MINE, "text/turtle")
        yield opened


MINE = b"""@prefix s: <http://example.org/servers#> .
<#mine> a s:CycleProvider ; s:serverPort 80 ; s:serverInformation <http://example.org/doc.rdf#info> ."""


def test_ask_repository_searches_its_resources(repository: Repository) -> None:
    queries = QueryEngine.at_repository(repository.store)
    mine = Ref("http://example.org/mine.ttl#mine")
    assert queries.ask("search CycleProvider c select c, c.serverInformation.memory").rows == (
        (HOST, 92),
        (mine, 92),
    )
    # Local resources are in no rule's results, though the text of the rule would match them.
    for name in ("large", "mine"):
        assert queries.ask(f"search {name} c select c").rows == ((HOST,),)
    result = queries.sparql(
        "SELECT ?c { ?c a <http://example.org/servers#CycleProvider> } ORDER BY ?c", "text/csv"
    )
    assert result.body.decode().split() == ["c", HOST.uri, mine.uri]
    repository.remove_local("http://example.org/mine.ttl")
    assert queries.ask("search CycleProvider c select c").rows == ((HOST,),)
    assert b"mine" not in queries.sparql("SELECT * { ?s ?p ?o }").body


def test_ask_repository_rule_with_unknown_class_is_rejected(
    store: Store, provider: Provider, tmp_path: Path
) -> None:
    """The results of the rule are here, but the rule that it searches is not."""
    provider.add_rules({"large": LARGE}, "ana")
    register(provider, "host.rdf")
    with Repository(tmp_path / "repository") as opened:
        link = DirectLink(store, opened.store.repository.name("passau"))
        Synchronizer(
            opened.store, [link], RuleFile("ours: search large l register l", "rules.txt")
        ).catch_up_once()
        queries = QueryEngine.at_repository(opened.store)
        assert queries.ask("search CycleProvider c select c").rows == ((HOST,),)
        with pytest.raises(InputError, match="the class of this rule is not known here"):
            queries.ask("search ours c")


def test_ask_without_schema_is_rejected(store: Store) -> None:
    with pytest.raises(SetupError, match="tidings provider schema FILE"):
        QueryEngine.at_provider(store).ask("search CycleProvider c")
    with pytest.raises(SetupError, match="tidings repository"):
        QueryEngine.at_repository(store).sparql("ASK { ?s ?p ?o }")
