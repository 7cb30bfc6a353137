"""Resources of a subscriber: quiet hours, addresses of feeds, and audience grants.

    GET, PUT    /v1/preferences         {"quiet_hours": {"from": "22:00", "to": "07:00", "zone": "Europe/Berlin"}}
    GET         /v1/feeds               ?after=  &limit=     the list of all feeds (OPML), and each subscription's feed
    GET         /v1/feeds/{id}          the feed of a subscription
    POST        /v1/feeds/{id}/renew    give it a new address; the old one stops working
    POST        /v1/feeds/renew         the same for the list of all feeds
    GET         /v1/audiences           ?subscriber=
    PUT         /v1/audiences           {"label": "board", "subscriber": "ana"}
    DELETE      /v1/audiences           ?label=board&subscriber=ana

Without quiet hours, which are `null`, notifications are delivered at any time. The address of a feed is created by the
first request for it. A grant lets a subscriber see publications that carry the label; only administrators make them.
"""

from __future__ import annotations

from dataclasses import asdict
from typing import Annotated

from fastapi import APIRouter, Depends, Query, Response
from pydantic import Field

from tidings.api import parameters
from tidings.api.authentication import AdministerCaller, SubscribeCaller
from tidings.api.parameters import AfterId, Id, Limit, subscriber_of
from tidings.api.v1.route_classes import ActionRoute, VersionedRoute, problem_descriptions
from tidings.api.v1.schemas import StrictModel, copy_fields
from tidings.client.records import Feed
from tidings.delivery.quiet_hours import format_quiet_hours, parse_quiet_hours
from tidings.delivery.sql.destination_store import QuietHours
from tidings.errors import NotFound, pointing
from tidings.feeds.outbound.personal_feeds import PersonalFeeds, locate_feed, page_locations, renew_location
from tidings.store.store import Store


class Hours(StrictModel):
    """A daily period in a time zone. It spans midnight if it ends before it begins."""

    start: str = Field(alias="from", max_length=10)
    end: str = Field(alias="to", max_length=10)
    zone: str = Field(max_length=100)


class Preferences(StrictModel):
    """Preferences of a subscriber."""

    quiet_hours: Hours | None


def preferences_router_for(store: Store) -> APIRouter:
    router = APIRouter(prefix="/v1/preferences", tags=["preferences"], route_class=VersionedRoute)

    @router.get("")
    def read(caller: SubscribeCaller, subscriber: parameters.Subscriber = None) -> Preferences:
        """Read the preferences of a subscriber."""
        return _build_preferences(store.preferences.read_quiet_hours(subscriber_of(caller, subscriber)))

    @router.put("")
    def change(
        caller: SubscribeCaller, body: Preferences, subscriber: parameters.Subscriber = None
    ) -> Preferences:
        """Change the preferences. Notifications that wait for the end of quiet hours are rescheduled at once."""
        owner, hours = subscriber_of(caller, subscriber), body.quiet_hours
        hours_set = parse_quiet_hours(owner, hours.start, hours.end, hours.zone) if hours else None
        store.preferences.set_quiet(owner, hours_set)
        store.delivery_cursors.wake_subscriber(owner)
        return _build_preferences(hours_set)

    return router


def _build_preferences(hours: QuietHours | None) -> Preferences:
    if hours is None:
        return Preferences(quiet_hours=None)
    times = {"from": format_quiet_hours(hours.from_minute), "to": format_quiet_hours(hours.to_minute)}
    return Preferences(quiet_hours=Hours.model_validate(times | {"zone": hours.zone}))


class FeedPage(StrictModel):
    """Feeds, ordered by the ids of their subscriptions. Request the next page with `after` set to `next`."""

    all: str | None = Field(description="Address of the list of all feeds (OPML)")
    feeds: list[Feed]
    next: str | None


def _forbid_caching(response: Response) -> None:
    """An address is a secret: anyone with it can read the feed."""
    response.headers["Cache-Control"] = "no-store"


class FeedAddressEndpoints:
    """Reads and renews the addresses of feeds."""

    def __init__(self, feeds: PersonalFeeds) -> None:
        self._feeds = feeds

    def page(
        self,
        caller: SubscribeCaller,
        subscriber: parameters.Subscriber = None,
        after: AfterId = "",
        limit: Limit = 100,
    ) -> FeedPage:
        """List the addresses of feeds: of the list of all feeds, and of each subscription's."""
        owner = subscriber_of(caller, subscriber)
        locations = page_locations(self._feeds, owner, after, limit + 1)
        feeds = [copy_fields(Feed, location) for location in locations[:limit]]
        following = feeds[-1].subscription if len(locations) > limit else None
        return FeedPage(all=locate_feed(self._feeds, owner).address, feeds=feeds, next=following)

    def find(self, caller: SubscribeCaller, id: Id, subscriber: parameters.Subscriber = None) -> Feed:
        """Read the address of the feed of a subscription, or of a database whose changes are watched."""
        owner = subscriber_of(caller, subscriber)
        return copy_fields(Feed, locate_feed(self._feeds, owner, _check_id(id)))

    def renew(self, caller: SubscribeCaller, id: Id, subscriber: parameters.Subscriber = None) -> Feed:
        """Give a feed a new address. The old one is answered with 410 from then on."""
        owner = subscriber_of(caller, subscriber)
        return copy_fields(Feed, renew_location(self._feeds, owner, _check_id(id)))

    def renew_list(self, caller: SubscribeCaller, subscriber: parameters.Subscriber = None) -> Feed:
        """Give the list of all feeds a new address. The feeds keep theirs."""
        return copy_fields(Feed, renew_location(self._feeds, subscriber_of(caller, subscriber)))


def _check_id(id: str) -> str:
    """Refuse ids that cannot exist, before the store is read."""
    if not id.isprintable():
        raise NotFound("there is no such subscription", received=ascii(id)[:200])
    return id


def feed_addresses_router_for(feeds: PersonalFeeds) -> APIRouter:
    endpoints = FeedAddressEndpoints(feeds)
    router = APIRouter(
        prefix="/v1/feeds",
        tags=["feeds"],
        route_class=VersionedRoute,
        dependencies=[Depends(_forbid_caching)],
    )
    add = router.add_api_route
    add("", endpoints.page, methods=["GET"])
    add("/renew", endpoints.renew_list, methods=["POST"], route_class_override=ActionRoute)
    add("/{id:path}/renew", endpoints.renew, methods=["POST"], route_class_override=ActionRoute)
    add("/{id:path}", endpoints.find, methods=["GET"])
    return router


Label = Annotated[str, Query(min_length=1, max_length=500, description="The label of publications.")]
Grantee = Annotated[str, Query(min_length=1, max_length=500, description="The subscriber.")]
GranteeFilter = Annotated[str | None, Query(max_length=500, description="Only grants of this subscriber.")]


class NewGrant(StrictModel):
    """Permission for a subscriber to see publications with a label."""

    label: str = Field(min_length=1, max_length=500)
    subscriber: str = Field(min_length=1, max_length=500)


class Grant(StrictModel):
    """A grant, and when it was made."""

    label: str
    subscriber: str
    since: str


class Grants(StrictModel):
    """Current grants, by subscriber and label."""

    grants: list[Grant]


def audiences_router_for(store: Store) -> APIRouter:
    router = APIRouter(prefix="/v1/audiences", tags=["audiences"], route_class=VersionedRoute)
    audiences = store.audiences

    @router.get("")
    def list_grants(caller: AdministerCaller, subscriber: GranteeFilter = None) -> Grants:
        """List grants: which subscriber may see which labels."""
        if subscriber is not None and not subscriber.isprintable():
            return Grants(grants=[])
        grants = audiences.list(subscriber and caller.resolve_subscriber(subscriber))
        return Grants(grants=[Grant(**asdict(grant)) for grant in grants])

    @router.put("")
    def grant(caller: AdministerCaller, body: NewGrant) -> Grant:
        """Let a subscriber see publications with a label. Granting twice changes nothing."""
        with pointing("/subscriber"):
            subscriber = caller.resolve_subscriber(body.subscriber)
        audiences.grant(subscriber, body.label)
        [stored] = [grant for grant in audiences.list(subscriber) if grant.label == body.label]
        return Grant(**asdict(stored))

    @router.delete("", status_code=204, responses=problem_descriptions(404))
    def revoke(caller: AdministerCaller, label: Label, subscriber: Grantee) -> Response:
        """Revoke a grant. Earlier notifications about such publications are withheld from now on."""
        is_printable = label.isprintable() and subscriber.isprintable()
        if not is_printable or not audiences.revoke(caller.resolve_subscriber(subscriber), label):
            raise NotFound("there is no such grant")
        return Response(status_code=204)

    return router
