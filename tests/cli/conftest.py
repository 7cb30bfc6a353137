"""The command line in this process, in an empty folder."""

from __future__ import annotations

from pathlib import Path

import pytest
from typer.testing import CliRunner

from tests.support.processes.command_line import EXAMPLES, Done, Tidings
from tidings.cli.main import app


@pytest.fixture
def tidings(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Tidings:
    monkeypatch.chdir(tmp_path)

    def call(*words: str, given: str | None = None) -> Done:
        return CliRunner().invoke(app, list(words), input=given, catch_exceptions=False)

    return call


@pytest.fixture
def furniture(tidings: Tidings) -> Tidings:
    """The same command line, in a folder with the schema of furniture and antiques."""
    assert tidings("schema", "extend", str(EXAMPLES / "furniture.yaml")).exit_code == 0
    return tidings
