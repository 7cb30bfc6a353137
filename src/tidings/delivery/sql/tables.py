"""Tables of deliveries: destinations, delivery cursors, dead letters, and quiet hours."""

from __future__ import annotations

from sqlalchemy import Column, Connection, Index, Integer, Table, Text, text

from tidings.store.tables import Name, Whole, metadata

# A destination without a subscription is for all subscriptions of the subscriber. `start_sequence` is the subscriber's
# last sequence number when it was created: earlier notifications are not delivered. Messages are signed with the old
# secret, too, until `old_until`.
destinations = Table(
    "destinations",
    metadata,
    Column("id", Name, primary_key=True),
    Column("subscriber", Name, nullable=False, index=True),
    Column("subscription", Name, nullable=True),
    Column("kind", Text, nullable=False),
    Column("target", Text, nullable=False),
    Column("host", Name, nullable=False),
    Column("name", Text, nullable=False),
    Column("secret", Text, nullable=True),
    Column("old_secret", Text, nullable=True),
    Column("old_until", Name, nullable=True),
    Column("state", Text, nullable=False),
    Column("reason", Text, nullable=True),
    Column("made", Name, nullable=False),
    Column("start_sequence", Whole, nullable=False),
    sqlite_with_rowid=False,
)

# The sequence number up to which the notifications of a subscriber are scheduled for delivery.
scheduling_cursors = Table(
    "scheduling_cursors",
    metadata,
    Column("subscriber", Name, primary_key=True),
    Column("sequence", Whole, nullable=False),
    sqlite_with_rowid=False,
)

# Subscriptions with an accepted delay whose notifications were released together, until they are scheduled for delivery
# as a digest; `sequence` is the last sequence number of the subscriber after the release.
pending_digests = Table(
    "pending_digests",
    metadata,
    Column("subscriber", Name, primary_key=True),
    Column("subscription", Name, primary_key=True),
    Column("sequence", Whole, primary_key=True, autoincrement=False),
    sqlite_with_rowid=False,
)

# Delivery cursors, of a destination and a subscription: entries after `position` are to be delivered, in order. Without
# a `due` time there is nothing to do. `leased` is 1 while a worker holds the lease, which ends at `due`. `ticket`
# counts the leases: an older one is not valid any more. `since` is when a `due` time in the future was written: see
# `clock_recovery`. `digest_end` is the last entry of a digest that was started, `next_is_digest` whether the next
# message is a digest: after quiet hours, or because of an accepted delay.
delivery_cursors = Table(
    "delivery_cursors",
    metadata,
    Column("destination", Name, primary_key=True),
    Column("subscription", Name, primary_key=True),
    Column("subscriber", Name, nullable=False, index=True),
    Column("host", Name, nullable=False),
    Column("position", Whole, nullable=False),
    Column("due", Name, nullable=True),
    Column("leased", Integer, nullable=False),
    Column("ticket", Whole, nullable=False),
    Column("attempts", Integer, nullable=False),
    Column("digest_end", Whole, nullable=True),
    Column("next_is_digest", Integer, nullable=False),
    Column("delivered", Whole, nullable=False),
    Column("failures", Integer, nullable=False),
    Column("last_success", Name, nullable=True),
    Column("last_failure", Name, nullable=True),
    Column("last_error", Text, nullable=True),
    Column("since", Name, nullable=True),
    sqlite_with_rowid=False,
)
_works = delivery_cursors.c.due.is_not(None)
Index("delivery_cursors_due", delivery_cursors.c.due, sqlite_where=_works, postgresql_where=_works)

# Dead letters: the entries `first` to `last`, several if they were a digest. A letter with a `due` time is retried.
# `message` is the id of the message that the receiver got.
dead_deliveries = Table(
    "dead_deliveries",
    metadata,
    Column("number", Whole, primary_key=True, autoincrement=False),
    Column("destination", Name, nullable=False),
    Column("subscription", Name, nullable=False),
    Column("subscriber", Name, nullable=False),
    Column("host", Name, nullable=False),
    Column("first", Whole, nullable=False),
    Column("last", Whole, nullable=False),
    Column("digest", Integer, nullable=False),
    Column("message", Name, nullable=False),
    Column("problem", Text, nullable=False),
    Column("attempts", Integer, nullable=False),
    Column("time", Name, nullable=False, index=True),
    Column("due", Name, nullable=True),
    Column("attempts_since_replay", Integer, nullable=False),
    Column("since", Name, nullable=True),
)
_again = dead_deliveries.c.due.is_not(None)
Index("dead_deliveries_again", dead_deliveries.c.due, sqlite_where=_again, postgresql_where=_again)
Index("dead_deliveries_of", dead_deliveries.c.destination, dead_deliveries.c.number)

# Minutes of the day in the time zone; quiet hours that span midnight end with the smaller one.
quiet_hours = Table(
    "quiet_hours",
    metadata,
    Column("subscriber", Name, primary_key=True),
    Column("from_minute", Integer, nullable=False),
    Column("to_minute", Integer, nullable=False),
    Column("zone", Text, nullable=False),
    sqlite_with_rowid=False,
)

ALL = (destinations, scheduling_cursors, delivery_cursors, dead_deliveries, quiet_hours)


def gather_delayed(connection: Connection) -> None:
    """Migrate cursors of subscriptions with an accepted delay: waiting notifications become a digest.

    Before, each delivery looked up which subscriptions have an accepted delay.
    """
    connection.execute(_GATHER)


_GATHER = text(
    "UPDATE delivery_cursors SET next_is_digest = 1 WHERE due IS NOT NULL AND (subscription IN"
    " (SELECT id FROM subscriptions WHERE within IS NOT NULL AND removed IS NULL) OR subscription IN"
    " (SELECT name FROM metadata_rules WHERE within IS NOT NULL))"
)
