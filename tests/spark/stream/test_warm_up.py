"""Warm-up and keep-alive of Spark's workers."""

from __future__ import annotations

import logging
import os
import shutil
import signal
import threading

import pytest

from tidings.matching.compiler.compilation import compile_many
from tidings.matching.index.index import Index
from tidings.model import Subscription
from tidings.spark.stream import warm_up
from tidings.spark.stream.warm_up import QUIET_SECONDS, WorkerKeepAlive, warm_up_beside

pytestmark = pytest.mark.spark


def test_keep_without_batches_runs_tasks_on_workers(session):
    now = [0.0]
    workers = WorkerKeepAlive(session, lambda: now[0])
    assert workers.keep(batch=0) == 0, "it has just started"
    now[0] += QUIET_SECONDS
    assert workers.keep(batch=1) == 0, "a batch has run"
    now[0] += QUIET_SECONDS
    assert workers.keep(batch=1, is_busy=lambda: True) == 0, "the next batch is running"
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
    assert workers.keep(batch=-1) == 2, "new workers have started"


@pytest.fixture
def index(tmp_path):
    index = Index.create(tmp_path / "index")
    index.add(compile_many([Subscription("s", "ana", "predicates", "price < 200")]))
    return index


def test_warm_up_beside_runs_samples_on_each_core(session, index, monkeypatch):
    run, tasks = warm_up.warm_up_workers, []
    monkeypatch.setattr(warm_up, "warm_up_workers", lambda *given: tasks.append(run(*given)))
    with warm_up_beside(session, index, None):
        pass
    assert tasks == [2]


def test_warm_up_beside_failure_is_logged_and_stream_goes_on(session, index, caplog):
    shutil.rmtree(index.folder)
    with caplog.at_level(logging.INFO, "tidings.stream"), warm_up_beside(session, index, None):
        pass
    assert "the workers are not warm yet" in caplog.text


def test_warm_up_beside_without_index_starts_nothing(session):
    with warm_up_beside(session, None, None):
        assert "warm-up" not in {thread.name for thread in threading.enumerate()}
