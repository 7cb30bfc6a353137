"""Items that were seen in feeds. New and edited ones are appended to the journal, each once.

Items are appended in the transaction that remembers them: if a crash could come between, an edited item would be
published twice. The table is bounded: an item that has left its feed is forgotten after `REMEMBERED`, and so are the
oldest ones beyond `MOST` of a feed. One that comes back after that is known by its id in the journal, unless it was
edited.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import NamedTuple

from sqlalchemy import Connection, delete, select, update

from tidings.feeds.sql.tables import polled_items
from tidings.model import Publication
from tidings.store import bulk
from tidings.store.dead_letters import DeadLetter, add_dead_letters
from tidings.store.encoding import format_instant
from tidings.store.journal import AppendResult, append_publications

REMEMBERED = timedelta(days=90)
MOST = 20_000
"""Twice as many as a feed may have at a time."""

TOUCHED = timedelta(days=1)
"""Precision of the time at which an item was last seen: an update at each poll would be most of the work."""


class SeenItem(NamedTuple):
    """A known item: the hash of its content, and the id of its publication, if it was published."""

    hash: str
    publication: str | None


@dataclass(frozen=True, slots=True)
class ItemOutcome:
    """The plan for a new or edited item: a publication, or a dead letter.

    `otherwise` is published if an edited item has an earlier content again: the id of `publication` exists then.
    """

    item: str
    hash: str
    publication: Publication | None
    otherwise: Publication | None = None
    letter: DeadLetter | None = None


ItemPlanner = Callable[[Mapping[str, SeenItem]], Sequence[ItemOutcome]]


class ItemCounts(NamedTuple):
    """Counts of a poll: all items, and those that were new, edited and rejected."""

    items: int
    new: int
    edited: int
    refused: int


def publish_items(
    connection: Connection,
    feed: int,
    source: str,
    moment: datetime,
    items: Mapping[str, str],
    make: ItemPlanner,
) -> ItemCounts:
    """Publish and remember items in the caller's transaction, which has locked the feed."""
    seen = _seen(connection, feed, items)
    outcomes = make(seen)
    published = _publish(connection, outcomes)
    add_dead_letters(connection, source, [outcome.letter for outcome in outcomes if outcome.letter])
    _remember(connection, feed, outcomes, published, format_instant(moment))
    _touch(connection, feed, items, seen, moment)
    _forget(connection, feed, moment)
    appended = [item for item, (_, new) in published.items() if new]
    edited = sum(1 for item in appended if item in seen and seen[item].publication is not None)
    return ItemCounts(
        len(items), len(appended) - edited, edited, sum(1 for outcome in outcomes if outcome.letter)
    )


def _seen(connection: Connection, feed: int, items: Mapping[str, str]) -> dict[str, SeenItem]:
    query = select(polled_items.c.item, polled_items.c.hash, polled_items.c.publication)
    mine = query.where(polled_items.c.feed == feed)
    rows = bulk.select_among(connection, mine, polled_items.c.item, list(items))
    return {item: SeenItem(hash, publication) for item, hash, publication in rows}


def _publish(connection: Connection, outcomes: Sequence[ItemOutcome]) -> dict[str, tuple[str, bool]]:
    """Append publications; return the id of each item's publication, and whether it is new.

    An id that exists is not an error: it is derived from feed, item and content, so the same was published before.
    """
    valid = [(outcome, outcome.publication) for outcome in outcomes if outcome.publication]
    results = append_publications(connection, [publication for _, publication in valid]) if valid else []
    published: dict[str, tuple[str, bool]] = {}
    for (outcome, publication), result in zip(valid, results, strict=True):
        is_new = isinstance(result, AppendResult) and result.new
        if not is_new and outcome.otherwise:
            publication = outcome.otherwise
            [result] = append_publications(connection, [publication])
            is_new = isinstance(result, AppendResult) and result.new
        published[outcome.item] = publication.id, is_new
    return published


def _remember(
    connection: Connection,
    feed: int,
    outcomes: Sequence[ItemOutcome],
    published: Mapping[str, tuple[str, bool]],
    moment: str,
) -> None:
    keys = [outcome.item for outcome in outcomes]
    for piece in bulk.iter_chunks(keys, bulk.KEYS):
        these = polled_items.c.item.in_(piece)
        connection.execute(delete(polled_items).where(polled_items.c.feed == feed, these))
    ids = {item: id for item, (id, _) in published.items()}
    rows = [(feed, outcome.item, outcome.hash, ids.get(outcome.item), moment) for outcome in outcomes]
    bulk.insert_rows(connection, polled_items, rows)


def _touch(
    connection: Connection,
    feed: int,
    items: Mapping[str, str],
    seen: Mapping[str, SeenItem],
    moment: datetime,
) -> None:
    there = [item for item in items if item in seen]
    old = polled_items.c.seen < format_instant(moment - TOUCHED)
    for piece in bulk.iter_chunks(there, bulk.KEYS):
        these = polled_items.c.item.in_(piece)
        touched = update(polled_items).where(polled_items.c.feed == feed, these, old)
        connection.execute(touched.values(seen=format_instant(moment)))


def _forget(connection: Connection, feed: int, moment: datetime) -> None:
    mine = polled_items.c.feed == feed
    connection.execute(
        delete(polled_items).where(mine, polled_items.c.seen < format_instant(moment - REMEMBERED))
    )
    beyond = (
        select(polled_items.c.item).where(mine).order_by(polled_items.c.seen.desc(), polled_items.c.item)
    ).offset(MOST)
    connection.execute(delete(polled_items).where(mine, polled_items.c.item.in_(beyond)))


def forget_items(connection: Connection, feed: int) -> None:
    """Delete the items of a feed."""
    connection.execute(delete(polled_items).where(polled_items.c.feed == feed))
