"""`tidings tables` keeps XPath subscriptions in tables, and `tidings match --tables` matches with them."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pyarrow.parquet as parquet
import pytest
from typer.testing import Result

from tests.support.processes.terminal import Terminal
from tidings.relational.table_store import hold_tables

Tidings = Callable[..., Result]
pytestmark = pytest.mark.spark

TEXTS = {"web": "//stock[symbol = 'YHOO']/price > 50", "any": "//stock", "anvils": "//stock/symbol = 'ACME'"}


def write_lines(path: Path, texts: dict[str, str], *more: str) -> str:
    rows = [{"id": id, "subscriber": "ana", "language": "xpath", "text": text} for id, text in texts.items()]
    path.write_text("".join(f"{line}\n" for line in [*map(json.dumps, rows), *more]))
    return str(path)


@pytest.fixture
def subs(tmp_path: Path) -> str:
    return write_lines(tmp_path / "subs.jsonl", TEXTS)


@pytest.fixture
def quotes(tmp_path: Path) -> Path:
    folder = tmp_path / "quotes"
    folder.mkdir()
    (folder / "y.xml").write_bytes(b"<stock><symbol>YHOO</symbol><price>70.2</price></stock>")
    (folder / "a.xml").write_bytes(b"<stock><symbol>ACME</symbol><price>1</price></stock>")
    return folder


def show_tables(tidings: Tidings) -> dict[str, object]:
    shown = tidings("tables", "show", "tables", "--json")
    assert shown.exit_code == 0, shown.output
    return dict(json.loads(shown.stdout))


def test_tables_create_chooses_the_plan_and_show_prints_it(tidings: Tidings, subs: str) -> None:
    made = tidings("tables", "create", "tables", "--subscriptions", subs)
    assert made.exit_code == 0, made.output
    assert made.stdout == "3 subscriptions added\n"
    assert made.stderr.startswith("relational as requested, unroll: 1.3 predicates each")
    shown = show_tables(tidings)
    assert {name: shown[name] for name in ("plan", "unroll", "subscriptions", "removed", "follows")} == {
        **{"plan": "unroll", "unroll": 2, "subscriptions": 3, "removed": 0},
        "follows": None,
    }
    rows = {table["name"]: table["rows"] for table in shown["tables"]}
    assert rows["predicate_unroll"] == rows["query_branchpoint"] == 3
    assert sum(table["bytes"] for table in shown["tables"]) == shown["bytes"]
    printed = tidings("tables", "show", "tables").stdout.splitlines()
    assert printed[0].startswith(
        "tables  plan unroll, 2 predicates per row  3 subscriptions, 0 removed since"
    )
    assert any(line.split()[:3] == ["predicate_unroll", "3", "1"] for line in printed)


def test_tables_add_lists_what_is_refused(tidings: Tidings, subs: str, tmp_path: Path) -> None:
    assert tidings("tables", "create", "tables", "--plan", "share", "--json").exit_code == 0
    more = write_lines(
        tmp_path / "more.jsonl",
        {"any": "//a", "bad": "//a[", "new": "//b"},
        '{"id": "p", "subscriber": "bo", "text": "price < 5"}',
        "not json",
    )
    assert tidings("tables", "add", "tables", subs).exit_code == 0
    added = tidings("tables", "add", "tables", more, "--json")
    assert added.exit_code == 3
    assert json.loads(added.stdout) == {
        "folder": "tables",
        "added": 1,
        "refused": 4,
        "subscriptions": 4,
    }
    refused = {each["where"] for each in map(json.loads, added.stderr.splitlines())}
    assert {"more.jsonl:5", "p"} <= refused
    printed = tidings("tables", "add", "tables", more)
    assert "refused: any: there is a subscription with this id already; received 'any'" in printed.stderr
    assert printed.stdout == "0 subscriptions added, 5 refused\n"


def test_tables_remove_prints_which_existed(tidings: Tidings, subs: str) -> None:
    tidings("tables", "create", "tables", "--subscriptions", subs)
    removed = tidings("tables", "remove", "tables", "web", "unknown", "web")
    assert (removed.exit_code, removed.stdout) == (3, "web  removed\n")
    assert removed.stderr == "unknown  there is no such subscription\n"
    shown = show_tables(tidings)
    assert (shown["subscriptions"], shown["removed"]) == (2, 1)
    again = tidings("tables", "remove", "tables", "web", "--json")
    assert (again.exit_code, json.loads(again.stdout)) == (3, {"id": "web", "removed": False})


def test_match_tables_uses_them_without_building_them_again(
    tidings: Tidings, terminal: Terminal, tmp_path: Path, subs: str, quotes: Path
) -> None:
    assert tidings("tables", "create", "tables", "--subscriptions", subs).exit_code == 0
    words = ("match", "--tables", "tables", "--publications", "quotes", "--master", "local[2]")
    first = terminal.call(tmp_path, *words, "--out", "first")
    assert first.exit_code == 0, first.output
    assert read_pairs(tmp_path / "first") == {("y.xml", "web"), ("y.xml", "any"), ("a.xml", "any")} | {
        ("a.xml", "anvils")
    }
    learned = show_tables(tidings)
    tidings("tables", "remove", "tables", "any", "web")
    more = write_lines(tmp_path / "more.jsonl", {"web": "//price < 5"})
    assert tidings("tables", "add", "tables", more).exit_code == 0
    compacted = terminal.call(tmp_path, "tables", "compact", "tables", "--json", "--master", "local[2]")
    assert compacted.exit_code == 0, compacted.output
    second = terminal.call(tmp_path, *words, "--out", "second", "--json")
    assert json.loads(second.stdout)["built"]["subscriptions"] == 2
    assert read_pairs(tmp_path / "second") == {("a.xml", "web"), ("a.xml", "anvils")}
    assert show_tables(tidings)["removed"] == 0
    assert show_tables(tidings)["generation"] > learned["generation"]


def read_pairs(out: Path) -> set[tuple[str, str]]:
    return {(row["publication"], row["subscription"]) for row in parquet.read_table(out).to_pylist()}


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ((), "where are the subscriptions?; received neither"),
        (("--tables", "tables", "--subscriptions", "subs.jsonl"), "received both"),
        (("--tables", "tables", "--engine", "index"), "tables are matched by the relational engine"),
        (("--tables", "tables", "--plan", "share"), "--plan does not apply to tables"),
        (("--tables", "nowhere"), "--tables: no such file or folder"),
        (("--tables", "quotes"), "the folder has no tables"),
        (("--tables", "tables", "--format", "csv"), "--tables does not apply to tables that Spark reads"),
    ],
)
def test_match_tables_contradictions_are_refused_before_spark_starts(
    tidings: Tidings, subs: str, quotes: Path, words: tuple[str, ...], message: str
) -> None:
    tidings("tables", "create", "tables", "--subscriptions", subs)
    result = tidings("match", "--publications", "quotes", "--out", "out", *words)
    assert result.exit_code == 2 and message in result.stderr, result.stderr


def test_tables_create_without_a_plan_or_in_a_used_folder_is_refused(tidings: Tidings, subs: str) -> None:
    result = tidings("tables", "create", "tables")
    assert result.exit_code == 2 and "the plan of the tables is missing" in result.stderr
    assert tidings("tables", "create", "tables", "--plan", "share").exit_code == 0
    result = tidings("tables", "create", "tables", "--plan", "share")
    assert result.exit_code == 2 and "has tables of subscriptions already" in result.stderr


def test_tables_that_another_process_changes_are_refused(tidings: Tidings, subs: str, tmp_path: Path) -> None:
    tidings("tables", "create", "tables", "--subscriptions", subs)
    with hold_tables(tmp_path / "tables"):
        result = tidings("tables", "remove", "tables", "web")
    assert result.exit_code == 4 and "another process" in result.stderr
    assert tidings("tables", "remove", "tables", "web").exit_code == 0
