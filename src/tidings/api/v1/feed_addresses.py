"""Where a subscriber's feeds are, over HTTP.

    GET     /v1/feeds                  ?after=  &limit=     the list of all (OPML), and the feed of each subscription
    GET     /v1/feeds/{id}             that of a subscription
    POST    /v1/feeds/{id}/renew       a new address; the old one ends
    POST    /v1/feeds/renew            the same for the list of all

An address is made when it is first asked for. An administrator says with `subscriber` whose feeds are meant.
"""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Path, Query, Response
from pydantic import Field

from tidings.api.authentication import SubscribeCaller
from tidings.api.v1.notifications import subscriber_of
from tidings.api.v1.route_classes import ActionRoute, VersionedRoute
from tidings.api.v1.schemas import StrictModel
from tidings.errors import Absent
from tidings.feeds.outbound.personal_feeds import (
    FeedLocation,
    PersonalFeeds,
    locate_feed,
    page_locations,
    renew_location,
)

NO_STORE = {"Cache-Control": "no-store"}
"""Whoever knows an address can read the feed."""

Id = Annotated[str, Path(max_length=500)]
Subscriber = Annotated[
    str | None, Query(max_length=500, description="Whose feeds: an administrator names them.")
]


class Feed(StrictModel):
    """Where a feed is; without a subscription it is the list of all feeds. No address is told if it was made with the
    key of another home folder: renew it.
    """

    subscription: str | None
    address: str | None


class FeedPage(StrictModel):
    """Some feeds, in the order of their subscriptions' ids. The next page is `after` the id `next`."""

    all: str | None = Field(description="Where the list of all feeds is (OPML)")
    feeds: list[Feed]
    next: str | None


class FeedAddressEndpoints:
    """Tells subscribers where their feeds are."""

    def __init__(self, feeds: PersonalFeeds) -> None:
        self._feeds = feeds

    def page(
        self,
        caller: SubscribeCaller,
        response: Response,
        subscriber: Subscriber = None,
        after: Annotated[str, Query(max_length=500)] = "",
        limit: Annotated[int, Query(ge=1, le=1_000)] = 100,
    ) -> FeedPage:
        """Where the list of all feeds is, and the feed of each subscription."""
        who = subscriber_of(caller, subscriber)
        found = page_locations(self._feeds, who, after, limit + 1)
        shown = [_form(one) for one in found[:limit]]
        response.headers.update(NO_STORE)
        return FeedPage(
            all=locate_feed(self._feeds, who).address,
            feeds=shown,
            next=shown[-1].subscription if len(found) > limit else None,
        )

    def find(
        self, caller: SubscribeCaller, id: Id, response: Response, subscriber: Subscriber = None
    ) -> Feed:
        """Where the feed of a subscription is, or of a database whose changes are told."""
        response.headers.update(NO_STORE)
        return _form(locate_feed(self._feeds, subscriber_of(caller, subscriber), _named(id)))

    def renew(
        self, caller: SubscribeCaller, id: Id, response: Response, subscriber: Subscriber = None
    ) -> Feed:
        """Give the feed a new address, which is told here. The old one is answered with 410 from then on."""
        response.headers.update(NO_STORE)
        return _form(renew_location(self._feeds, subscriber_of(caller, subscriber), _named(id)))

    def renew_list(self, caller: SubscribeCaller, response: Response, subscriber: Subscriber = None) -> Feed:
        """Give the list of all feeds a new address. Those of the feeds stay."""
        response.headers.update(NO_STORE)
        return _form(renew_location(self._feeds, subscriber_of(caller, subscriber)))


def _named(id: str) -> str:
    """Nothing has such a name, and no database has to be asked for it."""
    if not id.isprintable():
        raise Absent("there is no such subscription", received=ascii(id)[:200])
    return id


def _form(one: FeedLocation) -> Feed:
    return Feed(subscription=one.subscription, address=one.address)


def router_for(feeds: PersonalFeeds) -> APIRouter:
    """The endpoints."""
    serving = FeedAddressEndpoints(feeds)
    router = APIRouter(prefix="/v1/feeds", tags=["feeds"], route_class=VersionedRoute)
    router.add_api_route("", serving.page, methods=["GET"])
    router.add_api_route("/renew", serving.renew_list, methods=["POST"], route_class_override=ActionRoute)
    router.add_api_route(
        "/{id:path}/renew", serving.renew, methods=["POST"], route_class_override=ActionRoute
    )
    router.add_api_route("/{id:path}", serving.find, methods=["GET"])
    return router
