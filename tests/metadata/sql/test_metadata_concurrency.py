"""Several processes on one provider, and some that are killed."""

from __future__ import annotations

import pytest

from tests.support.processes.forked import others
from tests.support.stores.metadata_writers import SIZE, registers, registers_until_killed
from tests.support.stores.server_documents import ALL, SCHEMA
from tidings.metadata.provider.provider import Provider
from tidings.store.store import Store


@pytest.fixture
def provider(store: Store) -> Provider:
    made = Provider(store)
    made.load_schema(SCHEMA.body, SCHEMA.media_type)
    made.add_rules({"all": ALL}, "ana")
    return made


def is_whole(provider: Provider, store: Store) -> bool:
    """Each document stands in the log without a gap, is in the results, and was told once."""
    entries = provider.log.read(0, limit=10_000)
    told = store.notifications.read("ana", limit=10_000)
    documents = [each.uri for each in entries[1:]]
    hosts = sorted(f"{uri}#host" for uri in documents)
    return (
        [each.position for each in entries] == list(range(1, provider.position + 1))
        and sorted(uri for uri, _ in provider.documents()) == sorted(documents)
        and [each.uri for each in provider.results("all")] == hosts
        and sorted(each.publication for each in told) == hosts
        and [each.sequence for each in told] == list(range(1, len(hosts) + 1))
    )


def test_several_register_at_once(provider: Provider, store: Store, url: str) -> None:
    start, names = others().Barrier(3), ("a", "b")
    processes = [
        others().Process(target=registers, args=(url, each, start, 6), daemon=True) for each in names
    ]
    for process in processes:
        process.start()
    start.wait(timeout=120)
    for process in processes:
        process.join()
    provider.catch_up()
    assert [process.exitcode for process in processes] == [0, 0]
    assert provider.position == 1 + 2 * 2 * 6 and is_whole(provider, store)


def test_killed_in_the_middle_leaves_nothing_half_done(provider: Provider, store: Store, url: str) -> None:
    for times in (1, 2):
        ours, theirs = others().Pipe(duplex=False)
        writer = others().Process(target=registers_until_killed, args=(url, theirs), daemon=True)
        writer.start()
        told = [ours.recv() for _ in range(times)]
        writer.kill()
        writer.join()
        provider.catch_up()  # waits for what a server may still be doing for the one that was killed
        assert writer.exitcode == -9 and provider.position >= told[-1]
        assert (provider.position - 1) % SIZE == 0 and is_whole(provider, store)
