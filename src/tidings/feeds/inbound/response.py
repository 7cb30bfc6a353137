"""Responses to polls: status, feed, items, new location, and feeds that an HTML page links to."""

from __future__ import annotations

import html
import re
from datetime import datetime

from tidings.core.iris import resolve_iri
from tidings.errors import DecodeProblem, InputError
from tidings.feeds.inbound import schedule
from tidings.feeds.inbound.items import ItemsByKey, index_items
from tidings.feeds.sql.polled_feeds import PolledFeed
from tidings.graphs.rdf.media_types import ATOM, JSON_FEED, RDF_XML, RSS
from tidings.graphs.syndication.feed import Feed, show_omitted
from tidings.graphs.syndication.feed_parser import read_feed
from tidings.operations.egress_policy import FetchProblem, is_web_address, split_host
from tidings.operations.http_client import HttpResponse, origin_of
from tidings.operations.retry_after import parse_retry_after
from tidings.parsers.parser_pool import Lane, run_isolated_for
from tidings.store.encoding import format_instant

FEEDS = (ATOM, RSS, JSON_FEED, RDF_XML)
MAX_SEARCHED_BYTES, MAX_SUGGESTED_FEEDS = 200_000, 3
"""Bytes of a page that are searched for links to feeds, and the maximum number of links shown."""

_LINK = re.compile(r"<link\b([^<>]{1,2000})>", re.IGNORECASE)
_ATTRIBUTE = re.compile(r"([a-z]{1,20})\s?=\s?(?:\"([^\"]*)\"|'([^']*)'|([^\s\"'>]+))", re.IGNORECASE)


def discover_feeds(page: bytes, url: str) -> list[str]:
    """Return the first feeds that a page links to: users often copy the URL of the page.

    They are only shown in the error. The user picks one.
    """
    tags = _LINK.findall(page[:MAX_SEARCHED_BYTES].decode(errors="replace"))
    links = [_feed_link(tag, url) for tag in tags]
    return list(dict.fromkeys(link for link in links if link))[:MAX_SUGGESTED_FEEDS]


def _feed_link(tag: str, url: str) -> str | None:
    """Return the URL of a `link` tag with the relation `alternate` and the media type of a feed."""
    attributes = {name.lower(): html.unescape(a or b or c) for name, a, b, c in _ATTRIBUTE.findall(tag)}
    is_alternate = "alternate" in attributes.get("rel", "").lower().split()
    href = attributes.get("href", "").strip()
    if not is_alternate or attributes.get("type", "").lower() not in FEEDS or not href:
        return None
    address = resolve_iri(url, href)
    return address if is_web_address(address) else None


LOGIN_HINT = "if it needs a name and a password, add it as https://name:password@host/..."
MAX_STORED_URL = 500
"""The longest URL that is stored: the database indexes them."""


def inside_host(feed: PolledFeed) -> str | None:
    """Return the host that may be in a private network, because the owner has typed it."""
    return host_name(feed.url) if feed.in_private_network else None


def conditional_headers(feed: PolledFeed) -> dict[str, str]:
    """Return the headers of a conditional request: the feed is sent only if it has changed."""
    conditions = {"if-none-match": feed.etag, "if-modified-since": feed.modified}
    return {name: value for name, value in conditions.items() if value}


def check_status(answer: HttpResponse, moment: datetime) -> None:
    """Raise if the status of a response is not 200."""
    if answer.status == 410:
        message = "the feed is gone, and is not polled any more"
        raise FetchProblem(message, gone=True, where=answer.url, received="status 410")
    if answer.status != 200:
        retry_after = parse_retry_after(answer.headers, moment)
        hint = LOGIN_HINT if answer.status == 401 else None
        received = f"status {answer.status}"
        raise FetchProblem(
            "the feed is not available", after=retry_after, where=answer.url, received=received, hint=hint
        )


def parse_response(answer: HttpResponse) -> tuple[Feed, ItemsByKey]:
    """Parse a feed and its items, rejected ones included."""
    media_type = answer.headers.get("content-type", "")
    try:
        facts, items, refused = run_isolated_for(
            Lane.STRANGERS, read_feed, answer.body, media_type, answer.url
        )
    except DecodeProblem as problem:
        links = discover_feeds(answer.body, answer.url)
        if not links:
            raise
        hint = f"the page links to {' and '.join(links)}"
        raise InputError("not a feed", where=answer.url, received="a page", hint=hint) from problem
    return facts, index_items([*items, *refused])


def success_columns(moment: datetime) -> dict[str, object]:
    """Return the columns to store after each successful poll."""
    return {"polled": format_instant(moment), "failures": 0, "problem": None}


def location_columns(feed: PolledFeed, answer: HttpResponse) -> dict[str, object]:
    """Return the columns of a feed that has moved permanently.

    The owner has typed the first host only: another one may not be in a private network, and the login is not sent to
    another origin.
    """
    if answer.moved is None or len(answer.moved) > MAX_STORED_URL:
        return {}
    in_private_network = int(feed.in_private_network and host_name(answer.moved) == host_name(feed.url))
    login = feed.login if origin_of(answer.moved) == origin_of(feed.url) else None
    return {"url": answer.moved, "in_private_network": in_private_network, "login": login}


def host_name(url: str) -> str:
    """Return the host of a URL."""
    return split_host(url)[0]


def feed_columns(facts: Feed) -> dict[str, object]:
    """Return the columns with the properties of a feed."""
    site = facts.link if facts.link and len(facts.link) <= MAX_STORED_URL else None
    ttl = None if facts.ttl is None else min(facts.ttl, schedule.LONGEST_TTL)
    skips = schedule.skips_of(facts.skip_hours, facts.skip_days)
    left_out = show_omitted(facts.left_out)
    return {"title": facts.title, "site": site, "ttl": ttl, "skips": skips, "left_out": left_out}
