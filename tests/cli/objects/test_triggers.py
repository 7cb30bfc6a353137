"""`model triggers`: printed, installed, compared and removed."""

from __future__ import annotations

import json
import sqlite3
from pathlib import Path

import pytest

from tests.objects.histories import create_tables
from tests.support.processes.command_line import EXAMPLES, Tidings
from tidings.cli.objects.model import read_model

PUML = f"{EXAMPLES}/university/university.puml"
SUMMARY = "4 classes, 3 associations: attends implicit, usedIn propagates."


@pytest.fixture
def url(tmp_path: Path) -> str:
    path = tmp_path / "university.db"
    connection = sqlite3.connect(path)
    for sql in create_tables(read_model(PUML), "INTEGER"):
        connection.execute(sql)
    connection.close()
    return f"sqlite:///{path}"


def test_model_triggers_printed_sql_runs(tidings: Tidings, url: str) -> None:
    result = tidings("model", "triggers", PUML, "--dialect", "sqlite", "--out", "triggers.sql")
    assert (result.exit_code, result.stderr) == (0, "triggers.sql: 20 triggers\n")
    script = Path("triggers.sql").read_text()
    assert script == tidings("model", "triggers", PUML, "--dialect", "sqlite").stdout
    assert f"-- Generated from university.puml: {SUMMARY}" in script
    connection = sqlite3.connect(url.removeprefix("sqlite:///"))
    connection.executescript(script)
    connection.close()
    assert tidings("model", "triggers", PUML, "--diff", url).output == "20 triggers, as the model requires\n"


def test_model_triggers_install_and_remove(tidings: Tidings, url: str) -> None:
    result = tidings("model", "triggers", PUML, "--install", url)
    assert result.output == f"{SUMMARY}  20 triggers installed\n"
    assert tidings("model", "triggers", PUML, "--install", url).output.endswith(
        "20 triggers were there already\n"
    )
    removed = tidings("model", "triggers", PUML, "--remove", url)
    assert removed.output == "20 triggers removed, with the outbox and 0 watches\n"


def test_model_triggers_diff_lists_changes_of_install(tidings: Tidings, url: str) -> None:
    tidings("model", "triggers", PUML, "--install", url)
    Path("b.puml").write_text(
        Path(PUML).read_text().replace("<<propagates>>", "<<propagates {kinds = link}>>")
    )
    result = tidings("model", "triggers", "b.puml", "--diff", url)
    assert result.exit_code == 3
    assert [line.split() for line in result.stdout.splitlines()[1:]] == [
        ["different", "trigger", "tidings_changes_told", "tidings_changes"],
        ["left", "over", "trigger", "tidings_used_in_moved_from", "used_in"],
        ["left", "over", "trigger", "tidings_used_in_unlinked", "used_in"],
    ]
    rows = tidings("model", "triggers", "b.puml", "--diff", url, "--json").stdout.splitlines()
    expected = {
        "state": "different",
        "what": "trigger",
        "name": "tidings_changes_told",
        "on": "tidings_changes",
    }
    assert json.loads(rows[0]) == expected and len(rows) == 3
    assert tidings("model", "triggers", "b.puml", "--install", url).output.endswith(
        "18 triggers installed: 1 replaced, 2 removed\n"
    )


def test_model_triggers_limits_are_installed_and_compared(tidings: Tidings, url: str) -> None:
    limits = ["--max-steps", "2", "--max-subscribers", "3"]
    assert tidings("model", "triggers", PUML, "--install", url, *limits).exit_code == 0
    assert tidings("model", "triggers", PUML, "--diff", url, *limits).exit_code == 0
    result = tidings("model", "triggers", PUML, "--diff", url, "--max-steps", "2")
    assert result.exit_code == 3
    assert [line.split() for line in result.stdout.splitlines()[1:]] == [
        ["different", "trigger", "tidings_changes_told", "tidings_changes"]
    ]
    script = tidings("model", "triggers", PUML, "--dialect", "postgresql", *limits).stdout
    assert "r.distance < 2" in script and "WHERE place <= 3" in script


@pytest.mark.parametrize(
    ("options", "problem"),
    [
        ([], "the kind of database is missing"),
        (["--install", "mysql://a:secret@b/c"], "not a supported database URL; received b/c"),
        (["--install", "sqlite:///none.db"], "the database cannot be opened"),
        (
            ["--dialect", "postgresql", "--install", "sqlite:///none.db"],
            "the URL is of another kind of database",
        ),
        (["--diff", "sqlite:///a.db", "--remove", "sqlite:///a.db"], "these exclude each other"),
        (["--remove", "sqlite:///a.db", "--max-subscribers", "3"], "--remove has no limits"),
    ],
)
def test_model_triggers_invalid_options_are_rejected(
    tidings: Tidings, options: list[str], problem: str
) -> None:
    result = tidings("model", "triggers", PUML, *options)
    assert result.exit_code == 2 and problem in result.stderr and "secret" not in result.stderr
