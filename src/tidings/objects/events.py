"""A change as an event, for subscriptions that ask about values: `class = 'Course' and now.title = 'Trees'`.

`before` and `after` are what the change said. Of an update that is what became another, so `now` has all values of the
object, as they are when it is told: those of a moment later, perhaps, and none if it is gone by then.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from hashlib import blake2b
from typing import Any

from tidings.objects.noticed import Noticed


def event_of(source: str, noticed: Noticed, now: Mapping[str, Any] | None = None) -> dict[str, Any]:
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


def event_id(source: str, noticed: Noticed) -> str:
    """The same change is the same publication. Lengths keep apart what would read the same when put together."""
    named = f"{len(source)}:{source}{noticed.id}".encode()
    return "c-" + blake2b(named, digest_size=10).hexdigest()


def event_body(source: str, noticed: Noticed, now: Mapping[str, Any] | None = None) -> bytes:
    """The bytes that are published."""
    return json.dumps(event_of(source, noticed, now), ensure_ascii=False).encode()
