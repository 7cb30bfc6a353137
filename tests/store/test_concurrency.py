"""Several processes and threads that use one store, some of them killed."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime
from multiprocessing.process import BaseProcess

import pytest
from sqlalchemy import select

from tests.support.processes.forked import others
from tests.support.stores.store_writers import (
    BATCH,
    PEOPLE,
    gathered,
    gathers,
    notifies,
    opens,
    publishes,
    stages,
    stages_until_killed,
    subscribes,
    writes_until_killed,
)
from tidings.model import Publication, Subscription
from tidings.store.encoding import MatchRow
from tidings.store.store import Store, open_store
from tidings.store.tables import staged_attempts, staged_matches


def start_together(work: Callable[..., None], url: str, names: list[str], *more: int) -> list[BaseProcess]:
    """Start processes that do the work together once all of them are ready.

    They do not outlive the test run.
    """
    start = others().Barrier(len(names) + 1)
    processes = [others().Process(target=work, args=(url, name, start, *more), daemon=True) for name in names]
    for process in processes:
        process.start()
    start.wait(timeout=120)
    return processes


def all_succeeded(processes: list[BaseProcess]) -> bool:
    for process in processes:
        process.join()
    return all(process.exitcode == 0 for process in processes)


def test_open_store_concurrent_first_opens_succeed(url: str) -> None:
    assert all_succeeded(start_together(opens, url, ["a", "b", "c", "d"]))
    with open_store(url) as store:
        assert [one.position for one in store.journal.read(0)] == [1, 2, 3, 4]


def test_journal_reader_following_head_misses_no_publication(store: Store, url: str) -> None:
    names, appends = ["a", "b", "c"], 30
    processes = start_together(publishes, url, names, appends)
    seen: list[Publication] = []
    running = True
    while running:
        running = any(process.is_alive() for process in processes)
        seen += store.journal.read(len(seen), store.journal.head())
        assert not seen or seen[-1].position == len(seen)
    assert all_succeeded(processes)
    assert [one.position for one in seen] == list(range(1, len(seen) + 1))
    assert max(Counter(one.id for one in seen).values()) == 1
    shared = [one.id for one in seen if one.id.startswith("shared")]
    assert sorted(shared) == sorted(f"shared-{number}" for number in range(0, appends, 3))
    for name in names:
        own = [one.id for one in seen if one.id.startswith(f"{name}-")]
        assert own == sorted(own, key=lambda id: [int(part) for part in id.split("-")[1:]]), (
            "in the order published"
        )


def test_subscriptions_follower_misses_no_change(store: Store, url: str) -> None:
    processes = start_together(subscribes, url, ["a", "b", "c"], 20)
    known: dict[str, Subscription] = {}
    version, running = 0, True
    while running:
        running = any(process.is_alive() for process in processes)
        changes = store.subscriptions.changes(version)
        for id in changes.removed:
            del known[id]
        known |= {one.id: one for one in changes.added}
        version = changes.version
    assert all_succeeded(processes)
    assert version == 3 * 30
    assert sorted(known) == sorted(one.id for one in store.subscriptions.list())
    assert len(known) == 3 * 10


@pytest.mark.parametrize("commits", [notifies, stages])
def test_commit_batch_streams_with_shared_subscribers_leave_no_gap(
    store: Store, url: str, commits: Callable[..., None]
) -> None:
    if commits is stages and store.database.is_sqlite:
        pytest.skip("staging tables are for PostgreSQL")
    assert all_succeeded(start_together(commits, url, ["x", "y", "z"], 12))
    pairs = set()
    for person in range(40):
        read = store.notifications.read(f"user-{person}")
        assert [one.sequence for one in read] == list(range(1, len(read) + 1))
        assert store.notifications.last_sequence(f"user-{person}") == len(read)
        pairs |= {(one.publication, one.subscription) for one in read}
    assert store.notifications.count() == len(pairs)
    assert len([pair for pair in pairs if not pair[0].startswith("shared")]) == 3 * 12 * 25


def test_commit_batch_subscription_with_two_owners_notifies_once(store: Store) -> None:
    """Two streams may still see it with different owners; the second one finds the notification."""
    with ThreadPoolExecutor(2) as pool:
        for batch in range(20):
            commits = [
                pool.submit(
                    store.notifications.commit_batch, owner, batch, [MatchRow(f"p-{batch}", "s-1", owner)]
                )
                for owner in ("ana", "bo")
            ]
            assert sorted(future.result().new for future in commits) == [0, 1]
    counts = [len(store.notifications.read(owner)) for owner in ("ana", "bo")]
    assert sum(counts) == 20
    assert counts == [store.notifications.last_sequence(owner) for owner in ("ana", "bo")]


def test_hand_over_concurrent_calls_deliver_deferred_notifications_once(store: Store, url: str) -> None:
    """Streams that share subscribers commit and hand over concurrently.

    Every third subscription has no delay.
    """
    delays = (None, 10, 120)
    store.subscriptions.add_many(
        Subscription(f"s-{number}", f"user-{number}", "predicates", "a = 1", delays[number % 3])
        for number in range(20)
    )
    assert all_succeeded(start_together(gathers, url, ["x", "y", "z"], 12))
    with open_store(url, lambda: datetime(2026, 6, 1, tzinfo=UTC)) as later, ThreadPoolExecutor(6) as pool:
        rest = sum(later.notifications.deferred(f"user-{number}").count for number in range(20))
        handing_over = [pool.submit(later.notifications.hand_over) for _ in range(6)]
        assert sum(call.result() for call in handing_over) == rest > 0
        pairs: list[tuple[str, str]] = []
        for number in range(20):
            read = later.notifications.read(f"user-{number}")
            assert [one.sequence for one in read] == list(range(1, len(read) + 1))
            assert later.notifications.last_sequence(f"user-{number}") == len(read)
            pairs += [(one.publication, one.subscription) for one in read]
    assert len(pairs) == len(set(pairs))
    assert len([pair for pair in pairs if not pair[0].startswith("shared")]) == 3 * 12 * 12
    batches = [one for name in "xyz" for one in enumerate(gathered(name, 12))]
    shared = {(f"shared-{batch}", f"s-{number}") for batch, people in batches for number in people}
    assert {pair for pair in pairs if pair[0].startswith("shared")} == shared


def test_append_concurrent_threads_get_distinct_positions(store: Store) -> None:
    def publish(number: int) -> list[int]:
        results = store.journal.append([Publication(f"p-{number}", "application/json", b"{}")])
        return [result.position for result in results]

    with ThreadPoolExecutor(8) as pool:
        positions = [position for assigned in pool.map(publish, range(80)) for position in assigned]
    assert sorted(positions) == list(range(1, 81))


@pytest.mark.parametrize("seed", [1, 2])
def test_killed_writer_leaves_no_gap_and_no_partial_batch(store: Store, url: str, seed: int) -> None:
    choose, batch = random.Random(seed), -1
    for _ in range(2):
        batch = run_and_kill(url, batch + 1, after=choose.randint(1, 3))
    whole = store.journal.head() // BATCH
    assert store.journal.head() == whole * BATCH
    assert [one.position for one in store.journal.read(0)] == list(range(1, whole * BATCH + 1))
    last = store.notifications.last_batch("main")
    assert last is not None and whole - 1 <= last + 1 <= whole
    for person in range(PEOPLE):
        read = store.notifications.read(f"user-{person}", limit=whole * BATCH)
        assert [one.sequence for one in read] == list(range(1, (last + 1) * BATCH // PEOPLE + 1))


@pytest.mark.parametrize("seed", [1, 2])
def test_killed_stager_leaves_no_gap_and_no_partial_batch(store: Store, url: str, seed: int) -> None:
    if store.database.is_sqlite:
        pytest.skip("staging tables are for PostgreSQL")
    choose, batch = random.Random(seed), -1
    for _ in range(3):
        batch = run_and_kill(url, batch + 1, choose.randint(1, 3), stages_until_killed)
    last = store.notifications.last_batch("main")
    assert last is not None and last >= batch
    for person in range(PEOPLE):
        read = store.notifications.read(f"user-{person}", limit=(last + 1) * BATCH)
        assert [one.sequence for one in read] == list(range(1, (last + 1) * BATCH // PEOPLE + 1))
        assert len({one.publication for one in read}) == len(read)
    store.staged_rows.commit("main", last + 1, {})
    with store.database.read() as connection:
        assert connection.execute(select(staged_attempts)).all() == []
        assert connection.execute(select(staged_matches)).all() == []


def run_and_kill(url: str, first: int, after: int, work: Callable[..., None] = writes_until_killed) -> int:
    """Let a writer commit some batches, kill -9 it during the next one, and complete that one.

    The last committed batch is repeated too: a stream does this if it was killed before it noted its commit.
    """
    receiver, sender = others().Pipe(duplex=False)
    writer = others().Process(target=work, args=(url, sender, first), daemon=True)
    writer.start()
    committed = [receiver.recv() for _ in range(after)][-1]
    writer.kill()
    writer.join()
    assert writer.exitcode == -9
    repeater = others().Process(target=work, args=(url, sender, committed), daemon=True)
    repeater.start()
    while receiver.recv() <= committed:
        pass
    repeater.kill()
    repeater.join()
    return committed + 1
