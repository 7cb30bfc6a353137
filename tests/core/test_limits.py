"""Limits from the environment, and their effect on documents and subscriptions."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tidings.core.limits import limits_from
from tidings.documents import xml_decoder
from tidings.documents.xpath import xpath_parser
from tidings.errors import SetupError

NAME = "TIDINGS_SOME_LIMITS"


def test_limits_from_unnamed_limits_keep_defaults(monkeypatch: pytest.MonkeyPatch) -> None:
    assert limits_from(NAME, xml_decoder.Limits) == xml_decoder.Limits()
    monkeypatch.setenv(NAME, "depth=100, nodes=5_000")
    assert limits_from(NAME, xml_decoder.Limits) == xml_decoder.Limits(depth=100, nodes=5000)
    monkeypatch.setenv(NAME, "steps=128")
    assert limits_from(NAME, xpath_parser.Limits) == xpath_parser.Limits(steps=128)


@pytest.mark.parametrize(
    "setting",
    [
        "depth",
        "depth=",
        "depth=-1",
        "depth=0",
        "depth=many",
        "colour=5",
        "depth=1000",
        pytest.param("depth=" + "9" * 5_000, id="many digits"),
    ],
)
def test_limits_from_invalid_limit_is_rejected_by_name(monkeypatch: pytest.MonkeyPatch, setting: str) -> None:
    monkeypatch.setenv(NAME, setting)
    with pytest.raises(SetupError, match=f"not a limit.*{NAME}"):
        limits_from(NAME, xml_decoder.Limits)


def run_command(home: Path, *words: str, **environment: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "tidings", *words, "--home", str(home)]
    return subprocess.run(
        command, env=os.environ | environment, capture_output=True, text=True, check=False, timeout=120
    )


def test_commands_apply_limits_from_environment(tmp_path: Path) -> None:
    result = run_command(tmp_path, "publish", "<a><b/></a>", TIDINGS_DOCUMENT_LIMITS="depth=1")
    assert result.returncode == 2 and "at most 1 levels (the limit depth)" in result.stderr
    path = ("subscribe", "--as", "ana", "--language", "xpath", "/a/b/c")
    result = run_command(tmp_path, *path, TIDINGS_XPATH_LIMITS="steps=2")
    assert result.returncode == 2 and "steps" in result.stderr
    result = run_command(tmp_path, *path, TIDINGS_XPATH_LIMITS="staps=2")
    assert result.returncode == 4 and "TIDINGS_XPATH_LIMITS" in result.stderr
    assert run_command(tmp_path, *path).returncode == 0
