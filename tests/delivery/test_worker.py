"""Delivery workers in threads and in processes that are killed: nothing is lost or blocked."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from random import Random
from threading import Event, Lock

import pytest

from tests.delivery import delivery_program
from tests.delivery.delivery_setup import OK, RULES, DeliverySetup, event, open_delivery, subjects
from tests.feeds.hub.callbacks import eventually
from tests.support.processes.forked import Forked
from tests.support.servers.site import Request, Response, Site, a_site
from tidings.delivery.sql.cursors import RunOutcome
from tidings.store.store import open_store

SUBSCRIBERS = ("ana", "bo", "cy", "di")


@contextmanager
def running(delivery: DeliverySetup) -> Iterator[None]:
    with delivery.new_worker():
        yield


def test_worker_slow_host_delays_no_other_host(sqlite: str, site: Site) -> None:
    """Slow webhooks occupy all places of their host; one on another host gets its messages."""
    released = Event()

    def respond_when_released(_: Request) -> Response:
        assert released.wait(60)
        return OK

    with (
        open_delivery(sqlite, replace(RULES, workers=4, per_host=3)) as delivery,
        a_site("127.0.0.2") as fast,
    ):
        site.pages["/slow"] = respond_when_released  # type: ignore[assignment]
        for number in range(6):
            delivery.subscribe(f"slow-{number}", f"s-{number}")
            delivery.webhook(site, f"slow-{number}", "/slow")
            delivery.notify(f"slow-{number}", f"s-{number}", "p-1")
        delivery.subscribe("ana", "s-9")
        delivery.webhook(fast)
        with running(delivery):
            eventually(lambda: len(site.requests) == 3)
            delivery.notify("ana", "s-9", *(f"p-{number}" for number in range(2, 30)))
            assert subjects(fast.wait_for(28)) == [f"p-{number}" for number in range(2, 30)]
            assert len(site.requests) == 3, "one host has at most three of the four threads"
            released.set()
            site.wait_for(6)


def test_worker_stop_completes_request_in_progress(sqlite: str, site: Site) -> None:
    """The message in progress is recorded as sent; later ones get no attempt."""
    started, released = Event(), Event()

    def respond_when_released(_: Request) -> Response:
        started.set()
        assert released.wait(60)
        return OK

    with open_delivery(sqlite) as delivery:
        delivery.subscribe("ana", "s-1")
        site.pages["/"] = respond_when_released  # type: ignore[assignment]
        hook = delivery.webhook(site)
        delivery.notify("ana", "s-1", "p-1", "p-2", "p-3")
        worker = delivery.new_worker()
        worker.__enter__()
        assert started.wait(60)
        worker.dispatcher.stopping.set()
        released.set()
        worker.__exit__()
        assert delivery.store.destinations.health_of([hook.id])[hook.id].delivered == 1
        delivery.steps()
        assert subjects(site.requests) == ["p-1", "p-2", "p-3"]


def test_worker_stop_abandons_unanswered_request_after_grace_period(sqlite: str, site: Site) -> None:
    """This is no failure of the receiver, and the next worker delivers the message."""
    started, released = Event(), Event()

    def respond_too_late(_: Request) -> Response:
        started.set()
        assert released.wait(60)
        return OK

    with open_delivery(sqlite, replace(RULES, grace=0.05)) as delivery:
        delivery.subscribe("ana", "s-1")
        site.pages["/"] = respond_too_late  # type: ignore[assignment]
        hook = delivery.webhook(site)
        delivery.notify("ana", "s-1", "p-1")
        with delivery.new_worker():
            assert started.wait(60)
        released.set()
        health = delivery.store.destinations.health_of([hook.id])[hook.id]
        assert (health.delivered, health.consecutive_failures) == (0, 0)
        delivery.steps()
        assert subjects(site.requests) == ["p-1", "p-1"]


def test_cursors_finish_after_lease_expired_changes_nothing(delivery: DeliverySetup, site: Site) -> None:
    delivery.webhook(site)
    delivery.notify("ana", "s-1", "p-1", "p-2")
    delivery.store.delivery_cursors.wake(10)
    [late] = delivery.store.delivery_cursors.take(1, timedelta(seconds=10))
    assert delivery.store.delivery_cursors.take(1, timedelta(seconds=10)) == [], "one at a time"
    delivery.clock.go(10)
    [next_one] = delivery.store.delivery_cursors.take(1, timedelta(seconds=10))
    assert next_one.attempts == 1, "the expired lease counts as an attempt"
    assert delivery.store.delivery_cursors.finish([(late, RunOutcome(2, 2))]) == [False]
    assert not delivery.store.delivery_cursors.gather(
        [late], 2
    ) and not delivery.store.delivery_cursors.release([late])
    assert not delivery.store.delivery_cursors.put_off([(late, delivery.clock())])
    assert delivery.store.delivery_cursors.finish([(next_one, RunOutcome(1, 1))]) == [True]
    delivery.steps()
    assert subjects(site.requests) == ["p-2"]


def test_cursors_finish_gone_receiver_disables_destination_and_keeps_progress(
    delivery: DeliverySetup, site: Site
) -> None:
    """Both in one transaction: in between, another process would send a request again."""
    hook = delivery.webhook(site)
    delivery.notify("ana", "s-1", "p-1", "p-2")
    delivery.store.delivery_cursors.wake(10)
    [lane] = delivery.store.delivery_cursors.take(1, timedelta(seconds=10))
    assert delivery.store.delivery_cursors.finish([(lane, RunOutcome(1, 1, "status 410", gone="gone"))]) == [
        True
    ]
    destination = delivery.store.destinations.find(hook.id)
    assert destination and (destination.state, destination.reason) == ("disabled", "gone")
    assert delivery.store.delivery_cursors.take(1, timedelta(seconds=10)) == []
    delivery.store.destinations.resume(hook.id)
    delivery.steps()
    assert subjects(site.requests) == ["p-2"]


def test_cursors_notification_that_kills_each_worker_becomes_dead_letter(
    delivery: DeliverySetup, site: Site
) -> None:
    hook = delivery.webhook(site)
    delivery.notify("ana", "s-1", "p-1", "p-2")
    delivery.store.delivery_cursors.wake(10)
    for _ in range(9):
        assert len(delivery.store.delivery_cursors.take(1, timedelta(seconds=10))) == 1
        delivery.clock.go(10)
    delivery.steps()
    [letter] = delivery.store.dead_deliveries.list(hook.id)
    assert letter.problem == "the process that delivered it ended each time"
    assert subjects(site.requests) == ["p-2"]


@contextmanager
def store_unavailable(delivery: DeliverySetup) -> Iterator[None]:
    """Move the file of the store away and back."""
    delivery.store.database.engine.dispose()
    path = Path(str(delivery.store.database.engine.url.database))
    path.rename(path.with_suffix(".away"))
    path.mkdir()
    yield
    path.rmdir()
    path.with_suffix(".away").rename(path)


def test_worker_recovers_from_unavailable_store(sqlite: str, site: Site) -> None:
    with open_delivery(sqlite) as delivery:
        delivery.subscribe("ana", "s-1")
        delivery.webhook(site)
        worker = delivery.new_worker()
        with worker:
            with store_unavailable(delivery):
                eventually(lambda: worker.problem is not None)
            eventually(lambda: worker.problem is None)
            delivery.notify("ana", "s-1", "p-1")
            site.wait_for(1)


def test_worker_message_sent_while_store_is_unavailable_is_not_repeated(sqlite: str, site: Site) -> None:
    started, released = Event(), Event()

    def respond_when_released(_: Request) -> Response:
        started.set()
        assert released.wait(60)
        return OK

    with open_delivery(sqlite) as delivery:
        delivery.subscribe("ana", "s-1")
        site.pages["/"] = respond_when_released  # type: ignore[assignment]
        hook = delivery.webhook(site)
        delivery.notify("ana", "s-1", "p-1")
        worker = delivery.new_worker()
        with worker:
            assert started.wait(60)
            with store_unavailable(delivery):
                released.set()
                eventually(lambda: worker.problem is not None)
            eventually(lambda: delivery.events != [])
        assert delivery.store.destinations.health_of([hook.id])[hook.id].delivered == 1
        delivery.clock.go(1_000)
        delivery.steps()
        assert subjects(site.requests) == ["p-1"]


def test_worker_leases_waiting_too_long_for_threads_go_to_others(
    url: str, site: Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A process blocked by a slow receiver holds more leases than it can use; another uses them."""
    monkeypatch.setattr("tidings.delivery.worker.MAX_QUEUE_SECONDS", 0.05)
    released = Event()

    def respond_when_released(_: Request) -> Response:
        assert released.wait(60)
        return OK

    with open_delivery(url, replace(RULES, workers=1)) as delivery, a_site("127.0.0.2") as fast:
        site.pages["/slow"] = respond_when_released  # type: ignore[assignment]
        for subscriber, receiver, path in (("ana", site, "/slow"), ("bo", fast, "/")):
            delivery.subscribe(subscriber, f"s-{subscriber}")
            delivery.webhook(receiver, subscriber, path)
            delivery.notify(subscriber, f"s-{subscriber}", "p-1")
            delivery.store.delivery_cursors.wake(10)
            delivery.clock.go(1)
        with delivery.new_worker():
            site.wait_for(1)
            with delivery.new_worker():
                assert subjects(fast.wait_for(1)) == ["p-1"]
            released.set()
        assert len(site.requests) == len(fast.requests) == 1


def start_process(url: str) -> subprocess.Popen[str]:
    process = Forked([delivery_program.__file__, url], stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None and process.stdout.readline() == "begun\n"
    return process


@pytest.mark.faults
@pytest.mark.parametrize("kills", [2, pytest.param(25, marks=pytest.mark.long)])
def test_killed_worker_loses_no_notification(url: str, site: Site, kills: int) -> None:
    """Two processes deliver, and one is killed repeatedly, after each few more messages."""
    names = [f"p-{number}" for number in range(20 * kills)]
    chance, refusing = Random(kills), Lock()

    def answer(request: Request) -> Response:
        with refusing:
            return Response(503, headers={"Retry-After": "0"}) if chance.random() < 0.02 else OK

    with open_delivery(url) as delivery:
        site.pages["/"] = answer  # type: ignore[assignment]
        for subscriber in SUBSCRIBERS:
            delivery.subscribe(subscriber, f"s-{subscriber}")
            delivery.destinations.add(subscriber, "webhook", site.url("/"))
            delivery.notify(subscriber, f"s-{subscriber}", *names)
    steady = start_process(url)
    try:
        for kill in range(kills):
            victim = start_process(url)
            site.wait_for(min(len(site.requests) + 15, 80 * (kill + 1)))
            victim.kill()
            victim.communicate()
        with open_store(url) as store:

            def delivered() -> int:
                return sum(
                    store.destinations.health(subscriber)[f"s-{subscriber}"].delivered
                    for subscriber in SUBSCRIBERS
                )

            eventually(lambda: delivered() == len(SUBSCRIBERS) * len(names))
    finally:
        steady.kill()
        steady.communicate()
    for subscriber in SUBSCRIBERS:
        check_order([one for one in site.requests if event(one)["data"]["subscriber"] == subscriber], names)


def check_order(requests: list[Request], names: list[str]) -> None:
    """Check that all arrived, first in order, and that repetitions have the same id."""
    first: dict[str, str] = {}
    for request in requests:
        subject = event(request)["subject"]
        assert first.setdefault(subject, request.headers["webhook-id"]) == request.headers["webhook-id"]
    assert list(first) == names


def test_worker_clock_set_back_by_day_retries_immediately(delivery: DeliverySetup, site: Site) -> None:
    hook = delivery.webhook(site)
    site.pages["/"] = Response(500)
    delivery.notify("ana", "s-1", "p-1")
    delivery.steps()
    site.pages["/"] = OK
    delivery.clock.go(-24 * 60 * 60)
    delivery.steps()
    assert subjects(site.requests) == ["p-1", "p-1"]
    assert delivery.store.destinations.health_of([hook.id])[hook.id].delivered == 1


def test_worker_killed_and_clock_set_back_by_day_delivers(delivery: DeliverySetup, site: Site) -> None:
    delivery.webhook(site)
    delivery.notify("ana", "s-1", "p-1")
    delivery.store.delivery_cursors.wake(10)
    assert len(delivery.store.delivery_cursors.take(1, delivery.rules.lease)) == 1, "its worker was killed"
    delivery.clock.go(-24 * 60 * 60)
    delivery.steps(delivery.new_worker())
    assert subjects(site.requests) == ["p-1"]
