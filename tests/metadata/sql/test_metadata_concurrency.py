"""Several processes on one provider, some of them killed."""

from __future__ import annotations

import pytest

from tests.support.processes.forked import others
from tests.support.stores.metadata_writers import SIZE, registers, registers_until_killed
from tests.support.stores.server_documents import ALL, SCHEMA
from tidings.metadata.provider.provider import Provider
from tidings.store.store import Store


@pytest.fixture
def provider(store: Store) -> Provider:
    opened = Provider(store)
    opened.load_schema(SCHEMA.body, SCHEMA.media_type)
    opened.add_rules({"all": ALL}, "ana")
    return opened


def is_consistent(provider: Provider, store: Store) -> bool:
    """Check that each document is in the log without a gap, in the results, and notified once."""
    entries = provider.log.read(0, limit=10_000)
    notifications = store.notifications.read("ana", limit=10_000)
    documents = [each.uri for each in entries[1:]]
    hosts = sorted(f"{uri}#host" for uri in documents)
    return (
        [each.position for each in entries] == list(range(1, provider.position + 1))
        and sorted(uri for uri, _ in provider.documents()) == sorted(documents)
        and [each.uri for each in provider.results("all")] == hosts
        and sorted(each.publication for each in notifications) == hosts
        and [each.sequence for each in notifications] == list(range(1, len(hosts) + 1))
    )


def test_register_concurrent_processes_leave_consistent_state(
    provider: Provider, store: Store, url: str
) -> None:
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
    assert provider.position == 1 + 2 * 2 * 6 and is_consistent(provider, store)


def test_register_killed_process_leaves_consistent_state(provider: Provider, store: Store, url: str) -> None:
    for times in (1, 2):
        receiver, sender = others().Pipe(duplex=False)
        writer = others().Process(target=registers_until_killed, args=(url, sender), daemon=True)
        writer.start()
        positions = [receiver.recv() for _ in range(times)]
        writer.kill()
        writer.join()
        provider.catch_up()  # waits for what a server may still be doing for the killed process
        assert writer.exitcode == -9 and provider.position >= positions[-1]
        assert (provider.position - 1) % SIZE == 0 and is_consistent(provider, store)
