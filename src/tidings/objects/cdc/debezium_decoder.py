"""Decoder of Debezium's envelopes, each with one row change.

    {"op": "u", "source": {"table": "course", "lsn": 17, "txId": 3}, "before": {"id": 1, "room": "A1"},
     "after": {"id": 1, "room": "A2"}}

They may be wrapped in `{"schema": ..., "payload": ...}`. Values become texts, numbers as written: a key is the same
whether a file has 1 or "1".
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any, NamedTuple

from tidings.errors import DecodeProblem
from tidings.parsers.strict_json import parse_value

UNAVAILABLE_VALUE = "__debezium_unavailable_value"
"""Placeholder of PostgreSQL's connector for a long unchanged value, which is not in the log."""

SEQUENCE_FIELDS = (
    ("lsn",),  # PostgreSQL; `sequence` has the order of transactions
    ("file", "pos", "row"),  # MySQL and MariaDB
    ("commit_lsn", "change_lsn", "event_serial_no"),  # SQL Server, Db2
    ("commit_scn", "scn"),  # Oracle
)
"""Fields of `source` with the position in the log, by connector."""

MAX_SHOWN_CHARACTERS = 200
"""Characters of an invalid sequence in a message."""

ColumnValues = Mapping[str, str | None]


class RowChange(NamedTuple):
    """A row change; `sequence` sorts like the log, if the source has a position."""

    table: str
    op: str
    before: ColumnValues | None
    after: ColumnValues | None
    sequence: str | None
    transaction: str | None
    at: str


def parse_envelope(body: bytes) -> RowChange | None:
    """Decode an envelope; None for a tombstone, which follows a deletion."""
    parse_value(body)  # rejects invalid and harmful JSON, with its position
    envelope = _reader.decode(body.decode())
    if isinstance(envelope, dict) and "payload" in envelope and "op" not in envelope:
        envelope = envelope["payload"]
    if envelope is None:
        return None
    if not isinstance(envelope, dict):
        raise DecodeProblem("not an envelope of a change", accepted=ENVELOPE_FORM)
    source = envelope.get("source")
    if not isinstance(source, dict) or not isinstance(source.get("table"), str):
        raise DecodeProblem("the envelope has no table", where="source.table", accepted=ENVELOPE_FORM)
    return _build_row_change(envelope, source)


ENVELOPE_FORM = '{"op": "u", "source": {"table": "course"}, "before": {...}, "after": {...}}'
_reader = json.JSONDecoder(parse_int=str, parse_float=str)


def _build_row_change(envelope: Mapping[str, Any], source: Mapping[str, Any]) -> RowChange:
    op = envelope.get("op")
    if not isinstance(op, str):
        raise DecodeProblem("the envelope has no operation", where="op", accepted="r, c, u or d")
    transaction = source.get("txId") or (_get_mapping(envelope.get("transaction")).get("id"))
    moment = source.get("ts_ms") or envelope.get("ts_ms")
    return RowChange(
        source["table"],
        op,
        _parse_row(envelope, "before"),
        _parse_row(envelope, "after"),
        _build_sequence(source),
        None if transaction is None else str(transaction),
        _format_timestamp(moment),
    )


def _get_mapping(value: object) -> Mapping[str, Any]:
    return value if isinstance(value, dict) else {}


def _parse_row(envelope: Mapping[str, Any], name: str) -> ColumnValues | None:
    """Return the values of a row, without those that are unavailable."""
    row = envelope.get(name)
    if row is None:
        return None
    if not isinstance(row, dict):
        raise DecodeProblem("not a row", where=name, received=type(row).__name__, accepted="an object")
    return {column: _to_text(value) for column, value in row.items() if value != UNAVAILABLE_VALUE}


def _to_text(value: object) -> str | None:
    if value is None or isinstance(value, str):
        return value
    return json.dumps(value, sort_keys=True)


def _build_sequence(source: Mapping[str, Any]) -> str | None:
    """Return a sortable position. `sequence` has priority: it is the end of the last transaction, then the entry.

    PostgreSQL's log interleaves transactions, so `lsn` alone would mix the changes of several.
    """
    sequence = source.get("sequence")
    if isinstance(sequence, str):
        return ",".join(map(_pad_number, _parse_list(sequence)))
    for fields in SEQUENCE_FIELDS:
        if source.get(fields[0]) is not None:
            return ",".join(_pad_number(source.get(name)) for name in fields)
    return None


def _parse_list(sequence: str) -> list[Any]:
    """Decode a list in a text: JSON inside JSON, checked like the envelope."""
    try:
        items = parse_value(sequence.encode())
    except DecodeProblem:
        items = None
    if not isinstance(items, list):
        accepted = 'a list as a text, such as "[\\"24023119\\",\\"24023128\\"]"'
        raise DecodeProblem(
            "not a sequence",
            where="source.sequence",
            received=sequence[:MAX_SHOWN_CHARACTERS],
            accepted=accepted,
        )
    return items


def _pad_number(value: object) -> str:
    """Pad numbers, so that they sort as text."""
    text = "" if value is None else str(value)
    return text.rjust(20, "0") if text.isdigit() else text


def _format_timestamp(moment: object) -> str:
    if not isinstance(moment, str) or not moment.isdigit():
        return ""
    try:
        return datetime.fromtimestamp(int(moment) / 1000, UTC).isoformat(timespec="milliseconds")
    except (OverflowError, ValueError, OSError) as error:
        raise DecodeProblem("not a timestamp in milliseconds", where="ts_ms", received=moment) from error
