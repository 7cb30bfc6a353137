"""Application factory: routers, middleware, and workers that run while the application does."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace

from fastapi import FastAPI
from fastapi.concurrency import run_in_threadpool
from starlette.exceptions import HTTPException

from tidings.api import feeds, objects, probes
from tidings.api import feeds as hub
from tidings.api.authentication import Authenticator, TrustPolicy
from tidings.api.metadata import browse, provider_routes
from tidings.api.middleware.cancellation import CancellationMiddleware
from tidings.api.middleware.head_requests import HeadRequestMiddleware
from tidings.api.middleware.rate_limiter import RateLimiter
from tidings.api.middleware.request_log import RequestLogMiddleware
from tidings.api.request_body import UploadBudget
from tidings.api.routes import handle_not_found, handle_server_error, join_routers
from tidings.api.v1 import (
    asyncapi,
    audiences,
    destinations,
    feed_addresses,
    notifications,
    openapi,
    pipeline,
    preferences,
    preview,
    publications,
    subscriptions,
)
from tidings.api.v1.limits import Limits, load_limits
from tidings.api.v1.streams import websocket
from tidings.api.v1.streams.fanout import NotificationFanout
from tidings.api.xml_rpc import endpoints
from tidings.console import metadata as metadata_pages
from tidings.console.router import router_for as console_for
from tidings.operations.settings import ServicePart
from tidings.service.context import ServiceContext
from tidings.service.delivery import build_delivery_policy, open_destinations
from tidings.service.delivery_worker import DeliveryWorkers
from tidings.service.tidings import Tidings


def add_v1_routes(app: FastAPI, tidings: Tidings, limits: Limits | None = None) -> None:
    """Add publications, subscriptions and previews, with these limits or those of the environment."""
    limits = limits or load_limits()
    app.state.limits = limits
    app.state.rates = RateLimiter(limits.rate, limits.burst, limits.tokens)
    app.state.uploads = UploadBudget(limits.uploads)
    join_routers(
        app, *(module.router_for(tidings, limits) for module in (publications, subscriptions, preview))
    )
    join_routers(app, openapi.router)


def create_app(context: ServiceContext) -> FastAPI:
    """Create the application of a home folder. A process without the API part has probes only.

    FastAPI's own documentation pages are off: they load scripts from other sites, and its OpenAPI document knows
    nothing of Problem Details. `/v1/openapi.json` replaces it.
    """

    @asynccontextmanager
    async def running(_: FastAPI) -> AsyncIterator[None]:
        delivering = DeliveryWorkers(context)
        with context.parsers as parsers, parsers.installed():
            delivering.__enter__()
            try:
                yield
            finally:
                await run_in_threadpool(delivering.__exit__, None, None, None)

    app = FastAPI(title="Tidings", lifespan=running, openapi_url=None)
    app.state.authenticator = Authenticator(context.access)
    app.state.at_end = []
    app.add_middleware(CancellationMiddleware)
    app.add_middleware(RequestLogMiddleware, metrics=context.metrics)
    app.add_middleware(HeadRequestMiddleware)
    app.add_exception_handler(HTTPException, handle_not_found)
    app.add_exception_handler(Exception, handle_server_error)
    if context.has(ServicePart.API):
        _add_all_routes(app, context)
    join_routers(app, probes.router_for(context))
    return app


def _add_all_routes(app: FastAPI, context: ServiceContext) -> None:
    """Add all routes of the API and the console."""
    tidings, public_url = context.tidings, context.public_url
    given = context.settings.rpc_token
    token = given.get_secret_value() if given else None
    trust = TrustPolicy(token, public_url is not None, context.access)
    own = replace(trust, is_public=True)  # subscribers' data needs a token on this machine as well
    add_v1_routes(app, tidings)  # first: routes are tried in order, and most requests are for these
    fanout = NotificationFanout(tidings.store)
    join_routers(app, notifications.router_for(tidings.store, fanout))
    join_routers(app, metadata_pages.problem_types_router())
    join_routers(app, feeds.router_for(context.hub.feeds))
    join_routers(app, hub.hub_router_for(context.hub))
    contact = context.settings.contact
    places = context.hub.feeds.places
    join_routers(
        app,
        endpoints.router_for(tidings, places, public_url, token=token, always_token=True, contact=contact),
    )
    provider = provider_routes.build_provider_api(tidings.store, trust, context.following)
    join_routers(app, provider.router)
    join_routers(app, browse.router_for(tidings.store, trust))
    join_routers(app, metadata_pages.router_for(tidings.store, trust))
    join_routers(app, objects.router_for(tidings.store, own))
    join_routers(app, websocket.router_for(tidings.store, fanout))
    join_routers(app, asyncapi.router)
    join_routers(app, audiences.router_for(tidings.store))
    join_routers(app, pipeline.router_for(context))
    made = open_destinations(tidings.store, build_delivery_policy(context.settings))
    join_routers(app, destinations.router_for(made))
    join_routers(app, feed_addresses.router_for(context.hub.feeds))
    join_routers(app, console_for(tidings, made, context.hub.feeds, app.state.limits, public_url))
    join_routers(app, preferences.router_for(tidings.store))
    app.state.at_end += [provider.news.end, fanout.end, made.close]
