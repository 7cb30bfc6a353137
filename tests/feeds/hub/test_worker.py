"""What the hub posts to callbacks: signed, tried again, given up; and one that is slow delays no other."""

from __future__ import annotations

import hmac
from threading import Event

import pytest

from tests.feeds.hub.callbacks import (
    DELIVERY,
    HubLoop,
    denials,
    echo,
    eventually,
    form,
    pushes,
    subscribe,
    titles,
)
from tests.support.servers.site import Response, Site, a_site
from tests.support.stores.notified_store import PUBLIC, Told
from tidings.delivery.quiet_hours import parse_quiet_hours
from tidings.feeds.hub.worker import MAX_CONCURRENT_CALLS
from tidings.operations.http_client import build_user_agent

ALL_TRIES = len(DELIVERY.retries) + 1


def test_new_entries_are_pushed_and_signed(told: Told, loop: HubLoop, site: Site) -> None:
    told.tell_events(1, 2)
    subscribe(told, loop, site, secret="a secret & more")
    loop.step()
    assert pushes(site) == []
    told.tell_events(3, 4)
    loop.step()
    [push] = pushes(site)
    assert titles(push) == ["event 4", "event 3"]
    assert push.headers["content-type"] == "application/atom+xml; charset=utf-8"
    signature = hmac.new(b"a secret & more", push.body, "sha256").hexdigest()
    assert push.headers["x-hub-signature"] == f"sha256={signature}"
    links = f'<{PUBLIC}/hub>; rel="hub", <{PUBLIC}/feeds/{told.token}.atom>; rel="self"'
    assert push.headers["link"] == links
    assert push.headers["user-agent"] == build_user_agent("WebSub hub")
    loop.step()
    assert len(pushes(site)) == 1
    told.tell_events(5, 5)
    loop.step()
    assert titles(pushes(site)[1]) == ["event 5"]


@pytest.mark.parametrize("format", ["rss", "rdf", "json"])
def test_each_format_is_a_topic_of_its_own(told: Told, loop: HubLoop, site: Site, format: str) -> None:
    subscribe(told, loop, site, topic=f"{PUBLIC}/feeds/{told.token}.{format}")
    told.tell_events(1, 1)
    loop.step()
    [push] = pushes(site)
    assert titles(push) == ["event 1"] and "x-hub-signature" not in push.headers


def test_a_failed_push_is_tried_again_and_takes_what_came_meanwhile_with_the_next(
    told: Told, loop: HubLoop, site: Site
) -> None:
    subscribe(told, loop, site)
    site.pages["/call"] = Response(500)
    told.tell_events(1, 1)
    loop.step()
    told.tell_events(2, 3)
    loop.step()
    assert len(pushes(site)) == 1
    site.pages["/call"] = Response(204)
    told.clock.go(DELIVERY.retries[0] * 1.1)
    loop.step()
    loop.step()
    assert [titles(push) for push in pushes(site)] == [["event 1"], ["event 1"], ["event 3", "event 2"]]


@pytest.mark.parametrize(
    "answer", [Response(500), Response(302, headers={"location": "/other"}), Response(404)]
)
def test_a_push_that_fails_and_fails_is_given_up(
    told: Told, loop: HubLoop, site: Site, answer: Response
) -> None:
    subscribe(told, loop, site)
    site.pages["/call"] = answer
    told.tell_events(1, 1)
    loop.step()
    waits = list(DELIVERY.retries)
    for wait in waits:
        told.clock.go(wait * 0.99)
        loop.step()
        before = len(pushes(site))
        told.clock.go(wait * 0.11)
        loop.step()
        assert len(pushes(site)) == before + 1
    assert len(pushes(site)) == ALL_TRIES
    [letter] = loop.dead_letters()
    assert (letter.first, letter.last, letter.attempts) == (1, 1, ALL_TRIES)
    assert f"status {answer.status}" in letter.problem
    site.pages["/call"] = Response(200)
    told.tell_events(2, 2)
    loop.step()
    assert titles(pushes(site)[-1]) == ["event 2"], "what was given up stops nothing"


def test_a_callback_that_is_gone_is_forgotten(told: Told, loop: HubLoop, site: Site) -> None:
    subscribe(told, loop, site)
    site.pages["/call"] = Response(410)
    told.tell_events(1, 1)
    loop.step()
    assert loop.hub.store.subscriptions() == []
    told.clock.go(100_000)
    told.tell_events(2, 2)
    loop.step()
    assert len(pushes(site)) == 1


def test_a_callback_that_does_not_answer_is_a_failure(told: Told, loop: HubLoop) -> None:
    with a_site() as site:
        subscribe(told, loop, site)
    [made] = loop.hub.store.subscriptions()
    told.tell_events(1, 1)
    loop.step()
    assert loop.health().consecutive_failures == 1 and loop.dead_letters() == []
    assert loop.hub.store.subscriptions() == [made]


@pytest.mark.parametrize("status", [429, 503])
@pytest.mark.parametrize(
    ("said", "seconds"),
    [
        ("3600", 3_600),
        ("1", DELIVERY.retries[0]),
        ("999999", DELIVERY.patience),
        ("Fri, 01 May 2026 13:00:00 GMT", 3_600),
        ("soon", DELIVERY.retries[0]),
    ],
)
def test_a_callback_that_is_busy_says_when_to_come_again(
    told: Told, loop: HubLoop, site: Site, status: int, said: str, seconds: int
) -> None:
    subscribe(told, loop, site, lease_seconds="2592000")
    site.pages["/call"] = Response(status, headers={"Retry-After": said})
    told.tell_events(1, 1)
    loop.step()
    told.clock.go(seconds * 0.99)
    loop.step()
    assert len(pushes(site)) == 1
    site.pages["/call"] = Response(204)
    told.clock.go(seconds * 0.11)
    loop.step()
    assert len(pushes(site)) == 2 and loop.health().consecutive_failures == 0


def test_retry_after_means_nothing_with_another_status(told: Told, loop: HubLoop, site: Site) -> None:
    subscribe(told, loop, site)
    site.pages["/call"] = Response(500, headers={"Retry-After": "3600"})
    told.tell_events(1, 1)
    loop.step()
    told.clock.go(DELIVERY.retries[0] * 1.1)
    loop.step()
    assert len(pushes(site)) == 2


def test_one_that_hangs_does_not_delay_another(told: Told, loop: HubLoop, site: Site) -> None:
    """While one does not answer, another is told twice."""
    released = Event()
    with a_site("127.0.0.2") as slow, loop:
        for each in (slow, site):
            each.pages["/call"] = echo
            loop.hub.ask(form(told, each))
        eventually(lambda: len(loop.hub.store.subscriptions()) == 2)
        slow.pages["/call"] = lambda _: Response(200 if released.wait(60) else 500)
        for n in (1, 2):
            told.tell_events(n, n)
            site.wait_for(n + 1)
        slow.wait_for(2)
        assert len(pushes(slow)) == 1
        released.set()
    assert [titles(push) for push in pushes(site)] == [["event 1"], ["event 2"]]


def test_those_who_share_a_feed_are_all_told(told: Told, loop: HubLoop, site: Site) -> None:
    paths = [f"/{n}" for n in range(2 * MAX_CONCURRENT_CALLS + 1)]
    for path in paths:
        subscribe(told, loop, site, path)
    told.tell_events(1, 1)
    while loop.step():
        pass
    assert [len(pushes(site, path)) for path in paths] == [1] * len(paths)


def test_worker_that_is_lost_each_time_gives_up_the_delivery_and_the_request(
    told: Told, loop: HubLoop, site: Site
) -> None:
    subscribe(told, loop, site)
    told.tell_events(1, 1)
    told.store.delivery_cursors.wake(9)
    loop.hub.ask(form(told, site, "/other"))
    for _ in range(ALL_TRIES):
        assert len(told.store.delivery_cursors.take(9, DELIVERY.lease)) == 1
        loop.hub.store.take_intents(9)
        told.clock.go(DELIVERY.lease.total_seconds() + 1)
    loop.step()
    assert len(loop.dead_letters()) == 1
    assert pushes(site) == [] and loop.hub.store.take_intents(9) == []
    assert len(site.requests) == 1


def test_delivery_in_quiet_hours_of_the_subscriber_is_not_deferred(
    told: Told, loop: HubLoop, site: Site
) -> None:
    told.store.preferences.set_quiet("cy", parse_quiet_hours("cy", "00:00", "23:59", "UTC"))
    subscribe(told, loop, site)
    told.tell_events(1, 1)
    loop.step()
    assert len(pushes(site)) == 1


def test_callback_is_not_a_destination_of_the_subscriber(told: Told, loop: HubLoop, site: Site) -> None:
    subscribe(told, loop, site)
    told.tell_events(1, 1)
    loop.step()
    [subscription] = loop.hub.store.subscriptions()
    destinations = told.store.destinations
    assert destinations.list("cy") == [] and destinations.count("cy") == 0
    assert destinations.find(subscription.destination) is None and destinations.health("cy") == {}


def test_callback_of_a_paused_subscription_is_not_denied(told: Told, loop: HubLoop, site: Site) -> None:
    """The feed of a paused subscription can still be read."""
    subscribe(told, loop, site)
    assert told.store.paused.pause("s-1", "cy")
    while loop.step():
        pass
    assert denials(site) == [] and len(loop.hub.store.subscriptions()) == 1
