"""What is sent: a notification as a CloudEvent, or several of them as a digest.

A digest has the type `tidings.digest` and an id that follows from the first and the last of its notifications, so that
it is the same however often it is tried. What says the same in it stands there once: notifications of publications with
the same content, for the same reason, are one item with a count and all their sequence numbers.
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
from tidings.store.entries import SubscriptionEntry

TYPE = "tidings.digest"

Publications = Mapping[str, Publication]


@dataclass(frozen=True)
class Item:
    """A notification, and those that say the same."""

    entry: SubscriptionEntry
    publication: Publication | None
    sequences: tuple[int, ...]


@dataclass(frozen=True)
class Message:
    """The entries `first` to `last` of a subscription as they are sent, under an id that stays; `ids` are those of
    their notifications.
    """

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


def build_message(entry: SubscriptionEntry, publication: Publication | None, largest: int) -> Message:
    """A notification by itself."""
    told = entry.notification
    item = Item(entry, publication, (told.sequence,))
    event = cloud_event(told, publication, largest)
    return Message(told.id, entry.number, entry.number, told.subscription, (told.id,), (item,), event)


def build_digest(
    entries: Sequence[SubscriptionEntry], found: Publications, first: int, last: int, most: int
) -> Message:
    """Several together, which carry `most` bytes of publications at most: each its share."""
    items, told = fold_duplicates(entries, found), [entry.notification for entry in entries]
    largest = most // len(items)
    event = {
        "specversion": "1.0",
        "id": _id(told[0], told[-1]),
        "type": TYPE,
        "source": f"/subscriptions/{quote(told[0].subscription, safe='')}",
        "time": told[-1].time,
        "datacontenttype": "application/json",
        "data": {
            "subscriber": told[0].subscriber,
            "count": len(told),
            "notifications": [_listed(item, largest) for item in items],
        },
    }
    ids = tuple(one.id for one in told)
    return Message(
        _id(told[0], told[-1]), first, last, told[0].subscription, ids, items, event, is_digest=True
    )


def fold_duplicates(entries: Sequence[SubscriptionEntry], found: Publications) -> tuple[Item, ...]:
    """The entries in order, those that say the same at the place of the first of them."""
    alike: dict[object, list[SubscriptionEntry]] = {}
    for entry in entries:
        alike.setdefault(_says(entry.notification, found), []).append(entry)
    return tuple(
        Item(
            group[0],
            found.get(group[0].notification.publication),
            tuple(one.notification.sequence for one in group),
        )
        for group in alike.values()
    )


def _says(told: Notification, found: Publications) -> object:
    """What two notifications have in common that say the same. What is not in the journal is like itself only."""
    publication = found.get(told.publication)
    content = (publication.media_type, publication.body) if publication else told.publication
    bindings = json.dumps(told.bindings, sort_keys=True)
    return content, told.kind, told.because, bindings


def _listed(item: Item, largest: int) -> dict[str, Any]:
    event = cloud_event(item.entry.notification, item.publication, largest)
    return {"count": len(item.sequences), "sequences": list(item.sequences), "notification": event}


def _id(first: Notification, last: Notification) -> str:
    return "g-" + hashlib.blake2b(f"{first.id} {last.id}".encode(), digest_size=10).hexdigest()
