"""The output of `serve` after Ctrl-C."""

from __future__ import annotations

import pytest

from tidings.cli.operations.serve_status import ServeOutput
from tidings.operations.settings import Settings
from tidings.service.context import PendingWork


def test_show_pending_work_in_progress_prints_two_lines(capsys: pytest.CaptureFixture[str]) -> None:
    pending, output = PendingWork(), ServeOutput(Settings(drain=20.0))
    output.show_pending(pending)
    assert capsys.readouterr().err == "", "no part of the service has work"
    requests = [0]
    pending.count(lambda: requests[0], "request")
    output.show_pending(pending)
    assert capsys.readouterr().err == "", "no work is in progress"
    requests[0] = 2
    pending.watch(lambda: "the stream, which ends after its batch")
    pending.count(lambda: 1, "delivery")
    output.show_pending(pending)
    assert capsys.readouterr().err.splitlines() == [
        "waiting for 2 requests, the stream, which ends after its batch and 1 delivery, for 20 seconds at most",
        "Ctrl-C again does not wait; what was published is in the store",
    ]
