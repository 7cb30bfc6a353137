"""Spark's Python workers: processes that run one task after the other."""

from __future__ import annotations

import gc
from itertools import count

LOADING_TASKS = 3
"""In so many tasks a worker imports and opens what it needs."""

_tasks = count()


def freeze_memory() -> None:
    """Say at the beginning of each task that what is in memory now is there to stay.

    Spark collects garbage after every task, before the worker takes the next one. A walk through all imported modules
    takes 20 to 40 ms; what is frozen is left out of it.
    """
    if next(_tasks) < LOADING_TASKS:
        gc.collect()
        gc.freeze()
