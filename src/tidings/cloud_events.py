"""A notification as a CloudEvent: the same wherever it goes, to a page, a stream, a webhook or a topic.

    {"specversion": "1.0", "id": "n-5d21", "type": "tidings.notification", "source": "/subscriptions/s-7f3a",
     "subject": "p-91c0", "time": "...", "datacontenttype": "application/json",
     "data": {"subscriber": "ana", "sequence": 1, "kind": "matched",
              "because": [{"predicate": "price < 200", "value": 180, "at": "/price"}], "bindings": null,
              "publication": {"id": "p-91c0", "media_type": "application/json", "body": {"price": 180}}}}

One that is withheld, because its subscriber may not see the publication any more, has no subject and says so in its
`kind`.

The source is that of CloudEvents, whose `id` is unique within it: a notification's id is unique everywhere.
"""

from __future__ import annotations

import json
from base64 import b64encode
from typing import Any
from urllib.parse import quote

from tidings.model import MATCHED, WITHHELD, Notification, Publication

TYPE = "tidings.notification"
MEDIA_TYPE = "application/cloudevents+json"

LARGEST = 500_000
"""Bytes of a publication that goes with its notification. Brokers take a megabyte by default, and base64 is longer."""

_encode = json.JSONEncoder(separators=(",", ":"), allow_nan=False).encode


def cloud_event(
    told: Notification, publication: Publication | None, largest: int = LARGEST
) -> dict[str, Any]:
    """The CloudEvent of a notification, with its publication if there is one and it is not too large."""
    return {
        "specversion": "1.0",
        "id": told.id,
        "type": TYPE,
        "source": f"/subscriptions/{quote(told.subscription, safe='')}",
        **({} if told.kind == WITHHELD else {"subject": told.publication}),
        "time": told.time,
        "datacontenttype": "application/json",
        "data": {
            "subscriber": told.subscriber,
            "sequence": told.sequence,
            "kind": told.kind,
            "because": [
                {"predicate": one.predicate, "value": one.value, "at": one.at} for one in told.because
            ],
            "bindings": told.bindings,
            "publication": carried(publication, largest) if told.kind == MATCHED else None,
        },
    }


def text_of(event: dict[str, Any]) -> str:
    """A CloudEvent as one line of ASCII: half a surrogate pair, which JSON may hold and UTF-8 not, is escaped."""
    return _encode(event)


def text_with(told: Notification, carried: str) -> str:
    """The same with a publication that is a text already: one that goes to thousands is written once. A resource or an
    object that is called as a publication is another thing.
    """
    carried = carried if told.kind == MATCHED else "null"
    return f"{_encode(cloud_event(told, None))[: -len(_END)]}{carried}}}}}"


_END = "null}}"
"""How the text of a CloudEvent without a publication ends: that is its last member, on purpose."""


def carried_text(publication: Publication | None, largest: int = LARGEST) -> str:
    """A publication as `text_with` takes it."""
    return _encode(carried(publication, largest))


def carried(publication: Publication | None, largest: int) -> dict[str, Any] | None:
    """Nothing stands for what is not in the journal (resources, objects) and for what is too large."""
    if publication is None or len(publication.body) > largest:
        return None
    return {"id": publication.id, "media_type": publication.media_type} | _body(publication)


def _body(publication: Publication) -> dict[str, Any]:
    """JSON as its value, other texts as texts, and what is no UTF-8 as `body_base64`: under another name, as in
    CloudEvents, so that nobody takes one for the other.
    """
    try:
        text = publication.body.decode()
    except UnicodeDecodeError:
        return {"body_base64": b64encode(publication.body).decode("ascii")}
    return {"body": _value(text) if _is_json(publication.media_type) else text}


def _is_json(media_type: str) -> bool:
    return media_type == "application/json" or media_type.endswith("+json")


def _value(text: str) -> Any:
    """What the journal took is JSON. What was put there past every check, or is nested too deeply, goes as it is."""
    try:
        value = json.loads(text.removeprefix("\ufeff"))
        _encode(value)
    except (ValueError, RecursionError):
        return text
    return value
