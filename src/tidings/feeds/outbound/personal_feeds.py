"""Personal feeds: one for each subscription and each database of objects, with stable archives (RFC 5005).

    entries  1 ... 50   51 ... 100   101 ... 150   151 ... 187
             archive 1  archive 2    the feed itself

An archive is linked when the next page is full, too. So the feed itself always has at least a full page, a reader that
follows the links backwards sees each entry once, and a linked archive never gets further links.
"""

from __future__ import annotations

import hashlib
import re
from collections import OrderedDict
from dataclasses import dataclass
from datetime import datetime, timedelta
from threading import Lock

from tidings.core.text import escape_html
from tidings.errors import NotFound
from tidings.feeds.outbound.addresses import ALL_FEEDS, FeedTokens, FeedUrls
from tidings.feeds.outbound.entries import build_entry, urn
from tidings.feeds.outbound.feed import Feed, Links
from tidings.feeds.outbound.formats import FORMATS, Format, render_opml
from tidings.feeds.outbound.sanitize import SUMMARY, to_line
from tidings.feeds.sql.feed_addresses import FeedAddress
from tidings.language_hints import find_guide
from tidings.model import Subscription
from tidings.store.store import Store
from tidings.store.subscriptions.view import RULES

PAGE = 50
LARGEST = 500_000
"""Larger publications are not read for a feed: their entries have only reasons and bindings."""
KNOWN_TAGS = 1_000
OBJECTS = "objects"
"""The language of feeds about objects, which have no subscription text."""


@dataclass(frozen=True, slots=True)
class OpenFeed:
    """A feed with a valid address: its subscription, and its newest entry."""

    address: FeedAddress
    subscription: Subscription
    token: str
    last: int
    time: str
    grants: int = 0
    """Version of the subscriber's grants: a change may withhold entries."""

    @property
    def archives(self) -> int:
        """Return how many archives are linked."""
        return max(0, self.last // PAGE - 1)


@dataclass(frozen=True, slots=True)
class RemovedFeed:
    """A feed whose address was revoked or whose subscription was removed."""


@dataclass(frozen=True, slots=True)
class FeedPage:
    """A page of a feed with the entries `first` to `last`. The feed itself is page 0."""

    opened: OpenFeed
    format: Format
    number: int
    first: int
    last: int

    @property
    def is_archive(self) -> bool:
        return self.number > 0


class PersonalFeeds:
    """The personal feeds of a store, with their URLs."""

    def __init__(self, store: Store, addresses: FeedTokens, places: FeedUrls) -> None:
        self.store, self.addresses, self.places = store, addresses, places
        self._tags: OrderedDict[object, str] = OrderedDict()
        self._lock = Lock()

    def open(self, token: str) -> OpenFeed | RemovedFeed | None:
        """Open the feed with a token; None if there never was one."""
        address = self.addresses.find(token)
        if address is None or address.subscription == ALL_FEEDS:
            return None
        return self.open_address(address, token)

    def open_address(self, address: FeedAddress, token: str) -> OpenFeed | RemovedFeed:
        """Open a feed by its address. The id of a removed subscription may have another owner now."""
        subscription = self.find(address.subscriber, address.subscription)
        if address.revoked or subscription is None:
            return RemovedFeed()
        last, time = self.store.numbered_notifications.last(subscription.subscriber, subscription.id)
        changed = self.store.audiences.last_change(subscription.subscriber)
        newest = max(time or address.made, changed.time)
        return OpenFeed(address, subscription, token, last, newest, changed.version)

    def find(self, subscriber: str, id: str) -> Subscription | None:
        """Find the subscription of a feed.

        Objects have no subscription that could be removed: their feed exists once it has an entry. Rules have no feed.
        """
        subscription = self.store.subscriptions.find(id) or self.store.paused.find(id)
        if (
            subscription is not None
            and subscription.subscriber == subscriber
            and subscription.language != RULES
        ):
            return subscription
        return (
            object_subscription(subscriber, id)
            if self.store.numbered_notifications.is_object_source(subscriber, id)
            else None
        )

    def page(self, opened: OpenFeed, format: str, number: int = 0) -> FeedPage | None:
        """Return a page of a feed; None if the archive does not exist yet."""
        if number == 0:
            return FeedPage(opened, FORMATS[format], 0, opened.archives * PAGE + 1, opened.last)
        if not 1 <= number <= opened.last // PAGE:
            return None
        return FeedPage(opened, FORMATS[format], number, (number - 1) * PAGE + 1, number * PAGE)

    def news(self, opened: OpenFeed, format: str, first: int, last: int) -> bytes:
        """Render the feed with only these entries, for a delivery of the hub."""
        return self.render(FeedPage(opened, FORMATS[format], 0, first, last))

    def tag(self, page: FeedPage) -> str | None:
        """Return the entity tag of a page that was rendered before: most readers ask for an unchanged page."""
        with self._lock:
            return self._tags.get(_identity(page))

    def render(self, page: FeedPage) -> bytes:
        """Render a page; the bytes are the same for the same entries."""
        body = page.format.render(self._feed(page))
        with self._lock:
            self._tags[_identity(page)] = entity_tag(body)
            if len(self._tags) > KNOWN_TAGS:
                self._tags.popitem(last=False)
        return body

    def modified(self, page: FeedPage) -> datetime:
        """Return when a page changed last, in whole seconds before the current one.

        An entry may still come in the current second, and If-Modified-Since would miss it.
        """
        time = page.opened.time
        if page.is_archive:
            subscription = page.opened.subscription
            [newest] = self.store.numbered_notifications.read(
                subscription.subscriber, subscription.id, page.last, page.last
            )
            time = max(newest.time, self.store.audiences.last_change(subscription.subscriber).time)
        whole = datetime.fromisoformat(time).replace(microsecond=0)
        return whole if self.store.hub.now() >= whole + timedelta(seconds=1) else whole - timedelta(seconds=1)

    def links(self, page: FeedPage) -> Links:
        """Return the URLs of a page and its neighbours."""
        token, format, archives = page.opened.token, page.format.suffix, page.opened.archives
        current = self.places.feed(token, format)
        previous_page = page.number - 1 if page.is_archive else archives
        next_page = page.number + 1 if 0 < page.number <= archives else None
        return Links(
            self=self.places.archive(token, page.number, format) if page.is_archive else current,
            current=current,
            hub=self.places.hub,
            home=self.places.home,
            prev_archive=self.places.archive(token, previous_page, format) if previous_page else None,
            next_archive=self.places.archive(token, next_page, format) if next_page else None,
        )

    def _feed(self, page: FeedPage) -> Feed:
        subscription = page.opened.subscription
        listed = self.store.numbered_notifications.read(
            subscription.subscriber, subscription.id, page.first, page.last
        )
        publications = self.store.journal.find_all(
            {numbered.notification.publication for numbered in listed}, LARGEST
        )
        return Feed(
            id=urn(subscription.subscriber, subscription.id),
            title=feed_title(subscription),
            description=to_line(
                escape_html(f"Notifications of {subscription.subscriber} for {_source(subscription)}"),
                SUMMARY,
            ),
            updated=datetime.fromisoformat(listed[0].time if listed else page.opened.address.made),
            links=self.links(page),
            entries=tuple(
                build_entry(numbered, publications.get(numbered.notification.publication))
                for numbered in listed
            ),
            archive=page.is_archive,
        )

    def opml(self, token: str) -> bytes | RemovedFeed | None:
        """Render the list of a subscriber's feeds as OPML; each feed gets an address if it has none."""
        address = self.addresses.find(token)
        if address is None or address.subscription != ALL_FEEDS:
            return None
        if address.revoked:
            return RemovedFeed()
        listed = self.list_with_tokens(address.subscriber)
        named = [(feed_title(one), self.places.feed(token, "atom")) for one, token in listed if token]
        made = datetime.fromisoformat(address.made)
        return render_opml(to_line(escape_html(f"Tidings for {address.subscriber}")), made, named)

    def list_subscriptions(self, subscriber: str) -> list[Subscription]:
        """List the sources of a subscriber's feeds: subscriptions, then databases of objects. Rules have none."""
        paused = [
            subscription
            for subscription in self.store.paused.all(subscriber)
            if subscription.language != RULES
        ]
        subscriptions = [*self.store.subscriptions.list(subscriber), *paused]
        ids = {subscription.id for subscription in subscriptions}
        sources = self.store.numbered_notifications.object_sources(subscriber)
        return [
            *subscriptions,
            *(object_subscription(subscriber, name) for name in sources if name not in ids),
        ]

    def list_with_tokens(self, subscriber: str) -> list[tuple[Subscription, str | None]]:
        """List the sources of a subscriber's feeds, with the tokens."""
        subscriptions = self.list_subscriptions(subscriber)
        tokens = self.addresses.tokens(subscriber, [subscription.id for subscription in subscriptions])
        return [(subscription, tokens[subscription.id]) for subscription in subscriptions]


def _identity(page: FeedPage) -> object:
    """Return the values that identify the content of a page. A removed subscription may return with another text."""
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
    """Return a strong entity tag."""
    return f'"{hashlib.sha256(body).hexdigest()[:32]}"'


def object_subscription(subscriber: str, source: str) -> Subscription:
    """Build a placeholder subscription for the feed of a database of objects."""
    return Subscription(source, subscriber, OBJECTS, f"Changes in {source}")


def _source(subscription: Subscription) -> str:
    return (
        f"changes in {subscription.id}"
        if subscription.language == OBJECTS
        else f"the subscription {subscription.id}"
    )


def feed_title(subscription: Subscription) -> str:
    """Return the text of a subscription without its prologue, such as prefixes, which are long and uninformative."""
    guide = find_guide(subscription.language)
    prologue = guide.prologue if guide else None
    text = re.sub(prologue, "", subscription.text, flags=re.IGNORECASE) if prologue else subscription.text
    return to_line(escape_html(text), 100) or to_line(escape_html(subscription.id), 100)


@dataclass(frozen=True, slots=True)
class FeedLocation:
    """A feed and its URL; without a subscription, the list of all feeds (OPML).

    The URL is created on first use. It is None if it was made with the key of another home folder.
    """

    subscription: str | None
    address: str | None


def list_locations(feeds: PersonalFeeds, subscriber: str) -> list[FeedLocation]:
    """List the feeds of a subscriber with their URLs."""
    return [_location(feeds, one.id, token) for one, token in feeds.list_with_tokens(subscriber)]


def page_locations(feeds: PersonalFeeds, subscriber: str, after: str, limit: int) -> list[FeedLocation]:
    """List a page of feeds in the order of ids; only these get URLs."""
    ids = sorted(
        subscription.id for subscription in feeds.list_subscriptions(subscriber) if subscription.id > after
    )[:limit]
    tokens = feeds.addresses.tokens(subscriber, ids) if ids else {}
    return [_location(feeds, id, tokens[id]) for id in ids]


def locate_feed(feeds: PersonalFeeds, subscriber: str, id: str | None = None) -> FeedLocation:
    """Return the location of the feed of a subscription, or of the list of all feeds."""
    return _location(feeds, id, feeds.addresses.token(subscriber, _check_subscription(feeds, subscriber, id)))


def renew_location(feeds: PersonalFeeds, subscriber: str, id: str | None = None) -> FeedLocation:
    """Replace the URL of a feed; the old one stops working."""
    return _location(feeds, id, feeds.addresses.renew(subscriber, _check_subscription(feeds, subscriber, id)))


def _check_subscription(feeds: PersonalFeeds, subscriber: str, id: str | None) -> str:
    if id is None:
        return ALL_FEEDS
    if feeds.find(subscriber, id) is None:
        raise NotFound(f"{subscriber} has no subscription '{id[:200]}' with a feed")
    return id


def _location(feeds: PersonalFeeds, id: str | None, token: str | None) -> FeedLocation:
    if token is None:
        return FeedLocation(id, None)
    return FeedLocation(id, feeds.places.opml(token) if id is None else feeds.places.feed(token))
