"""Typed rows as JSON events: one encoder per column, chosen by its type.

Instants are written with their microseconds in UTC, decimal numbers with all their digits. A null is left out, as in
Spark's `to_json`. A number that is not finite is written as `NaN`: the event is then rejected with the place of it.
"""

from __future__ import annotations

import json
from base64 import b64encode
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime
from functools import partial
from typing import Any

import numpy as np
from pyspark.sql import types as t

from tidings.errors import InputError

Encoder = Callable[[Any], str]
"""Encodes a value that is not None as JSON."""

_encode_text: Encoder = json.JSONEncoder(ensure_ascii=False).encode


class RowEncoder:
    """Encodes rows with these columns as JSON objects."""

    def __init__(self, fields: Sequence[t.StructField]) -> None:
        self._members = [
            (_encode_text(field.name) + ":", _build_encoder(field.dataType, field.name)) for field in fields
        ]

    def encode(self, values: Sequence[Any]) -> bytes:
        """Encode a row; `values` are in the order of the columns."""
        members = [
            name + encode(value)
            for (name, encode), value in zip(self._members, values, strict=True)
            if value is not None
        ]
        return ("{" + ",".join(members) + "}").encode()


def _build_encoder(kind: t.DataType, column: str) -> Encoder:
    if isinstance(kind, t.StructType):
        members = {field.name: _build_encoder(field.dataType, f"{column}.{field.name}") for field in kind}
        return partial(_encode_struct, members)
    if isinstance(kind, t.ArrayType):
        return partial(_encode_array, _build_encoder(kind.elementType, column))
    if isinstance(kind, t.MapType):
        keys, values = _build_encoder(kind.keyType, column), _build_encoder(kind.valueType, column)
        return partial(_encode_map, keys, values)
    for known, encode in _ENCODERS.items():
        if isinstance(kind, known):
            return encode
    raise InputError(
        "values of this type cannot be written into an event",
        where=f"column {column}",
        received=kind.simpleString(),
        accepted="text, numbers, booleans, dates, times, binary values; arrays, maps and structs of them; variants",
        hint=f"cast it: .withColumn({column!r}, col({column!r}).cast('string'))",
    )


def _encode_struct(members: Mapping[str, Encoder], value: Mapping[str, Any]) -> str:
    pairs = ((name, members[name], item) for name, item in value.items() if item is not None)
    return "{" + ",".join(f"{_encode_text(name)}:{encode(item)}" for name, encode, item in pairs) + "}"


def _encode_array(encode: Encoder, value: Sequence[Any]) -> str:
    return "[" + ",".join("null" if item is None else encode(item) for item in value) + "]"


def _encode_map(keys: Encoder, values: Encoder, value: Sequence[tuple[Any, Any]]) -> str:
    """Encode a map. A key that is no text is the text of its JSON."""
    pairs = ((keys(key), item) for key, item in value if item is not None)
    texts = ((key if key.startswith('"') else _encode_text(key), item) for key, item in pairs)
    return "{" + ",".join(f"{key}:{values(item)}" for key, item in texts) + "}"


def _encode_number(value: float) -> str:
    return json.dumps(value)


def _encode_single(value: float) -> str:
    """Write a float of 32 bits with the digits that it has: 0.1 and not 0.10000000149011612."""
    return json.dumps(float(str(np.float32(value))))


def _encode_instant(value: datetime) -> str:
    return f'"{value.astimezone(UTC).replace(tzinfo=None).isoformat()}Z"'


def _encode_variant(value: Mapping[str, bytes]) -> str:
    return str(t.VariantVal(value["value"], value["metadata"]).toJson())


_ENCODERS: dict[type[t.DataType], Encoder] = {
    t.StringType: _encode_text,
    t.CharType: _encode_text,
    t.VarcharType: _encode_text,
    t.BooleanType: json.dumps,
    t.FloatType: _encode_single,
    t.DoubleType: _encode_number,
    t.DecimalType: lambda value: format(value, "f"),
    t.IntegralType: str,
    t.TimestampType: _encode_instant,
    t.DatetimeType: lambda value: f'"{value.isoformat()}"',
    t.BinaryType: lambda value: f'"{b64encode(value).decode()}"',
    t.VariantType: _encode_variant,
    t.NullType: json.dumps,
}
