"""Commit of a batch of matches as notifications, in one transaction.

The transaction has a mark that the batch is done, its notifications with the next sequence numbers of their
subscribers, and its dead letters. A repeated batch finds the mark. A repeated match in another batch finds the id of
its notification, which is derived from publication and subscription. So each match notifies once, and sequence numbers
have no gaps.

This row-by-row path serves every database and is the specification of the one for PostgreSQL (`staged_rows`).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from itertools import groupby

from sqlalchemy import Connection, delete, select

from tidings.model import notification_id
from tidings.store import audiences, bulk, counters
from tidings.store.dead_letters import DeadLetter, add_dead_letters
from tidings.store.encoding import Clock, MatchRow, format_instant, notification_row, utc_now
from tidings.store.notifications import deferred_notifications, sequences
from tidings.store.tables import batches, notifications

MATCH_POSITION = "match_position"
KEPT_MARKS = 100
"""How many marks of a stream are kept. It repeats only its last batch."""
PART = 5_000
"""How many matches are in memory at once, plus those of one publication."""
LETTERS = 200
"""How many dead letters are in memory at once; they include their bodies."""


@dataclass(frozen=True, slots=True)
class CommitResult:
    """Counts of a committed batch: new, repeated and deferred notifications; `skipped` if it was committed before.

    `unseen` counts matches whose subscribers may not see the publication.
    """

    new: int
    repeated: int
    skipped: bool = False
    deferred: int = 0
    unseen: int = 0


def write_batch(
    connection: Connection,
    stream: str,
    batch: int,
    found: Iterable[MatchRow],
    dead: Iterable[DeadLetter],
    source: str,
    clock: Clock = utc_now,
) -> CommitResult:
    """Commit a batch like `Notifications.commit_batch`, in the caller's transaction.

    `found` is iterated twice: for the subscribers, whose rows are locked in order before any write, and for the
    notifications, some thousands at a time.
    """
    if not mark_batch(connection, stream, batch):
        return CommitResult(0, 0, skipped=True)
    numbers = sequences.lock_sequences(connection, {one.subscriber for one in found})
    before, given, seen, later = dict(numbers), 0, 0, 0
    seeing = audiences.Visibility(connection)
    for part in _parts(_ordered(found) if isinstance(found, Sequence) else found):
        visible = seeing.only(part)
        unknown = _unknown(connection, visible)
        delays = deferred_notifications.accepted_delays(connection, unknown.values())
        later += write_part(connection, unknown, numbers, delays, clock())
        given, seen = given + len(part), seen + len(visible)
    sequences.advance_sequences(connection, numbers, before)
    for letters in bulk.iter_chunks(dead, LETTERS):
        add_dead_letters(connection, source, letters)
    new = sum(numbers.values()) - sum(before.values())
    return CommitResult(new, seen - new - later, deferred=later, unseen=given - seen)


def mark_batch(connection: Connection, stream: str, batch: int) -> bool:
    """Mark the batch as committed; return false if it was. A concurrent writer of the same batch waits here."""
    if not bulk.insert_missing(connection, batches, [{"stream": stream, "batch": batch}]):
        return False
    old = batches.c.batch < batch - KEPT_MARKS
    connection.execute(delete(batches).where(batches.c.stream == stream, old))
    return True


def advance_match_position(connection: Connection, position: int) -> None:
    """Record that the journal is matched up to a position, unless it already is."""
    if counters.lock(connection, MATCH_POSITION) < position:
        counters.advance(connection, MATCH_POSITION, position)


def _parts(found: Iterable[MatchRow]) -> Iterator[list[MatchRow]]:
    """Split matches into parts of whole publications, ordered by subscription id within a publication."""
    part: list[MatchRow] = []
    for _, matches in groupby(found, key=_publication):
        part.extend(sorted(matches, key=lambda one: one.subscription))
        if len(part) >= PART:
            yield part
            part = []
    if part:
        yield part


def _ordered(found: Sequence[MatchRow]) -> list[MatchRow]:
    turn: dict[tuple[int, str], int] = {}
    for one in found:
        turn.setdefault(_publication(one), len(turn))
    return sorted(found, key=lambda one: (turn[_publication(one)], one.subscription))


def _publication(one: MatchRow) -> tuple[int, str]:
    """Return what tells the publications of a source apart: in a folder, two may have the same id."""
    return one.position, one.publication


def _unknown(connection: Connection, ordered: Sequence[MatchRow]) -> dict[str, MatchRow]:
    """Return matches without a notification, by its future id; the subscribers must be locked.

    Deferred notifications are looked up first: one that is released in between would otherwise be in neither result.
    """
    new: dict[str, MatchRow] = {}
    for one in ordered:
        new.setdefault(notification_id(one.publication, one.subscription), one)
    for id in deferred_notifications.find_deferred(connection, list(new)):
        del new[id]
    for row in bulk.select_among(connection, select(notifications.c.id), notifications.c.id, list(new)):
        del new[row.id]
    return new


def write_part(
    connection: Connection,
    new: Mapping[str, MatchRow],
    numbers: dict[str, int],
    delays: deferred_notifications.Delays,
    moment: datetime,
) -> int:
    """Insert notifications, deferred where a delay is accepted; return how many are deferred.

    The subscribers must be locked.
    """
    later = {id: one for id, one in new.items() if (one.subscription, one.subscriber) in delays}
    time, rows = format_instant(moment), []
    for id, one in new.items():
        if id not in later:
            rows.append(notification_row(id, one, sequences.take_next(numbers, one.subscriber), time))
    bulk.insert_rows(connection, notifications, rows)
    deferred_notifications.defer(connection, later, delays, moment)
    return len(later)
