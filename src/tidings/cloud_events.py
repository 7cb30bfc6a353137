"""Notifications as CloudEvents: the same in pages, streams, webhooks and topics.

    {"specversion": "1.0", "id": "n-5d21", "type": "tidings.notification", "source": "/subscriptions/s-7f3a",
     "subject": "p-91c0", "time": "...", "datacontenttype": "application/json",
     "data": {"subscriber": "ana", "sequence": 1, "kind": "matched",
              "because": [{"predicate": "price < 200", "value": 180, "at": "/price"}], "bindings": null,
              "publication": {"id": "p-91c0", "media_type": "application/json", "body": {"price": 180}}}}

A withheld notification, whose subscriber may no longer see the publication, has no subject and states that in its
`kind`. In CloudEvents an `id` is unique within its source; the id of a notification is unique everywhere.
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
"""The most bytes of a publication in its notification. Brokers accept a megabyte by default, and Base64 is longer."""

_encode = json.JSONEncoder(separators=(",", ":"), allow_nan=False).encode


def cloud_event(
    notification: Notification, publication: Publication | None, largest: int = LARGEST
) -> dict[str, Any]:
    """Return the CloudEvent of a notification, with its publication if there is one and it is not too large."""
    return {
        "specversion": "1.0",
        "id": notification.id,
        "type": TYPE,
        "source": f"/subscriptions/{quote(notification.subscription, safe='')}",
        **({} if notification.kind == WITHHELD else {"subject": notification.publication}),
        "time": notification.time,
        "datacontenttype": "application/json",
        "data": {
            "subscriber": notification.subscriber,
            "sequence": notification.sequence,
            "kind": notification.kind,
            "because": [
                {"predicate": reason.predicate, "value": reason.value, "at": reason.at}
                for reason in notification.because
            ],
            "bindings": notification.bindings,
            "publication": carried(publication, largest) if notification.kind == MATCHED else None,
        },
    }


def text_of(event: dict[str, Any]) -> str:
    """Encode a CloudEvent as one line of ASCII; lone surrogates, which UTF-8 does not allow, are escaped."""
    return _encode(event)


def text_with(notification: Notification, carried: str) -> str:
    """Encode a notification with an encoded publication: one that goes to thousands is encoded once.

    Only matches carry it: a resource or an object may have the id of an unrelated publication.
    """
    carried = carried if notification.kind == MATCHED else "null"
    return f"{_encode(cloud_event(notification, None))[: -len(_END)]}{carried}}}}}"


_END = "null}}"
"""The end of the text of a CloudEvent without a publication, which is its last member on purpose."""


def carried_text(publication: Publication | None, largest: int = LARGEST) -> str:
    """Encode a publication for `text_with`."""
    return _encode(carried(publication, largest))


def carried(publication: Publication | None, largest: int) -> dict[str, Any] | None:
    """Return the publication as a member of a CloudEvent; None if there is none or it is too large."""
    if publication is None or len(publication.body) > largest:
        return None
    return {"id": publication.id, "media_type": publication.media_type} | _body(publication)


def _body(publication: Publication) -> dict[str, Any]:
    """Return JSON as its value, other text as a string, other bytes as `body_base64`, as in CloudEvents."""
    try:
        text = publication.body.decode()
    except UnicodeDecodeError:
        return {"body_base64": b64encode(publication.body).decode("ascii")}
    return {"body": _value(text) if _is_json(publication.media_type) else text}


def _is_json(media_type: str) -> bool:
    return media_type == "application/json" or media_type.endswith("+json")


def _value(text: str) -> Any:
    """Parse a body. One that is not JSON, or nested too deeply, stays a text."""
    try:
        value = json.loads(text.removeprefix("\ufeff"))
        _encode(value)
    except (ValueError, RecursionError):
        return text
    return value
