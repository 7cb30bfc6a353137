"""The Spark session: embedded and quiet by default, a cluster or Spark Connect when asked.

    open_session()                                   local[*], loopback only
    open_session(master="spark://cluster:7077")      a cluster
    open_session(remote="sc://cluster:15002")        Spark Connect; so does the environment's SPARK_REMOTE

Every setting stands in a table with the reason for it.
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
"""Characters; the name of a socket has 42, and macOS takes 103 of them together."""

ANSWER_SECONDS = 10
"""How long a server may take to accept a connection."""

_COUNT = r"[1-9]\d*"
_MASTER = re.compile(
    rf"local|local\[(\*|{_COUNT})(\s*,\s*{_COUNT})?\]|local-cluster\[\s*{_COUNT}\s*(,\s*{_COUNT}\s*){{2}}\]"
    r"|spark://[^\s/,:]+:\d+(,[^\s/,:]+:\d+)*|yarn|k8s://\S+"
)
MASTERS = (
    "local, local[N], local[*], local-cluster[N,cores,MB], spark://host:port, yarn, k8s://..., sc://host:port"
)

COMMON = {
    "spark.sql.execution.arrow.maxRecordsPerBatch": "4096",  # publications a task takes at once
    "spark.sql.streaming.pollingDelay": "50ms",  # an idle stream asks the store 20 times a second, not 100
    "spark.sql.streaming.minBatchesToRetain": "20",  # recovery needs the last batch; the rest is for people
}
"""Settings of any session that Tidings opens, on a cluster or a Connect server too."""

STARTED = {
    "spark.app.name": "tidings",
    "spark.ui.showConsoleProgress": "false",  # the command line draws its own bar
    "spark.log.level": "ERROR",  # see log4j2.properties
    "spark.sql.streaming.metricsEnabled": "false",  # nobody reads them; progress comes with each batch
    # Spark's usual one has Hadoop start programs for the modes of files: 70 ms of every batch. They differ where
    # several write one checkpoint, which a lock of ours forbids (docs/decisions/0012-overheads.md).
    "spark.sql.streaming.checkpointFileManagerClass": (
        "org.apache.spark.sql.execution.streaming.checkpointing.FileSystemBasedCheckpointFileManager"
    ),
}
"""Settings of a driver that is started here, for whatever cluster."""

EMBEDDED = {
    "spark.sql.shuffle.partitions": "4",  # nothing large is ever shuffled: matching needs no exchange
    "spark.sql.codegen.wholeStage": "false",  # compiling Java for plans of two steps takes longer than running them
    "spark.ui.enabled": "false",  # half a second of start-up, and a port nobody asked for
    "spark.driver.host": LOOPBACK,  # without these Spark listens on the machine's outer address
    "spark.driver.bindAddress": LOOPBACK,
    "spark.connect.grpc.binding.address": LOOPBACK,
}
"""Settings of a driver with everything on this machine. A cluster has data and executors of another size."""

QUICK_JVM = (
    "-XX:TieredStopAtLevel=1",  # the JVM only hands out work: optimising it costs more than it saves, half the start
    "-XX:+UseSerialGC",  # a small heap, and the cores are for the tasks
)
"""Options of the JVM of such a driver."""


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
    """A session: an own one on `master` (default `local[*]`), or one of a Connect server at `remote`.

    `remote` may also be `local[n]`: a Connect server of its own in this process. A `master` outweighs the
    environment's SPARK_REMOTE. The JVM's error output goes to the file `log`; without one it is shown only if the
    JVM does not start. `more` are further Spark settings.
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
    """End a session. One whose JVM is gone cannot say goodbye: then it is forgotten, so that another one can start."""
    try:
        session.stop()
    except (PySparkException, Py4JError, OSError):
        _forget()


def _forget_dead() -> None:
    """A JVM may have died before there was a session that could be closed."""
    process = getattr(SparkContext._gateway, "proc", None)
    if process is not None and process.poll() is not None:
        _forget()


def _forget() -> None:
    """PySpark keeps the connection to its JVM for ever, also to one that has died."""
    for name in ("_gateway", "_jvm", "_active_spark_context"):
        setattr(SparkContext, name, None)
    SparkSession._instantiatedSession = None


def check_address(address: str) -> None:
    """Refuse what names no Spark: Spark would say so in seventy lines, or try for minutes."""
    if not (_is_connect(address) if address.startswith("sc:") else _MASTER.fullmatch(address)):
        raise InputError("this names no Spark", received=repr(address), accepted=MASTERS)


def _is_connect(address: str) -> bool:
    try:
        parts = urlsplit(address)
        return address.startswith("sc://") and bool(parts.hostname) and parts.port != 0
    except ValueError:  # a port that is no number, a bracket that is not closed
        return False


def _check_answers(address: str) -> None:
    """Refuse a server that does not answer: Spark would try for a minute or longer, without a word."""
    if address.startswith("sc:"):
        parts = urlsplit(address)
        problem = _connection_problem(parts.hostname or "", parts.port or CONNECT_PORT)
        named, accepted = "Spark Connect", "the address of a Spark Connect server, sc://host:port"
    elif address.startswith("spark:"):  # may name several masters, of which one answers
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
    """Why a server cannot be connected to; None if it can."""
    try:
        socket.create_connection((host, port), ANSWER_SECONDS).close()
    except (OSError, OverflowError) as problem:
        return getattr(problem, "strerror", None) or str(problem)
    return None


def check_java() -> str:
    """The version of the Java that Spark would use; a SetupError if there is none or it is too old."""
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
    """The file in which an installation says which Java it is; `java -version` would take half a second."""
    file = Path(java).resolve().parent.parent / "release"
    return file.read_text(errors="replace") if file.is_file() else ""


def _printed_version(java: str) -> str:
    said = subprocess.run([java, "-version"], capture_output=True, text=True, check=False)
    return "" if said.returncode else said.stderr + said.stdout


def find_java() -> str:
    """The Java that Spark would use."""
    home = os.environ.get("JAVA_HOME")
    java = str(Path(home) / "bin" / "java") if home else shutil.which("java")
    if java and Path(java).exists():
        return java
    where = "JAVA_HOME is " + home if home else "no java on the PATH"
    raise SetupError("Spark needs Java, and there is none", where=where, hint=f"type: {INSTALL_JAVA}")


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
    """The JVM and its Python processes talk through sockets of the file system, in a folder that is ours alone.

    Over TCP Spark sends small pieces without asking for haste: a task waits 40 ms for its first rows, until the other
    side has acknowledged the piece before. An address has about a hundred bytes at most, and Java can write others than
    those of ASCII in some locales only; where temporary files are so far away it stays TCP.
    """
    folder = _socket_folder().name
    if len(folder) > LONGEST_FOLDER or not folder.isascii():
        return {}
    return {"spark.python.unix.domain.socket.enabled": "true", "spark.python.unix.domain.socket.dir": folder}


@cache
def _socket_folder() -> TemporaryDirectory[str]:
    return TemporaryDirectory(prefix="tidings-spark-")


def _quiet() -> str:
    """The logging of the JVM, which has to be said before it starts."""
    return f"-Dlog4j2.configurationFile={Path(__file__).with_name('log4j2.properties').as_uri()}"


def _prepare_environment(master: str) -> None:
    """Workers run the interpreter that runs now, or they may not find Tidings or not connect back.

    Python takes names of files for UTF-8 in the C locale; Java does not, and both wait for files of the other.
    """
    os.environ["PYSPARK_PYTHON"] = os.environ["PYSPARK_DRIVER_PYTHON"] = sys.executable
    if os.environ.get("LC_ALL") in ("C", "POSIX"):
        os.environ["LC_ALL"] = "C.UTF-8"
    if master.startswith("local"):
        os.environ["SPARK_LOCAL_IP"] = LOOPBACK


def _start(settings: dict[str, str], remote: str | None) -> SparkSession:
    # It would log whole what a batch or a dead JVM ends with, which is told in a sentence anyway.
    logging.getLogger("py4j").setLevel(logging.CRITICAL)
    builder = SparkSession.builder.config(map=settings)
    try:
        session: SparkSession = (builder.remote(remote) if remote else builder).getOrCreate()
    except (PySparkException, Py4JError, OSError) as problem:
        where = remote or settings["spark.master"]
        raise SetupError("Spark does not start", where=where, hint=_reason(problem)) from problem
    return session


def _reason(problem: Exception) -> str:
    """The line that says it; Py4J's own first line says only that some call failed."""
    first, *more = (line.strip() for line in (str(problem) or type(problem).__name__).splitlines())
    return more[0].removeprefix(": ") if isinstance(problem, Py4JError) and more else first


@contextlib.contextmanager
def _stderr_into(log: Path | None) -> Iterator[None]:
    """While this is open, processes that start have `log` as their standard error; this one keeps its own.

    PySpark starts the JVM of a Connect server of its own by itself, and takes no file for what it prints.
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
