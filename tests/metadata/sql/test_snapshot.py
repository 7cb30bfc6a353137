"""A snapshot has all metadata as of one moment, and makes another provider equal."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from tests.support.stores.server_documents import ALL, DOC, INFOS, LARGE, OTHER, RDF_XML, SCHEMA, body
from tidings.errors import InputError, SetupError
from tidings.metadata.provider.provider import Provider
from tidings.metadata.sql.log_rows import Trimmed
from tidings.store.store import Store, open_store

THIRD = "http://example.org/third.rdf"


@pytest.fixture
def provider(store: Store) -> Provider:
    made = Provider(store)
    made.load_schema(SCHEMA.body, SCHEMA.media_type)
    for uri in (DOC, OTHER):
        made.register(uri, body("host.rdf"), RDF_XML)
    return made


@pytest.fixture
def other(new_url: Callable[[], str]) -> Iterator[Store]:
    with open_store(new_url()) as store:
        yield store


def sent(provider: Provider) -> Iterator[dict[str, Any]]:
    return (json.loads(json.dumps(line)) for line in provider.snapshot())


def everything(provider: Provider, store: Store) -> object:
    documents = {uri: store.metadata.resources(uri) for uri, _ in provider.documents()}
    return provider.position, provider.schema, documents


def test_an_empty_provider_begins_with_it_and_goes_on_with_the_log(
    provider: Provider, store: Store, other: Store
) -> None:
    second = Provider(other, batch=1)
    assert second.restore(sent(provider)) == 3
    assert everything(second, other) == everything(provider, store)
    assert (second.log.first(), second.log.head()) == (4, 3)
    with pytest.raises(Trimmed):
        second.log.read(2)
    provider.remove(DOC)
    second.apply(provider.log.read(3))
    assert everything(second, other) == everything(provider, store)


def test_a_provider_that_is_behind_is_told_of_the_difference(provider: Provider, other: Store) -> None:
    second = Provider(other, batch=1)
    second.apply(provider.log.read(0))
    second.add_rules({"all": ALL, "large": LARGE, "infos": INFOS}, "ana")
    before = other.notifications.last_sequence("ana")
    provider.remove(DOC)
    provider.register(OTHER, body("host-with-32MB.rdf"), RDF_XML)
    provider.register(THIRD, body("host.rdf"), RDF_XML)
    assert second.restore(sent(provider)) == 6
    told = other.notifications.read("ana", before)
    assert {(each.kind, each.subscription, each.publication) for each in told} == {
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
    assert all(each.because for each in told)
    assert len(told) == 9 and second.restore(sent(provider)) == 6
    assert other.notifications.read("ana", before) == told


def test_what_is_no_whole_snapshot_is_refused(provider: Provider, other: Store) -> None:
    second = Provider(other)
    lines = list(sent(provider))
    wrong = json.loads(json.dumps(lines[1]))
    wrong["resources"][0]["values"]["serverPort"] = ["high"]
    unknown = json.loads(json.dumps(lines[1]))
    unknown["resources"][0]["class"] = "Nothing"
    elsewhere = lines[1] | {"document": "http://example.org/elsewhere.rdf"}
    for refused in (
        [],
        lines[1:],
        lines[:2],
        [*lines, lines[1]],
        [lines[0], wrong, lines[2]],
        [lines[0], unknown, lines[2]],
        [lines[0], elsewhere, lines[2]],
        [lines[0], {}, lines[2]],
    ):
        with pytest.raises(InputError):
            second.restore(refused)
        assert second.position == 0 and second.documents() == ()
    with pytest.raises(SetupError, match="no schema"):
        list(second.snapshot())
    provider.restore(lines)
    provider.remove(DOC)
    with pytest.raises(InputError, match="older"):
        provider.restore(lines)
