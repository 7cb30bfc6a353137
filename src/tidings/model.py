"""The words everything shares: publications, subscriptions, matches, notifications. Frozen values, no behaviour."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, field
from types import NoneType
from typing import Any

from tidings.core.arguments import check_fields
from tidings.values import Scalar


@dataclass(frozen=True, slots=True)
class Subscription:
    """What somebody asked for: a text in a language.

    `within` is the delay they accept, in seconds: what is found is gathered and handed over together, no later than
    that. Without one they are told at once.
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
    """What somebody published: bytes of a kind, and its place in the journal once it has one.

    `audience` is a label: only those see it who were granted that label. Without one it is for everybody.
    `traceparent` is the trace in which it was made, if there is one: what is published together, for the sake of one
    commit, may come from several. `source` is that of a CloudEvent which goes by its own id: others may count from one,
    too.
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
    """One predicate that held, the value that made it hold, and where that value stands in the publication."""

    predicate: str
    value: Scalar | None
    at: str


MATCHED, WITHHELD, SUSPENDED = "matched", "withheld", "suspended"
"""Kinds of notifications: a publication matched; it did, but its subscriber may not see it any more; the subscription
was paused by the service, because it exceeded its budget again and again."""


OBJECT_NOTIFICATION_PREFIX = "o-"
"""Ids of notifications about changed objects start with it, and no other ids do."""


@dataclass(frozen=True, slots=True)
class Notification:
    """A match made durable: it has an id, and a place in its subscriber's gapless sequence.

    One that is withheld keeps its place and tells nothing: no publication, no reasons, no bindings.
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
    """Something that was refused: a subscription or a publication, with the reason and the facts behind it."""

    what: str
    id: str
    reason: str
    facts: dict[str, object]


def _is_text(value: object) -> bool:
    return isinstance(value, str)


def notification_id(publication: str, subscription: str) -> str:
    """The same pair always gives the same id: repeating work after a crash cannot notify twice."""
    pair = f"{len(publication)}:{publication}{subscription}".encode()
    return "n-" + hashlib.blake2b(pair, digest_size=10).hexdigest()
