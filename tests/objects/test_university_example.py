"""The tour in examples/university runs on both databases, and says the same."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from postgres import Server
from tests.interfaces.calling import EXAMPLES

TOUR = f"{EXAMPLES}/university/tour.py"
NEW = "#1  university  LearningMaterial:2  Script2, second edition updated (title)  "
PATH = "Script2, second edition -usedIn-> "


@pytest.mark.parametrize("database", ["sqlite", "postgresql"])
def test_tour(database: str, request: pytest.FixtureRequest, tmp_path: Path) -> None:
    words, environment = [TOUR], dict(os.environ)
    if database == "postgresql":
        server: Server = request.getfixturevalue("postgres_server")
        words.append(server.empty().replace(f":{server.password}@", "@"))
        environment["PGPASSWORD"] = server.password
    done = subprocess.run(
        [sys.executable, *words], cwd=tmp_path, env=environment, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    said = done.stdout.split("(somebody updates a script in the application)\n")
    assert said[0].count("$ tidings") == 6 and "watches  Course:1  ProgrammingBasics" in said[0]
    assert said[1].splitlines() == [
        "$ tidings model tell",
        "university  1 change  3 notifications",
        "$ tidings notifications --as Student:1",
        f"{NEW}{PATH}ProgrammingBasics (you watch it)",
        "$ tidings notifications --as Student:2",
        f"{NEW}{PATH}ProgrammingBasics (you watch Course); {PATH}ProgrammingBasics <-attends- you; "
        f"{PATH}DataStructures (you watch Course)",
        "$ tidings notifications --as Student:3",
        f"{NEW}{PATH}DataStructures <-attends- you",
    ]
    assert (tmp_path / "university.svg").exists()
