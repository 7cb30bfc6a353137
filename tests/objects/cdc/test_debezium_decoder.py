"""Debezium's envelopes, as its connectors write them."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tidings.errors import DecodeProblem
from tidings.objects.cdc.debezium_decoder import UNAVAILABLE_VALUE, RowChange, parse_envelope


def envelope(op: str = "u", source: dict[str, Any] | None = None, **rows: Any) -> dict[str, Any]:
    return {"op": op, "source": {"table": "course", **(source or {})}, "before": None, "after": None, **rows}


def read(data: object) -> RowChange:
    change = parse_envelope(json.dumps(data).encode())
    assert change is not None
    return change


def test_parse_envelope_values_keep_their_text():
    row = {"id": 1, "price": 1.50, "open": True, "room": None, "tags": ["a"], "big": 9007199254740993}
    wide = json.dumps(envelope(after=row)).replace("1.5", "1.50").encode()
    change = parse_envelope(wide)
    assert change is not None and change.before is None
    expected = {
        "id": "1",
        "price": "1.50",
        "open": "true",
        "room": None,
        "tags": '["a"]',
        "big": "9007199254740993",
    }
    assert change.after == expected


def test_parse_envelope_accepts_payload_with_and_without_schema():
    plain = envelope("c", {"txId": 7, "ts_ms": 1700000000123}, after={"id": 1})
    wrapped = {"schema": {"type": "struct"}, "payload": plain}
    assert read(plain) == read(wrapped)
    assert read(plain) == RowChange(
        "course", "c", None, {"id": "1"}, None, "7", "2023-11-14T22:13:20.123+00:00"
    )


def test_parse_envelope_tombstone_is_none():
    assert parse_envelope(b"null") is None
    assert parse_envelope(b'{"schema": null, "payload": null}') is None


@pytest.mark.parametrize(
    ("earlier", "later"),
    [
        ({"lsn": 9}, {"lsn": 10}),
        ({"lsn": 12, "sequence": '["8", "12"]'}, {"lsn": 11, "sequence": '["13", "11"]'}),
        ({"lsn": 1, "sequence": '[null, "1"]'}, {"lsn": 2, "sequence": '["1", "2"]'}),
        ({"file": "bin.000001", "pos": 400, "row": 1}, {"file": "bin.000002", "pos": 4, "row": 0}),
        ({"file": "bin.000001", "pos": 400, "row": 1}, {"file": "bin.000001", "pos": 400, "row": 2}),
        (
            {"commit_lsn": "0000:0a:1", "change_lsn": "0000:0a:1"},
            {"commit_lsn": "0000:0b:1", "change_lsn": "0"},
        ),
        ({"commit_scn": "99", "scn": "98"}, {"commit_scn": "100", "scn": "97"}),
    ],
)
def test_parse_envelope_sequence_follows_log_of_connector(earlier, later):
    """In PostgreSQL's log, of interleaved transactions the first to commit comes first."""
    first, second = (read(envelope(source=source)).sequence for source in (earlier, later))
    assert first is not None and second is not None and first < second


def test_parse_envelope_unavailable_value_is_omitted():
    assert read(envelope(after={"id": 1, "text": UNAVAILABLE_VALUE})).after == {"id": "1"}


@pytest.mark.parametrize(
    ("body", "problem"),
    [
        (b"{", "expected a key"),
        (b"[]", "not an envelope of a change"),
        (b"{}", "the envelope has no table .source.table."),
        (b'{"source": {"table": "a"}}', "the envelope has no operation .op."),
        (b'{"op": "c", "source": {"table": "a"}, "after": 5}', "not a row .after."),
        (b'{"op": "c", "source": {"table": "a"}, "after": {"a": "\\ud800"}}', "half of a surrogate pair"),
        (b'{"op": "c", "source": {"table": "a", "sequence": "["}}', "not a sequence .source.sequence."),
        (
            b'{"op": "c", "source": {"table": "a", "ts_ms": 99999999999999999999}}',
            "not a timestamp in milliseconds .ts_ms.",
        ),
        pytest.param(b"[" * 100_000, "nested too deeply", id="deep"),
    ],
)
def test_parse_envelope_invalid_envelope_is_rejected_with_place(body, problem):
    with pytest.raises(DecodeProblem, match=problem):
        parse_envelope(body)


@pytest.mark.parametrize(
    "sequence",
    ["[" * 100_000, "[" * 3_000 + "]" * 3_000, '["\\ud800"]'],
    ids=["open", "deep", "half a surrogate"],
)
def test_parse_envelope_hostile_sequence_is_rejected(sequence: str) -> None:
    """It is JSON inside JSON, which the checks of the envelope do not cover."""
    with pytest.raises(DecodeProblem, match="not a sequence"):
        read(envelope(source={"sequence": sequence}))
