"""Spark's workers before the first batch, and while there is none."""

from __future__ import annotations

import os
import signal

import pytest

from tidings.spark.stream import warm_up
from tidings.spark.stream.warm_up import QUIET_SECONDS, WorkerKeepAlive

pytestmark = pytest.mark.spark


def test_workers_hear_of_us_when_no_batch_does(session):
    now = [0.0]
    workers = WorkerKeepAlive(session, lambda: now[0])
    assert workers.keep(batch=0) == 0, "it has just begun"
    now[0] += QUIET_SECONDS
    assert workers.keep(batch=1) == 0, "a batch was done"
    now[0] += QUIET_SECONDS
    assert workers.keep(batch=1, is_busy=lambda: True) == 0, "the next one is under way"
    assert workers.keep(batch=1) == 2, "a task for each core"
    assert workers.keep(batch=1) == 0
    now[0] += QUIET_SECONDS
    assert workers.keep(batch=1) == 2


def test_workers_that_die_while_nothing_is_to_be_done_end_no_stream(session, monkeypatch):
    def dies(batches):
        os.kill(os.getpid(), signal.SIGKILL)
        yield from batches

    now = [0.0]
    workers = WorkerKeepAlive(session, lambda: now[0])
    with monkeypatch.context() as patched:
        patched.setattr(warm_up, "_nothing", dies)
        now[0] += QUIET_SECONDS
        assert workers.keep(batch=-1) == 0
    now[0] += QUIET_SECONDS
    assert workers.keep(batch=-1) == 2, "the next ones are there"
