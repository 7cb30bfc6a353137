"""Pushes over HTTP: pings of content systems by XML-RPC, the service of the paper, and what WebSub hubs call back.

While the application runs, the feeds that are due are polled, so that a ping is followed by a poll.
"""

from __future__ import annotations

import os
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any
from xmlrpc.client import Fault

from fastapi import APIRouter, Request, Response
from fastapi.concurrency import run_in_threadpool
from fastapi.responses import PlainTextResponse

from tidings.feeds import websub
from tidings.feeds.fetching import Manners
from tidings.feeds.places import Places
from tidings.feeds.poll_loop import PollLoop
from tidings.feeds.polling import Poller
from tidings.interfaces.http import xml_rpc
from tidings.interfaces.http.answers import Plain
from tidings.interfaces.http.bodies import body_of
from tidings.interfaces.http.ping_methods import A_MINUTE, PINGS, answered, ping
from tidings.interfaces.http.rates import Rates
from tidings.interfaces.http.service_methods import PUBLISH, Service, may
from tidings.interfaces.http.trust import TOKEN, Trust
from tidings.publications.parser_pool import Lane
from tidings.service import Tidings
from tidings.service.access import Access, Caller
from tidings.store import Clock, PolledFeed, utc
from tidings.web.network import Network

LARGEST_PING, LARGEST_FEED = 64_000, 17_000_000
"""Bytes that anybody may send, and that a hub or a user of the service may."""


def router_for(
    tidings: Tidings,
    places: Places,
    public_url: str | None = None,
    *,
    token: str | None = None,
    always_token: bool = False,
    contact: str | None = None,
    clock: Clock = utc,
    network: Network | None = None,
) -> APIRouter:
    """The endpoints through which others tell us that something is new.

    `places` has the addresses under which this service is reached. `public_url` is where hubs reach it; without it no
    hub is asked. `token` opens the methods of the service to those who know it; the environment may name it. Without
    one this machine may call them, unless `always_token`.
    """
    poller = Poller(
        tidings.store, Manners(contact=contact), public_url=public_url, clock=clock, network=network
    )
    guarded = always_token or public_url is not None
    trust = Trust(token or os.environ.get(TOKEN), guarded, Access(tidings.store))
    pings = Rates(A_MINUTE, A_MINUTE, clock=lambda: clock().timestamp())
    rpc = Rpc(tidings, poller, places, trust, pings)

    @asynccontextmanager
    async def polling(_: object) -> AsyncIterator[None]:
        loop = PollLoop(poller)
        loop.__enter__()
        try:
            yield
        finally:
            await run_in_threadpool(loop.__exit__, None, None, None)

    router = APIRouter(lifespan=polling, tags=["pushes"], route_class=Plain)
    router.add_api_route("/RPC2", rpc.answer, methods=["POST"])
    callbacks = Callbacks(tidings, poller, clock)
    router.add_api_route("/websub/{word}", callbacks.verify, methods=["GET"])
    router.add_api_route("/websub/{word}", callbacks.push, methods=["POST"])
    return router


class Rpc:
    """XML-RPC: pings from anybody, the service for those who may use it."""

    def __init__(self, tidings: Tidings, poller: Poller, places: Places, trust: Trust, pings: Rates) -> None:
        self._tidings, self._poller, self._pings = tidings, poller, pings
        self._service = Service(tidings, places)
        self._trust = trust

    async def answer(self, request: Request) -> Response:
        """One call."""
        media_type = request.headers.get("content-type", "")
        if media_type.partition(";")[0].strip().lower() not in xml_rpc.MEDIA_TYPES:
            return PlainTextResponse(f"a call, as {xml_rpc.MEDIA_TYPES[0]}\n", 415)
        who = await run_in_threadpool(self._who, request)
        body = await body_of(request, LARGEST_FEED if who else LARGEST_PING)
        sender = request.client.host if request.client else ""
        answered = await run_in_threadpool(self._called, body, media_type, who, sender)
        return Response(answered, media_type="text/xml")

    def _who(self, request: Request) -> Caller | bool:
        """Whoever has a token with some scopes; else whether they may do everything. A good token is counted."""
        known = self._trust.known(request)
        known.count(request)
        return known.may or known.caller or False

    def _called(self, body: bytes, media_type: str, who: Caller | bool, sender: str) -> bytes:
        try:
            lane = Lane.CALLERS if who else Lane.STRANGERS
            method, parameters = xml_rpc.call_in(body, media_type, lane)
            return xml_rpc.answer(self._call(method, parameters, who, sender))
        except Fault as problem:
            return xml_rpc.fault(problem)

    def _call(self, method: str, parameters: tuple[Any, ...], who: Caller | bool, sender: str) -> Any:
        if method in PINGS:
            if not self._pings.take(sender).is_allowed:
                return answered("Too many pings from your address, come back in a minute.", wrong=True)
            return ping(self._tidings.store, self._poller, parameters)
        if method not in self._service.methods:
            raise Fault(xml_rpc.NO_METHOD, f"there is no method {method[:100]!r}")
        if not (who if isinstance(who, bool) else may(who, method, parameters)):
            raise Fault(xml_rpc.NOT_ALLOWED, _needed(method, who))
        return self._service.call(method, parameters, subscribes=who is True)


def _needed(method: str, who: Caller | bool) -> str:
    """Name the token that a method needs, and the scopes of the one that was sent."""
    if isinstance(who, bool):
        return "this method needs the token of the service"
    scopes = ", ".join(sorted(who.token.scopes))
    wanted = "publish" if method == PUBLISH else "subscribe, for the subscriber named first"
    yours = f"{scopes}, for {who.subscriber}" if who.subscriber else scopes
    return f"this method needs a token with the scope {wanted}; yours has {yours}"


class Callbacks:
    """What hubs call: to verify that we have asked, and to push."""

    def __init__(self, tidings: Tidings, poller: Poller, clock: Clock) -> None:
        self._tidings, self._poller, self._clock = tidings, poller, clock

    async def verify(self, word: str, request: Request) -> Response:
        """The challenge comes back if we have asked for this feed under this word, and else nothing does."""
        return await run_in_threadpool(self._verified, word, dict(request.query_params))

    def _verified(self, word: str, asked: dict[str, str]) -> Response:
        feed = self._feed(word)
        known = websub.verified(feed, asked, self._clock()) if feed else None
        if feed is None or known is None:
            return PlainTextResponse("nobody has asked for that\n", 404)
        changes, challenge = known
        self._tidings.store.feeds.record(feed, changes)
        return PlainTextResponse(challenge)

    def _feed(self, word: str) -> PolledFeed | None:
        """The feed that a hub means; what no word of ours looks like, databases need not see."""
        return self._tidings.store.feeds.called_back(word) if websub.WORD.fullmatch(word) else None

    async def push(self, word: str, request: Request) -> Response:
        """A push. One that is not signed is discarded without an error, as WebSub asks.

        The callback is looked up before the body is read: anyone may send a request, and bodies take memory.
        """
        if await run_in_threadpool(self._wanted, word) is None:
            return _not_wanted()
        body = await body_of(request, LARGEST_FEED)
        return await run_in_threadpool(self._pushed, word, request, body)

    def _wanted(self, word: str) -> PolledFeed | None:
        feed = self._feed(word)
        return None if feed is None or feed.push == websub.DENIED else feed

    def _pushed(self, word: str, request: Request, body: bytes) -> Response:
        feed = self._wanted(word)
        if feed is None:
            return _not_wanted()
        if websub.is_signed(feed.secret, request.headers.get("x-hub-signature"), body):
            self._poller.take_push(feed, body, request.headers.get("content-type", ""))
        return Response(status_code=202)


def _not_wanted() -> Response:
    return PlainTextResponse("no such subscription\n", 410)
