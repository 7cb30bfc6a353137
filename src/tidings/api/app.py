"""Application factory: routers, middleware, and workers that run while the application does."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace

from fastapi import FastAPI
from fastapi.concurrency import run_in_threadpool
from starlette.exceptions import HTTPException

from tidings.api import feeds, objects, probes
from tidings.api.authentication import Authenticator, TrustPolicy
from tidings.api.limits import Limits, load_limits
from tidings.api.metadata.provider_routes import build_provider_api
from tidings.api.middleware import CancellationMiddleware, HeadRequestMiddleware
from tidings.api.rate_limiter import RateLimiter
from tidings.api.request_body import UploadBudget
from tidings.api.request_log import RequestLogMiddleware
from tidings.api.routes import handle_not_found, handle_server_error, join_routers
from tidings.api.server import Server, allow_many_files, create_server
from tidings.api.v1 import (
    destinations,
    notifications,
    openapi,
    publications,
    subscribers,
    subscriptions,
    websocket,
)
from tidings.api.v1.notification_fanout import NotificationFanout
from tidings.api.xml_rpc import endpoints
from tidings.console import metadata as metadata_pages
from tidings.console.router import router_for as console_for
from tidings.operations.settings import ServicePart
from tidings.service.context import ServiceContext
from tidings.service.delivery import build_delivery_policy, open_destinations
from tidings.service.tidings import Tidings
from tidings.service.workers import Workers


def add_v1_routes(app: FastAPI, tidings: Tidings, limits: Limits | None = None) -> None:
    """Add publications, subscriptions and previews, with these limits or those of the environment."""
    limits = limits or load_limits()
    app.state.limits = limits
    app.state.rates = RateLimiter(limits.rate, limits.burst, limits.tokens)
    app.state.uploads = UploadBudget(limits.uploads)
    routers = [module.router_for(tidings, limits) for module in (publications, subscriptions)]
    join_routers(app, *routers, openapi.router)


def create_app(context: ServiceContext, workers: Workers | None = None) -> FastAPI:
    """Create the application of a home folder. A process without the API part has probes only.

    FastAPI's own documentation pages are off: they load scripts from other sites, and its OpenAPI document contains
    nothing of Problem Details. `/v1/openapi.json` replaces it. The workers run as long as the application does.
    """

    workers = workers or Workers(context)

    @asynccontextmanager
    async def run_workers(_: FastAPI) -> AsyncIterator[None]:
        workers.__enter__()
        try:
            yield
        finally:
            await run_in_threadpool(workers.close)

    app = FastAPI(title="Tidings", lifespan=run_workers, openapi_url=None)
    app.state.authenticator = Authenticator(context.access)
    app.state.at_end = []
    app.add_middleware(CancellationMiddleware)
    app.add_middleware(RequestLogMiddleware, metrics=context.metrics)
    app.add_middleware(HeadRequestMiddleware)
    app.add_exception_handler(HTTPException, handle_not_found)
    app.add_exception_handler(Exception, handle_server_error)
    if context.includes(ServicePart.API):
        _add_all_routes(app, context, workers)
    join_routers(app, probes.router_for(context))
    return app


def _add_all_routes(app: FastAPI, context: ServiceContext, workers: Workers) -> None:
    """Add all routes of the API and the console."""
    tidings, store, public_url = context.tidings, context.tidings.store, context.public_url
    settings, personal_feeds = context.settings, context.hub.feeds
    token = settings.rpc_token.get_secret_value() if settings.rpc_token else None
    trust = TrustPolicy(token, public_url is not None, context.access)
    own = replace(trust, is_public=True)  # subscribers' data needs a token on this machine as well
    fanout = NotificationFanout(store)
    provider = build_provider_api(store, trust, context.following)
    targets = open_destinations(store, build_delivery_policy(settings))
    add_v1_routes(app, tidings)  # first: routes are tried in order, and most requests are for these
    join_routers(
        app,
        notifications.router_for(store, fanout),
        websocket.router_for(store, fanout),
        destinations.router_for(targets),
        subscribers.preferences_router_for(store),
        subscribers.feed_addresses_router_for(personal_feeds),
        subscribers.audiences_router_for(store),
        probes.pipeline_router_for(context),
        feeds.router_for(personal_feeds),
        feeds.hub_router_for(context.hub),
        endpoints.router_for(tidings, workers.poller, personal_feeds.places, own),
        provider.router,
        objects.router_for(store, own),
        metadata_pages.problem_types_router(),
        metadata_pages.router_for(store, trust),
        console_for(
            tidings,
            targets,
            personal_feeds,
            app.state.limits,
            public_url,
            find_spark_ui=workers.find_spark_ui,
        ),
    )
    app.state.at_end += [provider.news.end, fanout.end, targets.close]


def create_http_server(context: ServiceContext, workers: Workers) -> Server:
    """Create the server of a service, with as many open files as the process may have."""
    allow_many_files()
    return create_server(create_app(context, workers), context.settings)
