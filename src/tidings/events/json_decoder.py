"""Events: JSON objects and CloudEvents, taken apart into values by path. This is the definition of decoding.

    {"price": 180, "seller": {"city": "Oslo"}, "tags": ["oak", "round"], "sold": null}

is the event `price: 180`, `seller.city: 'Oslo'`, `tags: 'oak', 'round'`. Null, `[]` and `{}` give no
value. Faster decoders are tested against this one.
"""

from __future__ import annotations

import base64
import binascii
import math
from collections.abc import Iterable, Mapping
from types import NoneType
from typing import Any

from tidings.atoms import Event
from tidings.core.arguments import accepts
from tidings.core.suggest import EVENT_TYPE, printable
from tidings.errors import DecodeProblem
from tidings.events.envelope import DATA, check_envelope, text_of
from tidings.events.schema.consistency import check
from tidings.events.schema.event_schema import EventSchema
from tidings.parsers.strict_json import MAX_DEPTH, JsonObject, parse, parse_value
from tidings.values import INT64_MAX, INT64_MIN, Scalar

Values = dict[str, tuple[Scalar, ...]]

MOST_PATH_TEXT = 20_000_000
"""Characters of all paths of an event that are longer than one key. Each value below a long key repeats that key in its
path: without a limit, a body of 1.2 MB (a key of a million characters, 20,000 values below it) takes 20 GB.
"""

ENVELOPE = "cloudevent"
"""The context attributes of a CloudEvent are at `cloudevent.id`, `cloudevent.type` ..."""

_VERSION = f"{ENVELOPE}.specversion"

AUDIENCE = "audience"
"""An extension of CloudEvents: the label of those who may see it."""

ID_FIELD = "id"
"""Where files of events have a publication's id; no event type has to name it."""


@accepts(
    "an event is JSON: decode(b'{\"price\": 5}'), or decode(json.dumps(event))",
    body=(bytes, str),
    schema=(EventSchema, NoneType),
    id_field=(str, NoneType),
)
def decode(body: bytes | str, schema: EventSchema | None = None, id_field: str | None = None) -> Event:
    """The event in the bytes or the text, checked against the schema if there is one.

    `id_field` is where else than at `id` a publication's id may stand.
    """
    data = body if isinstance(body, bytes) else body.encode("utf-8", "surrogatepass")
    return event_of(parse(data), schema, id_field)


def event_of(
    content: Mapping[str, Any], schema: EventSchema | None = None, id_field: str | None = None
) -> Event:
    """The event in a JSON object that was read already; one with a `specversion` is a CloudEvent."""
    event, envelope = _cloud_event(content) if "specversion" in content else (flatten(content), {})
    if schema is not None:
        check({**event, **envelope}, schema, beside={*envelope, ID_FIELD, id_field or ID_FIELD})
    return {**event, **envelope}


def flatten(content: Mapping[str, Any]) -> Values:
    """The object's values by dotted path, in the order they came; an array gives its path several values."""
    found = _Gathered()
    for key, value in content.items():
        _gather(_key(key), value, found, 2)
    return {path: tuple(values) for path, values in found.values.items()}


def publication_id(body_or_object: bytes | Mapping[str, Any], field: str = ID_FIELD) -> str | None:
    """The publication's own id: the one string or integer at `field`, or None if there is none."""
    content = parse(body_or_object) if isinstance(body_or_object, bytes) else body_or_object
    values = flatten(content).get(field, ())
    if len(values) != 1 or isinstance(values[0], bool | float):
        return None  # not a double: two ids beyond 64 bits could become the same one
    return str(values[0]) or None


def cloud_event_id(event: Event, body: bytes) -> str | None:
    """The id of a CloudEvent, decoded from its body. `{"cloudevent": {"specversion": ...}}` has the paths of one and is
    none, so the body is looked at again; other events have no such path, and it costs them nothing.
    """
    if _VERSION not in event:
        return None
    content = parse(body)
    return publication_id(content) if "specversion" in content else None


def source_of(event: Event) -> str | None:
    """Where a CloudEvent comes from."""
    values = event.get(f"{ENVELOPE}.source", ())
    return values[0] if values and isinstance(values[0], str) else None


def audience_of(event: Event) -> str | None:
    """The label that a CloudEvent carries, if it does."""
    values = event.get(f"{ENVELOPE}.{AUDIENCE}", ())
    if not values:
        return None
    if len(values) > 1 or not isinstance(values[0], str):
        raise _no_audience(values)
    return values[0]


def _no_audience(received: object) -> DecodeProblem:
    return DecodeProblem(
        "no label of an audience", where=AUDIENCE, received=printable(repr(received)), accepted="one string"
    )


_PLAIN = (str, int, float)
_CONTAINERS = (dict, list, tuple, Mapping)
"""What is plain is looked at first: whether something is a mapping takes longer to find out."""


class _Gathered:
    """Values by path, and how many characters their paths have."""

    def __init__(self) -> None:
        self.values: dict[str, list[Scalar]] = {}
        self._path_text = 0

    def make_paths(self, path: str, keys: Iterable[object]) -> list[str]:
        """Return the paths of the members of an object; refuse them before they are made if they are too long."""
        names = [_key(key) for key in keys]
        self._path_text += len(names) * (len(path) + 1) + sum(map(len, names))
        if self._path_text > MOST_PATH_TEXT:
            accepted = f"at most {MOST_PATH_TEXT:,} characters in all paths: shorter keys, or fewer values"
            raise DecodeProblem(
                "the paths of this event are too long", where=printable(path), accepted=accepted
            )
        return [f"{path}.{name}" for name in names]


def _gather(path: str, value: Any, found: _Gathered, depth: int) -> None:
    if value is None:
        return
    if isinstance(value, _PLAIN) or not isinstance(value, _CONTAINERS):
        found.values.setdefault(path, []).append(_scalar(path, value))
    elif depth > MAX_DEPTH:
        raise DecodeProblem(
            "nested too deeply", where=printable(path), accepted=f"at most {MAX_DEPTH} levels"
        )
    elif isinstance(value, Mapping):
        for below, inner in zip(found.make_paths(path, value), value.values(), strict=True):
            _gather(below, inner, found, depth + 1)
    else:
        for inner in value:
            _gather(path, inner, found, depth + 1)


def _key(key: object) -> str:
    if not isinstance(key, str):
        raise DecodeProblem("a key is not a string", received=repr(key))
    return key


def _scalar(path: str, value: object) -> Scalar:
    if isinstance(value, (str, bool)):
        return value
    if isinstance(value, int) and INT64_MIN <= value <= INT64_MAX:
        return value
    if isinstance(value, (int, float)):
        return _double(path, value)
    accepted = "numbers, strings, booleans, objects, arrays and null"
    raise DecodeProblem(
        "not a JSON value", where=printable(path), received=type(value).__name__, accepted=accepted
    )


def _double(path: str, value: int | float) -> float:
    try:
        double = float(value)
    except OverflowError:
        double = math.inf
    if not math.isfinite(double):
        raise DecodeProblem(
            "the number is not finite", where=printable(path), accepted="a number up to about 1.8e308"
        )
    return double


def _cloud_event(content: Mapping[str, Any]) -> tuple[Values, Values]:
    """The event in the data of a CloudEvent, and the envelope it came in."""
    _check_audience(content)
    check_envelope(content)
    attributes = {key: value for key, value in content.items() if key not in DATA}
    event = _data(content)
    if EVENT_TYPE not in event:
        event[EVENT_TYPE] = (content["type"],)
    return event, flatten({ENVELOPE: attributes})


def _check_audience(content: Mapping[str, Any]) -> None:
    label = content.get(AUDIENCE)
    if label is not None and (not isinstance(label, str) or not label):
        raise _no_audience(label)  # an empty list would be no label, and the event for everybody


def _data(content: Mapping[str, Any]) -> Values:
    """An object gives the event its own paths; other JSON and text are at `data`, other bytes at `data_base64`."""
    data = content.get("data")
    if content.get("data_base64") is not None:
        content_bytes = _bytes(content["data_base64"])
        if not _is_json(content):
            text = text_of(content["datacontenttype"], content_bytes)
            return {"data": (text,)} if text is not None else {"data_base64": (content["data_base64"],)}
        data = parse_value(content_bytes)
    event = flatten(data if isinstance(data, Mapping) else {"data": data})
    spoofed = next((path for path in event if path.split(".")[0] == ENVELOPE), None)
    if spoofed is not None:
        what = f"data has the path {printable(spoofed)}, but {ENVELOPE} is the envelope"
        raise DecodeProblem(what, accepted="another name")
    return event


def _is_json(content: Mapping[str, Any]) -> bool:
    """Whether the data is JSON by its content type; without one it is (CloudEvents JSON format, 3.1)."""
    media_type = str(content.get("datacontenttype") or "application/json").split(";")[0].strip().lower()
    return media_type.endswith(("/json", "+json"))


def _bytes(encoded: object) -> bytes:
    try:
        return base64.b64decode(encoded if isinstance(encoded, str) else b"!", validate=True)
    except (binascii.Error, ValueError):
        raise DecodeProblem("data_base64 is not Base64", accepted="a string in Base64") from None


__all__ = [
    "ENVELOPE",
    "MAX_DEPTH",
    "JsonObject",
    "audience_of",
    "cloud_event_id",
    "decode",
    "event_of",
    "flatten",
    "parse",
    "publication_id",
    "source_of",
]
