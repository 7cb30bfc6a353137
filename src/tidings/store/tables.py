"""Tables of the store, the same on SQLite and PostgreSQL, except for staging tables.

Values that only this code reads (reasons, facts, bindings) are JSON in text columns: PostgreSQL's JSON types reject
strings that JSON allows, for example with a NUL character.
"""

from __future__ import annotations

from typing import Any

from sqlalchemy import (
    BigInteger,
    Column,
    Index,
    Integer,
    LargeBinary,
    MetaData,
    PrimaryKeyConstraint,
    Table,
    Text,
)

metadata = MetaData()

DIALECT = "dialect"
"""Key in the `info` of a table that only one of the two databases has."""

# SQLite uses a key as the row id only if its type is named INTEGER; it has 64 bits anyway.
Whole = BigInteger().with_variant(Integer(), "sqlite")

# Names and ids are ordered by code point in both databases, as in Python: all code locks rows in the same order.
Name = Text().with_variant(Text(collation="C"), "postgresql")

migrations = Table(
    "tidings_migrations",
    metadata,
    Column("version", Integer, primary_key=True, autoincrement=False),
    Column("name", Text, nullable=False),
    Column("applied", Text, nullable=False),
)

counters = Table(
    "counters",
    metadata,
    Column("name", Text, primary_key=True),
    Column("value", Whole, nullable=False),
)

journal = Table(
    "journal",
    metadata,
    Column("position", Whole, primary_key=True, autoincrement=False),
    Column("id", Name, nullable=False, unique=True),
    Column("media_type", Text, nullable=False),
    Column("body", LargeBinary, nullable=False),
    Column("time", Text, nullable=False),
)

# A row is one lifetime of an id: added at a version, perhaps removed at a later one. A reused id gets a new row, so the
# changes between two versions are a query on versions.
subscriptions = Table(
    "subscriptions",
    metadata,
    Column("added", Whole, primary_key=True, autoincrement=False),
    Column("id", Name, primary_key=True),
    Column("subscriber", Name, nullable=False),
    Column("language", Text, nullable=False),
    Column("text", Text, nullable=False),
    Column("removed", Whole, nullable=True),
    Column("within", Integer, nullable=True),
    sqlite_with_rowid=False,
)
_lives = subscriptions.c.removed.is_(None)
Index("subscriptions_live", subscriptions.c.id, unique=True, sqlite_where=_lives, postgresql_where=_lives)
Index("subscriptions_of", subscriptions.c.subscriber, sqlite_where=_lives, postgresql_where=_lives)
Index(
    "subscriptions_removed",
    subscriptions.c.removed,
    sqlite_where=subscriptions.c.removed.is_not(None),
    postgresql_where=subscriptions.c.removed.is_not(None),
)

_waits = subscriptions.c.within.is_not(None)
Index("subscriptions_delayed", subscriptions.c.id, sqlite_where=_waits, postgresql_where=_waits)

# Paused subscriptions of every language, rules included. An id is in this table or in `subscriptions`, never in both.
paused = Table(
    "paused_subscriptions",
    metadata,
    Column("id", Name, primary_key=True),
    Column("subscriber", Name, nullable=False, index=True),
    Column("language", Text, nullable=False),
    Column("text", Text, nullable=False),
    Column("within", Integer, nullable=True),
    Column("time", Name, nullable=False),
    Column("reason", Text, nullable=True),  # why the service suspended it; null if its owner paused it
    sqlite_with_rowid=False,
)

# The number of times an active subscription has exceeded the budget of the stream.
overruns = Table(
    "budget_overruns",
    metadata,
    Column("subscription", Name, primary_key=True),
    Column("count", Integer, nullable=False),
    sqlite_with_rowid=False,
)

subscribers = Table(
    "subscribers",
    metadata,
    Column("subscriber", Name, primary_key=True),
    Column("last_sequence", Whole, nullable=False),
    sqlite_with_rowid=False,
)

notifications = Table(
    "notifications",
    metadata,
    Column("subscriber", Name, primary_key=True),
    Column("sequence", Whole, primary_key=True, autoincrement=False),
    Column("id", Name, nullable=False, unique=True),
    Column("subscription", Name, nullable=False),
    Column("publication", Name, nullable=False),
    Column("kind", Text, nullable=False),
    Column("because", Text, nullable=False),
    Column("bindings", Text, nullable=True),
    Column("time", Text, nullable=False),
    sqlite_with_rowid=False,
)

# Positions of notifications, for readers of all subscribers: a row has those of one subscriber after a sequence number,
# up to another one, and the position of the last of them.
notification_ranges = Table(
    "notification_ranges",
    metadata,
    Column("position", Whole, primary_key=True, autoincrement=False),
    Column("subscriber", Name, nullable=False),
    Column("after_sequence", Whole, nullable=False),
    Column("last_sequence", Whole, nullable=False),
)
Index("notification_ranges_of", notification_ranges.c.subscriber, notification_ranges.c.last_sequence)

# Deferred notifications, complete except for their sequence numbers; `position` is the order of the matches.
deferred_notifications = Table(
    "deferred_notifications",
    metadata,
    Column("subscriber", Name, nullable=False),
    Column("position", Whole, nullable=False),
    Column("id", Name, nullable=False, unique=True),
    Column("subscription", Name, nullable=False),
    Column("publication", Name, nullable=False),
    Column("kind", Text, nullable=False),
    Column("because", Text, nullable=False),
    Column("bindings", Text, nullable=True),
    Column("time", Text, nullable=False),
    PrimaryKeyConstraint("subscriber", "subscription", "position"),
    sqlite_with_rowid=False,
)

# One row for each subscription with deferred notifications. Instants are compared as text: all have the same length.
deferral_deadlines = Table(
    "deferral_deadlines",
    metadata,
    Column("subscriber", Name, primary_key=True),
    Column("subscription", Name, primary_key=True),
    Column("since", Name, nullable=False, index=True),
    Column("due", Name, nullable=False, index=True),
    sqlite_with_rowid=False,
)

batches = Table(
    "batches",
    metadata,
    Column("stream", Name, primary_key=True),
    Column("batch", Whole, primary_key=True, autoincrement=False),
    sqlite_with_rowid=False,
)

dead_letters = Table(
    "dead_letters",
    metadata,
    Column("number", Whole, primary_key=True, autoincrement=False),
    Column("id", Name, nullable=False, unique=True),
    Column("source", Name, nullable=False),
    Column("publication", Name, nullable=False),
    Column("position", Whole, nullable=True),
    Column("reason", Text, nullable=False),
    Column("facts", Text, nullable=False),
    Column("body", LargeBinary, nullable=True),
    Column("time", Text, nullable=False),
    Column("subscription", Name, nullable=True),
)

# Rows that tasks of a stream have written and no batch has committed yet, on PostgreSQL only. An attempt is one run of
# a task. The tables are not logged: a crash of the server empties them, all at once, and the batch is repeated.
_STAGING: dict[str, Any] = {"prefixes": ["UNLOGGED"], "info": {DIALECT: "postgresql"}}

staged_attempts = Table(
    "staged_attempts",
    metadata,
    Column("attempt", Whole, primary_key=True, autoincrement=False),
    Column("stream", Name, nullable=False),
    Column("matches", Whole, nullable=False),
    Column("letters", Whole, nullable=False),
    Column("since", Text, nullable=False),
    **_STAGING,
)

staged_matches = Table(
    "staged_matches",
    metadata,
    Column("attempt", Whole, nullable=False, index=True),
    Column("position", Whole, nullable=False),
    Column("id", Name, nullable=False),
    Column("publication", Name, nullable=False),
    Column("subscription", Name, nullable=False),
    Column("subscriber", Name, nullable=False),
    Column("because", Text, nullable=False),
    Column("bindings", Text, nullable=True),
    **_STAGING,
)

# `place` is the order of the dead letters of an attempt.
staged_dead_letters = Table(
    "staged_dead_letters",
    metadata,
    Column("attempt", Whole, nullable=False, index=True),
    Column("place", Whole, nullable=False),
    Column("id", Name, nullable=False),
    Column("publication", Name, nullable=False),
    Column("position", Whole, nullable=True),
    Column("reason", Text, nullable=False),
    Column("facts", Text, nullable=False),
    Column("body", LargeBinary, nullable=True),
    Column("subscription", Name, nullable=True),
    **_STAGING,
)

# The event schema as rows, in the order of `number`; `position` is the place of a part within its section and name.
event_schema = Table(
    "event_schema",
    metadata,
    Column("number", Integer, primary_key=True, autoincrement=False),
    Column("section", Text, nullable=False),
    Column("name", Text, nullable=False),
    Column("part", Text, nullable=False),
    Column("detail", Text, nullable=False),
    Column("position", Integer, nullable=False),
)

# `references` is a keyword of SQL. `path` is the attribute or path in publications that the key is compared with.
reference_tables = Table(
    "reference_tables",
    metadata,
    Column("name", Name, primary_key=True),
    Column("file", Text, nullable=False),
    Column("key", Text, nullable=False),
    Column("path", Text, nullable=False),
    Column("fields", Text, nullable=False),
    Column("version", Whole, nullable=False),
)

taxonomies = Table(
    "taxonomies",
    metadata,
    Column("name", Name, primary_key=True),
    Column("media_type", Text, nullable=False),
    Column("body", LargeBinary, nullable=False),
    Column("version", Whole, nullable=False),
)

# The last sequence number of each subscriber whose notifications are numbered.
numbering_cursors = Table(
    "numbering_cursors",
    metadata,
    Column("subscriber", Name, primary_key=True),
    Column("sequence", Whole, nullable=False),
    Column("time", Text, nullable=False),
    sqlite_with_rowid=False,
)

# Each notification with its number within its subscription, for feeds and deliveries. Numbers count from one without
# gaps, so a page of a feed or of an archive is a range of numbers.
numbered_notifications = Table(
    "numbered_notifications",
    metadata,
    Column("subscriber", Name, primary_key=True),
    Column("subscription", Name, primary_key=True),
    Column("number", Whole, primary_key=True, autoincrement=False),
    Column("sequence", Whole, nullable=False),
    Column("time", Text, nullable=False),
    sqlite_with_rowid=False,
)
