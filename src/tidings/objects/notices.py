"""Changes of objects with their consequences, their events, and notices: one per change and subscriber."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from hashlib import blake2b
from typing import Any

from tidings.model import OBJECT_NOTIFICATION_PREFIX
from tidings.objects.model.class_model import ChangeKind, Model
from tidings.objects.propagation import Change, Object, PropagationResult, Reason, Truncation, find_reasons


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
    are when the event is published: possibly a moment later, and none if the object was deleted by then.
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


CHANGE_VERBS = {
    ChangeKind.INSERT: "inserted",
    ChangeKind.UPDATE: "updated",
    ChangeKind.DELETE: "deleted",
    ChangeKind.LINK: "linked",
    ChangeKind.UNLINK: "unlinked",
}


@dataclass(frozen=True, slots=True)
class Notice:
    """Notification of one subscriber about one change.

    `because` has one pair per reason: its text, and the object in it that concerns the subscriber. `changed` describes
    the change in JSON values.
    """

    id: str
    subscriber: str
    object: str
    kind: str
    because: tuple[tuple[str, str], ...]
    changed: Mapping[str, Any]


def build_notices(
    source: str,
    model: Model,
    object_change: ObjectChange,
    labels: Mapping[Object, str],
    notify_author: bool = False,
) -> Iterator[Notice]:
    """Yield the notices of a change, sorted by subscriber; the author gets one only with `notify_author`."""
    change, result = object_change.change, object_change.propagation
    known_labels = {**_last_label(model, object_change), **labels}
    changed = _describe_change(object_change, known_labels)
    reasons = find_reasons(change.object, result.steps, result.hits)
    for subscriber in sorted(reasons, key=lambda each: (each.family, str(each.key))):
        if subscriber != object_change.author or notify_author:
            yield Notice(
                _notice_id(source, object_change.id, subscriber),
                str(subscriber),
                str(change.object),
                CHANGE_VERBS[change.kind],
                tuple(_explain(reason, known_labels) for reason in reasons[subscriber]),
                changed,
            )


def _last_label(model: Model, object_change: ObjectChange) -> Mapping[Object, str]:
    """Return the label that the change itself gives for its object: a deleted object has no row to look it up in.

    If the model is newer than the change, the class may have left the model, too.
    """
    if object_change.cls not in model.classes:
        return {}
    values = {**(object_change.before or {}), **(object_change.after or {})}
    label = values.get(model.label_of(object_change.cls) or "")
    return {object_change.change.object: str(label)} if label is not None else {}


def _explain(reason: Reason, labels: Mapping[Object, str]) -> tuple[str, str]:
    text = reason.render(lambda each: labels.get(each, str(each)), to_subscriber=True)
    return text, str(reason.hit.object)


def _describe_change(object_change: ObjectChange, labels: Mapping[Object, str]) -> Mapping[str, Any]:
    changed = object_change.change.object
    description = {
        "object": str(changed),
        "class": object_change.cls,
        "label": labels.get(changed, str(changed)),
        "change": object_change.id,
        "at": object_change.at,
        "attributes": sorted(object_change.change.attributes),
        "before": object_change.before,
        "after": object_change.after,
    }
    if object_change.association is not None:
        description |= {
            "association": object_change.association,
            "other": str(object_change.other),
            "other_label": _label(object_change.other, labels),
        }
    if object_change.author is not None:
        author = object_change.author
        description |= {"author": str(author), "author_label": _label(author, labels)}
    if truncations := object_change.propagation.truncations:
        description["limits"] = [
            _describe_truncation(each) for each in sorted(truncations, key=lambda each: each.what)
        ]
    return description


def _label(subject: Object | None, labels: Mapping[Object, str]) -> str | None:
    return None if subject is None else labels.get(subject, str(subject))


def _describe_truncation(truncation: Truncation) -> str:
    if truncation.what == "steps":
        return f"followed for {truncation.limit:,} steps only: {truncation.found:,} more lead on"
    return f"only the first {truncation.limit:,} of {truncation.found:,} subscribers were notified"


def _notice_id(source: str, change: str, subscriber: Object) -> str:
    """Hash with length prefixes, so that different parts never concatenate to the same text."""
    identity = f"{len(source)}:{source}{len(change)}:{change}{subscriber}".encode()
    return OBJECT_NOTIFICATION_PREFIX + blake2b(identity, digest_size=10).hexdigest()
