"""A repository and the schema of its provider, and failover between links."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from tests.support.stores.server_documents import ALL, DOC, HOST, INFO, RDF_XML, SCHEMA, body
from tidings.errors import SchemaError
from tidings.metadata.change_sets import ChangeSet
from tidings.metadata.provider.provider import Provider
from tidings.metadata.replication.peer import Unreachable
from tidings.metadata.repository.links import DirectLink, ProviderPosition
from tidings.metadata.repository.repository import Repository
from tidings.metadata.repository.synchronization import (
    Connected,
    CutOff,
    Followed,
    Refreshed,
    SyncEvent,
    Synchronizer,
)
from tidings.metadata.rules.rule_files import RuleFile
from tidings.store.database import sqlite_url
from tidings.store.store import Store, open_store

TURTLE = "text/turtle"
MORE = b"""
:Disk a rdfs:Class . :size a rdf:Property ; rdfs:domain :Disk ; rdfs:range xsd:integer .
:disk a rdf:Property ; rdfs:domain :CycleProvider ; rdfs:range :Disk ; md:reference md:strong .
"""
WITH_DISK = b"""@prefix s: <http://example.org/servers#> .
    <#host> a s:CycleProvider ; s:serverPort 80 ; s:disk [ a s:Disk ; s:size 7 ] ."""


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    with open_store(sqlite_url(tmp_path / "provider.db")) as opened:
        Provider(opened).load_schema(SCHEMA.body, TURTLE)
        Provider(opened).register(DOC, body("host.rdf"), RDF_XML)
        yield opened


@pytest.fixture
def repository(tmp_path: Path) -> Iterator[Repository]:
    with Repository(tmp_path / "repository") as opened:
        opened.store.repository.name("passau")
        yield opened


def sync(repository: Repository, *stores: Store, rules: str = f"all: {ALL}") -> list[SyncEvent]:
    events: list[SyncEvent] = []
    links = [DirectLink(each, "passau") for each in stores]
    Synchronizer(repository.store, links, RuleFile(rules), events.append).catch_up_once()
    return events


def test_sync_extended_schema_arrives_with_its_resources(store: Store, repository: Repository) -> None:
    sync(repository, store)
    repository.register_local("http://example.org/mine.rdf", body("host.rdf"), RDF_XML)
    Provider(store).load_schema(SCHEMA.body + MORE, TURTLE)
    Provider(store).register(DOC, WITH_DISK, TURTLE)
    assert [type(event) for event in sync(repository, store)] == [Connected, Followed]
    assert [each.uri for each in repository.cache.of_class("Disk")] == [f"{HOST}/disk"]
    assert repository.explain_origin(f"{HOST}/disk").referred == (HOST,)
    assert len(repository.cache.of_class("ServerInformation")) == 1, "only the local one remains"
    repository.register_local("http://example.org/mine.rdf", WITH_DISK, TURTLE)
    assert len(repository.cache.of_class("Disk")) == 2


def test_sync_schema_conflicting_with_local_document_is_rejected(
    store: Store, repository: Repository, tmp_path: Path
) -> None:
    """A provider that was restored may have an older schema."""
    sync(repository, store)
    repository.register_local(DOC, body("host.rdf").replace(b"600", b"700"), RDF_XML)
    resources, version = repository.cache.resources(), repository.cache.version()
    with open_store(sqlite_url(tmp_path / "other.db")) as other:
        Provider(other).load_schema(SCHEMA.body.replace(b":cpu ", b":speed "), TURTLE)
        for number in range(5):
            Provider(other).register(f"http://example.org/{number}.rdf", b"", TURTLE)
        with pytest.raises(SchemaError, match="tidings repository remove") as error:
            sync(repository, other)
        assert DOC in str(error.value)
        assert (repository.cache.resources(), repository.cache.version()) == (resources, version)
        assert repository.remove_local(DOC)
        sync(repository, other)
        assert repository.cache.resources() == () and "speed" in repository.cache.schema().properties


class FailingLink(DirectLink):
    """A link that fails after a number of change sets, or immediately."""

    def __init__(self, store: Store, name: str, good: int) -> None:
        super().__init__(store, "passau")
        self.name, self._good = name, good

    def provider_position(self) -> ProviderPosition:
        self._refuse()
        return super().provider_position()

    def changes(self, after: int, limit: int, wait: float) -> ChangeSet:
        self._refuse()
        self._good -= 1
        return super().changes(after, limit, 0)

    def _refuse(self) -> None:
        if self._good <= 0:
            raise Unreachable("nobody there", where=self.name)


def test_sync_failed_link_tries_next_at_once_then_backs_off(store: Store, repository: Repository) -> None:
    events: list[SyncEvent] = []

    def record_event(event: SyncEvent) -> None:
        events.append(event)
        if len([each for each in events if isinstance(each, CutOff)]) == 5:
            synchronizer.stop()

    links = [FailingLink(store, "one", 0), FailingLink(store, "two", 3)]
    synchronizer = Synchronizer(repository.store, links, RuleFile(f"all: {ALL}"), record_event)
    synchronizer.run()
    outcomes = [
        (type(each), each.link, each.retry > 0 if isinstance(each, CutOff) else None) for each in events
    ]
    assert outcomes == [
        (CutOff, "one", False),
        (Refreshed, "two", None),
        (CutOff, "two", False),
        (CutOff, "one", True),
        (CutOff, "two", False),
        (CutOff, "one", True),
    ]
    assert [each.uri for each in repository.cache.resources()] == [HOST, INFO]


class AlternatingLink(DirectLink):
    """An address with two providers behind it that answer in turn."""

    def changes(self, after: int, limit: int, wait: float) -> ChangeSet:
        changes = super().changes(after, limit, 0)
        return replace(changes, provider="m-another") if limit > 1 else changes


def test_sync_alternating_providers_behind_one_address_is_rejected(
    store: Store, repository: Repository
) -> None:
    synchronizer = Synchronizer(repository.store, [AlternatingLink(store, "passau")], RuleFile(f"all: {ALL}"))
    with pytest.raises(Unreachable, match="does not stay the same"):
        synchronizer.catch_up_once()


def test_forget_deletes_rules_and_next_sync_starts_anew(store: Store, repository: Repository) -> None:
    sync(repository, store)
    DirectLink(store, "passau").forget()
    assert Provider(store).rules() == () and store.notifications.read("passau") == []
    events = sync(repository, store)
    assert isinstance(events[0], Refreshed) and "the rules have changed" in events[0].because
    assert [each.uri for each in repository.cache.resources()] == [HOST, INFO]
