"""Reading of reference tables: CSV, JSON Lines and Parquet, conversion of values, errors."""

from __future__ import annotations

import datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tidings.errors import InputError
from tidings.reference_data import files
from tidings.reference_data.declarations import Reference, declare
from tidings.reference_data.table_rows import Row, read_file, read_stamp


def event_table(path: Path, key: str = "k", fields: tuple[str, ...] = ()) -> Reference:
    return declare("t", str(path), key, "symbol", fields)


def document_table(path: Path, key: str = "k", fields: tuple[str, ...] = ()) -> Reference:
    return declare("t", str(path), key, "/symbol", fields)


def write_file(tmp_path: Path, name: str, content: str | bytes) -> Path:
    path = tmp_path / name
    path.write_bytes(content.encode() if isinstance(content, str) else content)
    return path


CSV = '\ufeffk,name,size,on\r\n7,"Jo ""J"", Inc.",1.50,true\r\n007,,2,false\r\n\r\n8,"two\nlines",3e1,\r\n'


def test_read_file_csv_column_of_numbers_has_numbers_for_events(tmp_path: Path) -> None:
    """007 is no JSON number, so the keys are strings here; an empty value is absent."""
    assert read_file(event_table(write_file(tmp_path, "t.csv", CSV))) == [
        Row(("7",), {"name": ('Jo "J", Inc.',), "size": (1.5,), "on": (True,)}),
        Row(("007",), {"size": (2,), "on": (False,)}),
        Row(("8",), {"name": ("two\nlines",), "size": (30.0,)}),
    ]


def test_read_file_csv_values_are_unchanged_text_for_documents(tmp_path: Path) -> None:
    assert read_file(document_table(write_file(tmp_path, "t.csv", CSV))) == [
        Row(("7",), {"name": ('Jo "J", Inc.',), "size": ("1.50",), "on": ("true",)}),
        Row(("007",), {"size": ("2",), "on": ("false",)}),
        Row(("8",), {"name": ("two\nlines",), "size": ("3e1",)}),
    ]


def test_read_file_json_lines_gives_rows(tmp_path: Path) -> None:
    lines = '{"k": 7, "a": {"b": "x", "c": null}, "d": [1, 2.5]}\n\n{"k": ["u", "v"], "d": true}\r\n{"d": 1}'
    path = write_file(tmp_path, "t.jsonl", lines)
    assert read_file(event_table(path)) == [
        Row((7,), {"a.b": ("x",), "d": (1, 2.5)}),
        Row(("u", "v"), {"d": (True,)}),
        Row((), {"d": (1,)}),
    ]
    assert read_file(document_table(path))[0] == Row(("7",), {"a.b": ("x",), "d": ("1", "2.5")})
    assert read_file(event_table(path, fields=("a",)))[:2] == [
        Row((7,), {"a.b": ("x",)}),
        Row(("u", "v"), {}),
    ]
    assert read_file(event_table(path, fields=("k",)))[0] == Row((7,), {"k": (7,)})
    assert read_file(event_table(write_file(tmp_path, "empty.jsonl", ""))) == []


def test_read_file_parquet_gives_rows(tmp_path: Path) -> None:
    columns = {
        "k": pa.array([1, 2, None]),
        "when": pa.array([datetime.date(2026, 1, 31), None, None]),
        "at": pa.array([datetime.datetime(2026, 1, 31, 12, 30), None, None], pa.timestamp("us", "UTC")),
        "price": pa.array([Decimal("7.00"), Decimal("0.25"), None], pa.decimal128(9, 2)),
        "tags": pa.array([["x", "y"], [], None]),
        "to": pa.array([{"city": "Oslo"}, {"city": None}, None]),
        "huge": pa.array([1e22, 2.0, 0.0000001]),
    }
    pq.write_table(pa.table(columns), tmp_path / "t.parquet")
    first, second, third = read_file(document_table(tmp_path / "t.parquet"))
    assert first == Row(
        ("1",),
        {
            "when": ("2026-01-31",),
            "at": ("2026-01-31T12:30:00+00:00",),
            "price": ("7",),
            "tags": ("x", "y"),
            "to.city": ("Oslo",),
            "huge": ("10000000000000000000000",),
        },
    )
    assert second == Row(("2",), {"price": ("0.25",), "huge": ("2",)})
    assert third == Row((), {"huge": ("0.0000001",)})
    assert read_file(event_table(tmp_path / "t.parquet"))[0].added["price"] == (7,)


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("t.csv", "", "invalid header"),
        ("t.csv", "k,a,a\n1,2,3\n", "invalid header"),
        ("t.csv", "k,a\n1,2\n1\n", "wrong number of values (line 3); received 1 value;"),
        ("t.csv", 'k,a\n1,"2\n', "not valid CSV: unexpected end of data (line 2)"),
        ("t.csv", b"k,a\n1,\xff\n", "the file is not UTF-8 (byte 7)"),
        ("t.csv", "key,a\n1,2\n", "unknown column; received 'k'; accepted: key, a"),
        ("t.csv", "k,the name\n1,2\n", "the field is not a valid element name"),
        ("t.csv", "k,a\n1,\x01\n", "the value has a character that XML does not allow (row 1: a)"),
        ("t.jsonl", '{"k": 1}\n{"k": \n', "expected a value (line 2)"),
        ("t.jsonl", "[1]", "the body is not a JSON object (line 1)"),
        ("t.parquet", "PAR1", "not a valid Parquet file"),
    ],
)
def test_read_file_invalid_file_error_names_problem(
    tmp_path: Path, name: str, content: str | bytes, message: str
) -> None:
    with pytest.raises(InputError) as problem:
        read_file(document_table(write_file(tmp_path, name, content)))
    assert problem.value.message().startswith("the reference table t cannot be used: ")
    assert message in problem.value.message()


def test_read_file_unsupported_value_is_rejected(tmp_path: Path) -> None:
    for values, message in (([b"x"], "not a JSON value"), ([float("nan")], "the number is not finite")):
        pq.write_table(pa.table({"k": [1], "a": values}), tmp_path / "t.parquet")
        with pytest.raises(InputError, match=message):
            read_file(event_table(tmp_path / "t.parquet"))


def test_read_file_parquet_column_name_not_utf8_is_rejected(tmp_path: Path) -> None:
    path = tmp_path / "t.parquet"
    pq.write_table(pa.table({"k": [1], "sector": ["a"]}), path, store_schema=False)
    path.write_bytes(path.read_bytes().replace(b"sector", b"sect\xffr"))
    with pytest.raises(InputError, match="not a valid Parquet file"):
        read_file(event_table(path))


def test_read_file_unknown_field_suggests_similar_column(tmp_path: Path) -> None:
    path = write_file(tmp_path, "t.csv", "k,sector\n")
    assert read_file(event_table(path)) == []
    with pytest.raises(InputError, match="did you mean 'sector'"):
        read_file(event_table(path, fields=("sectr",)))


def test_read_file_key_column_of_objects_is_rejected(tmp_path: Path) -> None:
    path = write_file(tmp_path, "t.jsonl", '{"k": {"a": 1}, "b": 2}')
    with pytest.raises(InputError, match="the key column contains objects"):
        read_file(event_table(path))
    assert read_file(event_table(path, "k.a")) == [Row((1,), {"b": (2,)})]


def test_read_file_too_large_table_error_names_limit(tmp_path: Path, monkeypatch: Any) -> None:
    rows = "k\n" + "1\n" * 20
    path = write_file(tmp_path, "t.csv", rows)
    pq.write_table(pa.table({"k": [1] * 20}), tmp_path / "t.parquet")
    monkeypatch.setattr(files, "MOST_ROWS", 20)
    assert len(read_file(event_table(path))) == 20
    for most in ({"MOST_ROWS": 19}, {"MOST_BYTES": 30}):
        for name, value in most.items():
            monkeypatch.setattr(files, name, value)
        for file in (path, tmp_path / "t.parquet"):
            with pytest.raises(InputError, match=r"too large.*at most 19 rows and"):
                read_file(event_table(file))


def test_read_file_missing_file_is_rejected(tmp_path: Path) -> None:
    for read in (read_file, read_stamp):
        with pytest.raises(InputError, match="the reference table t cannot be used: the file does not exist"):
            read(event_table(tmp_path / "t.csv"))  # type: ignore[operator]


def test_read_stamp_changes_with_file(tmp_path: Path) -> None:
    path = write_file(tmp_path, "t.csv", "k\n1\n")
    before = read_stamp(event_table(path))
    assert read_stamp(event_table(path)) == before
    path.write_text("k\n1\n2\n")
    assert read_stamp(event_table(path)) != before


def test_read_file_error_hides_credentials_of_object_store() -> None:
    reference = declare("t", "nowhere://key:secret@bucket/t.csv", "k", "symbol")
    assert reference.shown_file == "nowhere://bucket/t.csv"
    with pytest.raises(InputError) as problem:
        read_file(reference)
    assert "the file cannot be accessed" in problem.value.message()
    assert "secret" not in problem.value.message()
