"""Classification of Spark failures: caused by the data, or by the environment."""

from __future__ import annotations

import builtins
import errno
import os
import re

from py4j.protocol import Py4JJavaError  # type: ignore[import-untyped]
from pyspark.errors import PySparkException

from tidings.errors import TidingsError

DISK_FULL = os.strerror(errno.ENOSPC)
NO_MEMORY = os.strerror(errno.ENOMEM)
SLOW_START = "to connect back"
"""Part of Spark's messages about a Python process that failed to start or did not start in time."""

_DIED = ("Python worker exited unexpectedly", "ExecutorLostFailure")
_RAISED = re.compile(r"^([A-Za-z_][\w.]*)(?::.*)?$")
_ENVIRONMENT_ERRORS = (OSError, ImportError, EOFError)
_ENVIRONMENT_MODULES = ("tidings.errors.StoreError", "tidings.errors.SetupError", "sqlalchemy.", "psycopg.")
"""Exceptions and modules that point to the environment, not to the data."""


def is_slow_start(problem: BaseException) -> bool:
    """Return whether a Python process of Spark did not start in time, as on a busy machine."""
    return SLOW_START in str(problem)


def is_data_failure(problem: BaseException) -> bool:
    """Return whether the data may have caused a failure.

    It may if a worker died, ran out of memory, or raised an exception that does not point to the store, the disk, the
    network or the installation.
    """
    if not isinstance(problem, PySparkException | Py4JJavaError) or isinstance(problem, TidingsError):
        return False
    message = str(problem)
    raised = find_exception_name(message)
    if raised is None:  # only Spark's own text is searched; a Python exception may quote a publication
        return (
            DISK_FULL not in message and SLOW_START not in message and any(text in message for text in _DIED)
        )
    if ran_out_of_memory(message):  # also as an OSError: the memory budget is a system limit
        return True
    kind = getattr(builtins, raised, None)
    is_environment = isinstance(kind, type) and issubclass(kind, _ENVIRONMENT_ERRORS)
    return not is_environment and not raised.startswith(_ENVIRONMENT_MODULES)


def ran_out_of_memory(message: str) -> bool:
    """Return whether Spark's message shows that a Python worker ran out of memory."""
    raised = find_exception_name(message) or ""
    return raised.endswith("MemoryError") or (
        bool(raised) and NO_MEMORY in message.rpartition("Traceback (most recent call last):")[2]
    )


def find_exception_name(message: str) -> str | None:
    """Return the name of the exception that a Python worker raised, from Spark's message."""
    _, traceback, stack = message.rpartition("Traceback (most recent call last):")
    lines = (line.strip() for line in stack.splitlines() if not line.startswith((" ", "\t")))
    return next((match[1] for line in lines if (match := _RAISED.match(line))), None) if traceback else None
