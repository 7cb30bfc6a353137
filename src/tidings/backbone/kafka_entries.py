"""Entries of the log as messages of Kafka: the value is the body, the key the URI; headers say what it does.

Whoever looks at the topic with Kafka's own tools sees the documents as they were registered, below their URIs.
"""

from __future__ import annotations

from typing import Any

from confluent_kafka import Message

from tidings.errors import InputError
from tidings.metadata.log import Draft, Entry, What
from tidings.store.encoding import storable

WHAT, MEDIA_TYPE = "tidings-what", "tidings-media-type"


def to_message(draft: Draft) -> dict[str, Any]:
    """A draft as what `produce` takes. It is compared with what stores keep, so texts are as they keep them."""
    headers = [(WHAT, draft.what.value.encode()), (MEDIA_TYPE, storable(draft.media_type).encode())]
    return {"key": storable(draft.uri).encode(), "value": draft.body, "headers": headers}


def from_message(message: Message, position: int) -> Entry:
    """The entry that a message is. Anything else is refused: who passed it over would have another log than others."""
    headers: dict[str, Any] = dict(message.headers() or ())
    try:
        what, media_type = What(headers[WHAT].decode()), headers[MEDIA_TYPE].decode()
        return Entry(position, what, (message.key() or b"").decode(), media_type, message.value() or b"")
    except (KeyError, ValueError, AttributeError) as error:
        received = f"offset {position - 1}: {(message.value() or b'')[:100]!r}"
        hint = "somebody else writes to the topic: begin anew with another one that is for providers alone"
        raise InputError("this is no entry of a log", received=received, hint=hint) from error
