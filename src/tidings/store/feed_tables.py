"""The tables of feeds that go out: their addresses, their entries, and who is told by the hub."""

from __future__ import annotations

from sqlalchemy import Column, Index, Integer, Table, Text

from tidings.store.tables import Name, Whole, metadata

# Nobody who reads this table knows an address: `hash` is that of a token which `nonce` and a key outside of the store
# make. An empty subscription stands for the list of all feeds of the subscriber.
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

# Up to which number a subscriber's notifications have become entries.
feed_cursors = Table(
    "feed_cursors",
    metadata,
    Column("subscriber", Name, primary_key=True),
    Column("sequence", Whole, nullable=False),
    Column("time", Text, nullable=False),
    sqlite_with_rowid=False,
)

# Entries of a feed count from one without gaps, so that a page of an archive is a range of numbers.
feed_entries = Table(
    "feed_entries",
    metadata,
    Column("subscriber", Name, primary_key=True),
    Column("subscription", Name, primary_key=True),
    Column("number", Whole, primary_key=True, autoincrement=False),
    Column("sequence", Whole, nullable=False),
    Column("time", Text, nullable=False),
    sqlite_with_rowid=False,
)


def _callback_of_feed() -> tuple[Column[str], ...]:
    """Who is told, of which feed, in which format: the key of all that the hub knows."""
    return tuple(Column(name, Name, primary_key=True) for name in ("address", "format", "callback"))


# What somebody asked the hub for, until their callback has confirmed it. A new wish takes the place of an older one.
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

# `told` is the last entry that a callback was told of, or that was given up for it.
hub_subscriptions = Table(
    "hub_subscriptions",
    metadata,
    *_callback_of_feed(),
    Column("secret", Text, nullable=True),
    Column("lease_end", Name, nullable=False, index=True),
    Column("told", Whole, nullable=False),
    sqlite_with_rowid=False,
)

# One that is under way for each subscription at most: what comes meanwhile goes with the next. Dead ones stay.
hub_deliveries = Table(
    "hub_deliveries",
    metadata,
    *_callback_of_feed(),
    Column("first", Whole, primary_key=True, autoincrement=False),
    Column("last", Whole, nullable=False),
    Column("state", Text, nullable=False),
    Column("attempts", Integer, nullable=False),
    Column("due", Name, nullable=False, index=True),
    Column("problem", Text, nullable=True),
    Column("since", Name, nullable=True),
    sqlite_with_rowid=False,
)
