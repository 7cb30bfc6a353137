"""The application: routers, and what works beside them while it runs."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace

from fastapi import FastAPI
from fastapi.concurrency import run_in_threadpool
from starlette.exceptions import HTTPException

from tidings.interfaces.http import (
    feeds,
    hub,
    metadata,
    metadata_browsing,
    objects,
    pings,
    pipeline,
    probes,
    problems,
)
from tidings.interfaces.http.access import Asking
from tidings.interfaces.http.answers import nothing_there, went_wrong
from tidings.interfaces.http.console.router import router_for as console_for
from tidings.interfaces.http.context import Context
from tidings.interfaces.http.cutting import Cutting
from tidings.interfaces.http.delivering import Delivering
from tidings.interfaces.http.heads import Heads
from tidings.interfaces.http.joining import join
from tidings.interfaces.http.observing import Observing
from tidings.interfaces.http.trust import Trust
from tidings.interfaces.http.v1 import (
    api,
    asyncapi,
    audiences,
    destinations,
    feed_addresses,
    notification_socket,
    notifications,
    preferences,
)
from tidings.interfaces.http.v1.looking_out import LookOut
from tidings.operating.settings import Part
from tidings.service.delivering import destinations_of, rules_of


def app_for(context: Context) -> FastAPI:
    """The application of a home folder. The pages that FastAPI has by itself load scripts from elsewhere, and its own
    description knows nothing of Problem Details: they are off, and `/v1/openapi.json` is the one that there is. A
    process without the API has probes only.
    """

    @asynccontextmanager
    async def running(_: FastAPI) -> AsyncIterator[None]:
        delivering = Delivering(context)
        with context.parsers as parsers, parsers.installed():
            delivering.__enter__()
            try:
                yield
            finally:
                await run_in_threadpool(delivering.__exit__, None, None, None)

    app = FastAPI(title="Tidings", lifespan=running, openapi_url=None)
    app.state.asking = Asking(context.access)
    app.state.at_end = []
    app.add_middleware(Cutting)
    app.add_middleware(Observing, metrics=context.metrics)
    app.add_middleware(Heads)
    app.add_exception_handler(HTTPException, nothing_there)
    app.add_exception_handler(Exception, went_wrong)
    if context.has(Part.API):
        _add_api(app, context)
    join(app, probes.router_for(context))
    return app


def _add_api(app: FastAPI, context: Context) -> None:
    """What people and programs ask. Another part of it is a line here."""
    tidings, public_url = context.tidings, context.public_url
    given = context.settings.rpc_token
    token = given.get_secret_value() if given else None
    trust = Trust(token, public_url is not None, context.access)
    own = replace(trust, is_public=True)  # what belongs to subscribers wants a token, on this machine, too
    api.add_to(app, tidings)  # first: routes are tried in this order, and most requests are for these
    look_out = LookOut(tidings.store)
    join(app, notifications.router_for(tidings.store, look_out))
    join(app, problems.router())
    join(app, feeds.router_for(context.hub.feeds))
    join(app, hub.router_for(context.hub))
    contact = context.settings.contact
    places = context.hub.feeds.places
    join(app, pings.router_for(tidings, places, public_url, token=token, always_token=True, contact=contact))
    provider = metadata.api_for(tidings.store, trust, context.following)
    join(app, provider.router)
    join(app, metadata_browsing.router_for(tidings.store, trust))
    join(app, objects.router_for(tidings.store, own))
    join(app, notification_socket.router_for(tidings.store, look_out))
    join(app, asyncapi.router)
    join(app, audiences.router_for(tidings.store))
    join(app, pipeline.router_for(context))
    made = destinations_of(tidings.store, rules_of(context.settings))
    join(app, destinations.router_for(made))
    join(app, feed_addresses.router_for(context.hub.feeds))
    join(app, console_for(tidings, made, context.hub.feeds, app.state.limits, public_url))
    join(app, preferences.router_for(tidings.store))
    app.state.at_end += [provider.news.end, look_out.end, made.close]
