"""The tour in examples/university runs on both databases, with the same output."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.support.processes.command_line import EXAMPLES
from tests.support.servers.postgres import Server

NEW = "#1  university  LearningMaterial:2  Script2, second edition updated (title)  "
PATH = "Script2, second edition -usedIn-> "


@pytest.fixture
def tour(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[Callable[[str], None]]:
    """The program, run in this process because its imports are slow."""
    monkeypatch.syspath_prepend(f"{EXAMPLES}/university")
    monkeypatch.chdir(tmp_path)
    yield importlib.import_module("tour").tour
    for name in ("tour", "changes", "university"):
        del sys.modules[name]


@pytest.mark.parametrize("database", ["sqlite", "postgresql"])
def test_tour_prints_expected_output_on_both_databases(
    database: str,
    tour: Callable[[str], None],
    request: pytest.FixtureRequest,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    url = "sqlite:///university.db"
    if database == "postgresql":
        server: Server = request.getfixturevalue("postgres_server")
        url = server.empty().replace(f":{server.password}@", "@")
        monkeypatch.setenv("PGPASSWORD", server.password)
    tour(url)
    output = capsys.readouterr().out.split("(the application updates a script)\n")
    assert output[0].count("$ tidings") == 7 and "watches  Course:1  ProgrammingBasics" in output[0]
    assert output[1].splitlines() == [
        "$ tidings model notify",
        "university  1 change  3 notifications",
        "$ tidings notifications --as Student:1",
        f"{NEW}{PATH}ProgrammingBasics (you watch it)",
        "$ tidings notifications --as Student:2",
        f"{NEW}{PATH}ProgrammingBasics (you watch Course); {PATH}ProgrammingBasics <-attends- you; "
        f"{PATH}DataStructures (you watch Course)",
        "$ tidings notifications --as Student:3",
        f"{NEW}{PATH}DataStructures <-attends- you",
    ]
    assert Path("university.svg").exists() and "CREATE TRIGGER" in Path("triggers.sql").read_text()
    with pytest.raises(SystemExit, match="already contains a university"):
        tour(url)
