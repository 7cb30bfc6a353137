"""Items that were seen in feeds: what is new or edited goes into the journal, each once.

Bounded: an item that has left its feed is forgotten after `REMEMBERED`, and so is the oldest one beyond `MOST` of a
feed. One that comes back after that is known by its id in the journal, unless it was edited.
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
"""How exactly it is known when an item was last there: writing it down at each poll would be most of the work."""


class SeenItem(NamedTuple):
    """What is known of an item: the hash of its content, and its publication, if it could be published."""

    hash: str
    publication: str | None


@dataclass(frozen=True, slots=True)
class ItemOutcome:
    """What becomes of a new or edited item: a publication, or the letter that says why not.

    `otherwise` is published if an edited item says again what it said once: the first id is taken then.
    """

    item: str
    hash: str
    publication: Publication | None
    otherwise: Publication | None = None
    letter: DeadLetter | None = None


ItemPlanner = Callable[[Mapping[str, SeenItem]], Sequence[ItemOutcome]]


class ItemCounts(NamedTuple):
    """How many items were there, and how many of them were new, edited and refused."""

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
    """Publish and remember, in the caller's transaction, which has locked the feed."""
    seen = _seen(connection, feed, items)
    taking = make(seen)
    published = _publish(connection, taking)
    add_dead_letters(connection, source, [each.letter for each in taking if each.letter])
    _remember(connection, feed, taking, published, format_instant(moment))
    _touch(connection, feed, items, seen, moment)
    _forget(connection, feed, moment)
    told = [item for item, (_, new) in published.items() if new]
    edited = sum(1 for item in told if item in seen and seen[item].publication is not None)
    return ItemCounts(len(items), len(told) - edited, edited, sum(1 for each in taking if each.letter))


def _seen(connection: Connection, feed: int, items: Mapping[str, str]) -> dict[str, SeenItem]:
    wanted = select(polled_items.c.item, polled_items.c.hash, polled_items.c.publication)
    mine = wanted.where(polled_items.c.feed == feed)
    rows = bulk.select_among(connection, mine, polled_items.c.item, list(items))
    return {item: SeenItem(hash, publication) for item, hash, publication in rows}


def _publish(connection: Connection, taking: Sequence[ItemOutcome]) -> dict[str, tuple[str, bool]]:
    """The id of each item's publication, and whether it is new.

    An id that is taken is no problem: it is made of feed, item and content, so the same was published before.
    """
    good = [(each, each.publication) for each in taking if each.publication]
    outcomes = append_publications(connection, [publication for _, publication in good]) if good else []
    made: dict[str, tuple[str, bool]] = {}
    for (each, publication), outcome in zip(good, outcomes, strict=True):
        new = isinstance(outcome, AppendResult) and outcome.new
        if not new and each.otherwise:
            publication = each.otherwise
            [again] = append_publications(connection, [publication])
            new = isinstance(again, AppendResult) and again.new
        made[each.item] = publication.id, new
    return made


def _remember(
    connection: Connection,
    feed: int,
    taking: Sequence[ItemOutcome],
    published: Mapping[str, tuple[str, bool]],
    moment: str,
) -> None:
    keys = [each.item for each in taking]
    for piece in bulk.iter_chunks(keys, bulk.KEYS):
        these = polled_items.c.item.in_(piece)
        connection.execute(delete(polled_items).where(polled_items.c.feed == feed, these))
    ids = {item: id for item, (id, _) in published.items()}
    rows = [(feed, each.item, each.hash, ids.get(each.item), moment) for each in taking]
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
    """Forget what was seen in a feed."""
    connection.execute(delete(polled_items).where(polled_items.c.feed == feed))
