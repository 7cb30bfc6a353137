"""What repositories are told, and pages of the log, on SQLite and PostgreSQL."""

from __future__ import annotations

from threading import Barrier, Thread

import pytest

from tests.support.stores.server_documents import ALL, DOC, HOST, INFO, LARGE, OTHER, RDF_XML, SCHEMA, body
from tidings.errors import Gone, InputError
from tidings.metadata.provider.provider import Provider
from tidings.store.store import Store


@pytest.fixture
def provider(store: Store) -> Provider:
    made = Provider(store)
    made.load_schema(SCHEMA.body, SCHEMA.media_type)
    made.set_rules({"large": LARGE, "all": ALL}, "passau", "passau/")
    return made


def test_changes_and_state_are_of_one_moment(store: Store, provider: Provider) -> None:
    provider.register(DOC, body("host.rdf"), RDF_XML)
    told = store.repositories.changes("passau", 0)
    assert sorted((move.rule, move.uri, move.kind) for move in told.moves) == [
        ("all", HOST, "entered"),
        ("large", HOST, "entered"),
    ]
    assert [each.uri for each in told.resources] == [HOST, INFO]
    state = store.repositories.state("passau")
    assert state.members == {"all": (HOST,), "large": (HOST,)} and state.resources == told.resources
    assert (state.sequence, state.position) == (told.sequence, told.position) == (2, 2)


def test_what_left_again_is_not_sent(store: Store, provider: Provider) -> None:
    provider.register(DOC, body("host.rdf"), RDF_XML)
    provider.remove(DOC)
    told = store.repositories.changes("passau", 0)
    assert len(told.moves) == 4 and told.resources == ()


def test_somebody_else_of_the_same_name(store: Store, provider: Provider) -> None:
    """A person's rules are not a repository's, though both are told in one sequence."""
    provider.add_rules({"mine": ALL}, "passau")
    provider.register(DOC, body("host.rdf"), RDF_XML)
    told = store.repositories.changes("passau", 0)
    assert {move.rule for move in told.moves} == {"large", "all"} and told.sequence == 3
    assert store.repositories.rules("passau") == {"all": ALL, "large": LARGE}
    store.repositories.forget("passau")
    assert [each.subscription for each in store.notifications.read("passau")] == ["mine"]


def test_numbers_that_are_not_there(store: Store, provider: Provider) -> None:
    provider.register(DOC, body("host.rdf"), RDF_XML)
    assert store.repositories.changes("passau", 2).moves == ()
    with pytest.raises(Gone, match="no such sequence number yet"):
        store.repositories.changes("passau", 3)
    store.repositories.forget("passau")
    with pytest.raises(Gone, match="were deleted"):
        store.repositories.changes("passau", 1)
    assert store.repositories.changes("passau", 2).moves == ()


def test_what_is_acknowledged_is_forgotten(store: Store, provider: Provider) -> None:
    """What comes is told as before, and who asks for something older begins anew."""
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


def test_numbers_of_somebody_of_the_same_name_do_not_hide_a_gap(store: Store, provider: Provider) -> None:
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
def test_names_of_repositories(store: Store, name: str) -> None:
    with pytest.raises(InputError, match="not a name of a repository"):
        store.repositories.state(name)


def test_pages_of_the_log(store: Store, provider: Provider) -> None:
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


def test_whom_a_provider_follows(store: Store, provider: Provider) -> None:
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


def test_reading_while_somebody_registers(store: Store, provider: Provider) -> None:
    """Members, resources and the position always fit together."""
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
        there = state.position % 2 == 0  # the schema is at 1; even positions register, odd ones remove
        assert state.members["all"] == ((HOST,) if there else ())
        assert [each.uri for each in state.resources] == ([HOST, INFO] if there else [])
        assert state.sequence == 2 * (state.position - 1)
        if state.position == 13:
            break
    writer.join()
