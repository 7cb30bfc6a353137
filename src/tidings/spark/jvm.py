"""The JVM of a Spark driver: its process group, and the cause of a failed start.

`timeout` and a shell's job control send signals to the whole process group. A JVM in the group of its driver would exit
in the middle of a batch that the driver is still waiting for. In its own group it exits after the driver, when its
standard input, a pipe, is closed.
"""

from __future__ import annotations

import contextlib
import re
import tempfile
from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import IO, Any

from pyspark import SparkConf, SparkContext
from pyspark.errors import PySparkException
from pyspark.java_gateway import launch_gateway

from tidings.core.atomic_files import private_file, private_folder
from tidings.errors import SetupError

HADOOP_HINT = (
    "set HADOOP_CONF_DIR to the folder with the cluster's core-site.xml and yarn-site.xml,"
    " or run Spark on this machine: leave --master out"
)
PACKAGES_HINT = (
    "check the Maven coordinates of --packages (spark.jars.packages); or fetch the jars otherwise, and name their"
    " folder with --jars"
)
HINTS = {"HADOOP_CONF_DIR": HADOOP_HINT, "unresolved dependency|download failed": PACKAGES_HINT}
"""Hints by a pattern in the cause of a failed start."""
LONGEST_CAUSE = 500
_PROBLEM = re.compile(r"Exception|Error|Unrecognized|Invalid|Unsupported|not found|No such")
_CLASS_PREFIX = re.compile(
    r'^(Exception in thread "[^"]*" |Caused by: )?([\w$]+\.)+[\w$]+(Exception|Error): '
)


def start_jvm(settings: Mapping[str, str], log: Path | None) -> None:
    """Start the JVM for the next session unless there is one; `log` gets its error output."""
    if SparkContext._gateway is not None:
        return
    conf = SparkConf(loadDefaults=False)
    for name, value in settings.items():
        conf.set(name, value)
    with _error_output(log) as output:
        began = output.seek(0, 2)
        try:
            gateway = _launch(conf, output)
        except (PySparkException, OSError) as problem:
            output.seek(began)
            raise _explain_failed_start(
                settings, output.read().decode(errors="replace"), problem
            ) from problem
    SparkContext._ensure_initialized(gateway=gateway)


def _launch(conf: SparkConf, output: IO[bytes]) -> Any:
    """Launch the JVM in a thread, which a signal handler that raises does not interrupt.

    When it is interrupted, `launch_gateway` deletes the folder that the JVM writes its port to. The JVM then fails
    before it watches its standard input, and outlives the driver.
    """
    with ThreadPoolExecutor(1, thread_name_prefix="spark-gateway") as launcher:
        return launcher.submit(launch_gateway, conf, {"process_group": 0, "stderr": output}).result()


@contextlib.contextmanager
def _error_output(log: Path | None) -> Iterator[IO[bytes]]:
    """Open the file for the JVM's error output: the log, or else a temporary file."""
    if log is None:
        with tempfile.TemporaryFile() as file:
            yield file
        return
    private_folder(log.parent)
    private_file(log)
    with log.open("a+b") as file:
        yield file


def _explain_failed_start(settings: Mapping[str, str], printed: str, problem: Exception) -> SetupError:
    """Return the error for a JVM that exited while it started, with the cause."""
    cause = find_cause(printed) or str(problem).partition("\n")[0]
    hints = (hint for sign, hint in HINTS.items() if re.search(sign, cause))
    hint = next(hints, "tidings doctor shows which Java is used")
    return SetupError("Spark does not start", where=settings.get("spark.master"), received=cause, hint=hint)


def find_cause(printed: str) -> str | None:
    """Return the first line of the error output that names a problem, without the Java class."""
    lines = [line.strip() for line in printed.splitlines() if line.strip() and not line.startswith("\t")]
    cause = next((line for line in lines if _PROBLEM.search(line)), lines[-1] if lines else None)
    return None if cause is None else _CLASS_PREFIX.sub("", cause)[:LONGEST_CAUSE]
