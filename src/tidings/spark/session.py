"""Spark sessions: embedded by default, or on a cluster, or through Spark Connect.

    open_session()                                   local[*], loopback only
    open_session(master="spark://cluster:7077")      a cluster
    open_session(remote="sc://cluster:15002")        Spark Connect, as the environment variable SPARK_REMOTE does

The tables below list every setting with its reason.
"""

from __future__ import annotations

import contextlib
import logging
import os
import re
import shutil
import socket
import subprocess
import sys
from collections.abc import Iterator, Mapping
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory
from urllib.parse import urlsplit

from py4j.protocol import Py4JError  # type: ignore[import-untyped]
from pyspark import SparkContext
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from tidings.core.atomic_files import private_file, private_folder
from tidings.errors import InputError, SetupError
from tidings.spark.class_archive import use_archive
from tidings.spark.jvm import start_jvm

LOOPBACK = "127.0.0.1"
OLDEST_JAVA = 17
INSTALL_JAVA = "sudo apt-get install -y openjdk-17-jre-headless"

CONNECT_PORT = 15002
LONGEST_FOLDER = 55
"""Maximum length of the folder of sockets: the name of a socket has 42 characters, and macOS allows 103 in all."""

ANSWER_SECONDS = 10
"""Seconds in which a server must accept a connection."""

_COUNT = r"[1-9]\d*"
_MASTER = re.compile(
    rf"local|local\[(\*|{_COUNT})(\s*,\s*{_COUNT})?\]|local-cluster\[\s*{_COUNT}\s*(,\s*{_COUNT}\s*){{2}}\]"
    r"|spark://[^\s/,:]+:\d+(,[^\s/,:]+:\d+)*|yarn|k8s://\S+"
)
MASTERS = (
    "local, local[N], local[*], local-cluster[N,cores,MB], spark://host:port, yarn, k8s://..., sc://host:port"
)

COMMON = {
    # Small Arrow batches cost a task half as much CPU again; Spark's limit of 64 MB bounds the memory of large ones.
    "spark.sql.execution.arrow.maxRecordsPerBatch": "20000",
    "spark.sql.streaming.pollingDelay": "50ms",  # an idle stream polls the store 20 times a second, not 100
    "spark.sql.streaming.minBatchesToRetain": "20",  # recovery needs the last batch; the rest helps to investigate
}
"""Settings of every session that Tidings opens, also on a cluster or a Connect server."""

STARTED = {
    "spark.app.name": "tidings",
    "spark.ui.showConsoleProgress": "false",  # the command line has a progress bar of its own
    "spark.log.level": "ERROR",  # see log4j2.properties
    "spark.sql.streaming.metricsEnabled": "false",  # unused: each batch reports its progress
    # With Spark's default, Hadoop starts programs to set file modes: 70 ms of every batch. The two differ only if
    # several writers share a checkpoint, which a lock prevents (docs/decisions/0012-overheads.md).
    "spark.sql.streaming.checkpointFileManagerClass": (
        "org.apache.spark.sql.execution.streaming.checkpointing.FileSystemBasedCheckpointFileManager"
    ),
}
"""Settings of a driver that is started here, for any cluster."""

EMBEDDED = {
    "spark.sql.shuffle.partitions": "4",  # little is shuffled: matching needs no exchange
    "spark.sql.codegen.wholeStage": "false",  # compiling Java for plans of two steps takes longer than running them
    "spark.ui.enabled": "false",  # costs half a second at the start, and opens a port
    "spark.driver.host": LOOPBACK,  # without these Spark listens on the machine's outer address
    "spark.driver.bindAddress": LOOPBACK,
    "spark.connect.grpc.binding.address": LOOPBACK,
}
"""Settings of an embedded Spark. They never reach a cluster, whose data and executors have another size."""

QUICK_JVM = (
    "-XX:TieredStopAtLevel=1",  # the JVM only schedules tasks: optimising its code costs more than it saves
    "-XX:+UseSerialGC",  # the heap is small, and the cores are for the tasks
)
"""Options of the JVM of an embedded Spark."""


def open_session_at(
    master: str | None, log: Path | None = None, conf: Mapping[str, str] | None = None
) -> SparkSession:
    """Open a session at a master's address, or through Spark Connect if the address begins with `sc:`."""
    if master and master.startswith("sc:"):
        return open_session(remote=master, log=log, **(conf or {}))
    return open_session(master, log=log, **(conf or {}))


def open_session(
    master: str | None = None, remote: str | None = None, log: Path | None = None, **more: str
) -> SparkSession:
    """Open a session on `master` (default `local[*]`), or on a Connect server at `remote`.

    `remote` may also be `local[n]`: then this process runs a Connect server. `master` takes precedence over the
    environment variable SPARK_REMOTE. The JVM's error output goes to the file `log`; without one it is shown only if
    the JVM does not start. `more` are further Spark settings.
    """
    remote = _remote(master, remote)
    check_address(remote or master or "local[*]")
    settings = _settings(master or "local[*]", remote) | more
    if remote is None or remote.startswith("local"):
        check_java()
        _prepare_environment(remote or master or "local[*]")
    _check_answers(remote or master or "local[*]")
    _forget_dead()
    if remote is None:
        start_jvm(settings, log)
        return _start(settings, None)
    with _stderr_into(log):
        return _start(settings, remote)


def close_session(session: SparkSession) -> None:
    """Close a session. If its JVM has died, remove it from PySpark's state, so that another one can start."""
    try:
        session.stop()
    except (PySparkException, Py4JError, OSError):
        _forget()


def _forget_dead() -> None:
    """Remove a JVM that died before it had a session to close."""
    process = getattr(SparkContext._gateway, "proc", None)
    if process is not None and process.poll() is not None:
        _forget()


def _forget() -> None:
    """Remove PySpark's connection to its JVM, which it keeps even if the JVM has died."""
    for name in ("_gateway", "_jvm", "_active_spark_context"):
        setattr(SparkContext, name, None)
    SparkSession._instantiatedSession = None


def check_address(address: str) -> None:
    """Reject an invalid address, for which Spark prints seventy lines or retries for minutes."""
    if not (_is_connect(address) if address.startswith("sc:") else _MASTER.fullmatch(address)):
        raise InputError(
            "this is not the address of a Spark master", received=repr(address), accepted=MASTERS
        )


def _is_connect(address: str) -> bool:
    try:
        parts = urlsplit(address)
        return address.startswith("sc://") and bool(parts.hostname) and parts.port != 0
    except ValueError:  # such as a port that is not a number, or an unclosed bracket
        return False


def _check_answers(address: str) -> None:
    """Reject a server that does not answer, which Spark retries silently for a minute or longer."""
    if address.startswith("sc:"):
        parts = urlsplit(address)
        problem = _connection_problem(parts.hostname or "", parts.port or CONNECT_PORT)
        named, accepted = "Spark Connect", "the address of a Spark Connect server, sc://host:port"
    elif address.startswith("spark:"):  # may list several masters; one has to answer
        places = [each.rpartition(":") for each in address.removeprefix("spark://").split(",")]
        problems = [_connection_problem(host, int(port)) for host, _, port in places]
        problem = None if None in problems else problems[-1]
        named, accepted = "the Spark master", "the address of a Spark master, spark://host:port"
    else:
        return
    if problem is not None:
        raise SetupError(
            f"{named} does not answer",
            where=address,
            received=problem,
            accepted=accepted,
            hint="is the server running? Without --master and SPARK_REMOTE, Spark runs on this machine",
        )


def _connection_problem(host: str, port: int) -> str | None:
    """Return why a connection to a server fails, or None if it succeeds."""
    try:
        socket.create_connection((host, port), ANSWER_SECONDS).close()
    except (OSError, OverflowError) as problem:
        return getattr(problem, "strerror", None) or str(problem)
    return None


def check_java() -> str:
    """Return the version of the Java that Spark uses; raise if there is none or it is too old."""
    java = find_java()
    found = _VERSION.search(_release(java)) or _VERSION.search(_printed_version(java))
    if not found:
        raise SetupError("Java does not start", where=java, hint=f"type: {INSTALL_JAVA}")
    version = int(found[2] if found[1] == "1" and found[2] else found[1])
    if version < OLDEST_JAVA:
        raise SetupError(
            "Java is too old for Spark",
            where=java,
            received=f"version {version}",
            accepted=f"{OLDEST_JAVA} or later",
            hint=f"type: {INSTALL_JAVA}",
        )
    return str(version)


_VERSION = re.compile(r'(?:version |JAVA_VERSION=)"(\d+)(?:\.(\d+))?')


def _release(java: str) -> str:
    """Read the version file of a Java installation; `java -version` would take half a second."""
    file = Path(java).resolve().parent.parent / "release"
    return file.read_text(errors="replace") if file.is_file() else ""


def _printed_version(java: str) -> str:
    said = subprocess.run([java, "-version"], capture_output=True, text=True, check=False)
    return "" if said.returncode else said.stderr + said.stdout


def find_java() -> str:
    """Return the path of the Java that Spark uses."""
    home = os.environ.get("JAVA_HOME")
    java = str(Path(home) / "bin" / "java") if home else shutil.which("java")
    if java and Path(java).exists():
        return java
    where = "JAVA_HOME is " + home if home else "no java on the PATH"
    raise SetupError("Spark needs Java, which is not installed", where=where, hint=f"type: {INSTALL_JAVA}")


def _remote(master: str | None, remote: str | None) -> str | None:
    if master and remote:
        raise SetupError("a session has either a master or a remote", received=f"{master} and {remote}")
    if master:
        os.environ.pop("SPARK_REMOTE", None)
        return None
    return remote or os.environ.get("SPARK_REMOTE")


def _settings(master: str, remote: str | None) -> dict[str, str]:
    if remote and not remote.startswith("local"):
        return dict(COMMON)
    embedded = (remote or master).startswith("local")
    started = COMMON | STARTED | (EMBEDDED if embedded else {})
    options = " ".join([_quiet(), *((*QUICK_JVM, *use_archive(find_java())) if embedded else ())])
    started["spark.driver.extraJavaOptions"] = options
    if embedded:  # local-cluster has executors: JVMs of this machine, which hand out work as well
        started |= {"spark.executor.extraJavaOptions": options} | _sockets()
    return started if remote else started | {"spark.master": master}


def _sockets() -> dict[str, str]:
    """Return the settings for Unix domain sockets between the JVM and its Python processes, in a private folder.

    Over TCP Spark does not set TCP_NODELAY: a task waits 40 ms for its first rows, until the previous packet is
    acknowledged. Socket addresses are limited to about a hundred bytes, and in some locales Java writes ASCII only; if
    the temporary folder does not fit, TCP is used.
    """
    folder = _socket_folder().name
    if len(folder) > LONGEST_FOLDER or not folder.isascii():
        return {}
    return {"spark.python.unix.domain.socket.enabled": "true", "spark.python.unix.domain.socket.dir": folder}


@cache
def _socket_folder() -> TemporaryDirectory[str]:
    return TemporaryDirectory(prefix="tidings-spark-")


def _quiet() -> str:
    """Return the JVM option for logging, which has to be set before the JVM starts."""
    return f"-Dlog4j2.configurationFile={Path(__file__).with_name('log4j2.properties').as_uri()}"


def _prepare_environment(master: str) -> None:
    """Let workers run the current interpreter: another one may lack Tidings or fail to connect.

    In the C locale Python encodes file names as UTF-8 and Java does not, but each waits for files of the other.
    """
    os.environ["PYSPARK_PYTHON"] = os.environ["PYSPARK_DRIVER_PYTHON"] = sys.executable
    if os.environ.get("LC_ALL") in ("C", "POSIX"):
        os.environ["LC_ALL"] = "C.UTF-8"
    if master.startswith("local"):
        os.environ["SPARK_LOCAL_IP"] = LOOPBACK


def _start(settings: dict[str, str], remote: str | None) -> SparkSession:
    # Py4J would log the stack trace of every failed batch, which our own log reports in one line.
    logging.getLogger("py4j").setLevel(logging.CRITICAL)
    builder = SparkSession.builder.config(map=settings)
    try:
        session: SparkSession = (builder.remote(remote) if remote else builder).getOrCreate()
    except (PySparkException, Py4JError, OSError) as problem:
        where = remote or settings["spark.master"]
        raise SetupError("Spark does not start", where=where, hint=_reason(problem)) from problem
    return session


def _reason(problem: Exception) -> str:
    """Return the line with the cause; the first line of a Py4J error only says that a call failed."""
    first, *more = (line.strip() for line in (str(problem) or type(problem).__name__).splitlines())
    return more[0].removeprefix(": ") if isinstance(problem, Py4JError) and more else first


@contextlib.contextmanager
def _stderr_into(log: Path | None) -> Iterator[None]:
    """Redirect the standard error of processes that start within the block to `log`; this process keeps its own.

    PySpark starts the JVM of an embedded Connect server itself and does not accept a file for its output.
    """
    if log is None:
        yield
        return
    private_folder(log.parent)
    private_file(log)
    sys.stderr.flush()
    kept, ours = os.dup(2), sys.stderr
    with log.open("ab") as file, os.fdopen(os.dup(kept), "w", buffering=1) as aside:
        os.dup2(file.fileno(), 2)
        sys.stderr = aside
        try:
            yield
        finally:
            sys.stderr = ours
            os.dup2(kept, 2)
            os.close(kept)


def find_spark_ui(session: SparkSession) -> str | None:
    """Return the address of Spark's user interface; None if it is off, and with Spark Connect."""
    context = getattr(session, "sparkContext", None)
    address: str | None = context.uiWebUrl if context else None
    return address
