"""A snapshot has all metadata of one position, and makes another provider equal."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from tests.support.stores.server_documents import ALL, DOC, INFOS, LARGE, OTHER, RDF_XML, SCHEMA, body
from tidings.errors import InputError, SetupError
from tidings.metadata.provider.provider import Provider
from tidings.metadata.sql.log_rows import LogTrimmed
from tidings.store.store import Store, open_store

THIRD = "http://example.org/third.rdf"


@pytest.fixture
def provider(store: Store) -> Provider:
    opened = Provider(store)
    opened.load_schema(SCHEMA.body, SCHEMA.media_type)
    for uri in (DOC, OTHER):
        opened.register(uri, body("host.rdf"), RDF_XML)
    return opened


@pytest.fixture
def other(new_url: Callable[[], str]) -> Iterator[Store]:
    with open_store(new_url()) as store:
        yield store


def snapshot_lines(provider: Provider) -> Iterator[dict[str, Any]]:
    return (json.loads(json.dumps(line)) for line in provider.snapshot())


def metadata_state(provider: Provider, store: Store) -> object:
    documents = {uri: store.metadata.resources(uri) for uri, _ in provider.documents()}
    return provider.position, provider.schema, documents


def test_restore_new_provider_continues_with_log(provider: Provider, store: Store, other: Store) -> None:
    second = Provider(other, batch=1)
    assert second.restore(snapshot_lines(provider)) == 3
    assert metadata_state(second, other) == metadata_state(provider, store)
    assert (second.log.first(), second.log.head()) == (4, 3)
    with pytest.raises(LogTrimmed):
        second.log.read(2)
    provider.remove(DOC)
    second.apply(provider.log.read(3))
    assert metadata_state(second, other) == metadata_state(provider, store)


def test_restore_outdated_provider_notifies_differences(provider: Provider, other: Store) -> None:
    second = Provider(other, batch=1)
    second.apply(provider.log.read(0))
    second.add_rules({"all": ALL, "large": LARGE, "infos": INFOS}, "ana")
    before = other.notifications.last_sequence("ana")
    provider.remove(DOC)
    provider.register(OTHER, body("host-with-32MB.rdf"), RDF_XML)
    provider.register(THIRD, body("host.rdf"), RDF_XML)
    assert second.restore(snapshot_lines(provider)) == 6
    notifications = other.notifications.read("ana", before)
    assert {(each.kind, each.subscription, each.publication) for each in notifications} == {
        ("left", "all", f"{DOC}#host"),
        ("left", "large", f"{DOC}#host"),
        ("left", "infos", f"{DOC}#info"),
        ("changed", "all", f"{OTHER}#host"),
        ("left", "large", f"{OTHER}#host"),
        ("changed", "infos", f"{OTHER}#info"),
        ("entered", "all", f"{THIRD}#host"),
        ("entered", "large", f"{THIRD}#host"),
        ("entered", "infos", f"{THIRD}#info"),
    }
    assert all(each.because for each in notifications)
    assert len(notifications) == 9 and second.restore(snapshot_lines(provider)) == 6
    assert other.notifications.read("ana", before) == notifications


def test_restore_incomplete_or_invalid_snapshot_is_rejected(provider: Provider, other: Store) -> None:
    second = Provider(other)
    lines = list(snapshot_lines(provider))
    invalid_value = json.loads(json.dumps(lines[1]))
    invalid_value["resources"][0]["values"]["serverPort"] = ["high"]
    unknown = json.loads(json.dumps(lines[1]))
    unknown["resources"][0]["class"] = "Nothing"
    elsewhere = lines[1] | {"document": "http://example.org/elsewhere.rdf"}
    for invalid in (
        [],
        lines[1:],
        lines[:2],
        [*lines, lines[1]],
        [lines[0], invalid_value, lines[2]],
        [lines[0], unknown, lines[2]],
        [lines[0], elsewhere, lines[2]],
        [lines[0], {}, lines[2]],
    ):
        with pytest.raises(InputError):
            second.restore(invalid)
        assert second.position == 0 and second.documents() == ()
    with pytest.raises(SetupError, match="no schema"):
        list(second.snapshot())
    provider.restore(lines)
    provider.remove(DOC)
    with pytest.raises(InputError, match="older"):
        provider.restore(lines)
