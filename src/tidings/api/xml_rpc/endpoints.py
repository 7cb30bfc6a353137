"""Pushes over HTTP: pings of content systems by XML-RPC, the service of paper 002, and callbacks of WebSub hubs.

Content systems call `weblogUpdates.ping` or `weblogUpdates.extendedPing` when something is new: WordPress and Drupal
send them to every address in their list of update services. Which parameter is the feed differs: WordPress puts it
third, others fourth, and many send only the address of the site. So any text in a ping may be the address of a feed, or
of the site that a feed belongs to. A ping makes a known feed due; it never adds one, because anyone may send pings.

The worker that polls feeds (`service/workers.py`) then fetches it.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any
from xmlrpc.client import Fault

from fastapi import APIRouter, Request, Response
from fastapi.concurrency import run_in_threadpool
from fastapi.responses import PlainTextResponse

from tidings.api.authentication import TrustPolicy
from tidings.api.parameters import media_type_of
from tidings.api.rate_limiter import RateLimiter
from tidings.api.request_body import read_body
from tidings.api.routes import PlainTextRoute
from tidings.api.xml_rpc import service_methods
from tidings.api.xml_rpc.service_methods import (
    NO_METHOD,
    NOT_ALLOWED,
    PUBLISH,
    WRONG_PARAMETERS,
    XmlRpcService,
    may_call,
)
from tidings.feeds.inbound import websub
from tidings.feeds.inbound.poller import Poller
from tidings.feeds.outbound.addresses import FeedUrls
from tidings.feeds.sql.polled_feeds import PolledFeed
from tidings.parsers.parser_pool import Lane
from tidings.service.authorization import Caller
from tidings.service.tidings import Tidings
from tidings.store.encoding import Clock, utc_now
from tidings.store.store import Store

PING_METHODS = ("weblogUpdates.ping", "weblogUpdates.extendedPing")
MAX_PING_PARAMETERS = 6
MAX_ADDRESS_LENGTH = 2_000
PINGS_PER_MINUTE = 30
"""Maximum rate of pings from one address."""

MAX_PING_BYTES, MAX_FEED_BYTES = 64_000, 17_000_000
"""Bytes of a request from anyone, and from a hub or a caller with a token."""


def handle_ping(store: Store, poller: Poller, parameters: Sequence[Any]) -> dict[str, Any]:
    """Make the feeds that a ping is about due, and return the response."""
    addresses = _list_addresses(parameters)
    feeds = [feed for feed in store.polled_feeds.named(addresses) if feed.next_poll is not None]
    if not feeds:
        return ping_response("No feed of this site is polled here.", wrong=True)
    poller.make_due(feeds)
    return ping_response("Thanks for the ping.")


def ping_response(message: str, wrong: bool = False) -> dict[str, Any]:
    """Return the struct that callers expect."""
    return {"flerror": wrong, "message": message}


def _list_addresses(parameters: Sequence[Any]) -> list[str]:
    texts = [parameter for parameter in parameters if isinstance(parameter, str)]
    if not 2 <= len(parameters) <= MAX_PING_PARAMETERS or len(texts) != len(parameters):
        raise Fault(
            WRONG_PARAMETERS, "a ping has a name, the address of a site, and optionally that of a feed"
        )
    addresses = [text.strip() for text in texts if len(text) <= MAX_ADDRESS_LENGTH]
    return list(dict.fromkeys(variant for address in addresses for variant in _list_variants(address)))


def _list_variants(address: str) -> list[str]:
    """Return the variants of an address: with and without a trailing slash, with http and https."""
    bare = address.removeprefix("https://").removeprefix("http://").rstrip("/")
    return [f"{scheme}://{bare}{end}" for scheme in ("http", "https") for end in ("", "/")] if bare else []


def router_for(
    tidings: Tidings, poller: Poller, places: FeedUrls, trust: TrustPolicy, clock: Clock = utc_now
) -> APIRouter:
    """Return the endpoints that content systems and hubs call when something is new.

    They make feeds due for the poller, or hand it pushed content. `places` has the addresses of this service, and
    `trust` decides who may call its methods.
    """
    pings = RateLimiter(PINGS_PER_MINUTE, PINGS_PER_MINUTE, clock=lambda: clock().timestamp())
    rpc = XmlRpcEndpoint(tidings, poller, places, trust, pings)
    router = APIRouter(tags=["pushes"], route_class=PlainTextRoute)
    router.add_api_route("/RPC2", rpc.answer, methods=["POST"])
    callbacks = WebSubCallbacks(tidings, poller, clock)
    router.add_api_route("/websub/{word}", callbacks.verify, methods=["GET"])
    router.add_api_route("/websub/{word}", callbacks.push, methods=["POST"])
    return router


class XmlRpcEndpoint:
    """XML-RPC: pings from anyone, the service for callers with a token."""

    def __init__(
        self, tidings: Tidings, poller: Poller, places: FeedUrls, trust: TrustPolicy, pings: RateLimiter
    ) -> None:
        self._tidings, self._poller, self._pings = tidings, poller, pings
        self._service = XmlRpcService(tidings, places)
        self._trust = trust

    async def answer(self, request: Request) -> Response:
        """Answer one call."""
        if media_type_of(request) not in service_methods.MEDIA_TYPES:
            return PlainTextResponse(f"not an XML-RPC call: send {service_methods.MEDIA_TYPES[0]}\n", 415)
        caller = await run_in_threadpool(self._authenticate, request)
        body = await read_body(request, MAX_FEED_BYTES if caller else MAX_PING_BYTES)
        sender = request.client.host if request.client else ""
        media_type = request.headers["content-type"]
        content = await run_in_threadpool(self._handle, body, media_type, caller, sender)
        return Response(content, media_type="text/xml")

    def _authenticate(self, request: Request) -> Caller | bool:
        """Return true for trusted callers, the caller of another valid token, or false. Valid tokens are counted."""
        decision = self._trust.decide(request)
        decision.count(request)
        return decision.may or decision.caller or False

    def _handle(self, body: bytes, media_type: str, caller: Caller | bool, sender: str) -> bytes:
        try:
            lane = Lane.CALLERS if caller else Lane.STRANGERS
            method, parameters = service_methods.parse_call(body, media_type, lane)
            return service_methods.render_response(self._call(method, parameters, caller, sender))
        except Fault as problem:
            return service_methods.render_fault(problem)

    def _call(self, method: str, parameters: tuple[Any, ...], caller: Caller | bool, sender: str) -> Any:
        if method in PING_METHODS:
            if not self._pings.take(sender).is_allowed:
                return ping_response("Too many pings from your address, try again in a minute.", wrong=True)
            return handle_ping(self._tidings.store, self._poller, parameters)
        if method not in self._service.methods:
            raise Fault(NO_METHOD, f"there is no method {method[:100]!r}")
        if not (caller if isinstance(caller, bool) else may_call(caller, method, parameters)):
            raise Fault(NOT_ALLOWED, _missing_scope_message(method, caller))
        return self._service.call(method, parameters, subscribes=caller is True)


def _missing_scope_message(method: str, caller: Caller | bool) -> str:
    """Name the token that a method needs, and the scopes of the one that was sent."""
    if isinstance(caller, bool):
        return "this method needs the token of the service"
    scopes = ", ".join(sorted(caller.token.scopes))
    scope = "publish" if method == PUBLISH else "subscribe, for the subscriber named first"
    yours = f"{scopes}, for {caller.subscriber}" if caller.subscriber else scopes
    return f"this method needs a token with the scope {scope}; yours has {yours}"


class WebSubCallbacks:
    """Callbacks of hubs: verification of our requests, and pushes."""

    def __init__(self, tidings: Tidings, poller: Poller, clock: Clock) -> None:
        self._tidings, self._poller, self._clock = tidings, poller, clock

    async def verify(self, word: str, request: Request) -> Response:
        """Return the challenge if we have sent this request for this feed; 404 otherwise."""
        return await run_in_threadpool(self._verify, word, dict(request.query_params))

    def _verify(self, word: str, parameters: dict[str, str]) -> Response:
        feed = self._find_feed(word)
        verified = websub.verify_callback(feed, parameters, self._clock()) if feed else None
        if feed is None or verified is None:
            return PlainTextResponse("no such request\n", 404)
        changes, challenge = verified
        self._tidings.store.polled_feeds.record(feed, changes)
        return PlainTextResponse(challenge)

    def _find_feed(self, word: str) -> PolledFeed | None:
        """Return the feed of a callback address. Malformed ones are not looked up."""
        return self._tidings.store.polled_feeds.called_back(word) if websub.WORD.fullmatch(word) else None

    async def push(self, word: str, request: Request) -> Response:
        """Accept a push. One without a valid signature is discarded without an error, as WebSub requires.

        The callback is looked up before the body is read: anyone may send a request, and bodies take memory.
        """
        if await run_in_threadpool(self._find_subscribed, word) is None:
            return _not_subscribed()
        body = await read_body(request, MAX_FEED_BYTES)
        return await run_in_threadpool(self._accept_push, word, request, body)

    def _find_subscribed(self, word: str) -> PolledFeed | None:
        feed = self._find_feed(word)
        return None if feed is None or feed.push == websub.DENIED else feed

    def _accept_push(self, word: str, request: Request, body: bytes) -> Response:
        feed = self._find_subscribed(word)
        if feed is None:
            return _not_subscribed()
        if websub.is_signature_valid(feed.secret, request.headers.get("x-hub-signature"), body):
            self._poller.take_push(feed, body, request.headers.get("content-type", ""))
        return Response(status_code=202)


def _not_subscribed() -> Response:
    return PlainTextResponse("no such subscription\n", 410)
