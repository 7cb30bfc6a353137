"""The command as a whole: help, version, exit codes, pipes and colours."""

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


def test_command_ended_by_sigterm_prints_one_line(tmp_path: Path) -> None:
    following = start("notifications", "--as", "ana", "--follow", cwd=tmp_path)
    assert following.stderr and "waiting" in following.stderr.readline()
    following.terminate()
    _, errors = following.communicate()
    assert (following.returncode, errors) == (128 + signal.SIGTERM, "ended by SIGTERM\n")


def test_main_without_arguments_prints_help(tidings: Tidings) -> None:
    for result in (tidings(), tidings("--help"), tidings("-h")):
        assert "Usage:" in result.output
        assert "subscribe" in result.output


@pytest.mark.parametrize("command", [words.__name__ for _, words in main.COMMANDS])
def test_every_command_has_help_with_examples(tidings: Tidings, command: str) -> None:
    result = tidings(command, "--help")
    assert result.exit_code == 0
    assert f"tidings {command}" in result.output or command in ("demo", "doctor")
    assert "[[" not in result.output and "9223372036854775807" not in result.output


def test_main_version_option_prints_version(tidings: Tidings) -> None:
    assert tidings("--version").stdout.startswith("tidings 0.")


def test_main_unknown_command_is_usage_error(tidings: Tidings) -> None:
    assert tidings("subscrib").exit_code == 2


@pytest.mark.parametrize(
    ("words", "hint"),
    [
        (("model", "tell"), "No such command 'tell'. Did you mean 'notify'?"),
        (("destination", "letters", "d-1"), "No such command 'letters'. Did you mean 'dead-letters'?"),
        (("provider", "forget", "large"), "No such command 'forget'. Did you mean 'remove-rule'?"),
        (("model", "changes", "a.puml", "--tell"), "No such option: --tell (Possible options: --notify)"),
        (
            ("model", "notify", "--tell-author"),
            "No such option: --tell-author (Possible options: --notify-author)",
        ),
        (
            ("model", "triggers", "--most-told=3"),
            "No such option: --most-told (Possible options: --max-subscribers)",
        ),
        (
            ("model", "triggers", "--most-steps", "3"),
            "No such option: --most-steps (Possible options: --max-steps)",
        ),
        (("serve", "--log", "sqlite:///a.db"), "No such option: --log (Possible options: --metadata-log)"),
        (
            ("token", "make", "a", "--lasting", "1h"),
            "No such option: --lasting (Possible options: --expires-in)",
        ),
    ],
)
def test_earlier_name_of_a_command_or_option_suggests_the_new_one(
    tidings: Tidings, words: tuple[str, ...], hint: str
) -> None:
    done = tidings(*words)
    assert done.exit_code == 2 and hint in done.stderr


def test_value_that_is_an_earlier_name_of_an_option_is_accepted(tidings: Tidings) -> None:
    assert tidings("token", "make", "--as", "ana", "--", "--lasting").exit_code == 0


def test_home_option_or_environment_sets_home_folder(
    tidings: Tidings, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    tidings("subscribe", "--as", "ana", "a = 1", "--home", "here")
    monkeypatch.setenv("TIDINGS_HOME", "there")
    tidings("subscribe", "--as", "bo", "b = 1")
    assert (tmp_path / "here/store.db").exists() and (tmp_path / "there/store.db").exists()
    assert not (tmp_path / ".tidings").exists()
    assert "ana" in tidings("subscriptions", "--home", "here").stdout
    assert "bo" in tidings("subscriptions").stdout


def test_store_option_sets_store(tidings: Tidings, tmp_path: Path) -> None:
    tidings("publish", "{}", "--store", "sqlite:///elsewhere.db")
    assert (tmp_path / "elsewhere.db").exists()
    result = tidings("publish", "{}", "--store", "mysql://nowhere")
    assert result.exit_code == 1
    assert "accepted: sqlite:///" in result.stderr


def test_home_option_uncreatable_folder_is_setup_error(tidings: Tidings, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    result = tidings("publish", "{}", "--home", "file/below")
    assert result.exit_code == 4
    assert "--home" in result.stderr


def test_main_unexpected_exception_is_raised(tidings: Tidings, monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(*_: object) -> None:
        raise RuntimeError("a bug")

    monkeypatch.setattr("tidings.service.tidings.Tidings.subscriptions", broken)
    with pytest.raises(RuntimeError, match="a bug"):
        tidings("subscriptions")


def test_publish_with_closed_output_prints_no_error(tmp_path: Path) -> None:
    publish = start("publish", "-", "--json", cwd=tmp_path, stdin=subprocess.PIPE)
    assert publish.stdin and publish.stdout and publish.stderr
    publish.stdout.close()
    publish.stdin.write('{"a": 1}\n' * 3)
    publish.stdin.close()
    assert publish.wait() == 1
    assert publish.stderr.read() == ""
    publish.stderr.close()


def test_errors_are_coloured_on_terminal_only(tidings: Tidings, tmp_path: Path) -> None:
    assert "\x1b" not in tidings("subscribe", "--as", "ana", "a <").stderr
    terminal, end = pty.openpty()
    words = [sys.executable, "-m", "tidings", "subscribe", "--as", "ana", "a <"]
    environment = {name: os.environ[name] for name in ("PATH", "HOME") if name in os.environ}
    result = subprocess.run(words, cwd=tmp_path, stderr=end, env=environment | {"TERM": "xterm"}, check=False)
    os.close(end)
    assert result.returncode == 2
    assert b"\x1b[1;31merror: \x1b[0m" in os.read(terminal, 10_000)
    os.close(terminal)


@pytest.mark.parametrize(
    ("predicate", "value", "expected"),
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
def test_format_reasons_inserts_value_after_path(predicate: str, value: object, expected: str) -> None:
    assert format_reasons([Reason(predicate, value, "/x")]) == expected  # type: ignore[arg-type]


def test_shell_completion_completes_commands_and_options() -> None:
    def complete(*words: str) -> set[str]:
        environment = {"COMP_WORDS": " ".join(words), "COMP_CWORD": str(len(words) - 1)}
        result = subprocess.run(
            [Path(sys.executable).with_name("tidings")],
            env=os.environ | environment | {"_TIDINGS_COMPLETE": "complete_bash"},
            capture_output=True,
            text=True,
            check=True,
        )
        return set(result.stdout.split())

    assert complete("tidings", "sub") == {"subscribe", "subscriptions"}
    assert complete("tidings", "notifications", "--fo") == {"--follow"}
