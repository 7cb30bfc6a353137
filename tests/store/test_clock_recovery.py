"""Rows that wait for a time of a clock that was set back by a day, on SQLite and PostgreSQL."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from datetime import timedelta

import pytest
from sqlalchemy import insert

from tests.support.stores.notified_store import Clock
from tidings.delivery.sql.cursors import RunOutcome
from tidings.delivery.sql.dead_deliveries import DeadDelivery, add_dead_delivery
from tidings.delivery.sql.destination_store import Destination
from tidings.feeds.sql.hub_store import HubRequest
from tidings.feeds.sql.tables import hub_intents
from tidings.model import Subscription
from tidings.store.clock_recovery import SET_BACK, WAITING
from tidings.store.encoding import MatchRow, format_instant
from tidings.store.store import Store, open_store
from tidings.store.tables import deferral_deadlines, metadata

DAY = 24 * 60 * 60
LEASE = timedelta(minutes=2)


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def store(url: str, clock: Clock) -> Iterator[Store]:
    """Ana has a destination and a notification."""
    with open_store(url, clock) as opened:
        opened.subscriptions.add(Subscription("s-1", "ana", "predicates", "price < 200"))
        opened.destinations.add(Destination("", "ana", None, "webhook", "http://x.example/", "x.example"))
        opened.notifications.commit_batch("main", 0, [MatchRow("p-1", "s-1", "ana")])
        opened.delivery_cursors.wake(10)
        yield opened


def lease_lane(store: Store) -> None:
    assert take_lane(store) == 1


def retry_lane(store: Store) -> None:
    [lane] = store.delivery_cursors.take(1, LEASE)
    assert store.delivery_cursors.finish([(lane, RunOutcome(0, 0, "status 500", wait=5.0))]) == [True]


def put_off_lane(store: Store) -> None:
    [lane] = store.delivery_cursors.take(1, LEASE)
    assert store.delivery_cursors.put_off([(lane, store.delivery_cursors.now() + timedelta(hours=8))]) == 1


def take_lane(store: Store) -> int:
    return len(store.delivery_cursors.take(1, LEASE))


def bury_letter(store: Store) -> None:
    [destination] = store.destinations.list()
    letter = DeadDelivery(
        destination.id, "s-1", "ana", "x.example", 1, 1, False, "m", "status 500", 9, "2026"
    )
    store.database.transact(lambda connection: add_dead_delivery(connection, letter))
    store.dead_deliveries.replay(destination.id)


def lease_letter(store: Store) -> None:
    bury_letter(store)
    assert take_letter(store) == 1


def retry_letter(store: Store) -> None:
    bury_letter(store)
    [letter] = store.dead_deliveries.take(1, LEASE)
    store.dead_deliveries.record_failure(letter, "status 500", 5.0)


def take_letter(store: Store) -> int:
    return len(store.dead_deliveries.take(1, LEASE))


def request_subscription(store: Store) -> None:
    store.hub.ask(HubRequest("h", "rss", "http://x.example/", "subscribe", None, 3_600, "c"), 10)


def lease_intent(store: Store) -> None:
    request_subscription(store)
    assert take_intent(store) == 1


def retry_intent(store: Store) -> None:
    request_subscription(store)
    [intent] = store.hub.take_intents(1)
    store.hub.postpone(intent, 30)


def take_intent(store: Store) -> int:
    return len(store.hub.take_intents(1))


CASES = (
    (lease_lane, take_lane),
    (retry_lane, take_lane),
    (put_off_lane, take_lane),
    (lease_letter, take_letter),
    (retry_letter, take_letter),
    (lease_intent, take_intent),
    (retry_intent, take_intent),
)


@pytest.mark.parametrize(("wait", "take"), CASES, ids=[wait.__name__ for wait, _ in CASES])
def test_look_clock_set_back_by_day_makes_waiting_rows_due(
    store: Store, clock: Clock, wait: Callable[[Store], None], take: Callable[[Store], int]
) -> None:
    wait(store)
    assert (store.clock_recovery.look(), take(store)) == (0, 0), "the clock was not set back"
    clock.go(-DAY)
    assert take(store) == 0
    assert (store.clock_recovery.look(), take(store)) == (1, 1)
    clock.go(-1)
    assert (store.clock_recovery.look(), take(store)) == (0, 0), "the new lease follows the current clock"


@pytest.mark.parametrize(("wait", "take"), CASES, ids=[wait.__name__ for wait, _ in CASES])
def test_look_restart_with_clock_set_back_makes_waiting_rows_due(
    store: Store, url: str, clock: Clock, wait: Callable[[Store], None], take: Callable[[Store], int]
) -> None:
    wait(store)
    clock.go(-DAY)
    with open_store(url, clock) as restarted:
        assert (restarted.clock_recovery.look(), take(restarted)) == (1, 1)


def test_look_small_clock_difference_keeps_leases(store: Store, clock: Clock) -> None:
    lease_lane(store)
    clock.go(-SET_BACK.total_seconds())
    assert (store.clock_recovery.look(), take_lane(store)) == (0, 0)


def test_look_rows_that_do_not_wait_are_unchanged(store: Store, clock: Clock) -> None:
    [lane] = store.delivery_cursors.take(1, LEASE)
    assert store.delivery_cursors.finish([(lane, RunOutcome(1, 1))]) == [True]
    bury_letter(store)
    [letter] = store.dead_deliveries.take(1, LEASE)
    store.dead_deliveries.record_failure(letter, "status 500", None)
    clock.go(-DAY)
    assert (store.clock_recovery.look(), take_lane(store), take_letter(store)) == (0, 0, 0)


def test_look_rows_of_older_version_are_unchanged(store: Store, clock: Clock) -> None:
    """They have no `since`, so nothing shows whether the clock was set back."""
    row = {"address": "h", "format": "rss", "callback": "http://y.example/", "mode": "denied", "lease": 0}
    row |= {"attempts": 0, "challenge": "c", "due": format_instant(clock() + timedelta(days=1))}
    store.database.transact(lambda connection: connection.execute(insert(hub_intents), row))
    assert store.clock_recovery.look() == 0


def test_waiting_covers_all_tables_of_delivery_and_hub() -> None:
    """Delayed notifications have a `since` of their own, and feeds the time of their last poll."""
    with_due = {table for table in metadata.tables.values() if "due" in table.c}
    assert with_due == {*WAITING, deferral_deadlines}
