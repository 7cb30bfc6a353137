"""Pages of notifications as CloudEvents, written once for everybody who reads them.

A page has a number of notifications and of bytes at most, and says from where to go on. So whoever reads page after
page holds one of them, however many notifications there are and however large their publications.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from tidings.cloud_events import LARGEST, MEDIA_TYPE, TYPE, carried_text, cloud_event, text_of, text_with
from tidings.errors import InputError
from tidings.model import WITHHELD, Notification
from tidings.store.acknowledgements import SubscriberCursor
from tidings.store.store import Store

__all__ = ["LARGEST", "MEDIA_TYPE", "TYPE", "build_cloud_events", "cloud_event", "text_of"]


MAX_PAGE_BYTES = 4_000_000
"""Of a page; one notification it has in any case."""

SCAN = 10_000
"""How many notifications are looked through for those of one subscription; the page ends there, also an empty one."""

MAX_PUBLICATIONS_IN_MEMORY = 50
"""How many publications are in memory together."""


@dataclass(frozen=True, slots=True)
class EventLine:
    """A notification as a CloudEvent, a line of JSON."""

    subscriber: str
    sequence: int
    subscription: str
    text: str
    labelled: bool = False
    """Whether not everybody may see it: then who may is looked at whenever it is sent."""


@dataclass(frozen=True, slots=True)
class EventPage:
    """Some lines, and the cursor after which the next page begins; it may have moved though there are no lines."""

    lines: tuple[EventLine, ...]
    cursor: int

    @property
    def size(self) -> int:
        return sum(len(line.text) for line in self.lines)

    @property
    def labelled(self) -> bool:
        return any(line.labelled for line in self.lines)


def read_page(
    store: Store,
    subscriber: str,
    after: int,
    limit: int,
    subscription: str | None = None,
    most_bytes: int = MAX_PAGE_BYTES,
) -> EventPage:
    """A subscriber's notifications after a cursor, of one subscription if it is named."""
    store.notifications.hand_over(subscriber)
    upto = min(after + SCAN, store.notifications.last_sequence(subscriber))
    told = store.notifications.read_some(subscriber, after, upto, limit, subscription)
    lines = tuple(limit_bytes(render_lines(store, told), most_bytes))
    is_cut = len(lines) < len(told) or len(told) == limit
    return EventPage(lines, lines[-1].sequence if is_cut else max(after, upto))


def limit_bytes(lines: Iterable[EventLine], most_bytes: int) -> Iterator[EventLine]:
    """The first of them, as many as have so many bytes together, and the very first one in any case."""
    size = 0
    for line in lines:
        size += len(line.text)
        if size > most_bytes and size > len(line.text):
            return
        yield line


def render_lines(store: Store, told: Iterable[Notification], largest: int = LARGEST) -> Iterator[EventLine]:
    """Notifications as lines, in order. A publication is read and written once for all who are told of it, as long as
    not too many others come in between: these are in memory together.
    """
    for some in _windows(told):
        named = {one.publication for one in some}
        found = store.journal.find_all(named, largest)
        labelled = {id for id, publication in found.items() if publication.audience is not None}
        if larger := named - found.keys():
            labelled |= store.audiences.labelled(larger)
        carried = {id: carried_text(publication, largest) for id, publication in found.items()}
        for one in some:
            text = text_with(one, carried.get(one.publication, "null"))
            is_labelled = one.publication in labelled or one.kind == WITHHELD
            yield EventLine(one.subscriber, one.sequence, one.subscription, text, is_labelled)


def _windows(told: Iterable[Notification]) -> Iterator[list[Notification]]:
    """Notifications of as many publications as may be in memory together."""
    some: list[Notification] = []
    ids: set[str] = set()
    for one in told:
        if len(ids) == MAX_PUBLICATIONS_IN_MEMORY and one.publication not in ids:
            yield some
            some, ids = [], set()
        some.append(one)
        ids.add(one.publication)
    if some:
        yield some


def resolve_cursor(standing: SubscriberCursor, after: int | None) -> int:
    """Where a reader begins: after the cursor it names, or after what it has acknowledged.

    A cursor that is ahead of everything is refused: what comes under the numbers in between would be missed. It is
    from another store, or from before a backup was restored.
    """
    if after is None:
        return standing.acknowledged
    if not 0 <= after <= standing.last:
        raise InputError(
            "there is no such cursor",
            where="after",
            received=str(after),
            accepted=f"0 to {standing.last}",
            hint="begin with 0, or without one: after what was acknowledged",
        )
    return after


# Notifications as CloudEvents, each with its publication from the journal.


def build_cloud_events(
    store: Store, told: Sequence[Notification], largest: int = LARGEST
) -> list[dict[str, Any]]:
    """The CloudEvents of notifications, in order. Publications are read at once, and those too large not at all."""
    found = store.journal.find_all({one.publication for one in told}, largest)
    return [cloud_event(one, found.get(one.publication), largest) for one in told]
