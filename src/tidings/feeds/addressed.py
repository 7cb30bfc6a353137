"""Where a subscriber's feeds are, shown and renewed: the command, the API and the console say the same.

An address is made when it is first asked for. One that has got about is renewed, which ends the old one.
"""

from __future__ import annotations

from dataclasses import dataclass

from tidings.errors import Absent
from tidings.feeds.personal import PersonalFeeds
from tidings.feeds.tokens import ALL


@dataclass(frozen=True, slots=True)
class Addressed:
    """A feed and where readers find it; without a subscription it is the list of all feeds (OPML). An address that was
    made with the key of another home folder cannot be shown: there is none then.
    """

    subscription: str | None
    address: str | None


def all_addressed(feeds: PersonalFeeds, subscriber: str) -> list[Addressed]:
    """The feeds of a subscriber, each with its address."""
    return [_addressed(feeds, one.id, token) for one, token in feeds.listed(subscriber)]


def page_addressed(feeds: PersonalFeeds, subscriber: str, after: str, limit: int) -> list[Addressed]:
    """Some of them, in the order of their ids: only these get addresses."""
    found = sorted(one.id for one in feeds.wanted(subscriber) if one.id > after)[:limit]
    tokens = feeds.addresses.tokens(subscriber, found) if found else {}
    return [_addressed(feeds, id, tokens[id]) for id in found]


def addressed(feeds: PersonalFeeds, subscriber: str, id: str | None = None) -> Addressed:
    """Where the feed of a subscription is, or the list of all."""
    return _addressed(feeds, id, feeds.addresses.token(subscriber, _known(feeds, subscriber, id)))


def renewed(feeds: PersonalFeeds, subscriber: str, id: str | None = None) -> Addressed:
    """A new address in place of the old one, which is good for nothing from then on."""
    return _addressed(feeds, id, feeds.addresses.renew(subscriber, _known(feeds, subscriber, id)))


def _known(feeds: PersonalFeeds, subscriber: str, id: str | None) -> str:
    if id is None:
        return ALL
    if feeds.find(subscriber, id) is None:
        raise Absent(f"{subscriber} has no subscription '{id[:200]}' with a feed")
    return id


def _addressed(feeds: PersonalFeeds, id: str | None, token: str | None) -> Addressed:
    if token is None:
        return Addressed(id, None)
    return Addressed(id, feeds.places.opml(token) if id is None else feeds.places.feed(token))
