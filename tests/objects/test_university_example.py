"""The program in examples/university runs on both databases, and says the same."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from postgres import Server
from tests.interfaces.calling import EXAMPLES
from tidings.interfaces.cli.model_inputs import read_model
from tidings.objects.triggers.installing import install
from tidings.objects.triggers.postgresql_site import open_postgresql
from tidings.objects.triggers.sites import open_sqlite

PROGRAM = f"{EXAMPLES}/university/changes.py"


@pytest.mark.parametrize("database", ["sqlite", "postgresql"])
def test_changes(database: str, request: pytest.FixtureRequest, tmp_path: Path) -> None:
    url, opened = f"sqlite:///{tmp_path}/university.db", open_sqlite
    if database == "postgresql":
        server: Server = request.getfixturevalue("postgres_server")
        url, opened = server.empty(), open_postgresql
    assert changes(url, "begin") == []
    with opened(url) as site:
        install(site, read_model(f"{EXAMPLES}/university/university.py:Base"))
    assert changes(url, "change") == [
        'update LearningMaterial ["title"]',
        "  S1 is told about ProgrammingBasics: watched",
        "  S2 is told about DataStructures: class Course",
        "  S2 is told about ProgrammingBasics: class Course",
        "  S2 is told about ProgrammingBasics: implicit attends",
        "  S3 is told about DataStructures: implicit attends",
    ]


def changes(url: str, does: str) -> list[str]:
    done = subprocess.run([sys.executable, PROGRAM, url, does], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout.splitlines()
