"""A change with all that follows from it, as each of the implementations gives it: triggers, the listener, Spark."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from hashlib import blake2b
from typing import Any

from tidings.objects.propagation import Change, PropagationResult
from tidings.objects.reasons import Object


@dataclass(frozen=True, slots=True)
class ObjectChange:
    """What happened and who is told of it. Keys are texts.

    `id` says which change of its source it is, and is the same when the change is read again after a crash. `before`
    and `after` have values of attributes: of an update those that are another, otherwise all. Of a link, `association`
    and `other` say with what; `author` is who made the change, if the program said so.
    """

    id: str
    at: str
    cls: str
    change: Change
    told: PropagationResult
    before: Mapping[str, Any] | None = None
    after: Mapping[str, Any] | None = None
    association: str | None = None
    other: Object | None = None
    author: Object | None = None

    def objects(self) -> frozenset[Object]:
        """All that a text about it may name."""
        more = {self.other, self.author} - {None}
        named = self.told.reached | {hit.subscriber for hit in self.told.hits}
        return named | frozenset(each for each in more if each is not None)


# A change as an event, for subscriptions that ask about values: `class = 'Course' and now.title = 'Trees'`.
#
# `before` and `after` are what the change said. Of an update that is what became another, so `now` has all values of
# the object, as they are when it is told: those of a moment later, perhaps, and none if it is gone by then.


def build_event(source: str, noticed: ObjectChange, now: Mapping[str, Any] | None = None) -> dict[str, Any]:
    """What there is not is left out: an insertion has no `before`, a deletion no `after`, a link neither."""
    change = noticed.change
    said = {
        "source": source,
        "class": noticed.cls,
        "key": str(change.object.key),
        "kind": change.kind.value,
        "at": noticed.at,
        "changed": sorted(change.attributes),
        "before": noticed.before,
        "after": noticed.after,
        "now": now,
        "association": noticed.association,
        "other": noticed.other and str(noticed.other),
        "author": noticed.author and str(noticed.author),
    }
    return {name: value for name, value in said.items() if value or name == "changed"}


def derive_event_id(source: str, noticed: ObjectChange) -> str:
    """The same change is the same publication. Lengths keep apart what would read the same when put together."""
    named = f"{len(source)}:{source}{noticed.id}".encode()
    return "c-" + blake2b(named, digest_size=10).hexdigest()


def encode_event(source: str, noticed: ObjectChange, now: Mapping[str, Any] | None = None) -> bytes:
    """The bytes that are published."""
    return json.dumps(build_event(source, noticed, now), ensure_ascii=False).encode()
