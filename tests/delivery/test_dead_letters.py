"""What was given up: it is seen, tried again one by one or all at once, and expires."""

from __future__ import annotations

from dataclasses import replace

from tests.delivery.delivering_store import OK, RULES, Delivering, delivering, event, subjects
from tests.support.servers.site import Request, Response, Site
from tidings.delivery.sql.destination_store import Destination

A_WEEK = 7 * 86_400


def failed(at: Delivering, site: Site, *names: str) -> Destination:
    """A destination that took none of these publications, however often it was tried; others it takes."""

    def answer(request: Request) -> Response:
        return Response(500, b"never") if event(request)["subject"] in names else OK

    site.pages["/"] = answer  # type: ignore[assignment]
    hook = at.webhook(site)
    at.tell("ana", "s-1", *names)
    for _ in range(len(names) * 9):
        at.steps()
        at.clock.go(72_001)
    assert len(at.store.dead_deliveries.list(hook.id)) == len(names)
    return hook


def test_replaying_one_and_all(at: Delivering, site: Site) -> None:
    hook = failed(at, site, "p-1", "p-2", "p-3")
    first, second, third = at.store.dead_deliveries.list(hook.id)
    assert [one.first for one in (first, second, third)] == [1, 2, 3]
    assert at.store.dead_deliveries.list(hook.id, after=first.number, limit=1) == [second]
    assert at.store.dead_deliveries.count(hook.id) == 3
    before = [one.headers["webhook-id"] for one in site.requests]
    site.requests.clear()
    site.pages["/"] = OK
    assert at.store.dead_deliveries.replay(hook.id, second.number) == 1
    at.steps()
    assert subjects(site.requests) == ["p-2"]
    assert site.requests[0].headers["webhook-id"] == second.message and second.message in before
    assert at.store.dead_deliveries.replay(hook.id, second.number) == 0
    assert at.store.dead_deliveries.replay(hook.id) == 2
    at.steps()
    assert subjects(site.requests) == ["p-2", "p-1", "p-3"]
    assert at.store.dead_deliveries.list(hook.id) == []
    assert at.store.destinations.health_of([hook.id])[hook.id].delivered == 3


def test_what_is_not_taken_again_is_tried_as_often_as_before(at: Delivering, site: Site) -> None:
    hook = failed(at, site, "p-1")
    [before] = at.store.dead_deliveries.list(hook.id)
    site.requests.clear()
    at.store.dead_deliveries.replay(hook.id)
    at.tell("ana", "s-1", "p-9")
    at.steps()
    assert sorted(subjects(site.requests)) == ["p-1", "p-9"], "what is newer does not wait for it"
    at.clock.go(4)
    at.steps()
    assert len(site.requests) == 2
    for _ in range(20):
        at.clock.go(72_001)
        at.steps()
    assert subjects(site.requests).count("p-1") == 9
    [letter] = at.store.dead_deliveries.list(hook.id)
    assert (letter.number, letter.attempts, letter.due) == (before.number, 18, None)


def test_letters_of_a_paused_destination_wait(at: Delivering, site: Site) -> None:
    hook = failed(at, site, "p-1")
    site.pages["/"] = OK
    site.requests.clear()
    at.store.destinations.pause(hook.id)
    at.store.dead_deliveries.replay(hook.id)
    at.steps()
    assert site.requests == []
    at.store.destinations.resume(hook.id)
    at.steps()
    assert subjects(site.requests) == ["p-1"]


def test_letters_expire(at: Delivering, site: Site) -> None:
    hook = failed(at, site, "p-1")
    at.clock.go(4 * A_WEEK)
    at.steps()
    assert len(at.store.dead_deliveries.list(hook.id)) == 1
    at.clock.go(A_WEEK)
    at.steps()
    assert at.store.dead_deliveries.list(hook.id) == []


def test_letters_of_a_removed_destination_are_gone(at: Delivering, site: Site) -> None:
    hook = failed(at, site, "p-1")
    at.store.destinations.remove(hook.id)
    assert at.store.dead_deliveries.list(hook.id) == [] and at.store.dead_deliveries.replay(hook.id) == 0


def test_a_receiver_that_is_gone_meanwhile_is_disabled(at: Delivering, site: Site) -> None:
    """Whoever resumes it goes on with all of them, in order."""
    hook = failed(at, site, "p-1", "p-2")
    site.requests.clear()
    site.pages["/"] = Response(410)
    at.store.dead_deliveries.replay(hook.id)
    at.steps()
    assert subjects(site.requests) == ["p-1"], "what is gone is asked once"
    found = at.store.destinations.find(hook.id)
    assert found and (found.state, found.reason) == ("disabled", "the receiver is gone (410)")
    site.pages["/"] = OK
    at.store.destinations.resume(hook.id)
    at.steps()
    assert subjects(site.requests) == ["p-1", "p-1", "p-2"]
    assert at.store.dead_deliveries.list(hook.id) == []


def test_letters_are_given_back_when_their_time_is_over(url: str, site: Site) -> None:
    """Many of a receiver that is slow would last longer than their lease, and another process would try them, too."""
    with delivering(url, replace(RULES, run_seconds=0.0)) as at:
        at.subscribe("ana", "s-1")
        hook = failed(at, site, "p-1", "p-2", "p-3")
        site.requests.clear()
        site.pages["/"] = OK
        at.store.dead_deliveries.replay(hook.id)
        assert at.loop.step() == 3
        assert subjects(site.requests) == ["p-1"]
        again = at.store.dead_deliveries.take(9, RULES.lease)
        assert [(one.first, one.tries) for one in again] == [(2, 0), (3, 0)], (
            "they wait for whoever comes next"
        )
