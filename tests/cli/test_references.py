"""`reference add`, `reference list`, `reference remove`."""

from __future__ import annotations

import json
from pathlib import Path

from tests.support.processes.command_line import Tidings

ADD = ("reference", "add", "sectors", "--file", "sectors.csv", "--key", "symbol", "--on", "/stock/symbol")


def write() -> Path:
    path = Path("sectors.csv")
    path.write_text("symbol,sector,country\nIBM,tech,US\nSAP,tech,DE\n")
    return path.absolute()


def test_add_says_what_was_found(tidings: Tidings) -> None:
    path = write()
    done = tidings(*ADD)
    assert done.stdout == "sectors  symbol = /stock/symbol  2 rows, adds sector, country\n"
    done = tidings(*ADD, "--field", "country", "--json")
    assert json.loads(done.stdout) == {
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


def test_a_table_of_spark_is_not_looked_at(tidings: Tidings) -> None:
    done = tidings("reference", "add", "shops", "--file", "spark:sales.shops", "--key", "id", "--on", "shop")
    assert done.stdout == (
        "shops  id = shop  the stream reads it when it starts, and when it is declared again\n"
    )


def test_remove(tidings: Tidings) -> None:
    write()
    tidings(*ADD)
    assert tidings("reference", "remove", "sectors").stdout == "sectors  removed\n"
    done = tidings("reference", "remove", "sectors")
    assert (done.exit_code, done.stderr) == (3, "sectors  there is no such reference table\n")
    done = tidings("reference", "remove", "sectors", "--json")
    assert (done.exit_code, json.loads(done.stdout)) == (3, {"name": "sectors", "removed": False})
    assert tidings("reference", "list").stderr.startswith("no reference tables: tidings reference add ")


def test_what_is_refused_is_not_kept(tidings: Tidings) -> None:
    done = tidings(*ADD)
    assert (done.exit_code, done.stderr[:78]) == (
        2,
        "error: the reference table sectors cannot be used: there is no such file; rece",
    )
    write()
    done = tidings(*ADD[:-1], "/stock/symbol[")
    assert done.exit_code == 2
    assert "column 15" in done.stderr
    assert tidings("reference", "list", "--json").stdout == ""


def test_match_refuses_tables_before_spark_starts(tidings: Tidings) -> None:
    Path("subs.jsonl").write_text("")
    Path("day.jsonl").write_text("")
    Path("tables.yaml").write_text("sectors: {file: sectors.csv, key: symbol, on: symbol}")
    job = ("match", "--subscriptions", "subs.jsonl", "--publications", "day.jsonl", "--out", "out")
    done = tidings(*job, "--references", "tables.yaml")
    assert done.exit_code == 2
    assert "the reference table sectors cannot be used: there is no such file" in done.stderr
    assert tidings(*job, "--references", "nowhere.yaml").stderr.startswith("error: no file 'nowhere.yaml'")
    assert not Path("out").exists()
