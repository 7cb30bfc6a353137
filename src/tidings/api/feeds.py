"""Outgoing feeds at secret addresses, with conditional requests and archives, and the WebSub hub.

An address is a secret: requests are not logged, shared caches may not store responses, and links in a feed do not
disclose where they were found.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from datetime import datetime
from email.utils import format_datetime
from urllib.parse import parse_qsl

from fastapi import APIRouter, Request, Response
from fastapi.concurrency import run_in_threadpool
from fastapi.responses import JSONResponse, PlainTextResponse, RedirectResponse

from tidings.api import problem_details
from tidings.api.authentication import count_request
from tidings.api.parameters import media_type_of
from tidings.api.request_body import FORM, read_body
from tidings.api.routes import PlainTextRoute, ProblemRoute
from tidings.errors import InputError, TidingsError
from tidings.feeds.hub.hub import Hub, HubBusy
from tidings.feeds.outbound.addresses import TOKEN, hash_token
from tidings.feeds.outbound.formats import FORMATS, negotiate_format
from tidings.feeds.outbound.personal_feeds import FeedPage, PersonalFeeds, RemovedFeed, entity_tag
from tidings.operations.retry_after import parse_http_date

SECURITY_HEADERS = {
    "X-Content-Type-Options": "nosniff",
    "Content-Security-Policy": "default-src 'none'; sandbox",
    "Referrer-Policy": "no-referrer",
    "X-Robots-Tag": "noindex",
}
"""A browser runs nothing in a feed and discloses its address to no other site; search engines do not list it."""

MAX_HUB_REQUEST_BYTES = 20_000

_NAME = re.compile(rf"(?P<token>{TOKEN})(?:\.(?P<format>{'|'.join(FORMATS)}))?")
_ARCHIVE = re.compile(rf"(?P<number>[1-9][0-9]{{0,17}})(?:\.(?P<format>{'|'.join(FORMATS)}))?")


class FeedRoute(ProblemRoute):
    """A route for feed readers, with short errors."""

    def wrong(self, problem: TidingsError, status: int) -> Response:
        return _problem(status, problem.what)

    def check(self, request: Request) -> None:
        """Check nothing: all unknown addresses get the same response, and malformed ones never reach the store."""


def router_for(feeds: PersonalFeeds) -> APIRouter:
    """Return the routes of feeds. An address counts as a token of the rate limiter."""
    router = APIRouter(tags=["feeds"], route_class=FeedRoute)

    @router.api_route("/", methods=["GET", "HEAD"], include_in_schema=False)
    def home(request: Request) -> Response:
        """Redirect browsers, which accept HTML, to the console."""
        if "text/html" in request.headers.get("accept", ""):
            return RedirectResponse("/console", 303, {"Vary": "Accept"})
        return PlainTextResponse(
            "Tidings. `tidings feeds --as NAME` and, with a token, /v1/feeds list the addresses of feeds.\n"
            f"The console is at {feeds.places.public_url}/console, "
            f"metadata is shown at {feeds.places.public_url}/browse.\n",
            headers={"Vary": "Accept"},
        )

    @router.get("/feeds/{name}")
    @router.head("/feeds/{name}", include_in_schema=False)
    def feed(name: str, request: Request) -> Response:
        return _feed_response(feeds, _NAME.fullmatch(name), None, request)

    @router.get("/feeds/{token}/archive/{number}")
    @router.head("/feeds/{token}/archive/{number}", include_in_schema=False)
    def archive(token: str, number: str, request: Request) -> Response:
        return _feed_response(feeds, _NAME.fullmatch(token), _ARCHIVE.fullmatch(number), request)

    @router.get("/opml/{token}")
    @router.head("/opml/{token}", include_in_schema=False)
    def opml(token: str, request: Request) -> Response:
        if feeds.addresses.find(token):
            count_request(request, hash_token(token))
        document = feeds.opml(token)
        if not isinstance(document, bytes):
            return _gone_response() if document else _not_found_response()
        headers = SECURITY_HEADERS | {"Cache-Control": "private, no-cache", "ETag": entity_tag(document)}
        if _is_cached(request, entity_tag(document), None):
            return Response(status_code=304, headers=headers)
        return Response(document, media_type="text/x-opml; charset=utf-8", headers=headers)

    return router


def _feed_response(
    feeds: PersonalFeeds, name: re.Match[str] | None, archive: re.Match[str] | None, request: Request
) -> Response:
    is_archive = "/archive/" in request.url.path
    if name is None or (is_archive and (archive is None or name["format"])):
        return _not_found_response()
    opened = feeds.open(name["token"])
    if opened is None or isinstance(opened, RemovedFeed):
        return _gone_response() if opened else _not_found_response()
    count_request(request, opened.address.hash)
    suffix = (archive or name)["format"]
    format = suffix or negotiate_format(request.headers.get("accept")).suffix
    page = feeds.page(opened, format, int(archive["number"]) if archive else 0)
    if page is None:
        return _not_found_response()
    return _page_response(feeds, page, request, {} if suffix else {"Vary": "Accept"})


def _page_response(
    feeds: PersonalFeeds, page: FeedPage, request: Request, extra_headers: Mapping[str, str]
) -> Response:
    """Return a page, or 304 if the reader has it; a page whose tag is known is not rendered for that."""
    modified, known_tag = feeds.modified(page), feeds.tag(page)
    body = None if known_tag else feeds.render(page)
    tag = known_tag or entity_tag(body or b"")
    links = ", ".join(f'<{address}>; rel="{relation}"' for relation, address in feeds.links(page).related())
    headers = SECURITY_HEADERS | dict(extra_headers) | {"ETag": tag, "Link": links}
    headers["Last-Modified"] = format_datetime(modified, usegmt=True)
    headers["Cache-Control"] = "private, max-age=86400" if page.is_archive else "private, no-cache"
    if _is_cached(request, tag, modified):
        return Response(status_code=304, headers=headers)
    content = feeds.render(page) if body is None else body
    return Response(content, media_type=page.format.content_type, headers=headers)


def _is_cached(request: Request, tag: str, modified: datetime | None) -> bool:
    """Return whether the reader has the current version (RFC 9110, section 13): a tag takes precedence over a date."""
    tags = request.headers.get("if-none-match")
    if tags is not None:
        return any(known.strip().removeprefix("W/") in (tag, "*") for known in tags.split(","))
    since = parse_http_date(request.headers.get("if-modified-since", ""))
    return modified is not None and since is not None and modified <= since


def _not_found_response() -> Response:
    """Return the same response for everything that does not exist, so that it discloses nothing."""
    return _problem(404, "not found")


def _gone_response() -> Response:
    return _problem(410, "this feed has ended: its address was revoked, or its subscription deleted")


def _problem(status: int, title: str) -> Response:
    headers = SECURITY_HEADERS | {"Cache-Control": "no-store"}
    content = {"type": "about:blank", "status": status, "title": title}
    return JSONResponse(content, status, headers, media_type=problem_details.MEDIA_TYPE)


def hub_router_for(hub: Hub) -> APIRouter:
    """Return the route of the hub (WebSub, section 5). It answers before the callback is verified."""
    router = APIRouter(tags=["hub"], route_class=PlainTextRoute)

    @router.post("/hub", status_code=202)
    async def ask(request: Request) -> Response:
        body = await read_body(request, MAX_HUB_REQUEST_BYTES)
        if media_type_of(request) != FORM:
            return PlainTextResponse(f"not a form: send {FORM}\n", 415)
        return await run_in_threadpool(_accept_hub_request, hub, body)

    return router


def _accept_hub_request(hub: Hub, body: bytes) -> Response:
    try:
        form = dict(parse_qsl(body.decode("utf-8", "replace"), max_num_fields=50))
        hub.ask(form)
    except HubBusy as problem:
        return PlainTextResponse(f"{problem}\n", 503, {"Retry-After": "60"})
    except (InputError, ValueError) as problem:  # ValueError: too many fields
        return PlainTextResponse(f"{problem}\n", 400)
    return Response(status_code=202)
