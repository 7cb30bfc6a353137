"""Pushes of the hub to callbacks: signatures, retries, dead letters, and no delay by slow callbacks."""

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
from tests.support.stores.notified_store import PUBLIC, NotifiedStore
from tidings.delivery.quiet_hours import parse_quiet_hours
from tidings.feeds.hub.worker import MAX_CONCURRENT_CALLS
from tidings.operations.http_client import build_user_agent

ALL_TRIES = len(DELIVERY.retry_delays) + 1


def test_push_new_entries_is_signed(notified_store: NotifiedStore, loop: HubLoop, site: Site) -> None:
    notified_store.notify_of_events(1, 2)
    subscribe(notified_store, loop, site, secret="a secret & more")
    loop.step()
    assert pushes(site) == []
    notified_store.notify_of_events(3, 4)
    loop.step()
    [push] = pushes(site)
    assert titles(push) == ["event 4", "event 3"]
    assert push.headers["content-type"] == "application/atom+xml; charset=utf-8"
    signature = hmac.new(b"a secret & more", push.body, "sha256").hexdigest()
    assert push.headers["x-hub-signature"] == f"sha256={signature}"
    links = f'<{PUBLIC}/hub>; rel="hub", <{PUBLIC}/feeds/{notified_store.token}.atom>; rel="self"'
    assert push.headers["link"] == links
    assert push.headers["user-agent"] == build_user_agent("WebSub hub")
    loop.step()
    assert len(pushes(site)) == 1
    notified_store.notify_of_events(5, 5)
    loop.step()
    assert titles(pushes(site)[1]) == ["event 5"]


@pytest.mark.parametrize("format", ["rss", "rdf", "json"])
def test_push_each_format_is_separate_topic(
    notified_store: NotifiedStore, loop: HubLoop, site: Site, format: str
) -> None:
    subscribe(notified_store, loop, site, topic=f"{PUBLIC}/feeds/{notified_store.token}.{format}")
    notified_store.notify_of_events(1, 1)
    loop.step()
    [push] = pushes(site)
    assert titles(push) == ["event 1"] and "x-hub-signature" not in push.headers


def test_push_failure_is_retried_and_later_entries_follow_together(
    notified_store: NotifiedStore, loop: HubLoop, site: Site
) -> None:
    subscribe(notified_store, loop, site)
    site.pages["/call"] = Response(500)
    notified_store.notify_of_events(1, 1)
    loop.step()
    notified_store.notify_of_events(2, 3)
    loop.step()
    assert len(pushes(site)) == 1
    site.pages["/call"] = Response(204)
    notified_store.clock.go(DELIVERY.retry_delays[0] * 1.1)
    loop.step()
    loop.step()
    assert [titles(push) for push in pushes(site)] == [["event 1"], ["event 1"], ["event 3", "event 2"]]


@pytest.mark.parametrize(
    "answer", [Response(500), Response(302, headers={"location": "/other"}), Response(404)]
)
def test_push_failing_all_retries_becomes_dead_letter(
    notified_store: NotifiedStore, loop: HubLoop, site: Site, answer: Response
) -> None:
    subscribe(notified_store, loop, site)
    site.pages["/call"] = answer
    notified_store.notify_of_events(1, 1)
    loop.step()
    waits = list(DELIVERY.retry_delays)
    for wait in waits:
        notified_store.clock.go(wait * 0.99)
        loop.step()
        before = len(pushes(site))
        notified_store.clock.go(wait * 0.11)
        loop.step()
        assert len(pushes(site)) == before + 1
    assert len(pushes(site)) == ALL_TRIES
    [letter] = loop.dead_letters()
    assert (letter.first, letter.last, letter.attempts) == (1, 1, ALL_TRIES)
    assert f"status {answer.status}" in letter.problem
    site.pages["/call"] = Response(200)
    notified_store.notify_of_events(2, 2)
    loop.step()
    assert titles(pushes(site)[-1]) == ["event 2"], "a dead letter blocks no later entries"


def test_push_status_410_removes_subscription(
    notified_store: NotifiedStore, loop: HubLoop, site: Site
) -> None:
    subscribe(notified_store, loop, site)
    site.pages["/call"] = Response(410)
    notified_store.notify_of_events(1, 1)
    loop.step()
    assert loop.hub.store.subscriptions() == []
    notified_store.clock.go(100_000)
    notified_store.notify_of_events(2, 2)
    loop.step()
    assert len(pushes(site)) == 1


def test_push_unreachable_callback_counts_as_failure(notified_store: NotifiedStore, loop: HubLoop) -> None:
    with a_site() as site:
        subscribe(notified_store, loop, site)
    [subscription] = loop.hub.store.subscriptions()
    notified_store.notify_of_events(1, 1)
    loop.step()
    assert loop.health().consecutive_failures == 1 and loop.dead_letters() == []
    assert loop.hub.store.subscriptions() == [subscription]


@pytest.mark.parametrize("status", [429, 503])
@pytest.mark.parametrize(
    ("header", "seconds"),
    [
        ("3600", 3_600),
        ("1", DELIVERY.retry_delays[0]),
        ("999999", DELIVERY.max_retry_after),
        ("Fri, 01 May 2026 13:00:00 GMT", 3_600),
        ("soon", DELIVERY.retry_delays[0]),
    ],
)
def test_push_retry_after_header_sets_delay(
    notified_store: NotifiedStore, loop: HubLoop, site: Site, status: int, header: str, seconds: int
) -> None:
    subscribe(notified_store, loop, site, lease_seconds="2592000")
    site.pages["/call"] = Response(status, headers={"Retry-After": header})
    notified_store.notify_of_events(1, 1)
    loop.step()
    notified_store.clock.go(seconds * 0.99)
    loop.step()
    assert len(pushes(site)) == 1
    site.pages["/call"] = Response(204)
    notified_store.clock.go(seconds * 0.11)
    loop.step()
    assert len(pushes(site)) == 2 and loop.health().consecutive_failures == 0


def test_push_retry_after_with_other_status_is_ignored(
    notified_store: NotifiedStore, loop: HubLoop, site: Site
) -> None:
    subscribe(notified_store, loop, site)
    site.pages["/call"] = Response(500, headers={"Retry-After": "3600"})
    notified_store.notify_of_events(1, 1)
    loop.step()
    notified_store.clock.go(DELIVERY.retry_delays[0] * 1.1)
    loop.step()
    assert len(pushes(site)) == 2


def test_push_hanging_callback_delays_no_other(
    notified_store: NotifiedStore, loop: HubLoop, site: Site
) -> None:
    """While one callback does not respond, another gets two pushes."""
    released = Event()
    with a_site("127.0.0.2") as slow, loop:
        for each in (slow, site):
            each.pages["/call"] = echo
            loop.hub.ask(form(notified_store, each))
        eventually(lambda: len(loop.hub.store.subscriptions()) == 2)
        slow.pages["/call"] = lambda _: Response(200 if released.wait(60) else 500)
        for n in (1, 2):
            notified_store.notify_of_events(n, n)
            site.wait_for(n + 1)
        slow.wait_for(2)
        assert len(pushes(slow)) == 1
        released.set()
    assert [titles(push) for push in pushes(site)] == [["event 1"], ["event 2"]]


def test_push_all_callbacks_of_feed_get_entry(
    notified_store: NotifiedStore, loop: HubLoop, site: Site
) -> None:
    paths = [f"/{n}" for n in range(2 * MAX_CONCURRENT_CALLS + 1)]
    for path in paths:
        subscribe(notified_store, loop, site, path)
    notified_store.notify_of_events(1, 1)
    while loop.step():
        pass
    assert [len(pushes(site, path)) for path in paths] == [1] * len(paths)


def test_push_lost_by_each_worker_becomes_dead_letter(
    notified_store: NotifiedStore, loop: HubLoop, site: Site
) -> None:
    subscribe(notified_store, loop, site)
    notified_store.notify_of_events(1, 1)
    notified_store.store.delivery_cursors.wake(9)
    loop.hub.ask(form(notified_store, site, "/other"))
    for _ in range(ALL_TRIES):
        assert len(notified_store.store.delivery_cursors.take(9, DELIVERY.lease)) == 1
        loop.hub.store.take_intents(9)
        notified_store.clock.go(DELIVERY.lease.total_seconds() + 1)
    loop.step()
    assert len(loop.dead_letters()) == 1
    assert pushes(site) == [] and loop.hub.store.take_intents(9) == []
    assert len(site.requests) == 1


def test_push_in_quiet_hours_is_not_deferred(
    notified_store: NotifiedStore, loop: HubLoop, site: Site
) -> None:
    notified_store.store.preferences.set_quiet("cy", parse_quiet_hours("cy", "00:00", "23:59", "UTC"))
    subscribe(notified_store, loop, site)
    notified_store.notify_of_events(1, 1)
    loop.step()
    assert len(pushes(site)) == 1


def test_push_callback_is_no_destination_of_subscriber(
    notified_store: NotifiedStore, loop: HubLoop, site: Site
) -> None:
    subscribe(notified_store, loop, site)
    notified_store.notify_of_events(1, 1)
    loop.step()
    [subscription] = loop.hub.store.subscriptions()
    destinations = notified_store.store.destinations
    assert destinations.list("cy") == [] and destinations.count("cy") == 0
    assert destinations.find(subscription.destination) is None and destinations.health("cy") == {}


def test_push_callback_of_paused_subscription_is_not_denied(
    notified_store: NotifiedStore, loop: HubLoop, site: Site
) -> None:
    """The feed of a paused subscription can still be read."""
    subscribe(notified_store, loop, site)
    assert notified_store.store.paused.pause("s-1", "cy")
    while loop.step():
        pass
    assert denials(site) == [] and len(loop.hub.store.subscriptions()) == 1
