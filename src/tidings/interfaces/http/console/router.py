"""All pages of the console, below `/console`."""

from __future__ import annotations

from fastapi import APIRouter, Response

from tidings.delivery import Destinations
from tidings.errors import Absent
from tidings.feeds.personal import PersonalFeeds
from tidings.interfaces.http.console import (
    browse,
    dead_letters,
    destinations,
    log_in,
    notifications,
    pipeline,
    publish,
    static,
    subscriptions,
    tokens,
)
from tidings.interfaces.http.console.answering import HOME, moved, pages_at
from tidings.interfaces.http.console.visiting import Visiting
from tidings.interfaces.http.joining import join
from tidings.interfaces.http.rates import Rates
from tidings.interfaces.http.v1.limits import Limits
from tidings.service import Tidings
from tidings.service.access import Access


def router_for(
    tidings: Tidings,
    reached: Destinations,
    feeds: PersonalFeeds,
    limits: Limits,
    public_url: str | None = None,
    attempts: Rates | None = None,
) -> APIRouter:
    """The console of a home folder. `public_url` says whether people reach it by https."""
    router = pages_at()
    join(router, *parts_for(tidings, reached, feeds, limits, public_url, attempts))
    router.add_api_route("", start, methods=["GET"])
    router.add_api_route("/{rest:path}", nowhere, methods=["GET"])
    return router


def parts_for(
    tidings: Tidings,
    reached: Destinations,
    feeds: PersonalFeeds,
    limits: Limits,
    public_url: str | None = None,
    attempts: Rates | None = None,
) -> tuple[APIRouter, ...]:
    """Its parts, each at an address of its own."""
    access = Access(tidings.store)
    return (
        log_in.router_for(access, (public_url or "").startswith("https:"), attempts),
        static.router_for(),
        notifications.router_for(tidings),
        subscriptions.router_for(tidings, feeds, limits),
        destinations.router_for(reached),
        publish.router_for(tidings, limits),
        browse.router_for(tidings),
        dead_letters.router_for(tidings, limits),
        pipeline.router_for(tidings),
        tokens.router_for(access),
    )


def start(visitor: Visiting) -> Response:
    """The first page is what a token is for."""
    if visitor.may_subscribe:
        return moved(f"{HOME}/notifications")
    return moved(f"{HOME}/publish")


def nowhere(rest: str, visitor: Visiting) -> Response:
    raise Absent("there is no such page", received=f"{HOME}/{rest}"[:200])
