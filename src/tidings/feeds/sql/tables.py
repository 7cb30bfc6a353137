"""Tables of feeds: polled feeds and their items, addresses of personal feeds, and the WebSub hub."""

from __future__ import annotations

from sqlalchemy import Column, Index, Integer, Table, Text

from tidings.store.tables import Name, Whole, metadata

# Polled feeds. Instants are compared as text: all have the same length. `next_poll` is null for a removed feed.
polled_feeds = Table(
    "polled_feeds",
    metadata,
    Column("number", Whole, primary_key=True, autoincrement=False),
    Column("url", Name, nullable=False, unique=True),
    Column("added", Name, nullable=False),
    Column("in_private_network", Integer, nullable=False),
    Column("title", Text, nullable=True),
    Column("site", Name, nullable=True, index=True),
    Column("etag", Text, nullable=True),
    Column("modified", Text, nullable=True),
    Column("ttl", Whole, nullable=True),
    Column("polled", Name, nullable=True),
    Column("next_poll", Name, nullable=True, index=True),
    Column("last_ping", Name, nullable=True),
    Column("failures", Integer, nullable=False),
    Column("problem", Text, nullable=True),
    Column("hub", Text, nullable=True),
    Column("topic", Text, nullable=True),
    Column("push", Text, nullable=True),
    Column("callback", Name, nullable=True, unique=True),
    Column("secret", Text, nullable=True),
    Column("lease", Name, nullable=True),
    Column("skips", Whole, nullable=True),
    Column("login", Text, nullable=True),
    Column("left_out", Text, nullable=True),
)

# Items seen in polled feeds. An item id may have any length, so `item` is its hash.
polled_items = Table(
    "polled_items",
    metadata,
    Column("feed", Whole, primary_key=True, autoincrement=False),
    Column("item", Name, primary_key=True),
    Column("hash", Text, nullable=False),
    Column("publication", Name, nullable=True),
    Column("seen", Name, nullable=False),
    sqlite_with_rowid=False,
)

# Secret addresses of feeds. The table does not reveal them: `hash` is that of a token derived from `nonce` and a key
# outside the store. An empty subscription means the list of all feeds of the subscriber.
feed_addresses = Table(
    "feed_addresses",
    metadata,
    Column("hash", Name, primary_key=True),
    Column("subscriber", Name, nullable=False),
    Column("subscription", Name, nullable=False),
    Column("nonce", Text, nullable=False),
    Column("made", Text, nullable=False),
    Column("revoked", Text, nullable=True),
    sqlite_with_rowid=False,
)
_good = feed_addresses.c.revoked.is_(None)
Index(
    "feed_addresses_good",
    feed_addresses.c.subscriber,
    feed_addresses.c.subscription,
    unique=True,
    sqlite_where=_good,
    postgresql_where=_good,
)


def _callback_of_feed() -> tuple[Column[str], ...]:
    """Return the key columns of the hub's tables: a callback, a feed and a format."""
    return tuple(Column(name, Name, primary_key=True) for name in ("address", "format", "callback"))


# Requests to the hub that the callback has not confirmed yet. A new request replaces an older one.
hub_intents = Table(
    "hub_intents",
    metadata,
    *_callback_of_feed(),
    Column("mode", Text, nullable=False),
    Column("secret", Text, nullable=True),
    Column("lease", Integer, nullable=False),
    Column("attempts", Integer, nullable=False),
    Column("due", Name, nullable=False, index=True),
    Column("challenge", Text, nullable=False),
    Column("since", Name, nullable=True),
    sqlite_with_rowid=False,
)

# Confirmed subscriptions. Each has a destination of the delivery engine, with the callback, its secret and a cursor.
hub_subscriptions = Table(
    "hub_subscriptions",
    metadata,
    *_callback_of_feed(),
    Column("destination", Name, nullable=False, index=True),
    Column("lease_end", Name, nullable=False, index=True),
    sqlite_with_rowid=False,
)
