"""Dead letters: listing, replay of one or all, and expiry."""

from __future__ import annotations

from dataclasses import replace

from tests.delivery.delivery_setup import OK, RULES, DeliverySetup, event, open_delivery, subjects
from tests.support.servers.site import Request, Response, Site
from tidings.delivery.sql.destination_store import Destination

A_WEEK = 7 * 86_400


def destination_with_dead_letters(delivery: DeliverySetup, site: Site, *names: str) -> Destination:
    """Return a destination that refused these publications until they became dead letters."""

    def answer(request: Request) -> Response:
        return Response(500, b"never") if event(request)["subject"] in names else OK

    site.pages["/"] = answer  # type: ignore[assignment]
    hook = delivery.webhook(site)
    delivery.notify("ana", "s-1", *names)
    for _ in range(len(names) * 9):
        delivery.steps()
        delivery.clock.go(72_001)
    assert len(delivery.store.dead_deliveries.list(hook.id)) == len(names)
    return hook


def test_replay_one_or_all_dead_letters(delivery: DeliverySetup, site: Site) -> None:
    hook = destination_with_dead_letters(delivery, site, "p-1", "p-2", "p-3")
    first, second, third = delivery.store.dead_deliveries.list(hook.id)
    assert [one.first for one in (first, second, third)] == [1, 2, 3]
    assert delivery.store.dead_deliveries.list(hook.id, after=first.number, limit=1) == [second]
    assert delivery.store.dead_deliveries.count(hook.id) == 3
    before = [one.headers["webhook-id"] for one in site.requests]
    site.requests.clear()
    site.pages["/"] = OK
    assert delivery.store.dead_deliveries.replay(hook.id, second.number) == 1
    delivery.steps()
    assert subjects(site.requests) == ["p-2"]
    assert site.requests[0].headers["webhook-id"] == second.message and second.message in before
    assert delivery.store.dead_deliveries.replay(hook.id, second.number) == 0
    assert delivery.store.dead_deliveries.replay(hook.id) == 2
    delivery.steps()
    assert subjects(site.requests) == ["p-2", "p-1", "p-3"]
    assert delivery.store.dead_deliveries.list(hook.id) == []
    assert delivery.store.destinations.health_of([hook.id])[hook.id].delivered == 3


def test_replay_failing_again_uses_complete_retry_schedule(delivery: DeliverySetup, site: Site) -> None:
    hook = destination_with_dead_letters(delivery, site, "p-1")
    [before] = delivery.store.dead_deliveries.list(hook.id)
    site.requests.clear()
    delivery.store.dead_deliveries.replay(hook.id)
    delivery.notify("ana", "s-1", "p-9")
    delivery.steps()
    assert sorted(subjects(site.requests)) == ["p-1", "p-9"], "newer notifications do not wait for it"
    delivery.clock.go(4)
    delivery.steps()
    assert len(site.requests) == 2
    for _ in range(20):
        delivery.clock.go(72_001)
        delivery.steps()
    assert subjects(site.requests).count("p-1") == 9
    [letter] = delivery.store.dead_deliveries.list(hook.id)
    assert (letter.number, letter.attempts, letter.due) == (before.number, 18, None)


def test_replay_paused_destination_waits_for_resume(delivery: DeliverySetup, site: Site) -> None:
    hook = destination_with_dead_letters(delivery, site, "p-1")
    site.pages["/"] = OK
    site.requests.clear()
    delivery.store.destinations.pause(hook.id)
    delivery.store.dead_deliveries.replay(hook.id)
    delivery.steps()
    assert site.requests == []
    delivery.store.destinations.resume(hook.id)
    delivery.steps()
    assert subjects(site.requests) == ["p-1"]


def test_dead_letters_expire_after_retention_period(delivery: DeliverySetup, site: Site) -> None:
    hook = destination_with_dead_letters(delivery, site, "p-1")
    delivery.clock.go(4 * A_WEEK)
    delivery.steps()
    assert len(delivery.store.dead_deliveries.list(hook.id)) == 1
    delivery.clock.go(A_WEEK)
    delivery.steps()
    assert delivery.store.dead_deliveries.list(hook.id) == []


def test_remove_destination_deletes_its_dead_letters(delivery: DeliverySetup, site: Site) -> None:
    hook = destination_with_dead_letters(delivery, site, "p-1")
    delivery.store.destinations.remove(hook.id)
    assert (
        delivery.store.dead_deliveries.list(hook.id) == []
        and delivery.store.dead_deliveries.replay(hook.id) == 0
    )


def test_replay_status_410_disables_destination_until_resumed(delivery: DeliverySetup, site: Site) -> None:
    """After it is resumed, delivery continues with all of them, in order."""
    hook = destination_with_dead_letters(delivery, site, "p-1", "p-2")
    site.requests.clear()
    site.pages["/"] = Response(410)
    delivery.store.dead_deliveries.replay(hook.id)
    delivery.steps()
    assert subjects(site.requests) == ["p-1"], "one request to a receiver that is gone"
    destination = delivery.store.destinations.find(hook.id)
    assert destination and (destination.state, destination.reason) == (
        "disabled",
        "the receiver is gone (410)",
    )
    site.pages["/"] = OK
    delivery.store.destinations.resume(hook.id)
    delivery.steps()
    assert subjects(site.requests) == ["p-1", "p-1", "p-2"]
    assert delivery.store.dead_deliveries.list(hook.id) == []


def test_replay_run_out_of_time_releases_remaining_letters(url: str, site: Site) -> None:
    """Otherwise letters of a slow receiver outlast their lease, and another process repeats them."""
    with open_delivery(url, replace(RULES, run_seconds=0.0)) as delivery:
        delivery.subscribe("ana", "s-1")
        hook = destination_with_dead_letters(delivery, site, "p-1", "p-2", "p-3")
        site.requests.clear()
        site.pages["/"] = OK
        delivery.store.dead_deliveries.replay(hook.id)
        assert delivery.worker.step() == 3
        assert subjects(site.requests) == ["p-1"]
        released = delivery.store.dead_deliveries.take(9, RULES.lease)
        assert [(one.first, one.attempts_since_replay) for one in released] == [(2, 0), (3, 0)], (
            "they wait for the next worker"
        )
