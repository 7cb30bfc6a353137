"""Debezium's envelopes, as its connectors write them."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tidings.errors import DecodeProblem
from tidings.objects.cdc.debezium_decoder import UNAVAILABLE_VALUE, RowChange, parse_envelope


def envelope(op: str = "u", source: dict[str, Any] | None = None, **rows: Any) -> dict[str, Any]:
    return {"op": op, "source": {"table": "course", **(source or {})}, "before": None, "after": None, **rows}


def read(said: object) -> RowChange:
    found = parse_envelope(json.dumps(said).encode())
    assert found is not None
    return found


def test_values_are_texts_as_they_are_written():
    row = {"id": 1, "price": 1.50, "open": True, "room": None, "tags": ["a"], "big": 9007199254740993}
    wide = json.dumps(envelope(after=row)).replace("1.5", "1.50").encode()
    found = parse_envelope(wide)
    assert found is not None and found.before is None
    expected = {
        "id": "1",
        "price": "1.50",
        "open": "true",
        "room": None,
        "tags": '["a"]',
        "big": "9007199254740993",
    }
    assert found.after == expected


def test_with_and_without_the_schema_around_it():
    plain = envelope("c", {"txId": 7, "ts_ms": 1700000000123}, after={"id": 1})
    wrapped = {"schema": {"type": "struct"}, "payload": plain}
    assert read(plain) == read(wrapped)
    assert read(plain) == RowChange(
        "course", "c", None, {"id": "1"}, None, "7", "2023-11-14T22:13:20.123+00:00"
    )


def test_a_tombstone_says_nothing():
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
def test_connectors_say_the_order_of_their_log(earlier, later):
    """Of transactions that lie mixed in PostgreSQL's log the one that ended first comes first."""
    first, second = (read(envelope(source=source)).sequence for source in (earlier, later))
    assert first is not None and second is not None and first < second


def test_a_long_value_that_was_left_alone_is_left_out():
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
def test_what_is_no_envelope_is_refused_with_its_place(body, problem):
    with pytest.raises(DecodeProblem, match=problem):
        parse_envelope(body)


@pytest.mark.parametrize(
    "sequence",
    ["[" * 100_000, "[" * 3_000 + "]" * 3_000, '["\\ud800"]'],
    ids=["open", "deep", "half a surrogate"],
)
def test_sequence_that_harms_its_reader_is_refused(sequence: str) -> None:
    """It is JSON inside JSON: what was checked of the envelope says nothing of it."""
    with pytest.raises(DecodeProblem, match="not a sequence"):
        read(envelope(source={"sequence": sequence}))
