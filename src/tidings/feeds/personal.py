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

from tidings.feeds.entries import entry_of, urn
from tidings.feeds.feed import Feed, Links
from tidings.feeds.harmless import SUMMARY, escaped, line
from tidings.feeds.opml import opml
from tidings.feeds.places import Places
from tidings.feeds.rendering import FORMATS, Format
from tidings.feeds.tokens import ALL, Addresses
from tidings.model import Subscription
from tidings.store import FeedAddress, Store
from tidings.store.standings import RULES

PAGE = 50
LARGEST = 500_000
"""Publications with more bytes are not read for a feed: their entries have reasons and bindings only."""
KNOWN_TAGS = 1_000
OBJECTS = "objects"
"""In place of a language: nobody wrote down what to be told about."""
_PREFIXES = re.compile(r"\bPREFIX\s+[^\s<>]*\s*<[^<>]*>\s*", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Opened:
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
class Page:
    """A document of a feed that may be asked for: the entries `first` to `last`. The feed itself is page 0."""

    opened: Opened
    format: Format
    number: int
    first: int
    last: int

    @property
    def is_archive(self) -> bool:
        return self.number > 0


class PersonalFeeds:
    """The feeds of a store, as they are seen at a place of the web."""

    def __init__(self, store: Store, addresses: Addresses, places: Places) -> None:
        self.store, self.addresses, self.places = store, addresses, places
        self._tags: OrderedDict[object, str] = OrderedDict()
        self._lock = Lock()

    def open(self, token: str) -> Opened | Gone | None:
        """The feed with this token; nothing if there never was one."""
        address = self.addresses.find(token)
        if address is None or address.subscription == ALL:
            return None
        return self.opened(address, token)

    def opened(self, address: FeedAddress, token: str) -> Opened | Gone:
        """A feed by its address. The id of a subscription that was withdrawn may be somebody else's now."""
        wanted = self.find(address.subscriber, address.subscription)
        if address.revoked or wanted is None:
            return Gone()
        last, time = self.store.personal_feeds.last(wanted.subscriber, wanted.id)
        changed = self.store.audiences.changed(wanted.subscriber)
        newest = max(time or address.made, changed.time)
        return Opened(address, wanted, token, last, newest, changed.version)

    def find(self, subscriber: str, id: str) -> Subscription | None:
        """What a feed is of. Nobody subscribes to objects, and so nobody can withdraw that: it is a feed once there is
        something in it. Rules have none.
        """
        found = self.store.subscriptions.find(id) or self.store.paused.find(id)
        if found is not None and found.subscriber == subscriber and found.language != RULES:
            return found
        return about(subscriber, id) if self.store.personal_feeds.is_of_objects(subscriber, id) else None

    def page(self, opened: Opened, format: str, number: int = 0) -> Page | None:
        """A document of a feed; nothing if there is no such archive yet."""
        if number == 0:
            return Page(opened, FORMATS[format], 0, opened.archives * PAGE + 1, opened.last)
        if not 1 <= number <= opened.last // PAGE:
            return None
        return Page(opened, FORMATS[format], number, (number - 1) * PAGE + 1, number * PAGE)

    def news(self, opened: Opened, format: str, first: int, last: int) -> bytes:
        """The feed with only these entries, for those whom the hub tells."""
        return self.render(Page(opened, FORMATS[format], 0, max(first, last - 2 * PAGE + 1), last))

    def tag(self, page: Page) -> str | None:
        """The entity tag of a page, if it has been rendered before: most readers ask for what they have already."""
        with self._lock:
            return self._tags.get(_identity(page))

    def render(self, page: Page) -> bytes:
        """The bytes of a page; the same for the same entries."""
        body = page.format.render(self._feed(page))
        with self._lock:
            self._tags[_identity(page)] = tag_of(body)
            if len(self._tags) > KNOWN_TAGS:
                self._tags.popitem(last=False)
        return body

    def modified(self, page: Page) -> datetime:
        """When a page changed last, in whole seconds and never in the current one: something may come in the rest of
        it, and whoever asks what was modified since would not be given it.
        """
        time = page.opened.time
        if page.is_archive:
            wanted = page.opened.subscription
            [newest] = self.store.personal_feeds.entries(wanted.subscriber, wanted.id, page.last, page.last)
            time = max(newest.time, self.store.audiences.changed(wanted.subscriber).time)
        whole = datetime.fromisoformat(time).replace(microsecond=0)
        return whole if self.store.hub.now() >= whole + timedelta(seconds=1) else whole - timedelta(seconds=1)

    def links(self, page: Page) -> Links:
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

    def _feed(self, page: Page) -> Feed:
        wanted, stored = page.opened.subscription, self.store.personal_feeds
        listed = stored.entries(wanted.subscriber, wanted.id, page.first, page.last)
        found = stored.publications({one.notification.publication for one in listed}, LARGEST)
        return Feed(
            id=urn(wanted.subscriber, wanted.id),
            title=title_of(wanted),
            description=line(
                escaped(f"What {wanted.subscriber} is told because of {_source(wanted)}"), SUMMARY
            ),
            updated=datetime.fromisoformat(listed[0].time if listed else page.opened.address.made),
            links=self.links(page),
            entries=tuple(entry_of(one, found.get(one.notification.publication)) for one in listed),
            archive=page.is_archive,
        )

    def opml(self, token: str) -> bytes | Gone | None:
        """The list of a subscriber's feeds; each gets an address, if it has none yet."""
        address = self.addresses.find(token)
        if address is None or address.subscription != ALL:
            return None
        if address.revoked:
            return Gone()
        listed = self.listed(address.subscriber)
        named = [(title_of(one), self.places.feed(token, "atom")) for one, token in listed if token]
        made = datetime.fromisoformat(address.made)
        return opml(line(escaped(f"Tidings for {address.subscriber}")), made, named)

    def wanted(self, subscriber: str) -> list[Subscription]:
        """What a subscriber has feeds of: subscriptions, then the databases that they were told about. Not rules."""
        paused = [one for one in self.store.paused.all(subscriber) if one.language != RULES]
        found = [*self.store.subscriptions.list(subscriber), *paused]
        known = {one.id for one in found}
        sources = self.store.personal_feeds.of_objects(subscriber)
        return [*found, *(about(subscriber, name) for name in sources if name not in known)]

    def listed(self, subscriber: str) -> list[tuple[Subscription, str | None]]:
        """The same with the tokens of the feeds."""
        found = self.wanted(subscriber)
        tokens = self.addresses.tokens(subscriber, [one.id for one in found])
        return [(one, tokens[one.id]) for one in found]


def _identity(page: Page) -> object:
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


def tag_of(body: bytes) -> str:
    """A strong entity tag: other bytes, another tag."""
    return f'"{hashlib.sha256(body).hexdigest()[:32]}"'


def about(subscriber: str, source: str) -> Subscription:
    """What stands for a subscription where it is the data that says whom a change concerns."""
    return Subscription(source, subscriber, OBJECTS, f"Changes in {source}")


def _source(wanted: Subscription) -> str:
    return f"changes in {wanted.id}" if wanted.language == OBJECTS else f"the subscription {wanted.id}"


def title_of(one: Subscription) -> str:
    """The text of a subscription, without the prefixes of a pattern: they are long, and say little."""
    text = _PREFIXES.sub("", one.text) if one.language == "gql" else one.text
    return line(escaped(text), 100) or line(escaped(one.id), 100)
