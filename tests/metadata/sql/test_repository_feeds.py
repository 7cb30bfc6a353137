"""Change sets for repositories, and pages of the log, on SQLite and PostgreSQL."""

from __future__ import annotations

from threading import Barrier, Thread

import pytest

from tests.support.stores.server_documents import ALL, DOC, HOST, INFO, LARGE, OTHER, RDF_XML, SCHEMA, body
from tidings.errors import Gone, InputError
from tidings.metadata.provider.provider import Provider
from tidings.store.store import Store


@pytest.fixture
def provider(store: Store) -> Provider:
    opened = Provider(store)
    opened.load_schema(SCHEMA.body, SCHEMA.media_type)
    opened.set_rules({"large": LARGE, "all": ALL}, "passau", "passau/")
    return opened


def test_changes_and_state_are_of_one_position(store: Store, provider: Provider) -> None:
    provider.register(DOC, body("host.rdf"), RDF_XML)
    changes = store.repositories.changes("passau", 0)
    assert sorted((move.rule, move.uri, move.kind) for move in changes.moves) == [
        ("all", HOST, "entered"),
        ("large", HOST, "entered"),
    ]
    assert [each.uri for each in changes.resources] == [HOST, INFO]
    state = store.repositories.state("passau")
    assert state.members == {"all": (HOST,), "large": (HOST,)} and state.resources == changes.resources
    assert (state.sequence, state.position) == (changes.sequence, changes.position) == (2, 2)


def test_changes_omit_resources_that_left_again(store: Store, provider: Provider) -> None:
    provider.register(DOC, body("host.rdf"), RDF_XML)
    provider.remove(DOC)
    changes = store.repositories.changes("passau", 0)
    assert len(changes.moves) == 4 and changes.resources == ()


def test_changes_exclude_subscriber_with_same_name(store: Store, provider: Provider) -> None:
    """Rules of a subscriber are not those of the repository, though they share a sequence."""
    provider.add_rules({"mine": ALL}, "passau")
    provider.register(DOC, body("host.rdf"), RDF_XML)
    changes = store.repositories.changes("passau", 0)
    assert {move.rule for move in changes.moves} == {"large", "all"} and changes.sequence == 3
    assert store.repositories.rules("passau") == {"all": ALL, "large": LARGE}
    store.repositories.forget("passau")
    assert [each.subscription for each in store.notifications.read("passau")] == ["mine"]


def test_changes_unknown_or_deleted_number_is_gone(store: Store, provider: Provider) -> None:
    provider.register(DOC, body("host.rdf"), RDF_XML)
    assert store.repositories.changes("passau", 2).moves == ()
    with pytest.raises(Gone, match="no such sequence number yet"):
        store.repositories.changes("passau", 3)
    store.repositories.forget("passau")
    with pytest.raises(Gone, match="were deleted"):
        store.repositories.changes("passau", 1)
    assert store.repositories.changes("passau", 2).moves == ()


def test_acknowledge_deletes_moves_except_latest(store: Store, provider: Provider) -> None:
    """Later moves are sent as before, and a repository that needs older ones starts anew."""
    for file in ("host.rdf", "host-with-32MB.rdf", "host.rdf"):
        provider.register(DOC, body(file), RDF_XML)
    before = store.repositories.changes("passau", 2)
    last = before.sequence
    assert store.repositories.acknowledge("passau", 2, keep=2) == 0
    assert store.repositories.acknowledge("passau", 2, keep=1) == 2
    assert store.repositories.changes("passau", 2) == before
    with pytest.raises(Gone, match="were deleted"):
        store.repositories.changes("passau", 1)
    assert store.repositories.acknowledge("passau", last, keep=0) == last - 2
    assert store.repositories.changes("passau", last).moves == ()
    provider.remove(DOC)
    assert {move.sequence for move in store.repositories.changes("passau", last).moves} == {
        last + 1,
        last + 2,
    }


def test_changes_gap_is_detected_despite_subscriber_with_same_name(store: Store, provider: Provider) -> None:
    provider.add_rules({"mine": ALL}, "passau")
    for _ in range(2):
        provider.register(DOC, body("host.rdf"), RDF_XML)
        provider.remove(DOC)
    last = store.repositories.standing("passau").sequence
    store.repositories.acknowledge("passau", last, keep=0)
    kept = [each.sequence for each in store.notifications.read("passau")]
    assert len(kept) == 4 and store.repositories.changes("passau", last).moves == ()
    for after in range(last):
        with pytest.raises(Gone, match="were deleted"):
            store.repositories.changes("passau", after)


@pytest.mark.parametrize("name", ["", "a/b", "a b", "ä", "x" * 101])
def test_state_invalid_repository_name_is_rejected(store: Store, name: str) -> None:
    with pytest.raises(InputError, match="not a name of a repository"):
        store.repositories.state(name)


def test_replication_page_returns_entries_after_position(store: Store, provider: Provider) -> None:
    provider.register(DOC, body("host.rdf"), RDF_XML)
    provider.register(OTHER, body("host.rdf"), RDF_XML)
    page = store.replication.page(1, 10)
    assert (page.provider, page.first, page.head) == (provider.id, 1, 3)
    assert list(page.entries) == store.metadata.log.read(1)
    assert [each.position for each in store.replication.page(0, 2).entries] == [1, 2]
    assert [each.position for each in store.replication.page(1, 10, 1).entries] == [2]
    store.metadata.log.trim(2)
    with pytest.raises(Gone, match="begins at position 3"):
        store.replication.page(1, 10)
    assert store.replication.page(3, 10).entries == ()


def test_follow_leader_blocks_direct_changes(store: Store, provider: Provider) -> None:
    store.replication.follow("http://example.org")
    store.replication.follow("http://example.com")
    assert store.replication.status().leader == "http://example.com"
    with pytest.raises(InputError, match="follows another one"):
        provider.remove(DOC)
    with pytest.raises(InputError, match="follows another one"):
        provider.append([])
    store.replication.follow(None)
    assert store.replication.leader() is None
    assert provider.register(DOC, body("host.rdf"), RDF_XML).position == 2


def test_state_during_registration_is_consistent(store: Store, provider: Provider) -> None:
    """Members, resources and the position always agree."""
    ready = Barrier(2)

    def register() -> None:
        ready.wait()
        for number in range(12):
            if number % 2:
                provider.remove(DOC)
            else:
                provider.register(DOC, body("host.rdf"), RDF_XML)

    writer = Thread(target=register)
    writer.start()
    ready.wait()
    while True:
        state = store.repositories.state("passau")
        # The schema is at 1; even positions register, odd ones remove.
        is_registered = state.position % 2 == 0
        assert state.members["all"] == ((HOST,) if is_registered else ())
        assert [each.uri for each in state.resources] == ([HOST, INFO] if is_registered else [])
        assert state.sequence == 2 * (state.position - 1)
        if state.position == 13:
            break
    writer.join()
