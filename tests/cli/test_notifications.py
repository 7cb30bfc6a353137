"""`tidings notifications --unread --ack`: what was shown is not shown again."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.processes.command_line import Tidings as Call
from tidings.service.tidings import Tidings
from tidings.store.encoding import MatchRow


def tell(home: Path, *numbers: int) -> None:
    with Tidings(home) as service:
        found = [MatchRow(f"p-{number}", "s-1", "ana") for number in numbers]
        service.store.notifications.commit_batch("test", numbers[0], found)


def shown(tidings: Call, *words: str) -> list[str]:
    done = tidings("notifications", "--as", "ana", *words)
    assert done.exit_code == 0, done.output
    return [line.split()[0] for line in done.stdout.splitlines()]


def test_what_was_acknowledged_is_not_shown_again(tidings: Call, tmp_path: Path) -> None:
    home = tmp_path / ".tidings"
    tell(home, 1, 2, 3)
    assert shown(tidings, "--unread") == ["#1", "#2", "#3"]
    assert shown(tidings, "--unread", "--ack", "--limit", "2") == ["#1", "#2"]
    assert shown(tidings, "--unread", "--ack") == ["#3"]
    assert (
        "nothing new for ana; the last number is 3"
        in tidings("notifications", "--as", "ana", "--unread").stderr
    )
    tell(home, 4)
    assert shown(tidings, "--unread", "--ack", "--follow", "--limit", "1") == ["#4"]
    assert shown(tidings, "--unread") == []
    assert shown(tidings) == ["#1", "#2", "#3", "#4"]
    with Tidings(home) as service:
        assert service.store.acknowledgements.cursor("ana").acknowledged == 4


@pytest.mark.parametrize("words", [(), ("--follow", "--limit", "1")], ids=["at once", "following"])
def test_a_number_that_is_ahead_of_everything_is_refused(
    tidings: Call, tmp_path: Path, words: tuple[str, ...]
) -> None:
    """What comes under the numbers in between would be missed, without a word."""
    tidings("subscribe", "--as", "ana", "a = 1")
    tell(tmp_path / ".tidings", 1, 2, 3)
    done = tidings("notifications", "--as", "ana", "--after", "100000", *words)
    assert (done.exit_code, done.stdout) == (2, "")
    assert done.stderr == (
        "error: there is no such number (--after); received 100000; accepted: 0 to 3; "
        "the notifications up to this number would be skipped\n"
    )
    last = tidings("notifications", "--as", "ana", "--after", "3")
    assert (last.exit_code, last.stderr) == (0, "nothing new for ana; the last number is 3\n")


def test_two_places_to_begin(tidings: Call) -> None:
    done = tidings("notifications", "--as", "ana", "--after", "1", "--unread")
    assert (done.exit_code, "--unread and --after exclude each other" in done.stderr) == (2, True)
