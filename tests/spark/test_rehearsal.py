"""Spark's workers before the first batch, and while there is none."""

from __future__ import annotations

import pytest

from tidings.spark.rehearsal import QUIET_SECONDS, Workers

pytestmark = pytest.mark.spark


def test_workers_hear_of_us_when_no_batch_does(session):
    now = [0.0]
    workers = Workers(session, lambda: now[0])
    assert workers.keep(batch=0) == 0, "it has just begun"
    now[0] += QUIET_SECONDS
    assert workers.keep(batch=1) == 0, "a batch was done"
    now[0] += QUIET_SECONDS
    assert workers.keep(batch=1, is_busy=lambda: True) == 0, "the next one is under way"
    assert workers.keep(batch=1) == 2, "a task for each core"
    assert workers.keep(batch=1) == 0
    now[0] += QUIET_SECONDS
    assert workers.keep(batch=1) == 2
