"""The application: routers, and what works beside them while it runs."""

from __future__ import annotations

import os
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from fastapi import FastAPI

from tidings.backbone.follow_loop import FollowLoop
from tidings.feeds.hub import Hub
from tidings.feeds.hub_loop import HubLoop
from tidings.interfaces.http import feeds, hub, metadata, metadata_browsing, objects, pings, problems
from tidings.interfaces.http.access import Asking
from tidings.interfaces.http.trust import TOKEN, Trust
from tidings.service import Tidings
from tidings.service.access import Access


def app_for(
    tidings: Tidings,
    hub_of_feeds: Hub,
    public_url: str | None = None,
    contact: str | None = None,
    following: FollowLoop | None = None,
) -> FastAPI:
    """The application of a home folder. The pages that FastAPI has by itself load scripts from elsewhere: they are
    off.

    `public_url` is given if others than this machine reach it: then hubs are asked to push the feeds that are read.
    `following` is what the metadata of another provider is followed with.
    """

    @asynccontextmanager
    async def running(_: FastAPI) -> AsyncIterator[None]:
        with HubLoop(hub_of_feeds):
            yield

    app = FastAPI(title="Tidings", lifespan=running, docs_url=None, redoc_url=None)
    app.include_router(problems.router())
    app.include_router(feeds.router_for(hub_of_feeds.feeds))
    app.include_router(hub.router_for(hub_of_feeds))
    app.include_router(pings.router_for(tidings, public_url, contact=contact))
    access = Access(tidings.store)
    app.state.asking = Asking(access)
    trust = Trust(os.environ.get(TOKEN), public_url is not None, access)
    provider = metadata.api_for(tidings.store, trust, following)
    app.include_router(provider.router)
    app.include_router(metadata_browsing.router_for(tidings.store, trust))
    app.include_router(objects.router_for(tidings.store, trust))
    app.state.at_end = [provider.news.end]
    return app
