"""Subscription files: JSON Lines with `id`, `subscriber`, `text` and optional fields.

    {"id": "s1", "subscriber": "ana", "text": "price < 200", "within": "10 minutes"}

`language` is `predicates` by default. A delay (`within`) is validated and then ignored: a batch job returns all matches
at once. Paused subscriptions (`"state": "paused"`, as `tidings subscriptions --json` writes them) are skipped.

A file without errors is read in columns. Any other file is read line by line: each bad line is rejected with its number
and the reason, and the others are used.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.json as pj

from tidings.core import durations
from tidings.errors import InputError
from tidings.events.schema.event_schema import EventSchema
from tidings.matching.compiler.compilation import compile_columns
from tidings.matching.compiler.plan import Compiled
from tidings.model import Reject
from tidings.spark.sources.files import Location

FIELDS = ("id", "subscriber", "language", "text")
DEFAULTS = {"language": "predicates"}
DELAY = "within"
STATE, PAUSED = "state", "paused"
SCHEMA = pa.schema([(name, pa.string()) for name in FIELDS])


@dataclass(frozen=True, slots=True)
class SubscriptionFile:
    """The subscriptions of a file as a table with the columns `FIELDS`, and rejected lines."""

    subscriptions: Any
    rejects: tuple[Reject, ...] = ()


def read_subscriptions(place: str | Path) -> SubscriptionFile:
    """Read a subscription file."""
    data = _read_bytes(place)
    table = _read_columns(data)
    return SubscriptionFile(table) if table is not None else _read_lines(data, Path(str(place)).name)


BLOCK = 16 << 20
"""Bytes of a file that are read at once."""


def read_subscription_blocks(place: str | Path, size: int = BLOCK) -> Iterator[SubscriptionFile]:
    """Read a subscription file of any size in blocks of whole lines. Ids are compared within a block only."""
    location, name = _find_file(place), Path(str(place)).name
    before, rest = 0, b""
    with location.files.open_input_stream(location.path) as file:
        while chunk := file.read(size):
            head, newline, rest_of_chunk = chunk.rpartition(b"\n")
            if not newline and len(rest) + len(chunk) > size:
                where = f"{name}, line {before + 1}"
                raise InputError(f"a line of more than {size >> 20} MB", where=where)
            if newline:
                yield _parse_block(rest + head, name, before)
                before += chunk.count(b"\n")
                rest = b""
            rest += rest_of_chunk
    if rest or not before:
        yield _parse_block(rest, name, before)


def _parse_block(data: bytes, name: str, before: int) -> SubscriptionFile:
    """Parse lines, of which the first one is number `before + 1`."""
    if not data.strip():
        return SubscriptionFile(SCHEMA.empty_table())
    table = _read_columns(pa.py_buffer(data))
    return SubscriptionFile(table) if table is not None else _read_lines(data, name, before)


def compile_table(table: Any, schema: EventSchema | None) -> Compiled:
    """Compile a table of subscriptions without creating an object for each."""
    ids, subscribers, languages, texts = (table[name].combine_chunks() for name in FIELDS)
    return compile_columns(ids, subscribers, languages, texts, schema)


def _find_file(place: str | Path) -> Location:
    location = Location.of(place)
    if not location.info().is_file:
        raise InputError("there is no such file with subscriptions", received=str(place))
    return location


def _read_bytes(place: str | Path) -> Any:
    location = _find_file(place)
    with location.files.open_input_file(location.path) as file:
        return file.read_buffer()


def _read_columns(data: Any) -> Any | None:
    """Return the table, or None if the file has to be read line by line."""
    written = pa.schema([*SCHEMA, (DELAY, pa.string()), (STATE, pa.string())])
    options = pj.ParseOptions(explicit_schema=written, unexpected_field_behavior="ignore")
    try:
        read = pj.read_json(pa.BufferReader(data), parse_options=options)
    except pa.ArrowInvalid:
        return None
    if any(_find_delay_error(delay) for delay in pc.unique(read[DELAY]).to_pylist()):
        return None
    table = read.select(FIELDS)
    for name, value in DEFAULTS.items():
        table = table.set_column(FIELDS.index(name), name, pc.fill_null(table[name], value))
    if any(_has_gaps(column) for column in table.columns):
        return None
    if pc.count_distinct(table["id"]).as_py() != table.num_rows:
        return None
    is_active = pc.fill_null(pc.not_equal(read[STATE], PAUSED), True)
    return table if pc.all(is_active).as_py() else table.filter(is_active)


def _has_gaps(column: Any) -> bool:
    return bool(column.null_count or pc.any(pc.equal(pc.binary_length(column), 0)).as_py())


def _read_lines(data: Any, name: str, before: int = 0) -> SubscriptionFile:
    subscriptions: dict[str, tuple[str, ...]] = {}
    rejects: list[Reject] = []
    for number, line in enumerate(bytes(data).split(b"\n"), start=before + 1):
        if not line.strip():
            continue
        fields, reason = _parse_line(line)
        if not reason and fields and fields[0] in subscriptions:
            reason = f"an earlier line has the same id '{fields[0]}'"
        if reason:
            place = {"file": name, "line": number}
            rejects.append(Reject("subscription", fields[0] or f"{name}:{number}", reason, {**place}))
        elif fields:
            subscriptions[fields[0]] = fields
    columns = zip(*subscriptions.values(), strict=True) if subscriptions else ((),) * len(FIELDS)
    arrays = [pa.array(column, pa.string()) for column in columns]
    return SubscriptionFile(pa.Table.from_arrays(arrays, schema=SCHEMA), tuple(rejects))


def _parse_line(line: bytes) -> tuple[tuple[str, ...], str]:
    """Return the fields of a line and "", or its id, if any, and the reason to reject it.

    A paused subscription has no fields and no reason.
    """
    try:
        content = json.loads(line)
    except (ValueError, RecursionError) as problem:
        return ("",), f"not JSON: {problem}"
    if not isinstance(content, dict):
        return ("",), "not a JSON object"
    values = [content.get(name, DEFAULTS.get(name)) for name in FIELDS]
    id = values[0] if isinstance(values[0], str) else ""
    for name, value in zip(FIELDS, values, strict=True):
        if value is None:
            return (id,), f"the field '{name}' is missing"
        if not isinstance(value, str) or not _is_encodable(value):
            return (id,), f"the field '{name}' is not a string"
        if not value:
            return (id,), f"the field '{name}' is empty"
    if error := _find_delay_error(content.get(DELAY)):
        return (id,), f"the field '{DELAY}': {error}"
    return () if content.get(STATE) == PAUSED else tuple(map(str, values)), ""


def _find_delay_error(delay: object) -> str:
    """Return the error in a delay, or "" if it is valid or absent."""
    try:
        if delay is not None:
            durations.parse(delay if isinstance(delay, str) else json.dumps(delay))
    except InputError as problem:
        return problem.message()
    return ""


def _is_encodable(text: str) -> bool:
    """Return whether UTF-8 can encode a text: JSON can escape lone surrogates."""
    return not any(0xD800 <= ord(c) <= 0xDFFF for c in text) if not text.isascii() else True
