"""Notifications as a client has them: the CloudEvents of the service as typed values."""

from __future__ import annotations

from base64 import b64decode
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any
from urllib.parse import unquote

from tidings.model import Notification, Reason

_SOURCE = "/subscriptions/"


@dataclass(frozen=True, slots=True)
class Content:
    """What was published: JSON as its value, other texts as text, and what is no UTF-8 as bytes."""

    id: str
    media_type: str
    body: Any


@dataclass(frozen=True, slots=True)
class ReceivedNotification(Notification):
    """A notification; `sequence` is its cursor. `content` is the publication, if it is one and is not too large. One of
    the kind `withheld` has neither: its subscriber may not see the publication any more.
    """

    content: Content | None = None


@dataclass(frozen=True, slots=True)
class NotificationPage:
    """Some notifications, the cursor after which the next page begins, and where the subscriber stands."""

    notifications: tuple[ReceivedNotification, ...]
    cursor: int
    last: int
    acknowledged: int


@dataclass(frozen=True, slots=True)
class AckPosition:
    """Up to which number everything is acknowledged, and the last number there is."""

    acknowledged: int
    last: int
    time: str | None = None

    @property
    def unread(self) -> int:
        return self.last - self.acknowledged


def parse_notification(event: Mapping[str, Any]) -> ReceivedNotification:
    """The notification of a CloudEvent."""
    data = event["data"]
    return ReceivedNotification(
        id=event["id"],
        subscriber=data["subscriber"],
        sequence=data["sequence"],
        subscription=unquote(event["source"].removeprefix(_SOURCE)),
        publication=event.get("subject", ""),
        because=tuple(Reason(one["predicate"], one["value"], one["at"]) for one in data["because"]),
        time=event["time"],
        kind=data["kind"],
        bindings=data["bindings"],
        content=parse_content(data["publication"]) if data["publication"] else None,
    )


def parse_content(given: Mapping[str, Any]) -> Content:
    """What was published, as a value, a text or bytes."""
    coded = given.get("body_base64")
    body = b64decode(coded) if coded is not None else given.get("body")
    return Content(given["id"], given["media_type"], body)


def parse_notification_page(answer: Mapping[str, Any]) -> NotificationPage:
    told = tuple(map(parse_notification, answer["notifications"]))
    return NotificationPage(told, answer["cursor"], answer["last"], answer["acknowledged"])


def parse_position(answer: Mapping[str, Any]) -> AckPosition:
    return AckPosition(answer["acknowledged"], answer["last"], answer["time"])
