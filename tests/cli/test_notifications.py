"""`tidings notifications --unread --ack`: acknowledged notifications are not shown again."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.processes.command_line import Tidings as Call
from tidings.service.tidings import Tidings
from tidings.store.encoding import MatchRow


def notify(home: Path, *numbers: int) -> None:
    with Tidings(home) as service:
        matches = [MatchRow(f"p-{number}", "s-1", "ana") for number in numbers]
        service.store.notifications.commit_batch("test", numbers[0], matches)


def numbers_printed(tidings: Call, *words: str) -> list[str]:
    result = tidings("notifications", "--as", "ana", *words)
    assert result.exit_code == 0, result.output
    return [line.split()[0] for line in result.stdout.splitlines()]


def test_notifications_unread_skips_acknowledged(tidings: Call, tmp_path: Path) -> None:
    home = tmp_path / ".tidings"
    notify(home, 1, 2, 3)
    assert numbers_printed(tidings, "--unread") == ["#1", "#2", "#3"]
    assert numbers_printed(tidings, "--unread", "--ack", "--limit", "2") == ["#1", "#2"]
    assert numbers_printed(tidings, "--unread", "--ack") == ["#3"]
    assert (
        "nothing new for ana; the last number is 3"
        in tidings("notifications", "--as", "ana", "--unread").stderr
    )
    notify(home, 4)
    assert numbers_printed(tidings, "--unread", "--ack", "--follow", "--limit", "1") == ["#4"]
    assert numbers_printed(tidings, "--unread") == []
    assert numbers_printed(tidings) == ["#1", "#2", "#3", "#4"]
    with Tidings(home) as service:
        assert service.store.acknowledgements.cursor("ana").acknowledged == 4


@pytest.mark.parametrize("words", [(), ("--follow", "--limit", "1")], ids=["at once", "following"])
def test_notifications_after_beyond_last_is_rejected(
    tidings: Call, tmp_path: Path, words: tuple[str, ...]
) -> None:
    """Otherwise the notifications in between would be skipped silently."""
    tidings("subscribe", "--as", "ana", "a = 1")
    notify(tmp_path / ".tidings", 1, 2, 3)
    result = tidings("notifications", "--as", "ana", "--after", "100000", *words)
    assert (result.exit_code, result.stdout) == (2, "")
    assert result.stderr == (
        "error: there is no such number (--after); received 100000; accepted: 0 to 3; "
        "the notifications up to this number would be skipped\n"
    )
    last = tidings("notifications", "--as", "ana", "--after", "3")
    assert (last.exit_code, last.stderr) == (0, "nothing new for ana; the last number is 3\n")


def test_notifications_unread_with_after_is_rejected(tidings: Call) -> None:
    result = tidings("notifications", "--as", "ana", "--after", "1", "--unread")
    assert (result.exit_code, "--unread and --after exclude each other" in result.stderr) == (2, True)
