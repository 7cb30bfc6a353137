"""An answer as a feed: what it says, what it has in it, where it has moved to; or why it is none."""

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
from tidings.parsers.parser_pool import Lane, isolated_for
from tidings.store.encoding import format_instant

# Which feeds a page names. People copy the address of the page; the feed's stands in the page.
#
# Nothing is done with them but to show them: which one is meant, the person who has typed the address knows.


FEEDS = (ATOM, RSS, JSON_FEED, RDF_XML)
LOOKED_AT, MOST = 200_000, 3
"""Bytes in which the names are looked for, and how many are shown."""

_LINK = re.compile(r"<link\b([^<>]{1,2000})>", re.IGNORECASE)
_ATTRIBUTE = re.compile(r"([a-z]{1,20})\s?=\s?(?:\"([^\"]*)\"|'([^']*)'|([^\s\"'>]+))", re.IGNORECASE)


def discover_feeds(page: bytes, url: str) -> list[str]:
    """The addresses of the first feeds that a page names."""
    found = [_address(tag, url) for tag in _LINK.findall(page[:LOOKED_AT].decode(errors="replace"))]
    return list(dict.fromkeys(each for each in found if each))[:MOST]


def _address(tag: str, url: str) -> str | None:
    said = {name.lower(): html.unescape(a or b or c) for name, a, b, c in _ATTRIBUTE.findall(tag)}
    is_feed = "alternate" in said.get("rel", "").lower().split() and said.get("type", "").lower() in FEEDS
    if not is_feed or not said.get("href", "").strip():
        return None
    address = resolve_iri(url, said["href"].strip())
    return address if is_web_address(address) else None


LOGIN = "if it needs a name and a password, add it as https://name:password@host/..."
LONGEST_KEPT = 500
"""The longest address that is kept: databases look them up."""


def inside_host(feed: PolledFeed) -> str | None:
    """The host that may be in a private network, because the owner has typed it."""
    return host_name(feed.url) if feed.inside else None


def conditional_headers(feed: PolledFeed) -> dict[str, str]:
    """Headers that ask for the feed only if it has changed."""
    conditions = {"if-none-match": feed.etag, "if-modified-since": feed.modified}
    return {name: value for name, value in conditions.items() if value}


def check_status(answer: HttpResponse, moment: datetime) -> None:
    """Refuse what is no feed by its status."""
    if answer.status == 410:
        what = "the feed is gone, and is not asked for any more"
        raise FetchProblem(what, gone=True, where=answer.url, received="status 410")
    if answer.status != 200:
        after = parse_retry_after(answer.headers, moment)
        hint = LOGIN if answer.status == 401 else None
        received = f"status {answer.status}"
        raise FetchProblem("no feed", after=after, where=answer.url, received=received, hint=hint)


def parse_response(answer: HttpResponse) -> tuple[Feed, ItemsByKey]:
    """The feed and its items, those beyond a limit among them."""
    media_type = answer.headers.get("content-type", "")
    try:
        facts, items, refused = isolated_for(Lane.STRANGERS, read_feed, answer.body, media_type, answer.url)
    except DecodeProblem as problem:
        named = discover_feeds(answer.body, answer.url)
        if not named:
            raise
        hint = f"the page names {' and '.join(named)}"
        raise InputError("not a feed", where=answer.url, received="a page", hint=hint) from problem
    return facts, index_items([*items, *refused])


def success_columns(moment: datetime) -> dict[str, object]:
    """What is written down of each poll without a problem."""
    return {"polled": format_instant(moment), "failures": 0, "problem": None}


def location_columns(feed: PolledFeed, answer: HttpResponse) -> dict[str, object]:
    """Where the feed is from now on. The owner has typed the first host only: another one may not be inside, and no
    other origin is told the password.
    """
    if answer.moved is None or len(answer.moved) > LONGEST_KEPT:
        return {}
    inside = int(feed.inside and host_name(answer.moved) == host_name(feed.url))
    login = feed.login if origin_of(answer.moved) == origin_of(feed.url) else None
    return {"url": answer.moved, "inside": inside, "login": login}


def host_name(url: str) -> str:
    """The host of an address."""
    return split_host(url)[0]


def feed_columns(facts: Feed) -> dict[str, object]:
    """What is kept of what a feed says of itself."""
    site = facts.link if facts.link and len(facts.link) <= LONGEST_KEPT else None
    ttl = None if facts.ttl is None else min(facts.ttl, schedule.LONGEST_TTL)
    skips = schedule.skips_of(facts.skip_hours, facts.skip_days)
    left_out = show_omitted(facts.left_out)
    return {"title": facts.title, "site": site, "ttl": ttl, "skips": skips, "left_out": left_out}
