"""Providers with invalid responses: nothing is stored, and another one can be tried."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from tests.support.stores.server_documents import ALL, DOC, HOST, RDF_XML, SCHEMA, body
from tidings.errors import InputError
from tidings.metadata.change_sets import ChangeSet, RepositoryState, changes_from_json, state_from_json
from tidings.metadata.provider.provider import Provider
from tidings.metadata.replication.peer import Unreachable
from tidings.metadata.repository.links import DirectLink
from tidings.metadata.repository.repository import Repository
from tidings.metadata.repository.synchronization import Synchronizer
from tidings.metadata.resources import Ref, Resource
from tidings.metadata.rules.rule_files import RuleFile
from tidings.store.database import sqlite_url
from tidings.store.store import Store, open_store

HALF = "\ud800"
HEADER: dict[str, Any] = {"provider": "m-1", "position": 3, "schema": 1, "sequence": 1, "resources": []}
MOVE: dict[str, Any] = {"sequence": 1, "rule": "all", "uri": HOST, "kind": "entered", "time": "now"}


@pytest.mark.parametrize(
    "invalid",
    [
        {"sequence": "1"},
        {"sequence": float("inf")},
        {"sequence": 2**63},
        {"rule": 1},
        {"uri": None},
        {"uri": ["a"]},
        {"uri": HALF},
        {"uri": "a\x00"},
        {"kind": "stayed"},
    ],
)
def test_changes_from_json_invalid_move_is_rejected(invalid: dict[str, Any]) -> None:
    changes = {**HEADER, "more": False, "moves": [MOVE]}
    assert changes_from_json(changes).moves[0].uri == HOST
    with pytest.raises(InputError, match="not a change set"):
        changes_from_json({**changes, "moves": [{**MOVE, **invalid}]})


@pytest.mark.parametrize(
    "invalid",
    [
        {"members": {"all": "abc"}},
        {"members": {"all": [1]}},
        {"members": {"all": [["a"]]}},
        {"members": {"all": [HALF]}},
        {"members": []},
        {"provider": HALF},
        {"position": -1},
        {"position": 1.5},
    ],
)
def test_state_from_json_invalid_state_is_rejected(invalid: dict[str, Any]) -> None:
    assert state_from_json({**HEADER, "members": {"all": [HOST]}}).members == {"all": (HOST,)}
    with pytest.raises(InputError, match="not a state"):
        state_from_json({**HEADER, "members": {}, **invalid})


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    with open_store(sqlite_url(tmp_path / "provider.db")) as opened:
        provider = Provider(opened)
        provider.load_schema(SCHEMA.body, "text/turtle")
        provider.register(DOC, body("host.rdf"), RDF_XML)
        yield opened


class InvalidResourceLink(DirectLink):
    """A link to a provider that reports one given resource."""

    def __init__(self, store: Store, resource: Resource) -> None:
        super().__init__(store, "passau")
        self._resource = resource

    def state(self) -> RepositoryState:
        return replace(super().state(), resources=(self._resource,))


@pytest.mark.parametrize(
    "resource",
    [
        Resource(HOST, "Nothing", {}),
        Resource(HOST, "CycleProvider", {"nothing": (1,)}),
        Resource(HOST, "CycleProvider", {"serverPort": ("high",)}),
        Resource(HOST, "CycleProvider", {"serverPort": (float("nan"),)}),
        Resource(HOST, "CycleProvider", {"serverPort": (10**400,)}),
        Resource(HOST, "CycleProvider", {"serverPort": (1, 2)}),
        Resource(HOST, "CycleProvider", {"serverHost": (HALF,)}),
        Resource(HOST, "CycleProvider", {"serverHost": (Ref(HOST),)}),
        Resource(HOST + "x" * 1_000, "CycleProvider", {}),
    ],
)
def test_sync_invalid_resource_is_rejected(store: Store, tmp_path: Path, resource: Resource) -> None:
    with Repository(tmp_path / "passau") as repository:
        repository.store.repository.name("passau")
        synchronizer = Synchronizer(
            repository.store, [InvalidResourceLink(store, resource)], RuleFile(f"all: {ALL}")
        )
        with pytest.raises(Unreachable, match="that break its schema"):
            synchronizer.catch_up_once()
        assert repository.store.repository.resources() == ()


class EndlessLink(DirectLink):
    """A link to a provider that always announces more changes and never sends them."""

    def changes(self, after: int, limit: int, wait: float) -> ChangeSet:
        changes = super().changes(after, limit, 0)
        return replace(changes, more=True) if limit > 1 else changes


def test_sync_endless_changes_are_stopped(store: Store, tmp_path: Path) -> None:
    with Repository(tmp_path / "passau") as repository:
        repository.store.repository.name("passau")
        synchronizer = Synchronizer(repository.store, [EndlessLink(store, "passau")], RuleFile(f"all: {ALL}"))
        with pytest.raises(Unreachable, match="does not stay the same"):
            synchronizer.catch_up_once()
