"""Subscription files: JSON Lines with `id`, `subscriber`, `language` (else `predicates`), `text` and perhaps `within`.

    {"id": "s1", "subscriber": "ana", "text": "price < 200", "within": "10 minutes"}

A delay is checked and not carried on: who matches files has all matches at once. What is paused (`"state": "paused"`,
as `tidings subscriptions --json` writes it) matches nothing, and is left out.

A file in which every line is good is read in columns; any other is read line by line, so that each bad line is
refused with its number and its reason and the rest is used.
"""

from __future__ import annotations

import json
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
    """The subscriptions of a file as a table (id, subscriber, language, text), and the lines that are none."""

    subscriptions: Any
    rejects: tuple[Reject, ...] = ()


def read_subscriptions(place: str | Path) -> SubscriptionFile:
    """The subscriptions of a file."""
    data = _bytes(place)
    table = _in_columns(data)
    return SubscriptionFile(table) if table is not None else _line_by_line(data, Path(str(place)).name)


def compile_table(table: Any, schema: EventSchema | None) -> Compiled:
    """Compile a table of subscriptions without making an object of each."""
    ids, subscribers, languages, texts = (table[name].combine_chunks() for name in FIELDS)
    return compile_columns(ids, subscribers, languages, texts, schema)


def _bytes(place: str | Path) -> Any:
    location = Location.of(place)
    if not location.info().is_file:
        raise InputError("there is no such file of subscriptions", received=str(place))
    with location.files.open_input_file(location.path) as file:
        return file.read_buffer()


def _in_columns(data: Any) -> Any | None:
    """The table, or None if some line needs a closer look."""
    written = pa.schema([*SCHEMA, (DELAY, pa.string()), (STATE, pa.string())])
    options = pj.ParseOptions(explicit_schema=written, unexpected_field_behavior="ignore")
    try:
        read = pj.read_json(pa.BufferReader(data), parse_options=options)
    except pa.ArrowInvalid:
        return None
    if any(_wrong_delay(delay) for delay in pc.unique(read[DELAY]).to_pylist()):
        return None
    table = read.select(FIELDS)
    for name, value in DEFAULTS.items():
        table = table.set_column(FIELDS.index(name), name, pc.fill_null(table[name], value))
    if any(_has_gaps(column) for column in table.columns):
        return None
    if pc.count_distinct(table["id"]).as_py() != table.num_rows:
        return None
    counts = pc.fill_null(pc.not_equal(read[STATE], PAUSED), True)
    return table if pc.all(counts).as_py() else table.filter(counts)


def _has_gaps(column: Any) -> bool:
    return bool(column.null_count or pc.any(pc.equal(pc.binary_length(column), 0)).as_py())


def _line_by_line(data: Any, name: str) -> SubscriptionFile:
    found: dict[str, tuple[str, ...]] = {}
    rejects: list[Reject] = []
    for number, line in enumerate(bytes(data).split(b"\n"), start=1):
        if not line.strip():
            continue
        fields, reason = _fields(line)
        if not reason and fields and fields[0] in found:
            reason = f"the id '{fields[0]}' is on an earlier line already"
        if reason:
            place = {"file": name, "line": number}
            rejects.append(Reject("subscription", fields[0] or f"{name}:{number}", reason, {**place}))
        elif fields:
            found[fields[0]] = fields
    columns = zip(*found.values(), strict=True) if found else ((),) * len(FIELDS)
    arrays = [pa.array(column, pa.string()) for column in columns]
    return SubscriptionFile(pa.Table.from_arrays(arrays, schema=SCHEMA), tuple(rejects))


def _fields(line: bytes) -> tuple[tuple[str, ...], str]:
    """The fields of a line, and why they are none; then only the id is of use, if it has one. What is paused has no
    fields, and nothing is wrong with it.
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
        if not isinstance(value, str) or not _encodable(value):
            return (id,), f"the field '{name}' is not a text"
        if not value:
            return (id,), f"the field '{name}' is empty"
    if wrong := _wrong_delay(content.get(DELAY)):
        return (id,), f"the field '{DELAY}': {wrong}"
    return () if content.get(STATE) == PAUSED else tuple(map(str, values)), ""


def _wrong_delay(delay: object) -> str:
    """What is wrong with a delay; nothing is with none."""
    try:
        if delay is not None:
            durations.parse(delay if isinstance(delay, str) else json.dumps(delay))
    except InputError as problem:
        return problem.message()
    return ""


def _encodable(text: str) -> bool:
    """Half a surrogate pair, which JSON can escape, is no character."""
    return not any(0xD800 <= ord(c) <= 0xDFFF for c in text) if not text.isascii() else True
