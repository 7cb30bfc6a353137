"""Reading tables: three kinds of files, what their values become, and what is wrong with them."""

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
from tidings.reference_data.tables import Row, read_file, stamp


def of_events(path: Path, key: str = "k", fields: tuple[str, ...] = ()) -> Reference:
    return declare("t", str(path), key, "symbol", fields)


def of_documents(path: Path, key: str = "k", fields: tuple[str, ...] = ()) -> Reference:
    return declare("t", str(path), key, "/symbol", fields)


def written(tmp_path: Path, name: str, content: str | bytes) -> Path:
    path = tmp_path / name
    path.write_bytes(content.encode() if isinstance(content, str) else content)
    return path


CSV = '\ufeffk,name,size,on\r\n7,"Jo ""J"", Inc.",1.50,true\r\n007,,2,false\r\n\r\n8,"two\nlines",3e1,\r\n'


def test_csv_for_events_has_numbers_where_all_values_are_numbers(tmp_path: Path) -> None:
    """007 is no number as JSON writes them, so keys are strings here; an empty value is none."""
    assert read_file(of_events(written(tmp_path, "t.csv", CSV))) == [
        Row(("7",), {"name": ('Jo "J", Inc.',), "size": (1.5,), "on": (True,)}),
        Row(("007",), {"size": (2,), "on": (False,)}),
        Row(("8",), {"name": ("two\nlines",), "size": (30.0,)}),
    ]


def test_csv_for_documents_is_text_as_it_is_written(tmp_path: Path) -> None:
    assert read_file(of_documents(written(tmp_path, "t.csv", CSV))) == [
        Row(("7",), {"name": ('Jo "J", Inc.',), "size": ("1.50",), "on": ("true",)}),
        Row(("007",), {"size": ("2",), "on": ("false",)}),
        Row(("8",), {"name": ("two\nlines",), "size": ("3e1",)}),
    ]


def test_json_lines(tmp_path: Path) -> None:
    lines = '{"k": 7, "a": {"b": "x", "c": null}, "d": [1, 2.5]}\n\n{"k": ["u", "v"], "d": true}\r\n{"d": 1}'
    path = written(tmp_path, "t.jsonl", lines)
    assert read_file(of_events(path)) == [
        Row((7,), {"a.b": ("x",), "d": (1, 2.5)}),
        Row(("u", "v"), {"d": (True,)}),
        Row((), {"d": (1,)}),
    ]
    assert read_file(of_documents(path))[0] == Row(("7",), {"a.b": ("x",), "d": ("1", "2.5")})
    assert read_file(of_events(path, fields=("a",)))[:2] == [Row((7,), {"a.b": ("x",)}), Row(("u", "v"), {})]
    assert read_file(of_events(path, fields=("k",)))[0] == Row((7,), {"k": (7,)})
    assert read_file(of_events(written(tmp_path, "empty.jsonl", ""))) == []


def test_parquet(tmp_path: Path) -> None:
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
    first, second, third = read_file(of_documents(tmp_path / "t.parquet"))
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
    assert read_file(of_events(tmp_path / "t.parquet"))[0].added["price"] == (7,)


@pytest.mark.parametrize(
    ("name", "content", "said"),
    [
        ("t.csv", "", "the first line does not name the columns"),
        ("t.csv", "k,a,a\n1,2,3\n", "the first line does not name the columns"),
        ("t.csv", "k,a\n1,2\n1\n", "a line of another length (line 3); received 1 value;"),
        ("t.csv", 'k,a\n1,"2\n', "this is no CSV: unexpected end of data (line 2)"),
        ("t.csv", b"k,a\n1,\xff\n", "the file is not UTF-8 (byte 7)"),
        ("t.csv", "key,a\n1,2\n", "there is no such column; received 'k'; accepted: key, a"),
        ("t.csv", "k,the name\n1,2\n", "a field that cannot be an element of a document"),
        ("t.csv", "k,a\n1,\x01\n", "a value with a character that XML does not have (row 1: a)"),
        ("t.jsonl", '{"k": 1}\n{"k": \n', "expected a value (line 2)"),
        ("t.jsonl", "[1]", "the body is not a JSON object (line 1)"),
        ("t.parquet", "PAR1", "this is no Parquet file"),
    ],
)
def test_what_is_wrong_with_a_file_is_said(
    tmp_path: Path, name: str, content: str | bytes, said: str
) -> None:
    with pytest.raises(InputError) as refusal:
        read_file(of_documents(written(tmp_path, name, content)))
    assert refusal.value.message().startswith("the reference table t cannot be used: ")
    assert said in refusal.value.message()


def test_values_that_no_publication_has_are_refused(tmp_path: Path) -> None:
    for values, said in (([b"x"], "not a JSON value"), ([float("nan")], "the number is not finite")):
        pq.write_table(pa.table({"k": [1], "a": values}), tmp_path / "t.parquet")
        with pytest.raises(InputError, match=said):
            read_file(of_events(tmp_path / "t.parquet"))


def test_read_file_given_a_parquet_column_whose_name_is_not_utf8_refuses_it(tmp_path: Path) -> None:
    path = tmp_path / "t.parquet"
    pq.write_table(pa.table({"k": [1], "sector": ["a"]}), path, store_schema=False)
    path.write_bytes(path.read_bytes().replace(b"sector", b"sect\xffr"))
    with pytest.raises(InputError, match="this is no Parquet file"):
        read_file(of_events(path))


def test_a_column_that_is_not_there(tmp_path: Path) -> None:
    path = written(tmp_path, "t.csv", "k,sector\n")
    assert read_file(of_events(path)) == []
    with pytest.raises(InputError, match="did you mean 'sector'"):
        read_file(of_events(path, fields=("sectr",)))


def test_a_key_has_to_be_a_single_value(tmp_path: Path) -> None:
    path = written(tmp_path, "t.jsonl", '{"k": {"a": 1}, "b": 2}')
    with pytest.raises(InputError, match="the key is no column of single values"):
        read_file(of_events(path))
    assert read_file(of_events(path, "k.a")) == [Row((1,), {"b": (2,)})]


def test_a_table_that_is_too_large_names_the_limit(tmp_path: Path, monkeypatch: Any) -> None:
    rows = "k\n" + "1\n" * 20
    path = written(tmp_path, "t.csv", rows)
    pq.write_table(pa.table({"k": [1] * 20}), tmp_path / "t.parquet")
    monkeypatch.setattr(files, "MOST_ROWS", 20)
    assert len(read_file(of_events(path))) == 20
    for most in ({"MOST_ROWS": 19}, {"MOST_BYTES": 30}):
        for name, value in most.items():
            monkeypatch.setattr(files, name, value)
        for file in (path, tmp_path / "t.parquet"):
            with pytest.raises(InputError, match=r"too large.*at most 19 rows and"):
                read_file(of_events(file))


def test_a_file_that_is_not_there(tmp_path: Path) -> None:
    for look in (read_file, stamp):
        with pytest.raises(InputError, match="the reference table t cannot be used: there is no such file"):
            look(of_events(tmp_path / "t.csv"))  # type: ignore[operator]


def test_the_stamp_changes_with_the_file(tmp_path: Path) -> None:
    path = written(tmp_path, "t.csv", "k\n1\n")
    before = stamp(of_events(path))
    assert stamp(of_events(path)) == before
    path.write_text("k\n1\n2\n")
    assert stamp(of_events(path)) != before


def test_keys_of_object_stores_are_not_shown() -> None:
    reference = declare("t", "nowhere://key:secret@bucket/t.csv", "k", "symbol")
    assert reference.shown_file == "nowhere://bucket/t.csv"
    with pytest.raises(InputError) as refusal:
        read_file(reference)
    assert "the file cannot be reached" in refusal.value.message()
    assert "secret" not in refusal.value.message()
