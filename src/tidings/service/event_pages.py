"""Pages of notifications as CloudEvents, rendered once for all readers.

A page is limited in notifications and in bytes and has the cursor of the next one. A reader holds one page in memory,
however many notifications there are and however large their publications.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from tidings.cloud_events import LARGEST, MEDIA_TYPE, TYPE, carried_text, cloud_event, text_of, text_with
from tidings.errors import InputError
from tidings.model import WITHHELD, Notification
from tidings.store.notifications.acknowledgements import SubscriberCursor
from tidings.store.store import Store

__all__ = ["LARGEST", "MEDIA_TYPE", "TYPE", "build_cloud_events", "cloud_event", "text_of"]


MAX_PAGE_BYTES = 4_000_000
"""Limit of a page, which always has at least one notification."""

SCAN = 10_000
"""Notifications that are scanned for those of one subscription; the page ends there, even if it is empty."""

MAX_PUBLICATIONS_IN_MEMORY = 50
"""Publications in memory at the same time."""


@dataclass(frozen=True, slots=True)
class EventLine:
    """A notification as a CloudEvent, a line of JSON."""

    subscriber: str
    sequence: int
    subscription: str
    text: str
    labelled: bool = False
    """Whether it has an audience label: access is then checked whenever it is sent."""


@dataclass(frozen=True, slots=True)
class EventPage:
    """Lines, and the cursor after which the next page begins; it may advance on an empty page."""

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
    """Read a subscriber's notifications after a cursor, of all subscriptions or of one."""
    store.notifications.hand_over(subscriber)
    upto = min(after + SCAN, store.notifications.last_sequence(subscriber))
    notifications = store.notifications.read_some(subscriber, after, upto, limit, subscription)
    lines = tuple(limit_bytes(render_lines(store, notifications), most_bytes))
    is_cut = len(lines) < len(notifications) or len(notifications) == limit
    return EventPage(lines, lines[-1].sequence if is_cut else max(after, upto))


def limit_bytes(lines: Iterable[EventLine], most_bytes: int) -> Iterator[EventLine]:
    """Yield lines until they exceed `most_bytes` together, but at least the first one."""
    size = 0
    for line in lines:
        size += len(line.text)
        if size > most_bytes and size > len(line.text):
            return
        yield line


def render_lines(
    store: Store, notifications: Iterable[Notification], largest: int = LARGEST
) -> Iterator[EventLine]:
    """Render notifications as lines, in order.

    Within a window of publications that are in memory together, each is read and rendered once.
    """
    for window in _windows(notifications):
        ids = {notification.publication for notification in window}
        publications = store.journal.find_all(ids, largest)
        labelled = {id for id, publication in publications.items() if publication.audience is not None}
        if larger := ids - publications.keys():
            labelled |= store.audiences.labelled(larger)
        carried = {id: carried_text(publication, largest) for id, publication in publications.items()}
        for notification in window:
            yield EventLine(
                notification.subscriber,
                notification.sequence,
                notification.subscription,
                text_with(notification, carried.get(notification.publication, "null")),
                notification.publication in labelled or notification.kind == WITHHELD,
            )


def _windows(notifications: Iterable[Notification]) -> Iterator[list[Notification]]:
    """Yield notifications of as many publications as may be in memory together."""
    window: list[Notification] = []
    ids: set[str] = set()
    for notification in notifications:
        if len(ids) == MAX_PUBLICATIONS_IN_MEMORY and notification.publication not in ids:
            yield window
            window, ids = [], set()
        window.append(notification)
        ids.add(notification.publication)
    if window:
        yield window


def resolve_cursor(current: SubscriberCursor, after: int | None) -> int:
    """Return where a reader begins: at the cursor that it names, or after its acknowledged notifications.

    A cursor beyond the last notification comes from another store, or from before a backup was restored. It is an
    error, because the reader would miss the notifications up to it.
    """
    if after is None:
        return current.acknowledged
    if not 0 <= after <= current.last:
        raise InputError(
            "there is no such cursor",
            where="after",
            received=str(after),
            accepted=f"0 to {current.last}",
            hint="start at 0, or leave it out to continue after the last acknowledged notification",
        )
    return after


# Notifications as CloudEvents, each with its publication from the journal.


def build_cloud_events(
    store: Store, notifications: Sequence[Notification], largest: int = LARGEST
) -> list[dict[str, Any]]:
    """Build the CloudEvents of notifications, in order. Publications are read together, except those too large."""
    ids = {notification.publication for notification in notifications}
    publications = store.journal.find_all(ids, largest)
    return [cloud_event(each, publications.get(each.publication), largest) for each in notifications]
