"""`reference add`, `reference list` and `reference remove`."""

from __future__ import annotations

import json
from pathlib import Path

from tests.support.processes.command_line import Tidings

ADD = ("reference", "add", "sectors", "--file", "sectors.csv", "--key", "symbol", "--on", "/stock/symbol")


def write_table() -> Path:
    path = Path("sectors.csv")
    path.write_text("symbol,sector,country\nIBM,tech,US\nSAP,tech,DE\n")
    return path.absolute()


def test_reference_add_prints_rows_and_columns(tidings: Tidings) -> None:
    path = write_table()
    result = tidings(*ADD)
    assert result.stdout == "sectors  symbol = /stock/symbol  2 rows, adds sector, country\n"
    result = tidings(*ADD, "--field", "country", "--json")
    assert json.loads(result.stdout) == {
        "name": "sectors",
        "file": str(path),
        "key": "symbol",
        "on": "/stock/symbol",
        "fields": ["country"],
        "rows": 2,
        "adds": ["country"],
    }
    listed = tidings("reference", "list").stdout.splitlines()
    assert [row.split() for row in listed] == [
        ["name", "key", "on", "fields", "file"],
        ["sectors", "symbol", "/stock/symbol", "country", str(path)],
    ]
    assert json.loads(tidings("reference", "list", "--json").stdout)["fields"] == ["country"]


def test_reference_add_spark_table_is_not_read(tidings: Tidings) -> None:
    result = tidings(
        "reference", "add", "shops", "--file", "spark:sales.shops", "--key", "id", "--on", "shop"
    )
    assert result.stdout == (
        "shops  id = shop  the stream reads it when it starts, and when it is declared again\n"
    )


def test_reference_remove_and_repeat(tidings: Tidings) -> None:
    write_table()
    tidings(*ADD)
    assert tidings("reference", "remove", "sectors").stdout == "sectors  removed\n"
    result = tidings("reference", "remove", "sectors")
    assert (result.exit_code, result.stderr) == (3, "sectors  there is no such reference table\n")
    result = tidings("reference", "remove", "sectors", "--json")
    assert (result.exit_code, json.loads(result.stdout)) == (3, {"name": "sectors", "removed": False})
    assert tidings("reference", "list").stderr.startswith("no reference tables: tidings reference add ")


def test_reference_add_invalid_table_is_rejected_and_not_stored(tidings: Tidings) -> None:
    result = tidings(*ADD)
    assert (result.exit_code, result.stderr[:80]) == (
        2,
        "error: the reference table sectors cannot be used: the file does not exist; rece",
    )
    write_table()
    result = tidings(*ADD[:-1], "/stock/symbol[")
    assert result.exit_code == 2
    assert "column 15" in result.stderr
    assert tidings("reference", "list", "--json").stdout == ""


def test_match_invalid_references_are_rejected_before_spark_starts(tidings: Tidings) -> None:
    Path("subs.jsonl").write_text("")
    Path("day.jsonl").write_text("")
    Path("tables.yaml").write_text("sectors: {file: sectors.csv, key: symbol, on: symbol}")
    job = ("match", "--subscriptions", "subs.jsonl", "--publications", "day.jsonl", "--out", "out")
    result = tidings(*job, "--references", "tables.yaml")
    assert result.exit_code == 2
    assert "the reference table sectors cannot be used: the file does not exist" in result.stderr
    assert tidings(*job, "--references", "nowhere.yaml").stderr.startswith("error: no file 'nowhere.yaml'")
    assert not Path("out").exists()
