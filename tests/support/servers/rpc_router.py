"""XML-RPC and WebSub endpoints with a poller that runs while they are served."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from fastapi import APIRouter
from fastapi.concurrency import run_in_threadpool

from tidings.api.authentication import TrustPolicy
from tidings.api.xml_rpc import endpoints
from tidings.feeds.inbound.poller import Poller, PollWorker
from tidings.feeds.outbound.addresses import FeedUrls
from tidings.service.authorization import Access
from tidings.service.tidings import Tidings
from tidings.store.encoding import Clock, utc_now


def router_for(
    tidings: Tidings,
    places: FeedUrls,
    public_url: str | None = None,
    *,
    token: str | None = None,
    clock: Clock = utc_now,
) -> APIRouter:
    poller = Poller(tidings.store, public_url=public_url, clock=clock)
    trust = TrustPolicy(token, public_url is not None, Access(tidings.store))
    router = endpoints.router_for(tidings, poller, places, trust, clock)

    @asynccontextmanager
    async def poll(_: object) -> AsyncIterator[None]:
        worker = PollWorker(poller)
        worker.__enter__()
        try:
            yield
        finally:
            await run_in_threadpool(worker.__exit__, None, None, None)

    router.lifespan_context = poll
    return router
