"""Garbage collection in Spark's Python workers, which run one task after another."""

from __future__ import annotations

import gc
from itertools import count

LOADING_TASKS = 3
"""The number of tasks in which a worker imports modules and opens files that it keeps."""

_tasks = count()


def freeze_memory() -> None:
    """Exclude all present objects from garbage collection; call it when a task begins.

    Spark collects garbage after every task, before the worker starts the next one. Traversing all imported modules
    takes 20 to 40 ms; frozen objects are skipped.
    """
    if next(_tasks) < LOADING_TASKS:
        gc.collect()
        gc.freeze()
