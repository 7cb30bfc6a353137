"""What whoever has typed Ctrl-C is told."""

from __future__ import annotations

import pytest

from tidings.cli.operations.serve_status import ShutdownNotice, describe_requests
from tidings.operations.health import PendingWork


def test_what_is_waited_for_is_said_in_two_lines(capsys: pytest.CaptureFixture[str]) -> None:
    under_way, asked = PendingWork(), [0]
    ending = ShutdownNotice(under_way, 20.0)
    ending.say()
    assert capsys.readouterr().err == "", "nothing is there that could be under way"
    under_way.watch(lambda: describe_requests(asked[0], 5))
    ending.say()
    assert capsys.readouterr().err == "", "nothing is under way"
    asked[0] = 2
    under_way.watch(lambda: "the stream, which ends after its batch")
    under_way.count(lambda: 1, "delivery")
    ending.say()
    said = capsys.readouterr().err.splitlines()
    assert said == [
        "waiting for 2 requests (5 seconds), the stream, which ends after its batch and 1 delivery,"
        " for 20 seconds at most",
        "Ctrl-C once more does not wait; what was published and told is in the store",
    ]
