"""A change with everything that follows from it, as triggers, the session listener and Spark report it."""

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
    """A change and its propagation; keys of objects are strings.

    `id` identifies the change within its source and stays the same when it is read again after a crash. `before` and
    `after` have values of attributes: of an update only those that differ, otherwise all. For links, `association` and
    `other` give the association and the object at its other end. `author` made the change, if the program set one.
    """

    id: str
    at: str
    cls: str
    change: Change
    propagation: PropagationResult
    before: Mapping[str, Any] | None = None
    after: Mapping[str, Any] | None = None
    association: str | None = None
    other: Object | None = None
    author: Object | None = None

    def objects(self) -> frozenset[Object]:
        """Return all objects that a text about the change may mention."""
        mentioned = self.propagation.reached | {hit.subscriber for hit in self.propagation.hits}
        return mentioned | frozenset(each for each in (self.other, self.author) if each is not None)


# Changes are also published as events, for subscriptions on values: `class = 'Course' and now.title = 'Trees'`.


def build_event(
    source: str, object_change: ObjectChange, now: Mapping[str, Any] | None = None
) -> dict[str, Any]:
    """Build the event of a change, without absent fields: an insertion has no `before`, a link neither.

    `before` and `after` of an update have only the attributes that differ. `now` has all values of the object as they
    are when the event is published: possibly a moment later, and none if the object is gone by then.
    """
    change = object_change.change
    fields = {
        "source": source,
        "class": object_change.cls,
        "key": str(change.object.key),
        "kind": change.kind.value,
        "at": object_change.at,
        "changed": sorted(change.attributes),
        "before": object_change.before,
        "after": object_change.after,
        "now": now,
        "association": object_change.association,
        "other": object_change.other and str(object_change.other),
        "author": object_change.author and str(object_change.author),
    }
    return {name: value for name, value in fields.items() if value or name == "changed"}


def derive_event_id(source: str, object_change: ObjectChange) -> str:
    """Derive the id of a change's event: publishing a change twice gives one publication.

    The length prefix keeps apart a source and a change that concatenate to the same text as another pair.
    """
    identity = f"{len(source)}:{source}{object_change.id}".encode()
    return "c-" + blake2b(identity, digest_size=10).hexdigest()


def encode_event(source: str, object_change: ObjectChange, now: Mapping[str, Any] | None = None) -> bytes:
    """Encode the event of a change as JSON."""
    return json.dumps(build_event(source, object_change, now), ensure_ascii=False).encode()
