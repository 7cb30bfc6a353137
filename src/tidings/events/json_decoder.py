"""JSON events and CloudEvents as values by path. This is the specification of decoding.

    {"price": 180, "seller": {"city": "Oslo"}, "tags": ["oak", "round"], "sold": null}

is the event `price: 180`, `seller.city: 'Oslo'`, `tags: 'oak', 'round'`. Null, `[]` and `{}` have no value.
Faster decoders are tested against this one.
"""

from __future__ import annotations

import base64
import binascii
import math
import re
from collections.abc import Callable, Iterable, Mapping
from types import NoneType
from typing import Any

from tidings.atoms import Event
from tidings.core.arguments import accepts
from tidings.core.suggest import EVENT_TYPE, join_words, printable
from tidings.errors import DecodeProblem
from tidings.events.schema.consistency import check
from tidings.events.schema.event_schema import EventSchema
from tidings.parsers.strict_json import MAX_DEPTH, JsonObject, parse, parse_value
from tidings.values import INT64_MAX, INT64_MIN, Scalar, parse_instant

REQUIRED = ("id", "source", "type")
"""The context attributes that every CloudEvent has, in addition to `specversion`."""

DATA = ("data", "data_base64")
"""The members that are not attributes."""

_NAME = re.compile(r"[a-z0-9]+")
_MEDIA_TYPE = re.compile(r"[\w!#$&^.+-]+/[\w!#$&^.+-]+ *(;.*)?", re.ASCII)
_WHOLE_TIME = re.compile(r".{10}[Tt ].{8}(\.\d+)?([Zz]|.{6})", re.ASCII)
"""RFC 3339 requires seconds and a zone, which are optional in ISO 8601."""


def _is_media_type(value: object) -> bool:
    return isinstance(value, str) and _MEDIA_TYPE.fullmatch(value) is not None


def _is_time(value: object) -> bool:
    is_whole = isinstance(value, str) and _WHOLE_TIME.fullmatch(value) is not None
    return is_whole and parse_instant(str(value)) is not None


def _is_text(value: object) -> bool:
    return isinstance(value, str) and value != ""


def _is_simple(value: object) -> bool:
    return isinstance(value, str | int)


_OPTIONAL: Mapping[str, tuple[Callable[[object], bool], str]] = {
    "datacontenttype": (_is_media_type, "a media type, such as application/json"),
    "dataschema": (_is_text, "a URI"),
    "subject": (_is_text, "a non-empty string"),
    "time": (_is_time, "an RFC 3339 time, such as 2026-01-31T12:00:00Z"),
}
_EXTENSION = _is_simple, "a string, a whole number or a boolean"
"""Checks for optional attributes (above) and for extension attributes."""

_CHARSET = re.compile(r";\s*charset\s*=\s*\"?([^\s;\"]+)", re.IGNORECASE)
_UTF_8 = ("utf-8", "us-ascii")


def text_of(media_type: str, data: bytes) -> str | None:
    """Decode data whose media type is text in an encoding of JSON; None for other data.

    The result is the same whether the data came as a string, in Base64 or as the body of a request.
    """
    encoding = _CHARSET.search(media_type)
    if not media_type.lower().startswith("text/") or (encoding and encoding[1].lower() not in _UTF_8):
        return None
    try:
        return data.decode()
    except UnicodeDecodeError:
        return None


def check_envelope(content: Mapping[str, Any]) -> None:
    """Reject an invalid CloudEvent, naming the attribute.

    CloudEvents 1.0.2, sections "Context Attributes" and "Type System". A null attribute counts as absent.
    """
    if content["specversion"] != "1.0":
        received = printable(repr(content["specversion"]))
        message = "unsupported CloudEvents version"
        raise DecodeProblem(message, received=received, accepted="specversion '1.0'")
    for name in REQUIRED:
        if not isinstance(content.get(name), str) or not content[name]:
            accepted = f"non-empty strings for {join_words(REQUIRED)}"
            raise DecodeProblem(f"a CloudEvent needs the attribute {name}", accepted=accepted)
    for name, value in content.items():
        if name not in DATA and value is not None:
            _check_attribute(name, value)
    if all(content.get(name) is not None for name in DATA):
        raise DecodeProblem("a CloudEvent has both data and data_base64", accepted="one of them")


def _check_attribute(name: object, value: object) -> None:
    if not isinstance(name, str) or not _NAME.fullmatch(name):
        message, accepted = "invalid CloudEvents attribute name", "letters from a to z, and digits"
        raise DecodeProblem(message, received=printable(repr(name)), accepted=accepted)
    holds, accepted = _OPTIONAL.get(name, _EXTENSION)
    if not holds(value):
        message = f"invalid value of the CloudEvents attribute {name}"
        raise DecodeProblem(message, received=printable(repr(value)), accepted=accepted)


Values = dict[str, tuple[Scalar, ...]]

MOST_PATH_TEXT = 20_000_000
"""Maximum total length of an event's nested paths. Each value below a long key repeats that key in its path:
without a limit, a body of 1.2 MB (a key of a million characters, 20,000 values below it) takes 20 GB."""

ENVELOPE = "cloudevent"
"""Context attributes of a CloudEvent have the paths `cloudevent.id`, `cloudevent.type` ..."""

_VERSION = f"{ENVELOPE}.specversion"

AUDIENCE = "audience"
"""A CloudEvents extension: the label of those who may see the event."""

ID_FIELD = "id"
"""The default path of a publication's id in files of events; event types need not declare it."""


@accepts(
    "an event is JSON: decode(b'{\"price\": 5}'), or decode(json.dumps(event))",
    body=(bytes, str),
    schema=(EventSchema, NoneType),
    id_field=(str, NoneType),
)
def decode(body: bytes | str, schema: EventSchema | None = None, id_field: str | None = None) -> Event:
    """Decode an event from JSON and check it against the schema if there is one.

    `id_field` is a path other than `id` that may hold the publication's id.
    """
    data = body if isinstance(body, bytes) else body.encode("utf-8", "surrogatepass")
    return event_of(parse(data), schema, id_field)


def event_of(
    content: Mapping[str, Any], schema: EventSchema | None = None, id_field: str | None = None
) -> Event:
    """Convert a parsed JSON object to an event; one with a `specversion` is a CloudEvent."""
    event, envelope = _cloud_event(content) if "specversion" in content else (flatten(content), {})
    if schema is not None:
        check({**event, **envelope}, schema, beside={*envelope, ID_FIELD, id_field or ID_FIELD})
    return {**event, **envelope}


def flatten(content: Mapping[str, Any]) -> Values:
    """Return the object's values by dotted path in document order; an array gives its path several values."""
    collected = _PathValues()
    for key, value in content.items():
        _collect(_key(key), value, collected, 2)
    return {path: tuple(values) for path, values in collected.values.items()}


def publication_id(body_or_object: bytes | Mapping[str, Any], field: str = ID_FIELD) -> str | None:
    """Return the publication's own id: the single string or integer at `field`, or None."""
    content = parse(body_or_object) if isinstance(body_or_object, bytes) else body_or_object
    values = flatten(content).get(field, ())
    if len(values) != 1 or isinstance(values[0], bool | float):
        return None  # doubles would merge ids beyond 64 bits
    return str(values[0]) or None


def cloud_event_id(event: Event, body: bytes) -> str | None:
    """Return the id of a CloudEvent, decoded from its body.

    `{"cloudevent": {"specversion": ...}}` has the paths of a CloudEvent without being one, so the body is
    parsed again. Other events have no such path and skip that.
    """
    if _VERSION not in event:
        return None
    content = parse(body)
    return publication_id(content) if "specversion" in content else None


def source_of(event: Event) -> str | None:
    """Return the source of a CloudEvent."""
    values = event.get(f"{ENVELOPE}.source", ())
    return values[0] if values and isinstance(values[0], str) else None


def audience_of(event: Event) -> str | None:
    """Return the audience label of a CloudEvent, if it has one."""
    values = event.get(f"{ENVELOPE}.{AUDIENCE}", ())
    if not values:
        return None
    if len(values) > 1 or not isinstance(values[0], str):
        raise _invalid_audience(values)
    return values[0]


def _invalid_audience(received: object) -> DecodeProblem:
    return DecodeProblem(
        "invalid audience label", where=AUDIENCE, received=printable(repr(received)), accepted="one string"
    )


_PLAIN = (str, int, float)
_CONTAINERS = (dict, list, tuple, Mapping)
"""Checked after _PLAIN, because testing for a mapping is slower."""


class _PathValues:
    """Values by path, and the total length of their paths."""

    def __init__(self) -> None:
        self.values: dict[str, list[Scalar]] = {}
        self._path_text = 0

    def make_paths(self, path: str, keys: Iterable[object]) -> list[str]:
        """Return the paths of the members of an object; too long ones are refused before they are built."""
        names = [_key(key) for key in keys]
        self._path_text += len(names) * (len(path) + 1) + sum(map(len, names))
        if self._path_text > MOST_PATH_TEXT:
            accepted = f"at most {MOST_PATH_TEXT:,} characters in all paths: shorter keys, or fewer values"
            raise DecodeProblem(
                "the paths of this event are too long", where=printable(path), accepted=accepted
            )
        return [f"{path}.{name}" for name in names]


def _collect(path: str, value: Any, into: _PathValues, depth: int) -> None:
    if value is None:
        return
    if isinstance(value, _PLAIN) or not isinstance(value, _CONTAINERS):
        into.values.setdefault(path, []).append(_scalar(path, value))
    elif depth > MAX_DEPTH:
        raise DecodeProblem(
            "nested too deeply", where=printable(path), accepted=f"at most {MAX_DEPTH} levels"
        )
    elif isinstance(value, Mapping):
        for below, inner in zip(into.make_paths(path, value), value.values(), strict=True):
            _collect(below, inner, into, depth + 1)
    else:
        for inner in value:
            _collect(path, inner, into, depth + 1)


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
    """Return the event in the data of a CloudEvent, and its envelope."""
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
        raise _invalid_audience(label)  # an empty list would make the event public


def _data(content: Mapping[str, Any]) -> Values:
    """Flatten the data: an object uses its own paths, other JSON and text `data`, other bytes `data_base64`."""
    data = content.get("data")
    if content.get("data_base64") is not None:
        content_bytes = _bytes(content["data_base64"])
        if not _is_json(content):
            text = text_of(content["datacontenttype"], content_bytes)
            return {"data": (text,)} if text is not None else {"data_base64": (content["data_base64"],)}
        data = parse_value(content_bytes)
    event = flatten(data if isinstance(data, Mapping) else {"data": data})
    reserved = next((path for path in event if path.split(".")[0] == ENVELOPE), None)
    if reserved is not None:
        message = f"data has the path {printable(reserved)}, but {ENVELOPE} is reserved for the envelope"
        raise DecodeProblem(message, accepted="another name")
    return event


def _is_json(content: Mapping[str, Any]) -> bool:
    """Return whether the data is JSON by its content type, which it is by default (CloudEvents JSON format, 3.1)."""
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
