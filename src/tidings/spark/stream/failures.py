"""Why a Spark job failed: because of the data it was given, or because of what it runs on."""

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
"""What Spark says of a Python process that did not start in time: it failed, or was waited for in vain."""

_DIED = ("Python worker exited unexpectedly", "ExecutorLostFailure")
_RAISED = re.compile(r"^([A-Za-z_][\w.]*)(?::.*)?$")
_SURROUNDINGS = (OSError, ImportError, EOFError)
_MODULES = ("tidings.errors.StoreError", "tidings.errors.SetupError", "sqlalchemy.", "psycopg.")
"""Exceptions and modules that point to the environment, not to the data."""


def is_slow_start(problem: BaseException) -> bool:
    """Whether a Python process of Spark did not start in time, as on a busy machine."""
    return SLOW_START in str(problem)


def is_data_failure(problem: BaseException) -> bool:
    """Whether a job may have failed because of the data: its worker died, ran out of memory, or raised what is no
    failure of the store, the disk, the network or the installation.
    """
    if not isinstance(problem, PySparkException | Py4JJavaError) or isinstance(problem, TidingsError):
        return False
    said = str(problem)
    raised = find_exception_name(said)
    if raised is None:  # Spark's own words; those of a Python exception may quote a publication
        return DISK_FULL not in said and SLOW_START not in said and any(word in said for word in _DIED)
    if ran_out_of_memory(said):  # also as an OSError: the budget is a limit of the system
        return True
    kind = getattr(builtins, raised, None)
    is_surroundings = isinstance(kind, type) and issubclass(kind, _SURROUNDINGS)
    return not is_surroundings and not raised.startswith(_MODULES)


def ran_out_of_memory(said: str) -> bool:
    """Whether a Python worker raised that there is no memory, by what Spark says of it."""
    raised = find_exception_name(said) or ""
    return raised.endswith("MemoryError") or (
        bool(raised) and NO_MEMORY in said.rpartition("Traceback (most recent call last):")[2]
    )


def find_exception_name(said: str) -> str | None:
    """The name of the exception that a Python worker raised, by what Spark says of it."""
    _, found, stack = said.rpartition("Traceback (most recent call last):")
    lines = (line.strip() for line in stack.splitlines() if not line.startswith((" ", "\t")))
    return next((match[1] for line in lines if (match := _RAISED.match(line))), None) if found else None
