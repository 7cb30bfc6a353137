"""Addresses of a subscriber's feeds.

    GET     /v1/feeds                  ?after=  &limit=     the list of all feeds (OPML), and that of each subscription
    GET     /v1/feeds/{id}             the feed of a subscription
    POST    /v1/feeds/{id}/renew       give it a new address; the old one stops working
    POST    /v1/feeds/renew            the same for the list of all feeds

An address is created by the first request for it. An administrator passes `subscriber`.
"""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Path, Query, Response
from pydantic import Field

from tidings.api.authentication import SubscribeCaller
from tidings.api.v1.notifications import subscriber_of
from tidings.api.v1.route_classes import ActionRoute, VersionedRoute
from tidings.api.v1.schemas import StrictModel, copy_fields
from tidings.client.records import Feed
from tidings.errors import Absent
from tidings.feeds.outbound.personal_feeds import (
    PersonalFeeds,
    locate_feed,
    page_locations,
    renew_location,
)

NO_STORE = {"Cache-Control": "no-store"}
"""An address is a secret: anyone who knows it can read the feed."""

Id = Annotated[str, Path(max_length=500)]
Subscriber = Annotated[
    str | None, Query(max_length=500, description="The subscriber; only administrators may name another one.")
]


class FeedPage(StrictModel):
    """Feeds, ordered by the ids of their subscriptions. Request the next page with `after` set to `next`."""

    all: str | None = Field(description="Address of the list of all feeds (OPML)")
    feeds: list[Feed]
    next: str | None


class FeedAddressEndpoints:
    """Reads and renews the addresses of feeds."""

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
        """List the addresses of feeds: of the list of all feeds, and of each subscription's."""
        who = subscriber_of(caller, subscriber)
        locations = page_locations(self._feeds, who, after, limit + 1)
        feeds = [copy_fields(Feed, location) for location in locations[:limit]]
        response.headers.update(NO_STORE)
        return FeedPage(
            all=locate_feed(self._feeds, who).address,
            feeds=feeds,
            next=feeds[-1].subscription if len(locations) > limit else None,
        )

    def find(
        self, caller: SubscribeCaller, id: Id, response: Response, subscriber: Subscriber = None
    ) -> Feed:
        """Read the address of the feed of a subscription, or of a database whose changes are watched."""
        response.headers.update(NO_STORE)
        location = locate_feed(self._feeds, subscriber_of(caller, subscriber), _check_id(id))
        return copy_fields(Feed, location)

    def renew(
        self, caller: SubscribeCaller, id: Id, response: Response, subscriber: Subscriber = None
    ) -> Feed:
        """Give a feed a new address. The old one is answered with 410 from then on."""
        response.headers.update(NO_STORE)
        location = renew_location(self._feeds, subscriber_of(caller, subscriber), _check_id(id))
        return copy_fields(Feed, location)

    def renew_list(self, caller: SubscribeCaller, response: Response, subscriber: Subscriber = None) -> Feed:
        """Give the list of all feeds a new address. The feeds keep theirs."""
        response.headers.update(NO_STORE)
        return copy_fields(Feed, renew_location(self._feeds, subscriber_of(caller, subscriber)))


def _check_id(id: str) -> str:
    """Refuse ids that cannot exist, before the store is read."""
    if not id.isprintable():
        raise Absent("there is no such subscription", received=ascii(id)[:200])
    return id


def router_for(feeds: PersonalFeeds) -> APIRouter:
    endpoints = FeedAddressEndpoints(feeds)
    router = APIRouter(prefix="/v1/feeds", tags=["feeds"], route_class=VersionedRoute)
    router.add_api_route("", endpoints.page, methods=["GET"])
    router.add_api_route("/renew", endpoints.renew_list, methods=["POST"], route_class_override=ActionRoute)
    router.add_api_route(
        "/{id:path}/renew", endpoints.renew, methods=["POST"], route_class_override=ActionRoute
    )
    router.add_api_route("/{id:path}", endpoints.find, methods=["GET"])
    return router
