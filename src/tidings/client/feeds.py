"""Where feeds are, as a client has it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any
from urllib.parse import quote

from tidings.client.calls import Call, build_params, make_reader

PATH = "/v1/feeds"


@dataclass(frozen=True, slots=True)
class Feed:
    """Where a feed is; without a subscription it is the list of all feeds (OPML). Who knows the address can read it.
    There is none if it was made with the key of another home folder.
    """

    subscription: str | None
    address: str | None


@dataclass(frozen=True, slots=True)
class FeedPage:
    """Some feeds by their subscriptions' ids, and the id after which the next page begins, if there is one."""

    feeds: tuple[Feed, ...]
    next: str | None


def page(subscriber: str | None, after: str | None) -> Call[FeedPage]:
    return Call("GET", PATH, _page, build_params(subscriber=subscriber, after=after))


def find(id: str | None, subscriber: str | None) -> Call[Feed]:
    if id is None:
        return Call(
            "GET", PATH, lambda told: Feed(None, told["all"]), build_params(subscriber=subscriber, limit=1)
        )
    return Call("GET", f"{PATH}/{quote(id, safe='')}", _feed, build_params(subscriber=subscriber))


def renew(id: str | None, subscriber: str | None) -> Call[Feed]:
    """If an answer is lost, it is made anew once more: what is told last is good."""
    which = "renew" if id is None else f"{quote(id, safe='')}/renew"
    return Call("POST", f"{PATH}/{which}", _feed, build_params(subscriber=subscriber))


_feed = make_reader(Feed)


def _page(answer: Mapping[str, Any]) -> FeedPage:
    return FeedPage(tuple(map(_feed, answer["feeds"])), answer["next"])
