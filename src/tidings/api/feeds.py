"""Feeds over HTTP: each at an address that nobody can guess, with conditional requests, archives, and no list of them.

An address is a secret. So nothing here is logged, caches that others share may not keep an answer, and links that a
reader follows do not tell where they were found.
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

from tidings.api.authentication import count_request
from tidings.api.request_body import read_body
from tidings.api.routes import PlainTextRoute, ProblemRoute
from tidings.errors import InputError, TidingsError
from tidings.feeds.hub.hub import Hub, HubBusy
from tidings.feeds.outbound.addresses import TOKEN, hash_token
from tidings.feeds.outbound.formats import FORMATS, negotiate_format
from tidings.feeds.outbound.personal_feeds import FeedPage, Gone, PersonalFeeds, entity_tag
from tidings.operations.retry_after import parse_http_date

SECURITY_HEADERS = {
    "X-Content-Type-Options": "nosniff",
    "Content-Security-Policy": "default-src 'none'; sandbox",
    "Referrer-Policy": "no-referrer",
    "X-Robots-Tag": "noindex",
}
"""A browser that is shown a feed runs nothing in it, tells nobody its address, and search engines do not list it."""

_NAME = re.compile(rf"(?P<token>{TOKEN})(?:\.(?P<format>{'|'.join(FORMATS)}))?")
_ARCHIVE = re.compile(rf"(?P<number>[1-9][0-9]{{0,17}})(?:\.(?P<format>{'|'.join(FORMATS)}))?")


class FeedRoute(ProblemRoute):
    """A route for readers: what is wrong is said in a few words."""

    def wrong(self, problem: TidingsError, status: int) -> Response:
        return _problem(status, problem.what)

    def check(self, request: Request) -> None:
        """Every address that is not of a feed looks the same; what has no form of one never reaches the store."""


def router_for(feeds: PersonalFeeds) -> APIRouter:
    """The endpoints of feeds out. An address is a token: whoever asks too often with one is told when to come back."""
    router = APIRouter(tags=["feeds"], route_class=FeedRoute)

    @router.api_route("/", methods=["GET", "HEAD"], include_in_schema=False)
    def home(request: Request) -> Response:
        """Browsers, which ask for HTML, are led to the console."""
        if "text/html" in request.headers.get("accept", ""):
            return RedirectResponse("/console", 303, {"Vary": "Accept"})
        return PlainTextResponse(
            "Tidings. `tidings feeds --as NAME` and, with a token, /v1/feeds tell the addresses of feeds.\n"
            f"The console is at {feeds.places.public_url}/console, "
            f"metadata is shown at {feeds.places.public_url}/browse.\n",
            headers={"Vary": "Accept"},
        )

    @router.get("/feeds/{name}")
    @router.head("/feeds/{name}", include_in_schema=False)
    def feed(name: str, request: Request) -> Response:
        return _answered(feeds, _NAME.fullmatch(name), None, request)

    @router.get("/feeds/{token}/archive/{number}")
    @router.head("/feeds/{token}/archive/{number}", include_in_schema=False)
    def archive(token: str, number: str, request: Request) -> Response:
        return _answered(feeds, _NAME.fullmatch(token), _ARCHIVE.fullmatch(number), request)

    @router.get("/opml/{token}")
    @router.head("/opml/{token}", include_in_schema=False)
    def opml(token: str, request: Request) -> Response:
        if feeds.addresses.find(token):
            count_request(request, hash_token(token))
        found = feeds.opml(token)
        if not isinstance(found, bytes):
            return _gone() if found else _unknown()
        headers = SECURITY_HEADERS | {"Cache-Control": "private, no-cache", "ETag": entity_tag(found)}
        if _has(request, entity_tag(found), None):
            return Response(status_code=304, headers=headers)
        return Response(found, media_type="text/x-opml; charset=utf-8", headers=headers)

    return router


def _answered(
    feeds: PersonalFeeds, name: re.Match[str] | None, archive: re.Match[str] | None, request: Request
) -> Response:
    is_archive = "/archive/" in request.url.path
    if name is None or (is_archive and (archive is None or name["format"])):
        return _unknown()
    opened = feeds.open(name["token"])
    if opened is None or isinstance(opened, Gone):
        return _gone() if opened else _unknown()
    count_request(request, opened.address.hash)
    given = (archive or name)["format"]
    format = given or negotiate_format(request.headers.get("accept")).suffix
    page = feeds.page(opened, format, int(archive["number"]) if archive else 0)
    if page is None:
        return _unknown()
    return _page(feeds, page, request, {} if given else {"Vary": "Accept"})


def _page(feeds: PersonalFeeds, page: FeedPage, request: Request, more: Mapping[str, str]) -> Response:
    """The page, or that the reader has it already: then it is not even rendered, if it was before."""
    modified, known = feeds.modified(page), feeds.tag(page)
    body = None if known else feeds.render(page)
    tag = known or entity_tag(body or b"")
    headers = SECURITY_HEADERS | dict(more) | {"ETag": tag, "Link": _links(feeds, page)}
    headers["Last-Modified"] = format_datetime(modified, usegmt=True)
    headers["Cache-Control"] = "private, max-age=86400" if page.is_archive else "private, no-cache"
    if _has(request, tag, modified):
        return Response(status_code=304, headers=headers)
    content = feeds.render(page) if body is None else body
    return Response(content, media_type=page.format.content_type, headers=headers)


def _links(feeds: PersonalFeeds, page: FeedPage) -> str:
    return ", ".join(f'<{address}>; rel="{relation}"' for relation, address in feeds.links(page).related())


def _has(request: Request, tag: str, modified: datetime | None) -> bool:
    """Whether the reader has what there is (RFC 9110, section 13): a tag decides, a date only where there is no tag."""
    tags = request.headers.get("if-none-match")
    if tags is not None:
        return any(each.strip().removeprefix("W/") in (tag, "*") for each in tags.split(","))
    since = parse_http_date(request.headers.get("if-modified-since", ""))
    return modified is not None and since is not None and modified <= since


def _unknown() -> Response:
    """The same for everything that is not there, so that nothing can be learnt from it."""
    return _problem(404, "not found")


def _gone() -> Response:
    return _problem(410, "this feed has ended: its address was revoked, or its subscription withdrawn")


def _problem(status: int, title: str) -> Response:
    headers = SECURITY_HEADERS | {"Cache-Control": "no-store"}
    content = {"type": "about:blank", "status": status, "title": title}
    return JSONResponse(content, status, headers, media_type="application/problem+json")


# The hub over HTTP: those who want to be told of new entries ask here (WebSub, section 5).


MAX_HUB_REQUEST_BYTES = 20_000
FORM = "application/x-www-form-urlencoded"


def hub_router_for(hub: Hub) -> APIRouter:
    """The endpoint of the hub. It answers before the callback was asked: what was taken is verified in its turn."""
    router = APIRouter(tags=["hub"], route_class=PlainTextRoute)

    @router.post("/hub", status_code=202)
    async def ask(request: Request) -> Response:
        body = await read_body(request, MAX_HUB_REQUEST_BYTES)
        if request.headers.get("content-type", "").partition(";")[0].strip().lower() != FORM:
            return PlainTextResponse(f"a form, as {FORM}\n", 415)
        return await run_in_threadpool(_accept_hub_request, hub, body)

    return router


def _accept_hub_request(hub: Hub, body: bytes) -> Response:
    try:
        form = dict(parse_qsl(body.decode("utf-8", "replace"), max_num_fields=50))
        hub.ask(form)
    except HubBusy as problem:
        return PlainTextResponse(f"{problem}\n", 503, {"Retry-After": "60"})
    except (InputError, ValueError) as problem:  # too many fields
        return PlainTextResponse(f"{problem}\n", 400)
    return Response(status_code=202)
