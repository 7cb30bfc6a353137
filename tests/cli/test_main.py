"""The command as a whole: help, version, exit codes, pipes, colours."""

from __future__ import annotations

import os
import pty
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.processes.command_line import Tidings, start
from tidings.cli import main
from tidings.model import Reason
from tidings.notification_text import format_reasons


def test_command_ended_by_sigterm_says_so_in_a_sentence(tmp_path: Path) -> None:
    following = start("notifications", "--as", "ana", "--follow", cwd=tmp_path)
    assert following.stderr and "waiting" in following.stderr.readline()
    following.terminate()
    _, complained = following.communicate()
    assert (following.returncode, complained) == (128 + signal.SIGTERM, "ended by SIGTERM\n")


def test_without_words_the_help_is_shown(tidings: Tidings) -> None:
    for done in (tidings(), tidings("--help"), tidings("-h")):
        assert "Usage:" in done.output
        assert "subscribe" in done.output


@pytest.mark.parametrize("command", [words.__name__ for _, words in main.COMMANDS])
def test_every_command_has_help_with_examples(tidings: Tidings, command: str) -> None:
    done = tidings(command, "--help")
    assert done.exit_code == 0
    assert f"tidings {command}" in done.output or command in ("demo", "doctor")
    assert "[[" not in done.output and "9223372036854775807" not in done.output


def test_version(tidings: Tidings) -> None:
    assert tidings("--version").stdout.startswith("tidings 0.")


def test_an_unknown_command_is_a_usage_error(tidings: Tidings) -> None:
    assert tidings("subscrib").exit_code == 2


def test_the_home_folder_is_where_the_option_or_the_environment_says(
    tidings: Tidings, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    tidings("subscribe", "--as", "ana", "a = 1", "--home", "here")
    monkeypatch.setenv("TIDINGS_HOME", "there")
    tidings("subscribe", "--as", "bo", "b = 1")
    assert (tmp_path / "here/store.db").exists() and (tmp_path / "there/store.db").exists()
    assert not (tmp_path / ".tidings").exists()
    assert "ana" in tidings("subscriptions", "--home", "here").stdout
    assert "bo" in tidings("subscriptions").stdout


def test_another_store(tidings: Tidings, tmp_path: Path) -> None:
    tidings("publish", "{}", "--store", "sqlite:///elsewhere.db")
    assert (tmp_path / "elsewhere.db").exists()
    done = tidings("publish", "{}", "--store", "mysql://nowhere")
    assert done.exit_code == 1
    assert "accepted: sqlite:///" in done.stderr


def test_a_home_that_cannot_be_made_is_a_set_up_problem(tidings: Tidings, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    done = tidings("publish", "{}", "--home", "file/below")
    assert done.exit_code == 4
    assert "--home" in done.stderr


def test_a_bug_is_shown_whole(tidings: Tidings, monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(*_: object) -> None:
        raise RuntimeError("a bug")

    monkeypatch.setattr("tidings.service.tidings.Tidings.subscriptions", broken)
    with pytest.raises(RuntimeError, match="a bug"):
        tidings("subscriptions")


def test_a_reader_that_goes_away_is_no_error(tmp_path: Path) -> None:
    publish = start("publish", "-", "--json", cwd=tmp_path, stdin=subprocess.PIPE)
    assert publish.stdin and publish.stdout and publish.stderr
    publish.stdout.close()
    publish.stdin.write('{"a": 1}\n' * 3)
    publish.stdin.close()
    assert publish.wait() == 1
    assert publish.stderr.read() == ""
    publish.stderr.close()


def test_errors_are_coloured_on_a_terminal_only(tidings: Tidings, tmp_path: Path) -> None:
    assert "\x1b" not in tidings("subscribe", "--as", "ana", "a <").stderr
    terminal, end = pty.openpty()
    words = [sys.executable, "-m", "tidings", "subscribe", "--as", "ana", "a <"]
    environment = {name: os.environ[name] for name in ("PATH", "HOME") if name in os.environ}
    done = subprocess.run(words, cwd=tmp_path, stderr=end, env=environment | {"TERM": "xterm"}, check=False)
    os.close(end)
    assert done.returncode == 2
    assert b"\x1b[1;31merror: \x1b[0m" in os.read(terminal, 10_000)
    os.close(terminal)


@pytest.mark.parametrize(
    ("predicate", "value", "told"),
    [
        ("price < 200", 180, "price 180 < 200"),
        ("category is a 'dining room'", "table", "category 'table' is a 'dining room'"),
        ("\"odd name\" = 'it''s'", "it's", "\"odd name\" 'it''s' = 'it''s'"),
        ("sold", True, "sold"),
        ("exists maker.city", "Graz", "exists maker.city ('Graz')"),
        ("not (material = 'pine')", None, "not (material = 'pine')"),
        ("(?page, dc:subject, ?s)", "http://example.org/topss", "(?page, dc:subject, ?s)"),
        ("?s <= <http://example.org/Academia>", "x", "?s 'x' <= <http://example.org/Academia>"),
    ],
)
def test_reasons_put_the_value_behind_the_path(predicate: str, value: object, told: str) -> None:
    assert format_reasons([Reason(predicate, value, "/x")]) == told  # type: ignore[arg-type]


def test_the_shell_completes_commands_and_options() -> None:
    def completed(*words: str) -> set[str]:
        asked = {"COMP_WORDS": " ".join(words), "COMP_CWORD": str(len(words) - 1)}
        done = subprocess.run(
            [Path(sys.executable).with_name("tidings")],
            env=os.environ | asked | {"_TIDINGS_COMPLETE": "complete_bash"},
            capture_output=True,
            text=True,
            check=True,
        )
        return set(done.stdout.split())

    assert completed("tidings", "sub") == {"subscribe", "subscriptions"}
    assert completed("tidings", "notifications", "--fo") == {"--follow"}
