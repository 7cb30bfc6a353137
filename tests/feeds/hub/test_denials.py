"""Denials: the hub informs callbacks that a subscription failed or ended (WebSub, section 5.2)."""

from __future__ import annotations

import pytest

from tests.feeds.hub.callbacks import RULES, HubLoop, denials, echo, form, pushes, query, subscribe
from tests.support.servers.site import Response, Site
from tests.support.stores.notified_store import PUBLIC, NotifiedStore
from tidings.feeds.hub.hub import Hub, HubPolicy
from tidings.feeds.outbound.addresses import FeedTokens
from tidings.feeds.outbound.personal_feeds import PersonalFeeds


def test_hub_revoked_address_denies_its_subscriptions(
    notified_store: NotifiedStore, loop: HubLoop, site: Site
) -> None:
    subscribe(notified_store, loop, site)
    loop.hub.ask(form(notified_store, site, "/other"))
    notified_store.feeds.addresses.renew("cy", "s-1")
    notified_store.notify_of_events(1, 1)
    while loop.step():
        pass
    assert pushes(site) == [] and loop.hub.store.subscriptions() == []
    assert sorted(denials(site)) == ["/call", "/other"] and len(site.requests) == 3


def test_hub_removed_subscription_denies_its_callback(
    notified_store: NotifiedStore, loop: HubLoop, site: Site
) -> None:
    subscribe(notified_store, loop, site)
    notified_store.notify_of_events(1, 1)
    notified_store.store.subscriptions.remove(["s-1"])
    while loop.step():
        pass
    assert pushes(site) == [] and loop.hub.store.subscriptions() == []
    assert denials(site) == ["/call"]


def test_hub_feed_that_ended_is_denied_once_without_new_entries(
    notified_store: NotifiedStore, loop: HubLoop, site: Site
) -> None:
    subscribe(notified_store, loop, site, "/call?mine=1")
    topic = f"{PUBLIC}/feeds/{notified_store.token}.atom"
    notified_store.feeds.addresses.renew("cy", "s-1")
    while loop.step():
        pass
    parameters = query(site.requests[-1])
    assert (site.requests[-1].method, parameters["mine"], parameters["hub.mode"]) == ("GET", "1", "denied")
    assert (parameters["hub.topic"], parameters["hub.reason"]) == (topic, "the feed no longer exists")
    assert "hub.challenge" not in parameters
    loop.step()
    assert len(site.requests) == 2, "once"


@pytest.mark.parametrize("answer", [Response(200), Response(404), Response(410)])
def test_hub_denial_ignores_response_of_callback(
    notified_store: NotifiedStore, loop: HubLoop, site: Site, answer: Response
) -> None:
    subscribe(notified_store, loop, site)
    site.pages["/call"] = answer
    notified_store.feeds.addresses.renew("cy", "s-1")
    while loop.step():
        notified_store.clock.go(1_000)
    assert denials(site) == ["/call"]


def test_hub_denial_without_response_is_retried_then_dropped(
    notified_store: NotifiedStore, loop: HubLoop, site: Site
) -> None:
    subscribe(notified_store, loop, site)
    site.pages["/call"] = Response(503)
    notified_store.feeds.addresses.renew("cy", "s-1")
    while loop.step():
        notified_store.clock.go(1_000)
    assert denials(site) == ["/call"] * (len(RULES.questions) + 1)


def test_hub_without_key_of_addresses_sends_no_denial(
    notified_store: NotifiedStore, loop: HubLoop, site: Site
) -> None:
    """Without the key, the hub cannot tell the address of the topic."""
    subscribe(notified_store, loop, site)
    notified_store.store.subscriptions.remove(["s-1"])
    other = PersonalFeeds(
        notified_store.store, FeedTokens(notified_store.store, bytes(32)), notified_store.feeds.places
    )
    loop_without_key = HubLoop(Hub(other, RULES))
    while loop_without_key.step():
        pass
    loop_without_key.close()
    assert (
        denials(site) == []
        and notified_store.store.hub.subscriptions() == []
        and notified_store.store.hub.take_intents(9) == []
    )


def test_hub_subscription_above_limit_at_verification_is_denied(
    notified_store: NotifiedStore, site: Site
) -> None:
    loop = HubLoop(Hub(notified_store.feeds, HubPolicy(inside=True, per_feed=1)))
    site.pages |= {"/0": echo, "/1": echo}
    loop.hub.ask(form(notified_store, site, "/0"))
    loop.hub.ask(form(notified_store, site, "/1"))
    for intent in loop.hub.store.take_intents(9):
        loop.hub.verify(intent)
    while loop.step():
        pass
    assert [one.callback for one in loop.hub.store.subscriptions()] == [site.url("/0")]
    assert (
        denials(site) == ["/1"]
        and query(site.requests[-1])["hub.reason"] == "the feed has too many subscribers"
    )
    loop.hub.ask(form(notified_store, site, "/0"))
    loop.step()
    assert query(site.requests[-1])["hub.mode"] == "subscribe", "a renewal does not count again"
    loop.close()
