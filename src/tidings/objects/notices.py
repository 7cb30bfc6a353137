"""From a change to what each subscriber is told: once, whatever the number of reasons, and with all of them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from hashlib import blake2b
from typing import Any

from tidings.model import OBJECT_NOTIFICATION_PREFIX
from tidings.objects.model.class_model import ChangeKind, Model
from tidings.objects.object_change import ObjectChange
from tidings.objects.propagation import Truncation
from tidings.objects.reasons import Object, Reason, find_reasons

CHANGE_VERBS = {
    ChangeKind.INSERT: "inserted",
    ChangeKind.UPDATE: "updated",
    ChangeKind.DELETE: "deleted",
    ChangeKind.LINK: "linked",
    ChangeKind.UNLINK: "unlinked",
}


@dataclass(frozen=True, slots=True)
class Notice:
    """What one subscriber is told about one change. `because` has for each reason its text and the object in it that
    concerns them; `changed` is what happened, fit for JSON."""

    id: str
    subscriber: str
    object: str
    kind: str
    because: tuple[tuple[str, str], ...]
    changed: Mapping[str, Any]


def build_notices(
    source: str, model: Model, noticed: ObjectChange, labels: Mapping[Object, str], tell_author: bool = False
) -> Iterator[Notice]:
    """In the order of subscribers. Who made the change knows of it, and is left out unless `tell_author`."""
    known = {**_labels(model, noticed), **labels}
    changed = _changed(noticed, known)
    found = find_reasons(noticed.change.object, noticed.told.steps, noticed.told.hits)
    for who in sorted(found, key=lambda one: (one.family, str(one.key))):
        if who != noticed.author or tell_author:
            yield Notice(
                _id(source, noticed.id, who),
                str(who),
                str(noticed.change.object),
                CHANGE_VERBS[noticed.change.kind],
                tuple(_because(each, known) for each in found[who]),
                changed,
            )


def _labels(model: Model, noticed: ObjectChange) -> Mapping[Object, str]:
    """Objects that are gone have no row to look in: what is known of them is what they were.

    Their class may be gone from the model, too, if that is newer than the change.
    """
    if noticed.cls not in model.classes:
        return {}
    values = {**(noticed.before or {}), **(noticed.after or {})}
    said = values.get(model.label_of(noticed.cls) or "")
    return {noticed.change.object: str(said)} if said is not None else {}


def _because(reason: Reason, labels: Mapping[Object, str]) -> tuple[str, str]:
    return reason.shown(lambda one: labels.get(one, str(one)), to_them=True), str(reason.hit.object)


def _changed(noticed: ObjectChange, labels: Mapping[Object, str]) -> Mapping[str, Any]:
    one = noticed.change.object
    said = {
        "object": str(one),
        "class": noticed.cls,
        "label": labels.get(one, str(one)),
        "change": noticed.id,
        "at": noticed.at,
        "attributes": sorted(noticed.change.attributes),
        "before": noticed.before,
        "after": noticed.after,
    }
    if noticed.association is not None:
        other = noticed.other
        said |= {
            "association": noticed.association,
            "other": str(other),
            "other_label": _known(other, labels),
        }
    if noticed.author is not None:
        said |= {"author": str(noticed.author), "author_label": _known(noticed.author, labels)}
    if noticed.told.cuts:
        said["limits"] = [_limit(cut) for cut in sorted(noticed.told.cuts, key=lambda cut: cut.what)]
    return said


def _known(one: Object | None, labels: Mapping[Object, str]) -> str | None:
    return None if one is None else labels.get(one, str(one))


def _limit(cut: Truncation) -> str:
    """What people read where a limit was reached."""
    if cut.what == "steps":
        return f"followed for {cut.most:,} steps only: {cut.found:,} more lead on"
    return f"told to the first {cut.most:,} of {cut.found:,} only"


def _id(source: str, change: str, who: Object) -> str:
    """Lengths keep apart what would read the same when put together."""
    named = f"{len(source)}:{source}{len(change)}:{change}{who}".encode()
    return OBJECT_NOTIFICATION_PREFIX + blake2b(named, digest_size=10).hexdigest()
