"""Thrift's compact protocol, as much of it as the headers of Parquet need: numbers, strings, lists and structs.

    struct({1: i32(1), 4: binary(b"price")})        15 02 38 05 p r i c e 00

A field is the distance to the number of the field before it, a kind, and a value; a zero ends the struct.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

_I32, _I64, _BINARY, _LIST, _STRUCT = 5, 6, 8, 9, 12
_LONG_LIST = 15


class Value(NamedTuple):
    """A value and what kind of value it is."""

    kind: int
    data: bytes


def i32(number: int) -> Value:
    return Value(_I32, varint(_zigzag(number)))


def i64(number: int) -> Value:
    return Value(_I64, varint(_zigzag(number)))


def binary(data: bytes) -> Value:
    return Value(_BINARY, varint(len(data)) + data)


def many(values: Sequence[Value], kind: int = _STRUCT) -> Value:
    """A list of values of one kind; `kind` is that of a list without any."""
    kind = values[0].kind if values else kind
    size = len(values)
    head = bytes([size << 4 | kind]) if size < _LONG_LIST else bytes([_LONG_LIST << 4 | kind]) + varint(size)
    return Value(_LIST, head + b"".join(value.data for value in values))


def struct(fields: Mapping[int, Value]) -> Value:
    """A struct of fields by number, in ascending order, none of them more than 15 after the one before it."""
    written, last = bytearray(), 0
    for number, value in fields.items():
        written.append((number - last) << 4 | value.kind)
        written += value.data
        last = number
    return Value(_STRUCT, bytes(written) + b"\0")


def varint(number: int) -> bytes:
    """Seven bits a byte, the lowest first; the eighth bit says that more follow."""
    written = bytearray()
    while number >= 128:
        written.append(number & 127 | 128)
        number >>= 7
    written.append(number)
    return bytes(written)


def _zigzag(number: int) -> int:
    return number << 1 ^ number >> 63
