"""Callbacks are told that they are not told of a feed, or not any more (WebSub, section 5.2)."""

from __future__ import annotations

import pytest

from tests.feeds.hub.callbacks import RULES, HubLoop, denials, echo, form, pushes, query, subscribe
from tests.support.servers.site import Response, Site
from tests.support.stores.notified_store import PUBLIC, Told
from tidings.feeds.hub.hub import Hub, HubPolicy
from tidings.feeds.outbound.addresses import FeedTokens
from tidings.feeds.outbound.personal_feeds import PersonalFeeds


def test_a_revoked_address_ends_what_was_subscribed_with_it(told: Told, loop: HubLoop, site: Site) -> None:
    subscribe(told, loop, site)
    loop.hub.ask(form(told, site, "/other"))
    told.feeds.addresses.renew("cy", "s-1")
    told.tell_events(1, 1)
    while loop.step():
        pass
    assert pushes(site) == [] and loop.hub.store.subscriptions() == []
    assert sorted(denials(site)) == ["/call", "/other"] and len(site.requests) == 3


def test_a_withdrawn_subscription_is_told_of_no_more(told: Told, loop: HubLoop, site: Site) -> None:
    subscribe(told, loop, site)
    told.tell_events(1, 1)
    told.store.subscriptions.remove(["s-1"])
    while loop.step():
        pass
    assert pushes(site) == [] and loop.hub.store.subscriptions() == []
    assert denials(site) == ["/call"]


def test_a_callback_is_told_that_its_feed_has_ended_though_there_is_nothing_new(
    told: Told, loop: HubLoop, site: Site
) -> None:
    subscribe(told, loop, site, "/call?mine=1")
    topic = f"{PUBLIC}/feeds/{told.token}.atom"
    told.feeds.addresses.renew("cy", "s-1")
    while loop.step():
        pass
    said = query(site.requests[-1])
    assert (site.requests[-1].method, said["mine"], said["hub.mode"]) == ("GET", "1", "denied")
    assert (said["hub.topic"], said["hub.reason"]) == (topic, "the feed no longer exists")
    assert "hub.challenge" not in said
    loop.step()
    assert len(site.requests) == 2, "once"


@pytest.mark.parametrize("answer", [Response(200), Response(404), Response(410)])
def test_what_a_callback_says_to_a_denial_does_not_matter(
    told: Told, loop: HubLoop, site: Site, answer: Response
) -> None:
    subscribe(told, loop, site)
    site.pages["/call"] = answer
    told.feeds.addresses.renew("cy", "s-1")
    while loop.step():
        told.clock.go(1_000)
    assert denials(site) == ["/call"]


def test_a_denial_that_nobody_hears_is_said_again_and_given_up(told: Told, loop: HubLoop, site: Site) -> None:
    subscribe(told, loop, site)
    site.pages["/call"] = Response(503)
    told.feeds.addresses.renew("cy", "s-1")
    while loop.step():
        told.clock.go(1_000)
    assert denials(site) == ["/call"] * (len(RULES.questions) + 1)


def test_without_the_key_of_addresses_nobody_is_denied(told: Told, loop: HubLoop, site: Site) -> None:
    """Nobody knows what the topic was called."""
    subscribe(told, loop, site)
    told.store.subscriptions.remove(["s-1"])
    other = PersonalFeeds(told.store, FeedTokens(told.store, bytes(32)), told.feeds.places)
    lost = HubLoop(Hub(other, RULES))
    while lost.step():
        pass
    lost.close()
    assert (
        denials(site) == [] and told.store.hub.subscriptions() == [] and told.store.hub.take_intents(9) == []
    )


def test_one_that_is_too_many_by_the_time_it_is_verified_is_denied(told: Told, site: Site) -> None:
    loop = HubLoop(Hub(told.feeds, HubPolicy(inside=True, per_feed=1)))
    site.pages |= {"/0": echo, "/1": echo}
    loop.hub.ask(form(told, site, "/0"))
    loop.hub.ask(form(told, site, "/1"))
    for intent in loop.hub.store.take_intents(9):
        loop.hub.verify(intent)
    while loop.step():
        pass
    assert [one.callback for one in loop.hub.store.subscriptions()] == [site.url("/0")]
    assert (
        denials(site) == ["/1"]
        and query(site.requests[-1])["hub.reason"] == "the feed has too many subscribers"
    )
    loop.hub.ask(form(told, site, "/0"))
    loop.step()
    assert query(site.requests[-1])["hub.mode"] == "subscribe", "one that renews is no more"
    loop.close()
