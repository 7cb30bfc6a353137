"""Digests: notifications delivered together after an accepted delay or after quiet hours."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime

import pytest

from tests.delivery.delivery_setup import OK, RULES, DeliverySetup, event, open_delivery, subjects, verified
from tests.support.servers.site import Response, Site
from tests.support.stores.server_documents import ALL, DOC, RDF_XML, SCHEMA, body
from tidings.delivery.quiet_hours import parse_quiet_hours
from tidings.metadata.provider.provider import Provider
from tidings.metadata.provider.rule_subscriptions import RuleSubscriptions
from tidings.model import Reason, Subscription

OTHER = Reason("price < 190", 180, "/price")


def sequences(request: object) -> list[list[int]]:
    return [one["sequences"] for one in event(request)["data"]["notifications"]]  # type: ignore[arg-type]


def test_digest_after_delay_is_one_message(delivery: DeliverySetup, site: Site) -> None:
    delivery.subscribe("ana", "s-9", within=600)
    hook = delivery.webhook(site)
    delivery.notify("ana", "s-9", "p-1", "p-2")
    delivery.clock.go(300)
    delivery.notify("ana", "s-9", "p-3")
    delivery.steps()
    assert site.requests == []
    delivery.clock.go(300)
    delivery.steps()
    [request] = site.requests
    digest = verified(request, hook.secret)
    assert digest["type"] == "tidings.digest" and digest["source"] == "/subscriptions/s-9"
    assert digest["id"] == request.headers["webhook-id"] and digest["data"]["count"] == 3
    listed = digest["data"]["notifications"]
    assert [one["notification"]["subject"] for one in listed] == ["p-1", "p-2", "p-3"]
    assert [one["count"] for one in listed] == [1, 1, 1] and sequences(request) == [[1], [2], [3]]
    assert delivery.store.destinations.health("ana")["s-9"].delivered == 3


def test_digest_equal_notifications_are_one_item(delivery: DeliverySetup, site: Site) -> None:
    delivery.subscribe("ana", "s-9", within=600)
    delivery.webhook(site)
    delivery.notify("ana", "s-9", "p-1", "p-2", body="the same")
    delivery.notify("ana", "s-9", "p-3", body="another")
    delivery.notify("ana", "s-9", "p-4", body="the same")
    delivery.notify("ana", "s-9", "p-5", body="the same", reason=OTHER)
    delivery.clock.go(600)
    delivery.steps()
    [request] = site.requests
    assert sequences(request) == [[1, 2, 4], [3], [5]]
    assert event(request)["data"]["count"] == 5
    assert delivery.store.destinations.health("ana")["s-9"].delivered == 5


def test_digest_retry_has_same_body_and_id(delivery: DeliverySetup, site: Site) -> None:
    delivery.subscribe("ana", "s-9", within=600)
    site.pages["/"] = Response(500)
    delivery.webhook(site)
    delivery.notify("ana", "s-9", "p-1", "p-2")
    delivery.clock.go(600)
    delivery.steps()
    delivery.notify("ana", "s-9", "p-3")
    delivery.clock.go(700)
    site.pages["/"] = OK
    delivery.steps()
    first, again, other = site.requests
    assert first.body == again.body and first.headers["webhook-id"] == again.headers["webhook-id"]
    assert sequences(other) == [[3]] and other.headers["webhook-id"] != first.headers["webhook-id"]


def test_digest_is_limited_in_items_and_bytes(url: str, site: Site) -> None:
    with open_delivery(url, replace(RULES, digest=3, digest_bytes=3 * 60)) as delivery:
        delivery.subscribe("ana", "s-9", within=600)
        delivery.webhook(site)
        delivery.notify("ana", "s-9", "p-1", "p-2", "p-4", "p-5")
        delivery.notify("ana", "s-9", "p-3", body="x" * 100)
        delivery.clock.go(600)
        delivery.steps()
        assert [sequences(one) for one in site.requests] == [[[1], [2], [3]], [[4], [5]]]
        last = event(site.requests[1])["data"]["notifications"]
        assert (
            last[0]["notification"]["data"]["publication"]
            and not last[1]["notification"]["data"]["publication"]
        )


def test_digest_failing_all_retries_is_one_dead_letter(delivery: DeliverySetup, site: Site) -> None:
    delivery.subscribe("ana", "s-9", within=600)
    site.pages["/"] = Response(500)
    hook = delivery.webhook(site)
    delivery.notify("ana", "s-9", "p-1", "p-2")
    delivery.clock.go(600)
    for _ in range(9):
        delivery.steps()
        delivery.clock.go(72_001)
    [letter] = delivery.store.dead_deliveries.list(hook.id)
    assert (letter.first, letter.last, letter.digest) == (1, 2, True)
    site.pages["/"] = OK
    delivery.store.dead_deliveries.replay(hook.id)
    delivery.steps()
    assert site.requests[-1].body == site.requests[0].body
    assert delivery.store.destinations.health("ana")["s-9"].delivered == 2


@pytest.mark.parametrize("change", ["paused", "removed", "without delay"])
def test_digest_is_sent_when_due_after_subscription_changed(
    delivery: DeliverySetup, site: Site, change: str
) -> None:
    """It is sent at the promised time and as a digest."""
    delivery.subscribe("ana", "s-9", within=600)
    delivery.webhook(site)
    delivery.notify("ana", "s-9", "p-1", "p-2")
    delivery.clock.go(300)
    if change == "paused":
        assert delivery.store.paused.pause("s-9", "ana")
    elif change == "removed":
        assert delivery.store.subscriptions.remove(["s-9"])
    else:
        assert delivery.store.subscriptions.change(Subscription("s-9", "ana", "predicates", "price < 200"))
    delivery.steps()
    assert site.requests == []
    delivery.clock.go(300)
    delivery.steps()
    [request] = site.requests
    assert event(request)["type"] == "tidings.digest" and sequences(request) == [[1], [2]]


def test_digest_after_pause_and_resume_is_sent_again(delivery: DeliverySetup, site: Site) -> None:
    delivery.subscribe("ana", "s-9", within=600)
    delivery.webhook(site)
    for name in ("p-1", "p-2"):
        delivery.notify("ana", "s-9", name)
        assert delivery.store.paused.pause("s-9", "ana")
        delivery.clock.go(600)
        delivery.steps()
        assert delivery.store.paused.resume("s-9")
    assert [sequences(one) for one in site.requests] == [[[1]], [[2]]]


def test_digest_of_rule_paused_before_due_time_is_sent(delivery: DeliverySetup, site: Site) -> None:
    rules = RuleSubscriptions(delivery.store)
    Provider(delivery.store).load_schema(SCHEMA.body, SCHEMA.media_type)
    rules.add("ana", ALL, "all", 600)
    delivery.webhook(site)
    Provider(delivery.store).register(DOC, body("host.rdf"), RDF_XML)
    assert rules.pause("all")
    delivery.clock.go(600)
    delivery.steps()
    [request] = site.requests
    assert event(request)["type"] == "tidings.digest" and sequences(request) == [[1]]


def test_quiet_hours_collect_notifications_in_digest(delivery: DeliverySetup, site: Site) -> None:
    """The clock is at noon in UTC; in Berlin it is two hours later."""
    delivery.store.preferences.set_quiet("ana", parse_quiet_hours("ana", "13:00", "15:30", "Europe/Berlin"))
    delivery.webhook(site)
    delivery.webhook(site, "bo", "/bo")
    delivery.notify("ana", "s-1", "p-1")
    delivery.notify("bo", "s-3", "p-1")
    delivery.steps()
    assert [one.path for one in site.requests] == ["/bo"]
    assert len(delivery.store.notifications.read("ana")) == 1, "readers see it immediately"
    delivery.clock.go(3_600)
    delivery.notify("ana", "s-1", "p-2")
    delivery.steps()
    assert len(site.requests) == 1
    delivery.clock.go(1_800)
    delivery.steps()
    [digest] = site.requests[1:]
    assert event(digest)["type"] == "tidings.digest" and sequences(digest) == [[1], [2]]
    delivery.notify("ana", "s-1", "p-3")
    delivery.steps()
    assert event(site.requests[-1])["type"] == "tidings.notification"


def test_quiet_hours_removed_delivers_immediately(delivery: DeliverySetup, site: Site) -> None:
    delivery.store.preferences.set_quiet("ana", parse_quiet_hours("ana", "11:00", "15:30", "UTC"))
    delivery.webhook(site)
    delivery.notify("ana", "s-1", "p-1")
    delivery.steps()
    delivery.store.preferences.set_quiet("ana", None)
    delivery.store.delivery_cursors.wake_subscriber("ana")
    delivery.steps()
    assert len(site.requests) == 1 and delivery.store.preferences.read_quiet_hours("ana") is None


def test_quiet_hours_delay_retry_until_their_end(delivery: DeliverySetup, site: Site) -> None:
    site.pages["/"] = Response(500)
    delivery.webhook(site)
    delivery.notify("ana", "s-1", "p-1")
    delivery.steps()
    delivery.store.preferences.set_quiet("ana", parse_quiet_hours("ana", "12:00", "12:10", "UTC"))
    site.pages["/"] = OK
    delivery.clock.go(599)
    delivery.steps()
    assert len(site.requests) == 1
    delivery.clock.go(1)
    delivery.steps()
    assert len(site.requests) == 2 and subjects(site.requests[:1]) == ["p-1"]
    assert datetime(2026, 5, 1, 12, 10, tzinfo=UTC) == delivery.clock()


@pytest.mark.parametrize("state", ["paused", "gone"])
def test_cursor_of_inactive_destination_sends_nothing(
    delivery: DeliverySetup, site: Site, state: str
) -> None:
    hook = delivery.webhook(site)
    delivery.notify("ana", "s-1", "p-1")
    delivery.store.delivery_cursors.wake(10)
    if state == "gone":
        delivery.store.destinations.remove(hook.id)
    else:
        delivery.store.destinations.pause(hook.id)
    delivery.steps()
    assert site.requests == []
