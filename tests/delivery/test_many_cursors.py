"""Many lanes with little in each: what they have in common is asked and written once, and no host holds up another."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace

import pytest
from sqlalchemy import event as database_event

from tests.delivery.delivering_store import OK, RULES, Delivering, delivering, event, subjects
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
def at(url: str) -> Iterator[Delivering]:
    with delivering(url, replace(RULES, workers=WORKERS + 1, per_host=WORKERS + 1)) as made:
        yield made


def tell_all(at: Delivering, site: Site, name: str, count: int, each: int = 1, within: int = 0) -> list[str]:
    """So many people, each with a subscription and a webhook, are told of a few publications; their names."""
    site.pages["/"] = OK
    at.batches += 1
    owners = [f"{name}-{number:03}" for number in range(count)]
    published = [f"p-{at.batches}-{number}" for number in range(each)]
    at.store.journal.append([Publication(one, "application/json", b'{"price": 180}') for one in published])
    at.store.subscriptions.add_many(
        [Subscription(f"s-{who}", who, "predicates", "price < 200", within or None) for who in owners]
    )
    for who in owners:
        at.store.destinations.add(
            Destination("", who, None, "webhook", site.url("/"), f"{site.url()}", secret="whsec_c2VjcmV0")
        )
    found = [MatchRow(one, f"s-{who}", who, BECAUSE) for one in published for who in owners]
    at.store.notifications.commit_batch("test", at.batches, found)
    return owners


@contextmanager
def counted(store: Store) -> Iterator[list[str]]:
    """How the statements begin that are run meanwhile: some have a list in them, which may be longer."""
    ran: list[str] = []

    def note(connection: object, cursor: object, statement: str, *_: object) -> None:
        ran.append(statement.partition(" IN (")[0])

    database_event.listen(store.database.engine, "before_cursor_execute", note)
    try:
        yield ran
    finally:
        database_event.remove(store.database.engine, "before_cursor_execute", note)


def told(requests: list[Request]) -> Counter[str]:
    """How often each was told of something."""
    return Counter(event(one)["data"]["subscriber"] for one in requests)


def statements(at: Delivering, prepare: Callable[[str, int], list[str]]) -> tuple[list[str], list[str]]:
    """What is run in a round for few, and for many. Rows of a clock that was set back are looked for once a minute."""
    at.store.clock_recovery.look()
    ran = []
    for name, count in (("few", 2), ("many", WORKERS)):
        prepare(name, count)
        with counted(at.store) as each:
            assert at.loop.step() == count
        ran.append(each)
    return ran[0], ran[1]


def test_many_lanes_take_as_many_statements_as_few(at: Delivering, site: Site) -> None:
    few, many = statements(at, lambda name, count: tell_all(at, site, name, count, each=2))
    assert few == many
    assert set(told(site.requests).values()) == {2} and len(told(site.requests)) == 2 + WORKERS


def test_so_do_digests(at: Delivering, site: Site) -> None:
    def gathered(name: str, count: int) -> list[str]:
        owners = tell_all(at, site, name, count, each=3, within=60)
        at.clock.go(60)
        return owners

    few, many = statements(at, gathered)
    assert few == many
    assert {event(one)["data"]["count"] for one in site.requests} == {3}
    assert len(told(site.requests)) == 2 + WORKERS


def test_so_do_quiet_hours(at: Delivering, site: Site) -> None:
    def left_alone(name: str, count: int) -> list[str]:
        owners = tell_all(at, site, name, count)
        for who in owners:
            at.store.preferences.set_quiet(who, parse_quiet_hours(who, "11:00", "13:00", "UTC"))
        return owners

    few, many = statements(at, left_alone)
    assert few == many and site.requests == []
    at.clock.go(3_600)
    at.steps()
    assert len(told(site.requests)) == 2 + WORKERS


def test_so_do_lanes_of_destinations_that_are_paused(at: Delivering, site: Site) -> None:
    def paused(name: str, count: int) -> list[str]:
        owners = tell_all(at, site, name, count)
        at.store.delivery_cursors.wake(100)
        for one in at.store.destinations.list():
            at.store.database.transact(lambda c, id=one.id: c.exec_driver_sql(PAUSED.format(id)))  # type: ignore[misc]
        return owners

    few, many = statements(at, paused)
    assert few == many and site.requests == []
    for one in at.store.destinations.list():
        at.store.destinations.resume(one.id)
    at.steps()
    assert len(told(site.requests)) == 2 + WORKERS


PAUSED = "UPDATE destinations SET state = 'paused' WHERE id = '{}'"
"""Without what pausing does to lanes: as if it came in between."""


def test_a_host_with_many_lanes_before_others_does_not_hold_them_up(url: str, site: Site) -> None:
    """One of the places that the host may have is free again, and hundreds of its lanes are due before that of
    another.
    """
    with delivering(url, replace(RULES, workers=4, per_host=2)) as at, a_site("127.0.0.2") as other:
        tell_all(at, site, "crowd", 40)
        at.store.delivery_cursors.wake(100)
        at.clock.go(1)
        tell_all(at, other, "single", 1)
        at.store.delivery_cursors.wake(100)
        place = site.url()
        taken = at.store.delivery_cursors.take(3, RULES.lease, {place: 1}, 2)
        assert Counter(one.place for one in taken) == {place: 1, other.url(): 1}


def test_two_who_deliver_send_nothing_twice(url: str, site: Site) -> None:
    with delivering(url, replace(RULES, workers=8, per_host=8)) as at:
        tell_all(at, site, "u", 60, each=3)
        with at.another_loop(), at.another_loop():
            eventually(lambda: sum(one.count for one in at.happened) >= 180)
        assert told(site.requests) == {f"u-{number:03}": 3 for number in range(60)}
        for who in told(site.requests):
            mine = [event(one)["data"]["sequence"] for one in site.requests if told([one])[who]]
            assert mine == [1, 2, 3]


def test_a_run_has_so_many_bytes_of_publications(url: str, site: Site) -> None:
    """All messages of a run are in memory at once, for each thread."""
    with delivering(url, replace(RULES, run_bytes=70_000)) as at:
        at.subscribe("ana", "s-1")
        at.webhook(site)
        at.tell("ana", "s-1", "p-1", "p-2", "p-3", body="x" * 30_000)
        at.tell("ana", "s-1", "p-4", body="x" * 90_000)
        runs = []
        while at.loop.step():
            runs.append(subjects(site.requests))
            site.requests.clear()
        assert runs == [["p-1", "p-2"], ["p-3"], ["p-4"]]
