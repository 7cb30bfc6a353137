"""Why a Spark job failed: because of the data it was given, or because of what it runs on."""

from __future__ import annotations

import builtins
import errno
import os
import re

from py4j.protocol import Py4JJavaError  # type: ignore[import-untyped]
from pyspark.errors import PySparkException

from tidings.errors import TidingsError

FULL = os.strerror(errno.ENOSPC)
LATE = "to connect back"
"""What Spark says of a Python process that did not start in time: it failed, or was waited for in vain."""

_DIED = ("Python worker exited unexpectedly", "ExecutorLostFailure")
_RAISED = re.compile(r"^([A-Za-z_][\w.]*)(?::.*)?$")
_SURROUNDINGS = (OSError, ImportError, EOFError)


def is_late(problem: BaseException) -> bool:
    """Whether a Python process of Spark did not start in time, as on a busy machine."""
    return LATE in str(problem)


def is_of_data(problem: BaseException) -> bool:
    """Whether a job may have failed because of the data: its worker died, or raised what is no failure of the store,
    the disk, the network or the installation.
    """
    if not isinstance(problem, PySparkException | Py4JJavaError) or isinstance(problem, TidingsError):
        return False
    said = str(problem)
    if FULL in said or LATE in said:
        return False
    raised = raised_by(said)
    if raised is None:
        return any(word in said for word in _DIED)
    kind = getattr(builtins, raised, None)
    is_surroundings = isinstance(kind, type) and issubclass(kind, _SURROUNDINGS)
    return not is_surroundings and not raised.startswith(("tidings.errors.", "sqlalchemy.", "psycopg."))


def raised_by(said: str) -> str | None:
    """The name of the exception that a Python worker raised, by what Spark says of it."""
    _, found, stack = said.rpartition("Traceback (most recent call last):")
    lines = (line.strip() for line in stack.splitlines() if not line.startswith((" ", "\t")))
    return next((match[1] for line in lines if (match := _RAISED.match(line))), None) if found else None
