"""An answer as a feed: what it says, what it has in it, where it has moved to; or why it is none."""

from __future__ import annotations

from datetime import datetime

from tidings.errors import DecodeProblem, InputError
from tidings.feeds import schedule
from tidings.feeds.discovery import feeds_named_in
from tidings.feeds.fetching import Answer
from tidings.feeds.logins import origin
from tidings.feeds.taking import Found, found
from tidings.publications.feeds import Feed, read_feed
from tidings.publications.feeds_left_out import show_left_out
from tidings.publications.parser_pool import Lane, isolated_for
from tidings.store import PolledFeed, instant
from tidings.web.network import FetchProblem, host_of
from tidings.web.retry_after import retry_after

LOGIN = "if it needs a name and a password, add it as https://name:password@host/..."
LONGEST_KEPT = 500
"""The longest address that is kept: databases look them up."""


def inside_host(feed: PolledFeed) -> str | None:
    """The host that may be in a private network, because the owner has typed it."""
    return host(feed.url) if feed.inside else None


def conditions(feed: PolledFeed) -> dict[str, str]:
    """Headers that ask for the feed only if it has changed."""
    conditions = {"if-none-match": feed.etag, "if-modified-since": feed.modified}
    return {name: value for name, value in conditions.items() if value}


def refuse_status(answer: Answer, moment: datetime) -> None:
    """Refuse what is no feed by its status."""
    if answer.status == 410:
        what = "the feed is gone, and is not asked for any more"
        raise FetchProblem(what, gone=True, where=answer.url, received="status 410")
    if answer.status != 200:
        after = retry_after(answer.headers, moment)
        hint = LOGIN if answer.status == 401 else None
        received = f"status {answer.status}"
        raise FetchProblem("no feed", after=after, where=answer.url, received=received, hint=hint)


def read(answer: Answer) -> tuple[Feed, Found]:
    """The feed and its items, those beyond a limit among them."""
    media_type = answer.headers.get("content-type", "")
    try:
        facts, items, refused = isolated_for(Lane.STRANGERS, read_feed, answer.body, media_type, answer.url)
    except DecodeProblem as problem:
        named = feeds_named_in(answer.body, answer.url)
        if not named:
            raise
        hint = f"the page names {' and '.join(named)}"
        raise InputError("not a feed", where=answer.url, received="a page", hint=hint) from problem
    return facts, found([*items, *refused])


def went_well(moment: datetime) -> dict[str, object]:
    """What is written down of each poll without a problem."""
    return {"polled": instant(moment), "failures": 0, "problem": None}


def moved(feed: PolledFeed, answer: Answer) -> dict[str, object]:
    """Where the feed is from now on. The owner has typed the first host only: another one may not be inside, and no
    other origin is told the password.
    """
    if answer.moved is None or len(answer.moved) > LONGEST_KEPT:
        return {}
    inside = int(feed.inside and host(answer.moved) == host(feed.url))
    login = feed.login if origin(answer.moved) == origin(feed.url) else None
    return {"url": answer.moved, "inside": inside, "login": login}


def host(url: str) -> str:
    """The host of an address."""
    return host_of(url)[0]


def said(facts: Feed) -> dict[str, object]:
    """What is kept of what a feed says of itself."""
    site = facts.link if facts.link and len(facts.link) <= LONGEST_KEPT else None
    ttl = None if facts.ttl is None else min(facts.ttl, schedule.LONGEST_TTL)
    skips = schedule.skips_of(facts.skip_hours, facts.skip_days)
    left_out = show_left_out(facts.left_out)
    return {"title": facts.title, "site": site, "ttl": ttl, "skips": skips, "left_out": left_out}
