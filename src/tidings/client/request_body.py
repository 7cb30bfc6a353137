"""Bodies of requests: JSON values, and batches of lines that are sent together."""

from __future__ import annotations

import json
import secrets
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from tidings.core.arguments import each_is
from tidings.errors import DecodeProblem

JSON, LINES = "application/json", "application/x-ndjson"
CLOUD_EVENT_TYPES = frozenset({JSON, "application/cloudevents+json"})
BATCH_LINES, BATCH_BYTES = 1_000, 1_000_000
"""Limits of one request; the default limits of a service are higher."""

JSON_VALUES = "finite numbers, strings, booleans, None, lists, and dicts whose keys are strings"
JSON_HINT = "convert other values to text first, a datetime with isoformat()"

Body = bytes | str | Mapping[str, Any] | Sequence[Any]

SubscriptionRequest = str | Mapping[str, Any]
"""A text, or a mapping with `text`, `language`, `id`, `within`, `subscriber` and `state`."""


def generate_id(prefix: str) -> str:
    """Return a random id. A request with an id can be repeated when its response is lost."""
    return f"{prefix}-{secrets.token_hex(8)}"


def find_event_id(body: Body, media_type: str) -> str | None:
    """Return the id of a CloudEvent, which becomes the publication's; `None` for anything else.

    A body that cannot be parsed has none either: the service explains the problem.
    """
    if media_type.partition(";")[0].strip().lower() not in CLOUD_EVENT_TYPES:
        return None
    content = body if isinstance(body, Mapping) else _parse_event(body)
    id = content.get("id") if isinstance(content, Mapping) and "specversion" in content else None
    return id if isinstance(id, str) and id else None


def _parse_event(body: bytes | str | Sequence[Any]) -> Any:
    is_bytes = isinstance(body, bytes) and b"specversion" in body
    if not is_bytes and not (isinstance(body, str) and "specversion" in body):
        return None
    try:
        return json.loads(body)  # type: ignore[arg-type]
    except (ValueError, RecursionError):
        return None


def encode_body(body: Body) -> bytes:
    """Return the bytes of a body: values become JSON, bytes and text are sent unchanged."""
    if isinstance(body, bytes):
        return body
    try:
        text = body if isinstance(body, str) else json.dumps(body, separators=(",", ":"), allow_nan=False)
        return text.encode()
    except UnicodeEncodeError as error:
        raise DecodeProblem("the text has an unpaired surrogate, which UTF-8 cannot encode") from error
    except (TypeError, ValueError, RecursionError) as error:
        raise DecodeProblem(f"not a JSON value: {error}", accepted=JSON_VALUES, hint=JSON_HINT) from error


def encode_line(body: Body) -> bytes:
    """Return a body as one line. JSON allows a carriage return wherever it allows a line feed, and nowhere else."""
    line = encode_body(body).strip().replace(b"\n", b"\r")
    if not line:  # the service skips empty lines
        raise DecodeProblem("the body is empty", accepted='a JSON object, such as {"price": 180}')
    return line


def batch_lines(bodies: Iterable[Body]) -> Iterator[list[bytes] | DecodeProblem]:
    """Group bodies into batches of lines. A body that cannot be encoded is yielded as its error, in order."""
    batch: list[bytes] = []
    size = 0
    for body in bodies:
        try:
            line = encode_line(body)
        except DecodeProblem as problem:
            if batch:
                yield batch
            yield problem
            batch, size = [], 0
            continue
        if batch and (len(batch) == BATCH_LINES or size + len(line) > BATCH_BYTES):
            yield batch
            batch, size = [], 0
        batch.append(line)
        size += len(line)
    if batch:
        yield batch


def batch_subscriptions(
    requests: Iterable[SubscriptionRequest], subscriber: str | None
) -> Iterator[list[bytes] | DecodeProblem]:
    """Group subscriptions into batches of lines; each gets an id if it has none."""
    defaults = {} if subscriber is None else {"subscriber": subscriber}
    checked = each_is("requests", requests, (str, Mapping))
    members = ({"text": request} if isinstance(request, str) else dict(request) for request in checked)
    return batch_lines(
        defaults | line | ({} if line.get("id") is not None else {"id": generate_id("s")}) for line in members
    )
