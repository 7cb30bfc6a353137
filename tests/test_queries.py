"""Asking a store: rules that are searched by name, and SPARQL that follows changes."""

from __future__ import annotations

from pathlib import Path

import pytest

from tidings.errors import CheckProblem, SetupError
from tidings.metadata.resources import Ref
from tidings.provider import Provider
from tidings.queries import Queries
from tidings.store import Store, open_store, sqlite_url

EXAMPLES = Path(__file__).parents[1] / "examples" / "metadata"
DOC = "http://example.org/doc.rdf"
HOST = Ref(f"{DOC}#host")
LARGE = "search CycleProvider c register c where c.serverInformation.memory > 64"


@pytest.fixture
def store(tmp_path):
    with open_store(sqlite_url(tmp_path / "store.db")) as opened:
        yield opened


@pytest.fixture
def provider(store: Store) -> Provider:
    made = Provider(store)
    made.load_schema((EXAMPLES / "schema.ttl").read_bytes(), "text/turtle")
    return made


def register(provider: Provider, file: str) -> None:
    provider.register(DOC, (EXAMPLES / file).read_bytes(), "application/rdf+xml")


def test_rules_of_a_provider_are_searched_by_name(store: Store, provider: Provider) -> None:
    queries = Queries.at_provider(store)
    register(provider, "host.rdf")
    provider.add_rules({"large": LARGE, "large2": "search large l register l where l.serverPort > 80"}, "ana")
    provider.add_rules(
        {"mine": "search large l register l", "large": "search CycleProvider c register c"}, "r", "r/"
    )
    for name in ("large", "large2", "r/mine", "r/large"):
        assert queries.ask(f'search "{name}" c select c').rows == ((HOST,),), name
    asked = "search large2 l, ServerInformation s register s where l.serverInformation = s select s.memory"
    assert queries.ask(asked).rows == ((92,),)
    with pytest.raises(CheckProblem, match="no class or rule 'larger'"):
        queries.ask("search larger l")
    register(provider, "host-with-32MB.rdf")
    assert queries.ask("search large c").resources == ()
    assert queries.ask('search "r/large" c select c').rows == ((HOST,),)


def test_sparql_sees_what_changed(store: Store, provider: Provider) -> None:
    queries = Queries.at_provider(store)
    asked = "SELECT ?m { ?i <http://example.org/servers#memory> ?m }"
    assert queries.sparql(asked, "text/csv").body == b"m\r\n"
    register(provider, "host.rdf")
    assert queries.sparql(asked, "text/csv").body == b"m\r\n92\r\n"
    register(provider, "host-with-32MB.rdf")
    assert queries.sparql(asked, "text/csv").body == b"m\r\n32\r\n"
    provider.remove(DOC)
    assert queries.sparql(asked, "text/csv").body == b"m\r\n"


def test_what_is_referred_to_strongly(store: Store, provider: Provider) -> None:
    queries = Queries.at_provider(store)
    register(provider, "host.rdf")
    found = queries.ask("search CycleProvider c")
    assert {uri: each.cls for uri, each in queries.referred(found).items()} == {
        f"{DOC}#info": "ServerInformation"
    }
    assert queries.referred(queries.ask("search ServerInformation s")) == {}


def test_without_a_schema(store: Store) -> None:
    with pytest.raises(SetupError, match="tidings provider schema FILE"):
        Queries.at_provider(store).ask("search CycleProvider c")
    with pytest.raises(SetupError, match="tidings repository"):
        Queries.at_repository(store).sparql("ASK { ?s ?p ?o }")
