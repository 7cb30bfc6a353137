"""What is gathered is delivered together: by an accepted delay, and after quiet hours."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime

import pytest

from tests.delivery.delivering_store import OK, RULES, Delivering, delivering, event, subjects, verified
from tests.support.servers.site import Response, Site
from tests.support.stores.server_documents import ALL, DOC, RDF_XML, SCHEMA, body
from tidings.delivery.quiet_hours import parse_quiet_hours
from tidings.metadata.provider.provider import Provider
from tidings.metadata.provider.rule_subscriptions import RuleSubscriptions
from tidings.model import Reason, Subscription

OTHER = Reason("price < 190", 180, "/price")


def sequences(request: object) -> list[list[int]]:
    return [one["sequences"] for one in event(request)["data"]["notifications"]]  # type: ignore[arg-type]


def test_an_accepted_delay_makes_one_message(at: Delivering, site: Site) -> None:
    at.subscribe("ana", "s-9", within=600)
    hook = at.webhook(site)
    at.tell("ana", "s-9", "p-1", "p-2")
    at.clock.go(300)
    at.tell("ana", "s-9", "p-3")
    at.steps()
    assert site.requests == []
    at.clock.go(300)
    at.steps()
    [request] = site.requests
    told = verified(request, hook.secret)
    assert told["type"] == "tidings.digest" and told["source"] == "/subscriptions/s-9"
    assert told["id"] == request.headers["webhook-id"] and told["data"]["count"] == 3
    listed = told["data"]["notifications"]
    assert [one["notification"]["subject"] for one in listed] == ["p-1", "p-2", "p-3"]
    assert [one["count"] for one in listed] == [1, 1, 1] and sequences(request) == [[1], [2], [3]]
    assert at.store.destinations.health("ana")["s-9"].delivered == 3


def test_what_says_the_same_is_one_item(at: Delivering, site: Site) -> None:
    at.subscribe("ana", "s-9", within=600)
    at.webhook(site)
    at.tell("ana", "s-9", "p-1", "p-2", body="the same")
    at.tell("ana", "s-9", "p-3", body="another")
    at.tell("ana", "s-9", "p-4", body="the same")
    at.tell("ana", "s-9", "p-5", body="the same", reason=OTHER)
    at.clock.go(600)
    at.steps()
    [request] = site.requests
    assert sequences(request) == [[1, 2, 4], [3], [5]]
    assert event(request)["data"]["count"] == 5
    assert at.store.destinations.health("ana")["s-9"].delivered == 5


def test_a_digest_is_the_same_however_often_it_is_tried(at: Delivering, site: Site) -> None:
    at.subscribe("ana", "s-9", within=600)
    site.pages["/"] = Response(500)
    at.webhook(site)
    at.tell("ana", "s-9", "p-1", "p-2")
    at.clock.go(600)
    at.steps()
    at.tell("ana", "s-9", "p-3")
    at.clock.go(700)
    site.pages["/"] = OK
    at.steps()
    first, again, other = site.requests
    assert first.body == again.body and first.headers["webhook-id"] == again.headers["webhook-id"]
    assert sequences(other) == [[3]] and other.headers["webhook-id"] != first.headers["webhook-id"]


def test_a_digest_has_so_many_and_carries_so_much(url: str, site: Site) -> None:
    with delivering(url, replace(RULES, digest=3, digest_bytes=3 * 60)) as at:
        at.subscribe("ana", "s-9", within=600)
        at.webhook(site)
        at.tell("ana", "s-9", "p-1", "p-2", "p-4", "p-5")
        at.tell("ana", "s-9", "p-3", body="x" * 100)
        at.clock.go(600)
        at.steps()
        assert [sequences(one) for one in site.requests] == [[[1], [2], [3]], [[4], [5]]]
        last = event(site.requests[1])["data"]["notifications"]
        assert (
            last[0]["notification"]["data"]["publication"]
            and not last[1]["notification"]["data"]["publication"]
        )


def test_a_digest_that_is_given_up_is_one_letter(at: Delivering, site: Site) -> None:
    at.subscribe("ana", "s-9", within=600)
    site.pages["/"] = Response(500)
    hook = at.webhook(site)
    at.tell("ana", "s-9", "p-1", "p-2")
    at.clock.go(600)
    for _ in range(9):
        at.steps()
        at.clock.go(72_001)
    [letter] = at.store.dead_deliveries.list(hook.id)
    assert (letter.first, letter.last, letter.digest) == (1, 2, True)
    site.pages["/"] = OK
    at.store.dead_deliveries.replay(hook.id)
    at.steps()
    assert site.requests[-1].body == site.requests[0].body
    assert at.store.destinations.health("ana")["s-9"].delivered == 2


@pytest.mark.parametrize("then", ["paused", "withdrawn", "told at once"])
def test_what_was_gathered_is_a_digest_whatever_becomes_of_the_subscription(
    at: Delivering, site: Site, then: str
) -> None:
    """It comes when it was promised, as the message that it was meant to be."""
    at.subscribe("ana", "s-9", within=600)
    at.webhook(site)
    at.tell("ana", "s-9", "p-1", "p-2")
    at.clock.go(300)
    if then == "paused":
        assert at.store.paused.pause("s-9", "ana")
    elif then == "withdrawn":
        assert at.store.subscriptions.remove(["s-9"])
    else:
        assert at.store.subscriptions.change(Subscription("s-9", "ana", "predicates", "price < 200"))
    at.steps()
    assert site.requests == []
    at.clock.go(300)
    at.steps()
    [request] = site.requests
    assert event(request)["type"] == "tidings.digest" and sequences(request) == [[1], [2]]


def test_after_a_pause_there_are_digests_again(at: Delivering, site: Site) -> None:
    at.subscribe("ana", "s-9", within=600)
    at.webhook(site)
    for name in ("p-1", "p-2"):
        at.tell("ana", "s-9", name)
        assert at.store.paused.pause("s-9", "ana")
        at.clock.go(600)
        at.steps()
        assert at.store.paused.resume("s-9")
    assert [sequences(one) for one in site.requests] == [[[1]], [[2]]]


def test_what_a_rule_found_before_it_was_paused_is_a_digest(at: Delivering, site: Site) -> None:
    rules = RuleSubscriptions(at.store)
    Provider(at.store).load_schema(SCHEMA.body, SCHEMA.media_type)
    rules.add("ana", ALL, "all", 600)
    at.webhook(site)
    Provider(at.store).register(DOC, body("host.rdf"), RDF_XML)
    assert rules.pause("all")
    at.clock.go(600)
    at.steps()
    [request] = site.requests
    assert event(request)["type"] == "tidings.digest" and sequences(request) == [[1]]


def test_quiet_hours_gather(at: Delivering, site: Site) -> None:
    """The clock says noon in UTC; in Berlin it is two hours later."""
    at.store.preferences.set_quiet("ana", parse_quiet_hours("ana", "13:00", "15:30", "Europe/Berlin"))
    at.webhook(site)
    at.webhook(site, "bo", "/bo")
    at.tell("ana", "s-1", "p-1")
    at.tell("bo", "s-3", "p-1")
    at.steps()
    assert [one.path for one in site.requests] == ["/bo"]
    assert len(at.store.notifications.read("ana")) == 1, "who reads sees it at once"
    at.clock.go(3_600)
    at.tell("ana", "s-1", "p-2")
    at.steps()
    assert len(site.requests) == 1
    at.clock.go(1_800)
    at.steps()
    [digest] = site.requests[1:]
    assert event(digest)["type"] == "tidings.digest" and sequences(digest) == [[1], [2]]
    at.tell("ana", "s-1", "p-3")
    at.steps()
    assert event(site.requests[-1])["type"] == "tidings.notification"


def test_quiet_hours_that_are_taken_back_wake_at_once(at: Delivering, site: Site) -> None:
    at.store.preferences.set_quiet("ana", parse_quiet_hours("ana", "11:00", "15:30", "UTC"))
    at.webhook(site)
    at.tell("ana", "s-1", "p-1")
    at.steps()
    at.store.preferences.set_quiet("ana", None)
    at.store.delivery_cursors.rouse("ana")
    at.steps()
    assert len(site.requests) == 1 and at.store.preferences.quiet("ana") is None


def test_a_retry_waits_for_the_end_of_quiet_hours(at: Delivering, site: Site) -> None:
    site.pages["/"] = Response(500)
    at.webhook(site)
    at.tell("ana", "s-1", "p-1")
    at.steps()
    at.store.preferences.set_quiet("ana", parse_quiet_hours("ana", "12:00", "12:10", "UTC"))
    site.pages["/"] = OK
    at.clock.go(599)
    at.steps()
    assert len(site.requests) == 1
    at.clock.go(1)
    at.steps()
    assert len(site.requests) == 2 and subjects(site.requests[:1]) == ["p-1"]
    assert datetime(2026, 5, 1, 12, 10, tzinfo=UTC) == at.clock()


@pytest.mark.parametrize("state", ["paused", "gone"])
def test_a_lane_whose_destination_is_not_active(at: Delivering, site: Site, state: str) -> None:
    hook = at.webhook(site)
    at.tell("ana", "s-1", "p-1")
    at.store.delivery_cursors.wake(10)
    if state == "gone":
        at.store.destinations.remove(hook.id)
    else:
        at.store.destinations.pause(hook.id)
    at.steps()
    assert site.requests == []
