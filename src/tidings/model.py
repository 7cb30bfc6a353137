"""Shared values: publications, subscriptions, matches, notifications. Frozen, without behaviour."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, field
from types import NoneType
from typing import Any

from tidings.core.arguments import check_fields
from tidings.values import Scalar


@dataclass(frozen=True, slots=True)
class Subscription:
    """A standing query: a text in a language.

    `within` is the accepted delay in seconds: notifications are batched and delivered together, no later than
    that. Without it they are delivered at once.
    """

    id: str
    subscriber: str
    language: str
    text: str
    within: int | None = None

    def __post_init__(self) -> None:
        texts = (self.id, self.subscriber, self.language, self.text)
        if not all(map(_is_text, texts)) or not isinstance(self.within, int | None):
            check_fields(self, id=str, subscriber=str, language=str, text=str, within=(int, NoneType))


@dataclass(frozen=True, slots=True)
class Publication:
    """A published body with its media type, and its position in the journal once it has one.

    `audience` is a label: only subscribers with a grant for it see the publication; without one, everybody
    does. `traceparent` is the trace of the publisher; publications of one commit may belong to several.
    `source` is the source of a CloudEvent that uses its own id: other sources may use the same ids.
    """

    id: str
    media_type: str
    body: bytes
    position: int | None = None
    audience: str | None = None
    traceparent: str | None = field(default=None, compare=False, repr=False)
    source: str | None = field(default=None, compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class Match:
    """A publication satisfies a subscription."""

    publication: str
    subscription: str
    bindings: dict[str, Any] | None = None


@dataclass(frozen=True, slots=True)
class Reason:
    """One predicate that held, the value that satisfied it, and the place of that value in the publication."""

    predicate: str
    value: Scalar | None
    at: str


MATCHED, WITHHELD, SUSPENDED = "matched", "withheld", "suspended"
"""Kinds of notifications: a publication matched; it did, but its subscriber may no longer see it; the service
paused the subscription, because it exceeded its budget repeatedly.
"""


OBJECT_NOTIFICATION_PREFIX = "o-"
"""Prefix of the ids of notifications about changed objects, and of no other ids."""


@dataclass(frozen=True, slots=True)
class Notification:
    """A durable match: it has an id, and a place in the gapless sequence of its subscriber.

    A withheld one keeps its place without any content: no publication, no reasons, no bindings.
    """

    id: str
    subscriber: str
    sequence: int
    subscription: str
    publication: str
    because: tuple[Reason, ...]
    time: str
    kind: str = MATCHED
    bindings: dict[str, Any] | None = None


@dataclass(frozen=True, slots=True)
class Reject:
    """A rejected subscription or publication, with the reason and the facts behind it."""

    what: str
    id: str
    reason: str
    facts: dict[str, object]


def _is_text(value: object) -> bool:
    return isinstance(value, str)


CONTENT_ID_BYTES = 16


def content_id(body: bytes, audience: str | None = None) -> str:
    """Return the id of a publication that has none: a digest of its content, the same in repeated work."""
    label = b"" if audience is None else audience.encode("utf-8", "surrogatepass")
    key = hashlib.blake2b(label, digest_size=32).digest() if label else b""
    return hashlib.blake2b(body, digest_size=CONTENT_ID_BYTES, key=key).hexdigest()


def notification_id(publication: str, subscription: str) -> str:
    """Return the id of a notification, which depends on the pair only: repeated work cannot notify twice."""
    pair = f"{len(publication)}:{publication}{subscription}".encode()
    return "n-" + hashlib.blake2b(pair, digest_size=10).hexdigest()
