"""Messages to destinations: a notification as a CloudEvent, or several notifications as a digest.

A digest has the type `tidings.digest`, and an id derived from its first and last notification, which is the same for
every attempt. Duplicates are folded: notifications of publications with the same content, for the same reason, are one
item with a count and all sequence numbers.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any
from urllib.parse import quote

from tidings.cloud_events import cloud_event, text_of
from tidings.model import Notification, Publication
from tidings.store.notifications.subscription_entries import NumberedNotification

TYPE = "tidings.digest"

Publications = Mapping[str, Publication]


@dataclass(frozen=True)
class Item:
    """A notification of a message; `sequences` includes those of folded duplicates."""

    entry: NumberedNotification
    publication: Publication | None
    sequences: tuple[int, ...]


@dataclass(frozen=True)
class Message:
    """The entries `first` to `last` of a subscription as one CloudEvent, with the ids of their notifications."""

    id: str
    first: int
    last: int
    subscription: str
    ids: tuple[str, ...]
    items: tuple[Item, ...]
    event: dict[str, Any]
    is_digest: bool = False

    @cached_property
    def text(self) -> str:
        return text_of(self.event)


def build_message(entry: NumberedNotification, publication: Publication | None, largest: int) -> Message:
    """Build the message of one notification."""
    notification = entry.notification
    item = Item(entry, publication, (notification.sequence,))
    event = cloud_event(notification, publication, largest)
    id, subscription = notification.id, notification.subscription
    return Message(id, entry.number, entry.number, subscription, (id,), (item,), event)


def build_digest(
    entries: Sequence[NumberedNotification], publications: Publications, first: int, last: int, max_bytes: int
) -> Message:
    """Build a digest. Its items share `max_bytes` of publications equally."""
    items = fold_duplicates(entries, publications)
    notifications = [entry.notification for entry in entries]
    id = _digest_id(notifications[0], notifications[-1])
    largest = max_bytes // len(items)
    event = {
        "specversion": "1.0",
        "id": id,
        "type": TYPE,
        "source": f"/subscriptions/{quote(notifications[0].subscription, safe='')}",
        "time": notifications[-1].time,
        "datacontenttype": "application/json",
        "data": {
            "subscriber": notifications[0].subscriber,
            "count": len(notifications),
            "notifications": [_describe_item(item, largest) for item in items],
        },
    }
    ids = tuple(notification.id for notification in notifications)
    return Message(id, first, last, notifications[0].subscription, ids, items, event, is_digest=True)


def fold_duplicates(entries: Sequence[NumberedNotification], publications: Publications) -> tuple[Item, ...]:
    """Make items of entries in order, with duplicates at the place of the first one."""
    groups: dict[object, list[NumberedNotification]] = {}
    for entry in entries:
        groups.setdefault(_duplicate_key(entry.notification, publications), []).append(entry)
    return tuple(
        Item(
            group[0],
            publications.get(group[0].notification.publication),
            tuple(entry.notification.sequence for entry in group),
        )
        for group in groups.values()
    )


def _duplicate_key(notification: Notification, publications: Publications) -> object:
    """Return a key that duplicates share. A publication that was not read is a duplicate only of itself."""
    publication = publications.get(notification.publication)
    content = (publication.media_type, publication.body) if publication else notification.publication
    bindings = json.dumps(notification.bindings, sort_keys=True)
    return content, notification.kind, notification.because, bindings


def _describe_item(item: Item, largest: int) -> dict[str, Any]:
    event = cloud_event(item.entry.notification, item.publication, largest)
    return {"count": len(item.sequences), "sequences": list(item.sequences), "notification": event}


def _digest_id(first: Notification, last: Notification) -> str:
    return "g-" + hashlib.blake2b(f"{first.id} {last.id}".encode(), digest_size=10).hexdigest()
