"""Every subscription is a feed of its own, and so is what somebody is told about objects of a database: the newest
entries, and archives of older ones that stay (RFC 5005).

    entries  1 ... 50   51 ... 100   101 ... 150   151 ... 187
             archive 1  archive 2    the feed itself

An archive is linked when the next page is full, too. So the feed itself always has a page or more, each entry is in one
document only for whoever walks from the feed backwards, and an archive that was linked once has all its links already.
"""

from __future__ import annotations

import hashlib
import re
from collections import OrderedDict
from dataclasses import dataclass
from datetime import datetime, timedelta
from threading import Lock

from tidings.errors import Absent
from tidings.feeds.outbound.addresses import ALL_FEEDS, FeedTokens, FeedUrls
from tidings.feeds.outbound.entries import build_entry, urn
from tidings.feeds.outbound.feed import Feed, Links
from tidings.feeds.outbound.formats import FORMATS, Format
from tidings.feeds.outbound.sanitize import SUMMARY, escape_html, to_line
from tidings.feeds.outbound.writers import render_opml
from tidings.feeds.sql.feed_addresses import FeedAddress
from tidings.model import Subscription
from tidings.store.store import Store
from tidings.store.subscriptions.view import RULES

PAGE = 50
LARGEST = 500_000
"""Publications with more bytes are not read for a feed: their entries have reasons and bindings only."""
KNOWN_TAGS = 1_000
OBJECTS = "objects"
"""In place of a language: nobody wrote down what to be told about."""
_PREFIXES = re.compile(r"\bPREFIX\s+[^\s<>]*\s*<[^<>]*>\s*", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class OpenFeed:
    """A feed whose address was good: what it shows, and how far it is."""

    address: FeedAddress
    subscription: Subscription
    token: str
    last: int
    time: str
    grants: int = 0
    """What the subscriber may see, as a version: entries are withheld from one moment to the next."""

    @property
    def archives(self) -> int:
        """How many archives are linked."""
        return max(0, self.last // PAGE - 1)


@dataclass(frozen=True, slots=True)
class Gone:
    """An address that was revoked, or whose subscription was withdrawn."""


@dataclass(frozen=True, slots=True)
class FeedPage:
    """A document of a feed that may be asked for: the entries `first` to `last`. The feed itself is page 0."""

    opened: OpenFeed
    format: Format
    number: int
    first: int
    last: int

    @property
    def is_archive(self) -> bool:
        return self.number > 0


class PersonalFeeds:
    """The feeds of a store, as they are seen at a place of the web."""

    def __init__(self, store: Store, addresses: FeedTokens, places: FeedUrls) -> None:
        self.store, self.addresses, self.places = store, addresses, places
        self._tags: OrderedDict[object, str] = OrderedDict()
        self._lock = Lock()

    def open(self, token: str) -> OpenFeed | Gone | None:
        """The feed with this token; nothing if there never was one."""
        address = self.addresses.find(token)
        if address is None or address.subscription == ALL_FEEDS:
            return None
        return self.opened(address, token)

    def opened(self, address: FeedAddress, token: str) -> OpenFeed | Gone:
        """A feed by its address. The id of a subscription that was withdrawn may be somebody else's now."""
        wanted = self.find(address.subscriber, address.subscription)
        if address.revoked or wanted is None:
            return Gone()
        last, time = self.store.entries.last(wanted.subscriber, wanted.id)
        changed = self.store.audiences.changed(wanted.subscriber)
        newest = max(time or address.made, changed.time)
        return OpenFeed(address, wanted, token, last, newest, changed.version)

    def find(self, subscriber: str, id: str) -> Subscription | None:
        """What a feed is of. Nobody subscribes to objects, and so nobody can withdraw that: it is a feed once there is
        something in it. Rules have none.
        """
        found = self.store.subscriptions.find(id) or self.store.paused.find(id)
        if found is not None and found.subscriber == subscriber and found.language != RULES:
            return found
        return (
            object_subscription(subscriber, id)
            if self.store.entries.is_object_source(subscriber, id)
            else None
        )

    def page(self, opened: OpenFeed, format: str, number: int = 0) -> FeedPage | None:
        """A document of a feed; nothing if there is no such archive yet."""
        if number == 0:
            return FeedPage(opened, FORMATS[format], 0, opened.archives * PAGE + 1, opened.last)
        if not 1 <= number <= opened.last // PAGE:
            return None
        return FeedPage(opened, FORMATS[format], number, (number - 1) * PAGE + 1, number * PAGE)

    def news(self, opened: OpenFeed, format: str, first: int, last: int) -> bytes:
        """The feed with only these entries, for those whom the hub tells."""
        return self.render(FeedPage(opened, FORMATS[format], 0, max(first, last - 2 * PAGE + 1), last))

    def tag(self, page: FeedPage) -> str | None:
        """The entity tag of a page, if it has been rendered before: most readers ask for what they have already."""
        with self._lock:
            return self._tags.get(_identity(page))

    def render(self, page: FeedPage) -> bytes:
        """The bytes of a page; the same for the same entries."""
        body = page.format.render(self._feed(page))
        with self._lock:
            self._tags[_identity(page)] = entity_tag(body)
            if len(self._tags) > KNOWN_TAGS:
                self._tags.popitem(last=False)
        return body

    def modified(self, page: FeedPage) -> datetime:
        """When a page changed last, in whole seconds and never in the current one: something may come in the rest of
        it, and whoever asks what was modified since would not be given it.
        """
        time = page.opened.time
        if page.is_archive:
            wanted = page.opened.subscription
            [newest] = self.store.entries.read(wanted.subscriber, wanted.id, page.last, page.last)
            time = max(newest.time, self.store.audiences.changed(wanted.subscriber).time)
        whole = datetime.fromisoformat(time).replace(microsecond=0)
        return whole if self.store.hub.now() >= whole + timedelta(seconds=1) else whole - timedelta(seconds=1)

    def links(self, page: FeedPage) -> Links:
        """Where a page and its neighbours are."""
        token, format, archives = page.opened.token, page.format.suffix, page.opened.archives
        current = self.places.feed(token, format)
        before = page.number - 1 if page.is_archive else archives
        after = page.number + 1 if 0 < page.number <= archives else None
        return Links(
            self=self.places.archive(token, page.number, format) if page.is_archive else current,
            current=current,
            hub=self.places.hub,
            home=self.places.home,
            prev_archive=self.places.archive(token, before, format) if before else None,
            next_archive=self.places.archive(token, after, format) if after else None,
        )

    def _feed(self, page: FeedPage) -> Feed:
        wanted = page.opened.subscription
        listed = self.store.entries.read(wanted.subscriber, wanted.id, page.first, page.last)
        found = self.store.journal.find_all({one.notification.publication for one in listed}, LARGEST)
        return Feed(
            id=urn(wanted.subscriber, wanted.id),
            title=feed_title(wanted),
            description=to_line(
                escape_html(f"What {wanted.subscriber} is told because of {_source(wanted)}"), SUMMARY
            ),
            updated=datetime.fromisoformat(listed[0].time if listed else page.opened.address.made),
            links=self.links(page),
            entries=tuple(build_entry(one, found.get(one.notification.publication)) for one in listed),
            archive=page.is_archive,
        )

    def opml(self, token: str) -> bytes | Gone | None:
        """The list of a subscriber's feeds; each gets an address, if it has none yet."""
        address = self.addresses.find(token)
        if address is None or address.subscription != ALL_FEEDS:
            return None
        if address.revoked:
            return Gone()
        listed = self.listed(address.subscriber)
        named = [(feed_title(one), self.places.feed(token, "atom")) for one, token in listed if token]
        made = datetime.fromisoformat(address.made)
        return render_opml(to_line(escape_html(f"Tidings for {address.subscriber}")), made, named)

    def wanted(self, subscriber: str) -> list[Subscription]:
        """What a subscriber has feeds of: subscriptions, then the databases that they were told about. Not rules."""
        paused = [one for one in self.store.paused.all(subscriber) if one.language != RULES]
        found = [*self.store.subscriptions.list(subscriber), *paused]
        known = {one.id for one in found}
        sources = self.store.entries.object_sources(subscriber)
        return [*found, *(object_subscription(subscriber, name) for name in sources if name not in known)]

    def listed(self, subscriber: str) -> list[tuple[Subscription, str | None]]:
        """The same with the tokens of the feeds."""
        found = self.wanted(subscriber)
        tokens = self.addresses.tokens(subscriber, [one.id for one in found])
        return [(one, tokens[one.id]) for one in found]


def _identity(page: FeedPage) -> object:
    """What decides how a page looks. A subscription that was withdrawn may come back with another text."""
    opened = page.opened
    newest = (opened.last, opened.address.made) if not page.is_archive else page.number <= opened.archives
    return (
        opened.token,
        page.format.suffix,
        page.number,
        page.first,
        page.last,
        newest,
        opened.subscription.text,
        opened.grants,
    )


def entity_tag(body: bytes) -> str:
    """A strong entity tag: other bytes, another tag."""
    return f'"{hashlib.sha256(body).hexdigest()[:32]}"'


def object_subscription(subscriber: str, source: str) -> Subscription:
    """What stands for a subscription where it is the data that says whom a change concerns."""
    return Subscription(source, subscriber, OBJECTS, f"Changes in {source}")


def _source(wanted: Subscription) -> str:
    return f"changes in {wanted.id}" if wanted.language == OBJECTS else f"the subscription {wanted.id}"


def feed_title(one: Subscription) -> str:
    """The text of a subscription, without the prefixes of a pattern: they are long, and say little."""
    text = _PREFIXES.sub("", one.text) if one.language == "gql" else one.text
    return to_line(escape_html(text), 100) or to_line(escape_html(one.id), 100)


# Where a subscriber's feeds are, shown and renewed: the command, the API and the console say the same.
#
# An address is made when it is first asked for. One that has got about is renewed, which ends the old one.


@dataclass(frozen=True, slots=True)
class FeedLocation:
    """A feed and where readers find it; without a subscription it is the list of all feeds (OPML). An address that was
    made with the key of another home folder cannot be shown: there is none then.
    """

    subscription: str | None
    address: str | None


def list_locations(feeds: PersonalFeeds, subscriber: str) -> list[FeedLocation]:
    """The feeds of a subscriber, each with its address."""
    return [_location(feeds, one.id, token) for one, token in feeds.listed(subscriber)]


def page_locations(feeds: PersonalFeeds, subscriber: str, after: str, limit: int) -> list[FeedLocation]:
    """Some of them, in the order of their ids: only these get addresses."""
    found = sorted(one.id for one in feeds.wanted(subscriber) if one.id > after)[:limit]
    tokens = feeds.addresses.tokens(subscriber, found) if found else {}
    return [_location(feeds, id, tokens[id]) for id in found]


def locate_feed(feeds: PersonalFeeds, subscriber: str, id: str | None = None) -> FeedLocation:
    """Where the feed of a subscription is, or the list of all."""
    return _location(feeds, id, feeds.addresses.token(subscriber, _known(feeds, subscriber, id)))


def renew_location(feeds: PersonalFeeds, subscriber: str, id: str | None = None) -> FeedLocation:
    """A new address in place of the old one, which is good for nothing from then on."""
    return _location(feeds, id, feeds.addresses.renew(subscriber, _known(feeds, subscriber, id)))


def _known(feeds: PersonalFeeds, subscriber: str, id: str | None) -> str:
    if id is None:
        return ALL_FEEDS
    if feeds.find(subscriber, id) is None:
        raise Absent(f"{subscriber} has no subscription '{id[:200]}' with a feed")
    return id


def _location(feeds: PersonalFeeds, id: str | None, token: str | None) -> FeedLocation:
    if token is None:
        return FeedLocation(id, None)
    return FeedLocation(id, feeds.places.opml(token) if id is None else feeds.places.feed(token))
