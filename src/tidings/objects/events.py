"""A change as an event, for subscriptions that ask about values: `class = 'Course' and after.room = 'A1'`.

Only what the change itself said is in it. Rows could be read for the values that did not change, but later: they would
be those of another moment, and others again when the change is read a second time.
"""

from __future__ import annotations

import json
from hashlib import blake2b
from typing import Any

from tidings.objects.noticed import Noticed


def event_of(source: str, noticed: Noticed) -> dict[str, Any]:
    """`before` and `after` have the values; an insertion has no `before`, a deletion no `after`, a link neither."""
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
        "association": noticed.association,
        "other": noticed.other and str(noticed.other),
        "author": noticed.author and str(noticed.author),
    }
    return {name: value for name, value in said.items() if value or name == "changed"}


def event_id(source: str, noticed: Noticed) -> str:
    """The same change is the same publication. Lengths keep apart what would read the same when put together."""
    named = f"{len(source)}:{source}{noticed.id}".encode()
    return "c-" + blake2b(named, digest_size=10).hexdigest()


def event_body(source: str, noticed: Noticed) -> bytes:
    """The bytes that are published, always the same for the same change."""
    return json.dumps(event_of(source, noticed), ensure_ascii=False, sort_keys=True).encode()
