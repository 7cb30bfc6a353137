"""Many cursors with few notifications each: shared queries run once, and no host delays another."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace

import pytest
from sqlalchemy import event as database_event

from tests.delivery.delivery_setup import OK, RULES, DeliverySetup, event, open_delivery, subjects
from tests.feeds.hub.callbacks import eventually
from tests.support.servers.site import Request, Site, a_site
from tests.support.stores.notified_store import BECAUSE
from tidings.delivery.quiet_hours import parse_quiet_hours
from tidings.delivery.sql.destination_store import Destination
from tidings.model import Publication, Subscription
from tidings.store.encoding import MatchRow
from tidings.store.store import Store

WORKERS = 32


@pytest.fixture
def delivery(url: str) -> Iterator[DeliverySetup]:
    with open_delivery(url, replace(RULES, workers=WORKERS + 1, per_host=WORKERS + 1)) as setup:
        yield setup


def notify_all(
    delivery: DeliverySetup, site: Site, name: str, count: int, publications: int = 1, within: int = 0
) -> list[str]:
    """Create subscribers with a subscription and a webhook each, and notify all of them.

    Return their names. Each gets as many publications as asked for.
    """
    site.pages["/"] = OK
    delivery.batches += 1
    owners = [f"{name}-{number:03}" for number in range(count)]
    published = [f"p-{delivery.batches}-{number}" for number in range(publications)]
    delivery.store.journal.append(
        [Publication(one, "application/json", b'{"price": 180}') for one in published]
    )
    delivery.store.subscriptions.add_many(
        [Subscription(f"s-{owner}", owner, "predicates", "price < 200", within or None) for owner in owners]
    )
    for owner in owners:
        delivery.store.destinations.add(
            Destination("", owner, None, "webhook", site.url("/"), f"{site.url()}", secret="whsec_c2VjcmV0")
        )
    matches = [MatchRow(one, f"s-{owner}", owner, BECAUSE) for one in published for owner in owners]
    delivery.store.notifications.commit_batch("test", delivery.batches, matches)
    return owners


@contextmanager
def recorded_statements(store: Store) -> Iterator[list[str]]:
    """Record the beginnings of the statements that are run: lists in them may differ in length."""
    statements: list[str] = []

    def note(connection: object, cursor: object, statement: str, *_: object) -> None:
        statements.append(statement.partition(" IN (")[0])

    database_event.listen(store.database.engine, "before_cursor_execute", note)
    try:
        yield statements
    finally:
        database_event.remove(store.database.engine, "before_cursor_execute", note)


def count_by_subscriber(requests: list[Request]) -> Counter[str]:
    """Return the number of notifications of each subscriber."""
    return Counter(event(one)["data"]["subscriber"] for one in requests)


def record_rounds(
    delivery: DeliverySetup, prepare: Callable[[str, int], list[str]]
) -> tuple[list[str], list[str]]:
    """Return the statements of a round for few and for many cursors.

    The check for a clock that was set back runs once a minute, so it comes first.
    """
    delivery.store.clock_recovery.look()
    rounds = []
    for name, count in (("few", 2), ("many", WORKERS)):
        prepare(name, count)
        with recorded_statements(delivery.store) as statements:
            assert delivery.worker.step() == count
        rounds.append(statements)
    return rounds[0], rounds[1]


def test_round_many_cursors_run_as_many_statements_as_few(delivery: DeliverySetup, site: Site) -> None:
    few, many = record_rounds(
        delivery, lambda name, count: notify_all(delivery, site, name, count, publications=2)
    )
    assert few == many
    assert (
        set(count_by_subscriber(site.requests).values()) == {2}
        and len(count_by_subscriber(site.requests)) == 2 + WORKERS
    )


def test_round_many_digests_run_as_many_statements_as_few(delivery: DeliverySetup, site: Site) -> None:
    def prepare(name: str, count: int) -> list[str]:
        owners = notify_all(delivery, site, name, count, publications=3, within=60)
        delivery.clock.go(60)
        return owners

    few, many = record_rounds(delivery, prepare)
    assert few == many
    assert {event(one)["data"]["count"] for one in site.requests} == {3}
    assert len(count_by_subscriber(site.requests)) == 2 + WORKERS


def test_round_many_quiet_hours_run_as_many_statements_as_few(delivery: DeliverySetup, site: Site) -> None:
    def prepare(name: str, count: int) -> list[str]:
        owners = notify_all(delivery, site, name, count)
        for owner in owners:
            delivery.store.preferences.set_quiet(owner, parse_quiet_hours(owner, "11:00", "13:00", "UTC"))
        return owners

    few, many = record_rounds(delivery, prepare)
    assert few == many and site.requests == []
    delivery.clock.go(3_600)
    delivery.steps()
    assert len(count_by_subscriber(site.requests)) == 2 + WORKERS


def test_round_many_paused_destinations_run_as_many_statements_as_few(
    delivery: DeliverySetup, site: Site
) -> None:
    def prepare(name: str, count: int) -> list[str]:
        owners = notify_all(delivery, site, name, count)
        delivery.store.delivery_cursors.wake(100)
        for destination in delivery.store.destinations.list():
            delivery.store.database.transact(
                lambda c, id=destination.id: c.exec_driver_sql(PAUSED.format(id))
            )  # type: ignore[misc]
        return owners

    few, many = record_rounds(delivery, prepare)
    assert few == many and site.requests == []
    for destination in delivery.store.destinations.list():
        delivery.store.destinations.resume(destination.id)
    delivery.steps()
    assert len(count_by_subscriber(site.requests)) == 2 + WORKERS


PAUSED = "UPDATE destinations SET state = 'paused' WHERE id = '{}'"
"""Pause a destination but not its cursors, as if it came between two queries."""


def test_take_busy_host_leaves_cursors_of_other_hosts(url: str, site: Site) -> None:
    """The busy host has one free place, and many of its cursors are due before the other's."""
    with open_delivery(url, replace(RULES, workers=4, per_host=2)) as delivery, a_site("127.0.0.2") as other:
        notify_all(delivery, site, "crowd", 40)
        delivery.store.delivery_cursors.wake(100)
        delivery.clock.go(1)
        notify_all(delivery, other, "single", 1)
        delivery.store.delivery_cursors.wake(100)
        place = site.url()
        leases = delivery.store.delivery_cursors.take(3, RULES.lease, {place: 1}, 2)
        assert Counter(one.host for one in leases) == {place: 1, other.url(): 1}


def test_two_workers_send_each_notification_once(url: str, site: Site) -> None:
    with open_delivery(url, replace(RULES, workers=8, per_host=8)) as delivery:
        notify_all(delivery, site, "u", 60, publications=3)
        with delivery.new_worker(), delivery.new_worker():
            eventually(lambda: sum(one.count for one in delivery.events) >= 180)
        assert count_by_subscriber(site.requests) == {f"u-{number:03}": 3 for number in range(60)}
        for subscriber in count_by_subscriber(site.requests):
            mine = [
                event(one)["data"]["sequence"]
                for one in site.requests
                if count_by_subscriber([one])[subscriber]
            ]
            assert mine == [1, 2, 3]


def test_run_is_limited_in_bytes_of_publications(url: str, site: Site) -> None:
    """All messages of a run are in memory at the same time, for each thread."""
    with open_delivery(url, replace(RULES, run_bytes=70_000)) as delivery:
        delivery.subscribe("ana", "s-1")
        delivery.webhook(site)
        delivery.notify("ana", "s-1", "p-1", "p-2", "p-3", body="x" * 30_000)
        delivery.notify("ana", "s-1", "p-4", body="x" * 90_000)
        runs = []
        while delivery.worker.step():
            runs.append(subjects(site.requests))
            site.requests.clear()
        assert runs == [["p-1", "p-2"], ["p-3"], ["p-4"]]
