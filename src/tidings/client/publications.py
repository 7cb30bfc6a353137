"""What a client publishes, and what became of it."""

from __future__ import annotations

import json
import secrets
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from tidings.client.calls import Call, build_params
from tidings.errors import DecodeProblem, InputError, TidingsError, error_from

PATH = "/v1/publications"
JSON, LINES = "application/json", "application/x-ndjson"
EVENTS = frozenset({JSON, "application/cloudevents+json"})
TOGETHER, LARGEST = 1_000, 1_000_000
"""Events that travel together, and bytes: fewer than services take by default."""

VALUES = "finite numbers, strings, booleans, None, lists, and dicts whose keys are strings"
AS_TEXT = "other values are written as text before, a time with isoformat()"

Body = bytes | str | Mapping[str, Any] | Sequence[Any]


@dataclass(frozen=True, slots=True)
class PublishResult:
    """A publication that is durable; `new` is false if it was there before. `parts` are the graphs of a file or the
    items of a feed, each a publication of its own.
    """

    id: str
    position: int
    new: bool
    parts: tuple[PublishResult, ...] = ()


def publish(
    body: Body, media_type: str, id: str | None, base: str | None, audience: str | None
) -> Call[PublishResult]:
    """Without an id, its own or one given, one is made here: so it can be sent again, and is published once."""
    own = find_event_id(body, media_type) if id is None else None
    named = id if id is not None else own or generate_id("p")
    params = build_params(id=None if own else named, base=base, audience=audience)
    headers = {"Content-Type": media_type}
    return Call(
        "POST",
        PATH,
        lambda answer: parse_publish_result(answer, named),
        params,
        None,
        encode_body(body),
        headers,
    )


def publish_lines(
    lines: Sequence[bytes], id_field: str, audience: str | None
) -> Call[list[PublishResult | TidingsError]]:
    params = build_params(id_field=id_field, audience=audience)
    return Call("POST", PATH, _outcomes, params, None, b"\n".join(lines), {"Content-Type": LINES})


def find_event_id(body: Body, media_type: str) -> str | None:
    """The id of a CloudEvent, which is the publication's. What cannot be read has none: the service says why."""
    if media_type.partition(";")[0].strip().lower() not in EVENTS:
        return None
    content = body if isinstance(body, Mapping) else _read(body)
    id = content.get("id") if isinstance(content, Mapping) and "specversion" in content else None
    return id if isinstance(id, str) and id else None


def _read(body: bytes | str | Sequence[Any]) -> Any:
    """The value of a text that may be a CloudEvent; others are not worth reading."""
    if not (
        (isinstance(body, bytes) and b"specversion" in body)
        or (isinstance(body, str) and "specversion" in body)
    ):
        return None
    try:
        return json.loads(body)
    except (ValueError, RecursionError):
        return None


def generate_id(prefix: str) -> str:
    """An id that nobody else makes."""
    return f"{prefix}-{secrets.token_hex(8)}"


def encode_body(body: Body) -> bytes:
    """A body as it is sent; values are written as JSON, or refused as the service refuses what is none."""
    if isinstance(body, bytes):
        return body
    try:
        text = body if isinstance(body, str) else json.dumps(body, separators=(",", ":"), allow_nan=False)
        return text.encode()
    except UnicodeEncodeError as error:
        raise DecodeProblem("the text has half a surrogate pair, which no UTF-8 can hold") from error
    except (TypeError, ValueError, RecursionError) as error:
        raise DecodeProblem(f"this is no JSON: {error}", accepted=VALUES, hint=AS_TEXT) from error


def encode_line(body: Body) -> bytes:
    """A body as a line. In JSON a carriage return stands wherever a line break may, and nowhere else."""
    line = encode_body(body).strip().replace(b"\n", b"\r")
    if not line:  # the service would pass over it
        raise DecodeProblem("the body is empty", accepted='a JSON object, such as {"price": 180}')
    return line


def batch_lines(bodies: Iterable[Body]) -> Iterator[list[bytes] | DecodeProblem]:
    """Events as lines, as many as travel together; what is none stands for itself, in its place among them."""
    some: list[bytes] = []
    size = 0
    for body in bodies:
        try:
            line = encode_line(body)
        except DecodeProblem as problem:
            if some:
                yield some
            yield problem
            some, size = [], 0
            continue
        if some and (len(some) == TOGETHER or size + len(line) > LARGEST):
            yield some
            some, size = [], 0
        some.append(line)
        size += len(line)
    if some:
        yield some


def parse_publish_result(answer: Mapping[str, Any], id: str = "") -> PublishResult:
    """What was taken, one or several."""
    if "publications" not in answer:
        return PublishResult(answer["id"], answer["position"], answer["new"])
    parts = tuple(parse_publish_result(one) for one in answer["publications"])
    if not parts:
        raise InputError("nothing was published: there is nothing in it", received=id)
    return PublishResult(id, parts[-1].position, any(one.new for one in parts), parts)


def _outcomes(answer: Mapping[str, Any]) -> list[PublishResult | TidingsError]:
    return [
        error_from(one["problem"]) if one.get("problem") else parse_publish_result(one)
        for one in answer["outcomes"]
    ]
