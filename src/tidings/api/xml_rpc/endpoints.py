"""Pushes over HTTP: pings of content systems by XML-RPC, the service of the paper, and what WebSub hubs call back.

While the application runs, the feeds that are due are polled, so that a ping is followed by a poll.
"""

from __future__ import annotations

import os
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from typing import Any
from xmlrpc.client import Fault

from fastapi import APIRouter, Request, Response
from fastapi.concurrency import run_in_threadpool
from fastapi.responses import PlainTextResponse

from tidings.api.authentication import TOKEN_VARIABLE, TrustPolicy
from tidings.api.middleware.rate_limiter import RateLimiter
from tidings.api.request_body import read_body
from tidings.api.routes import PlainTextRoute
from tidings.api.xml_rpc import messages
from tidings.api.xml_rpc.messages import WRONG_PARAMETERS
from tidings.api.xml_rpc.service_methods import PUBLISH, XmlRpcService, may_call
from tidings.feeds.inbound import websub
from tidings.feeds.inbound.feed_client import FetchPolicy
from tidings.feeds.inbound.poller import Poller, PollWorker
from tidings.feeds.outbound.addresses import FeedUrls
from tidings.feeds.sql.polled_feeds import PolledFeed
from tidings.operations.egress_policy import EgressPolicy
from tidings.parsers.parser_pool import Lane
from tidings.service.authorization import Access, Caller
from tidings.service.tidings import Tidings
from tidings.store.encoding import Clock, utc_now
from tidings.store.store import Store

# What content systems call when something is new: `weblogUpdates.ping` and `weblogUpdates.extendedPing`.
#
# WordPress and Drupal send them to every address in their list of update services. Which of the parameters is the
# feed differs: WordPress puts it third, others fourth, and many name the site only. So every text in a ping may be
# the address of a feed, or of the site that a feed belongs to. A ping makes a feed due that somebody here has added;
# it never adds one, because pings come from anybody.


PING_METHODS = ("weblogUpdates.ping", "weblogUpdates.extendedPing")
MOST_PARAMETERS = 6
LONGEST = 2_000
PINGS_PER_MINUTE = 30
"""How many pings an address may send."""


def handle_ping(store: Store, poller: Poller, parameters: Sequence[Any]) -> dict[str, Any]:
    """What is answered to a ping, after the feeds that it means were made due."""
    addresses = _addresses(parameters)
    feeds = [feed for feed in store.polled_feeds.named(addresses) if feed.next_poll is not None]
    if not feeds:
        return ping_response("No feed of this site is read here.", wrong=True)
    poller.hasten(feeds)
    return ping_response("Thanks for the ping.")


def ping_response(message: str, wrong: bool = False) -> dict[str, Any]:
    """The struct that callers expect."""
    return {"flerror": wrong, "message": message}


def _addresses(parameters: Sequence[Any]) -> list[str]:
    texts = [each for each in parameters if isinstance(each, str)]
    if not 2 <= len(parameters) <= MOST_PARAMETERS or len(texts) != len(parameters):
        raise Fault(WRONG_PARAMETERS, "a ping has a name, the address of a site, and perhaps that of a feed")
    given = [each.strip() for each in texts if len(each) <= LONGEST]
    return list(dict.fromkeys(same for each in given for same in _same(each)))


def _same(address: str) -> list[str]:
    """What people take for one address: with and without a slash at the end, with http and https."""
    bare = address.removeprefix("https://").removeprefix("http://").rstrip("/")
    return [f"{scheme}://{bare}{end}" for scheme in ("http", "https") for end in ("", "/")] if bare else []


LARGEST_PING, LARGEST_FEED = 64_000, 17_000_000
"""Bytes that anybody may send, and that a hub or a user of the service may."""


def router_for(
    tidings: Tidings,
    places: FeedUrls,
    public_url: str | None = None,
    *,
    token: str | None = None,
    always_token: bool = False,
    contact: str | None = None,
    clock: Clock = utc_now,
    network: EgressPolicy | None = None,
) -> APIRouter:
    """The endpoints through which others tell us that something is new.

    `places` has the addresses under which this service is reached. `public_url` is where hubs reach it; without it no
    hub is asked. `token` opens the methods of the service to those who know it; the environment may name it. Without
    one this machine may call them, unless `always_token`.
    """
    poller = Poller(
        tidings.store, FetchPolicy(contact=contact), public_url=public_url, clock=clock, network=network
    )
    guarded = always_token or public_url is not None
    trust = TrustPolicy(token or os.environ.get(TOKEN_VARIABLE), guarded, Access(tidings.store))
    pings = RateLimiter(PINGS_PER_MINUTE, PINGS_PER_MINUTE, clock=lambda: clock().timestamp())
    rpc = XmlRpcEndpoint(tidings, poller, places, trust, pings)

    @asynccontextmanager
    async def polling(_: object) -> AsyncIterator[None]:
        loop = PollWorker(poller)
        loop.__enter__()
        try:
            yield
        finally:
            await run_in_threadpool(loop.__exit__, None, None, None)

    router = APIRouter(lifespan=polling, tags=["pushes"], route_class=PlainTextRoute)
    router.add_api_route("/RPC2", rpc.answer, methods=["POST"])
    callbacks = WebSubCallbacks(tidings, poller, clock)
    router.add_api_route("/websub/{word}", callbacks.verify, methods=["GET"])
    router.add_api_route("/websub/{word}", callbacks.push, methods=["POST"])
    return router


class XmlRpcEndpoint:
    """XML-RPC: pings from anybody, the service for those who may use it."""

    def __init__(
        self, tidings: Tidings, poller: Poller, places: FeedUrls, trust: TrustPolicy, pings: RateLimiter
    ) -> None:
        self._tidings, self._poller, self._pings = tidings, poller, pings
        self._service = XmlRpcService(tidings, places)
        self._trust = trust

    async def answer(self, request: Request) -> Response:
        """One call."""
        media_type = request.headers.get("content-type", "")
        if media_type.partition(";")[0].strip().lower() not in messages.MEDIA_TYPES:
            return PlainTextResponse(f"a call, as {messages.MEDIA_TYPES[0]}\n", 415)
        who = await run_in_threadpool(self._who, request)
        body = await read_body(request, LARGEST_FEED if who else LARGEST_PING)
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
            method, parameters = messages.parse_call(body, media_type, lane)
            return messages.render_response(self._call(method, parameters, who, sender))
        except Fault as problem:
            return messages.render_fault(problem)

    def _call(self, method: str, parameters: tuple[Any, ...], who: Caller | bool, sender: str) -> Any:
        if method in PING_METHODS:
            if not self._pings.take(sender).is_allowed:
                return ping_response("Too many pings from your address, come back in a minute.", wrong=True)
            return handle_ping(self._tidings.store, self._poller, parameters)
        if method not in self._service.methods:
            raise Fault(messages.NO_METHOD, f"there is no method {method[:100]!r}")
        if not (who if isinstance(who, bool) else may_call(who, method, parameters)):
            raise Fault(messages.NOT_ALLOWED, _missing_scope_message(method, who))
        return self._service.call(method, parameters, subscribes=who is True)


def _missing_scope_message(method: str, who: Caller | bool) -> str:
    """Name the token that a method needs, and the scopes of the one that was sent."""
    if isinstance(who, bool):
        return "this method needs the token of the service"
    scopes = ", ".join(sorted(who.token.scopes))
    wanted = "publish" if method == PUBLISH else "subscribe, for the subscriber named first"
    yours = f"{scopes}, for {who.subscriber}" if who.subscriber else scopes
    return f"this method needs a token with the scope {wanted}; yours has {yours}"


class WebSubCallbacks:
    """What hubs call: to verify that we have asked, and to push."""

    def __init__(self, tidings: Tidings, poller: Poller, clock: Clock) -> None:
        self._tidings, self._poller, self._clock = tidings, poller, clock

    async def verify(self, word: str, request: Request) -> Response:
        """The challenge comes back if we have asked for this feed under this word, and else nothing does."""
        return await run_in_threadpool(self._verified, word, dict(request.query_params))

    def _verified(self, word: str, asked: dict[str, str]) -> Response:
        feed = self._feed(word)
        known = websub.verify_callback(feed, asked, self._clock()) if feed else None
        if feed is None or known is None:
            return PlainTextResponse("nobody has asked for that\n", 404)
        changes, challenge = known
        self._tidings.store.polled_feeds.record(feed, changes)
        return PlainTextResponse(challenge)

    def _feed(self, word: str) -> PolledFeed | None:
        """The feed that a hub means; what no word of ours looks like, databases need not see."""
        return self._tidings.store.polled_feeds.called_back(word) if websub.WORD.fullmatch(word) else None

    async def push(self, word: str, request: Request) -> Response:
        """A push. One that is not signed is discarded without an error, as WebSub asks.

        The callback is looked up before the body is read: anyone may send a request, and bodies take memory.
        """
        if await run_in_threadpool(self._wanted, word) is None:
            return _not_wanted()
        body = await read_body(request, LARGEST_FEED)
        return await run_in_threadpool(self._pushed, word, request, body)

    def _wanted(self, word: str) -> PolledFeed | None:
        feed = self._feed(word)
        return None if feed is None or feed.push == websub.DENIED else feed

    def _pushed(self, word: str, request: Request, body: bytes) -> Response:
        feed = self._wanted(word)
        if feed is None:
            return _not_wanted()
        if websub.is_signature_valid(feed.secret, request.headers.get("x-hub-signature"), body):
            self._poller.take_push(feed, body, request.headers.get("content-type", ""))
        return Response(status_code=202)


def _not_wanted() -> Response:
    return PlainTextResponse("no such subscription\n", 410)
