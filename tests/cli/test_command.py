"""Signals that stop a command."""

from __future__ import annotations

import os
import signal
import threading

import pytest
import typer

from tidings.cli.command import StopSignal, stop_on_signals


@pytest.mark.timeout(30)
def test_stop_signal_arrives_while_its_lock_is_held_does_not_deadlock() -> None:
    stop = StopSignal(interrupts=False)
    with stop._cond:  # as in the middle of `wait`, where a handler may run
        stop(signal.SIGTERM, None)
        assert stop.is_set()
    assert stop.wait()
    stop.exit_if_interrupted()


@pytest.mark.timeout(30)
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_stop_on_signals_real_signal_ends_wait_without_timeout(number: signal.Signals) -> None:
    with stop_on_signals() as stop:
        threading.Timer(0.2, os.kill, (os.getpid(), number)).start()
        assert stop.wait()
    assert stop.by == number


def test_exit_if_interrupted_after_sigint_exits_as_ctrl_c() -> None:
    stop = StopSignal(interrupts=False)
    stop(signal.SIGINT, None)
    with pytest.raises(typer.Exit) as ended:
        stop.exit_if_interrupted()
    assert ended.value.exit_code == 130
