"""Headers and footer of a Parquet file of string columns, in Thrift's compact protocol.

    struct({1: i32(1), 4: binary(b"price")})        15 02 38 05 p r i c e 00

A field is the distance to the number of the previous field, a kind, and a value; a zero ends the struct. The
field numbers are those of the format's Thrift file.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

_I32, _I64, _BINARY, _LIST, _STRUCT = 5, 6, 8, 9, 12
_LONG_LIST = 15


class Value(NamedTuple):
    """An encoded value and its kind."""

    kind: int
    data: bytes


def i32(number: int) -> Value:
    return Value(_I32, varint(_zigzag(number)))


def i64(number: int) -> Value:
    return Value(_I64, varint(_zigzag(number)))


def binary(data: bytes) -> Value:
    return Value(_BINARY, varint(len(data)) + data)


def many(values: Sequence[Value], kind: int = _STRUCT) -> Value:
    """Encode a list of values of one kind; `kind` is that of an empty list."""
    kind = values[0].kind if values else kind
    size = len(values)
    head = bytes([size << 4 | kind]) if size < _LONG_LIST else bytes([_LONG_LIST << 4 | kind]) + varint(size)
    return Value(_LIST, head + b"".join(value.data for value in values))


def struct(fields: Mapping[int, Value]) -> Value:
    """Encode fields by number, in ascending order, each at most 15 after the previous one."""
    written, last = bytearray(), 0
    for number, value in fields.items():
        written.append((number - last) << 4 | value.kind)
        written += value.data
        last = number
    return Value(_STRUCT, bytes(written) + b"\0")


def varint(number: int) -> bytes:
    """Encode seven bits per byte, the lowest first; the eighth bit says that more follow."""
    written = bytearray()
    while number >= 128:
        written.append(number & 127 | 128)
        number >>= 7
    written.append(number)
    return bytes(written)


def _zigzag(number: int) -> int:
    return number << 1 ^ number >> 63


_BYTE_ARRAY, _REQUIRED, _UTF8 = 6, 0, 0
_DATA_PAGE, _DICTIONARY_PAGE = 0, 2
_PLAIN, _RLE, _RLE_DICTIONARY = 0, 3, 8
_UNCOMPRESSED = 0


class ColumnChunk(NamedTuple):
    """A column of a row group: its place in the file, and strings between which all of it lies."""

    name: str
    rows: int
    start: int
    first_page: int
    end: int
    bounds: tuple[bytes, bytes] | None


def data_header(rows: int, size: int) -> bytes:
    """Return the header of a page of numbers with `size` bytes."""
    page = {1: i32(rows), 2: i32(_RLE_DICTIONARY), 3: i32(_RLE), 4: i32(_RLE)}
    return struct({1: i32(_DATA_PAGE), 2: i32(size), 3: i32(size), 5: struct(page)}).data


def dictionary_header(strings: int, size: int) -> bytes:
    """Return the header of a page of strings with `size` bytes."""
    page = struct({1: i32(strings), 2: i32(_PLAIN)})
    return struct({1: i32(_DICTIONARY_PAGE), 2: i32(size), 3: i32(size), 7: page}).data


def footer(names: Sequence[str], groups: Sequence[Sequence[ColumnChunk]]) -> bytes:
    """Return the footer, which a reader reads first: the columns, and the place of each in each row group."""
    root = struct({4: binary(b"schema"), 5: i32(len(names))})
    rows = sum(group[0].rows for group in groups)
    by_bytes = struct({1: struct({})})  # bounds compare by the type of the column
    return struct(
        {
            1: i32(2),
            2: many([root, *map(_column_schema, names)]),
            3: i64(rows),
            4: many([_group_metadata(group) for group in groups]),
            6: binary(b"tidings"),
            7: many([by_bytes] * len(names)),
        }
    ).data


def _column_schema(name: str) -> Value:
    text = struct({1: struct({})})
    return struct({1: i32(_BYTE_ARRAY), 3: i32(_REQUIRED), 4: binary(name.encode()), 6: i32(_UTF8), 10: text})


def _group_metadata(chunks: Sequence[ColumnChunk]) -> Value:
    size = sum(chunk.end - chunk.start for chunk in chunks)
    columns = many([struct({2: i64(0), 3: _column_metadata(chunk)}) for chunk in chunks])
    return struct({1: columns, 2: i64(size), 3: i64(chunks[0].rows), 6: i64(size)})


def _column_metadata(chunk: ColumnChunk) -> Value:
    size = chunk.end - chunk.start
    described = {
        1: i32(_BYTE_ARRAY),
        2: many([i32(encoding) for encoding in (_PLAIN, _RLE, _RLE_DICTIONARY)]),
        3: many([binary(chunk.name.encode())]),
        4: i32(_UNCOMPRESSED),
        5: i64(chunk.rows),
        6: i64(size),
        7: i64(size),
        9: i64(chunk.first_page),
        11: i64(chunk.start),
    }
    if chunk.bounds is not None:
        smallest, largest = (binary(bound) for bound in chunk.bounds)
        described[12] = struct({3: i64(0), 5: largest, 6: smallest})
    return struct(described)
