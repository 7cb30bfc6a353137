"""Delivery at work in its threads and in processes that are killed: nothing is lost, nobody waits for another."""

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
from tests.delivery.delivering_store import OK, RULES, Delivering, delivering, event, subjects
from tests.feeds.hub.callbacks import eventually
from tests.support.processes.forked import Forked
from tests.support.servers.site import Request, Response, Site, a_site
from tidings.delivery.sql.cursors import RunOutcome
from tidings.store.store import open_store

WHO = ("ana", "bo", "cy", "di")


@contextmanager
def running(at: Delivering) -> Iterator[None]:
    with at.another_loop():
        yield


def test_a_slow_receiver_delays_no_other(sqlite: str, site: Site) -> None:
    """Those who are slow hold all the places their host may have; the fast one, elsewhere, is told meanwhile."""
    go_on = Event()

    def slowly(_: Request) -> Response:
        assert go_on.wait(60)
        return OK

    with delivering(sqlite, replace(RULES, workers=4, per_host=3)) as at, a_site("127.0.0.2") as fast:
        site.pages["/slow"] = slowly  # type: ignore[assignment]
        for number in range(6):
            at.subscribe(f"slow-{number}", f"s-{number}")
            at.webhook(site, f"slow-{number}", "/slow")
            at.tell(f"slow-{number}", f"s-{number}", "p-1")
        at.subscribe("ana", "s-9")
        at.webhook(fast)
        with running(at):
            eventually(lambda: len(site.requests) == 3)
            at.tell("ana", "s-9", *(f"p-{number}" for number in range(2, 30)))
            assert subjects(fast.wait_for(28)) == [f"p-{number}" for number in range(2, 30)]
            assert len(site.requests) == 3, "one host has three of the four at most"
            go_on.set()
            site.wait_for(6)


def test_what_is_under_way_ends_first(sqlite: str, site: Site) -> None:
    """The message that is being sent is written down; those after it stay as they were, without an attempt."""
    begun, go_on = Event(), Event()

    def slowly(_: Request) -> Response:
        begun.set()
        assert go_on.wait(60)
        return OK

    with delivering(sqlite) as at:
        at.subscribe("ana", "s-1")
        site.pages["/"] = slowly  # type: ignore[assignment]
        hook = at.webhook(site)
        at.tell("ana", "s-1", "p-1", "p-2", "p-3")
        loop = at.another_loop()
        loop.__enter__()
        assert begun.wait(60)
        loop.dispatcher.stopping.set()
        go_on.set()
        loop.__exit__()
        assert at.store.destinations.health_of([hook.id])[hook.id].delivered == 1
        at.steps()
        assert subjects(site.requests) == ["p-1", "p-2", "p-3"]


def test_who_does_not_answer_is_not_waited_for_at_the_end(sqlite: str, site: Site) -> None:
    """It says nothing about the receiver: it is no failure, and is delivered by whoever comes next."""
    begun, go_on = Event(), Event()

    def never(_: Request) -> Response:
        begun.set()
        assert go_on.wait(60)
        return OK

    with delivering(sqlite, replace(RULES, grace=0.05)) as at:
        at.subscribe("ana", "s-1")
        site.pages["/"] = never  # type: ignore[assignment]
        hook = at.webhook(site)
        at.tell("ana", "s-1", "p-1")
        with at.another_loop():
            assert begun.wait(60)
        go_on.set()
        health = at.store.destinations.health_of([hook.id])[hook.id]
        assert (health.delivered, health.consecutive_failures) == (0, 0)
        at.steps()
        assert subjects(site.requests) == ["p-1", "p-1"]


def test_who_comes_back_too_late_changes_nothing(at: Delivering, site: Site) -> None:
    at.webhook(site)
    at.tell("ana", "s-1", "p-1", "p-2")
    at.store.delivery_cursors.wake(10)
    [late] = at.store.delivery_cursors.take(1, timedelta(seconds=10))
    assert at.store.delivery_cursors.take(1, timedelta(seconds=10)) == [], "one at a time"
    at.clock.go(10)
    [next_one] = at.store.delivery_cursors.take(1, timedelta(seconds=10))
    assert next_one.attempts == 1, "whoever vanished had made an attempt"
    assert at.store.delivery_cursors.finish([(late, RunOutcome(2, 2))]) == [False]
    assert not at.store.delivery_cursors.gather([late], 2) and not at.store.delivery_cursors.release([late])
    assert not at.store.delivery_cursors.put_off([(late, at.clock())])
    assert at.store.delivery_cursors.finish([(next_one, RunOutcome(1, 1))]) == [True]
    at.steps()
    assert subjects(site.requests) == ["p-2"]


def test_who_is_gone_is_disabled_with_what_became_of_the_run(at: Delivering, site: Site) -> None:
    """Together: in between, another process would ask again."""
    hook = at.webhook(site)
    at.tell("ana", "s-1", "p-1", "p-2")
    at.store.delivery_cursors.wake(10)
    [lane] = at.store.delivery_cursors.take(1, timedelta(seconds=10))
    assert at.store.delivery_cursors.finish([(lane, RunOutcome(1, 1, "status 410", gone="gone"))]) == [True]
    found = at.store.destinations.find(hook.id)
    assert found and (found.state, found.reason) == ("disabled", "gone")
    assert at.store.delivery_cursors.take(1, timedelta(seconds=10)) == []
    at.store.destinations.resume(hook.id)
    at.steps()
    assert subjects(site.requests) == ["p-2"]


def test_what_ends_whoever_takes_it_is_given_up(at: Delivering, site: Site) -> None:
    hook = at.webhook(site)
    at.tell("ana", "s-1", "p-1", "p-2")
    at.store.delivery_cursors.wake(10)
    for _ in range(9):
        assert len(at.store.delivery_cursors.take(1, timedelta(seconds=10))) == 1
        at.clock.go(10)
    at.steps()
    [letter] = at.store.dead_deliveries.list(hook.id)
    assert letter.problem == "the process that delivered it ended each time"
    assert subjects(site.requests) == ["p-2"]


@contextmanager
def away(at: Delivering) -> Iterator[None]:
    """The file of the store is elsewhere meanwhile."""
    at.store.database.engine.dispose()
    path = Path(str(at.store.database.engine.url.database))
    path.rename(path.with_suffix(".away"))
    path.mkdir()
    yield
    path.rmdir()
    path.with_suffix(".away").rename(path)


def test_a_store_that_is_away_comes_back(sqlite: str, site: Site) -> None:
    with delivering(sqlite) as at:
        at.subscribe("ana", "s-1")
        at.webhook(site)
        loop = at.another_loop()
        with loop:
            with away(at):
                eventually(lambda: loop.problem is not None)
            eventually(lambda: loop.problem is None)
            at.tell("ana", "s-1", "p-1")
            site.wait_for(1)


def test_what_was_sent_while_the_store_went_away_is_not_sent_again(sqlite: str, site: Site) -> None:
    begun, go_on = Event(), Event()

    def slowly(_: Request) -> Response:
        begun.set()
        assert go_on.wait(60)
        return OK

    with delivering(sqlite) as at:
        at.subscribe("ana", "s-1")
        site.pages["/"] = slowly  # type: ignore[assignment]
        hook = at.webhook(site)
        at.tell("ana", "s-1", "p-1")
        loop = at.another_loop()
        with loop:
            assert begun.wait(60)
            with away(at):
                go_on.set()
                eventually(lambda: loop.problem is not None)
            eventually(lambda: at.happened != [])
        assert at.store.destinations.health_of([hook.id])[hook.id].delivered == 1
        at.clock.go(1_000)
        at.steps()
        assert subjects(site.requests) == ["p-1"]


def test_what_waits_for_a_thread_too_long_is_left_to_others(
    url: str, site: Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One process is held up by a slow receiver while it has taken more than it can begin; another begins that."""
    monkeypatch.setattr("tidings.delivery.worker.MAX_QUEUE_SECONDS", 0.05)
    go_on = Event()

    def slowly(_: Request) -> Response:
        assert go_on.wait(60)
        return OK

    with delivering(url, replace(RULES, workers=1)) as at, a_site("127.0.0.2") as fast:
        site.pages["/slow"] = slowly  # type: ignore[assignment]
        for who, where, path in (("ana", site, "/slow"), ("bo", fast, "/")):
            at.subscribe(who, f"s-{who}")
            at.webhook(where, who, path)
            at.tell(who, f"s-{who}", "p-1")
            at.store.delivery_cursors.wake(10)
            at.clock.go(1)
        with at.another_loop():
            site.wait_for(1)
            with at.another_loop():
                assert subjects(fast.wait_for(1)) == ["p-1"]
            go_on.set()
        assert len(site.requests) == len(fast.requests) == 1


def started(url: str) -> subprocess.Popen[str]:
    process = Forked([delivery_program.__file__, url], stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None and process.stdout.readline() == "begun\n"
    return process


@pytest.mark.faults
@pytest.mark.parametrize("kills", [2, pytest.param(25, marks=pytest.mark.long)])
def test_killed_in_the_middle_nothing_is_lost(url: str, site: Site, kills: int) -> None:
    """Two processes deliver, and one of them is killed again and again, whenever some more have arrived."""
    names = [f"p-{number}" for number in range(20 * kills)]
    chance, refusing = Random(kills), Lock()

    def answer(request: Request) -> Response:
        with refusing:
            return Response(503, headers={"Retry-After": "0"}) if chance.random() < 0.02 else OK

    with delivering(url) as at:
        site.pages["/"] = answer  # type: ignore[assignment]
        for who in WHO:
            at.subscribe(who, f"s-{who}")
            at.destinations.add(who, "webhook", site.url("/"))
            at.tell(who, f"s-{who}", *names)
    steady = started(url)
    try:
        for kill in range(kills):
            victim = started(url)
            site.wait_for(min(len(site.requests) + 15, 80 * (kill + 1)))
            victim.kill()
            victim.communicate()
        with open_store(url) as store:

            def delivered() -> int:
                return sum(store.destinations.health(who)[f"s-{who}"].delivered for who in WHO)

            eventually(lambda: delivered() == len(WHO) * len(names))
    finally:
        steady.kill()
        steady.communicate()
    for who in WHO:
        check_order([one for one in site.requests if event(one)["data"]["subscriber"] == who], names)


def check_order(requests: list[Request], names: list[str]) -> None:
    """Each arrived; the first time each arrived is in order; and what came again had the same id."""
    first: dict[str, str] = {}
    for request in requests:
        subject = event(request)["subject"]
        assert first.setdefault(subject, request.headers["webhook-id"]) == request.headers["webhook-id"]
    assert list(first) == names


def test_loop_after_the_clock_was_set_back_by_a_day_retries_at_once(at: Delivering, site: Site) -> None:
    hook = at.webhook(site)
    site.pages["/"] = Response(500)
    at.tell("ana", "s-1", "p-1")
    at.steps()
    site.pages["/"] = OK
    at.clock.go(-24 * 60 * 60)
    at.steps()
    assert subjects(site.requests) == ["p-1", "p-1"]
    assert at.store.destinations.health_of([hook.id])[hook.id].delivered == 1


def test_loop_after_a_kill_and_the_clock_set_back_by_a_day_delivers(at: Delivering, site: Site) -> None:
    at.webhook(site)
    at.tell("ana", "s-1", "p-1")
    at.store.delivery_cursors.wake(10)
    assert len(at.store.delivery_cursors.take(1, at.rules.lease)) == 1, "and whoever took it was killed"
    at.clock.go(-24 * 60 * 60)
    at.steps(at.another_loop())
    assert subjects(site.requests) == ["p-1"]
