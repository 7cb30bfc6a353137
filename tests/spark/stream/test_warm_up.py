"""Warm-up and keep-alive of Spark's workers."""

from __future__ import annotations

import os
import signal

import pytest

from tidings.spark.stream import warm_up
from tidings.spark.stream.warm_up import QUIET_SECONDS, WorkerKeepAlive

pytestmark = pytest.mark.spark


def test_keep_without_batches_runs_tasks_on_the_workers(session):
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


def test_keep_with_dying_workers_does_not_fail(session, monkeypatch):
    def dies(batches):
        os.kill(os.getpid(), signal.SIGKILL)
        yield from batches

    now = [0.0]
    workers = WorkerKeepAlive(session, lambda: now[0])
    with monkeypatch.context() as patched:
        patched.setattr(warm_up, "_drain", dies)
        now[0] += QUIET_SECONDS
        assert workers.keep(batch=-1) == 0
    now[0] += QUIET_SECONDS
    assert workers.keep(batch=-1) == 2, "the next ones are there"
