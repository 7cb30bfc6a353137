"""Servers of Spark from the pyspark package on loopback: a standalone cluster and a Spark Connect server.

Each is a separate process that can be killed; the remaining processes are killed when the block ends.
"""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from threading import Event

import pyspark

HOME = Path(pyspark.__file__).parent
STARTS_WITHIN = 120
MASTER, WORKER = "org.apache.spark.deploy.master.Master", "org.apache.spark.deploy.worker.Worker"
CONNECT = "org.apache.spark.sql.connect.service.SparkConnectServer"
SMALL = {"SPARK_DAEMON_MEMORY": "512m", "SPARK_DAEMON_JAVA_OPTS": "-XX:+UseSerialGC -XX:TieredStopAtLevel=1"}


@dataclass
class Server:
    """One of Spark's processes; its output is in `log`."""

    process: subprocess.Popen[bytes]
    log: Path

    def wait_for_log(self, pattern: str) -> str:
        """Wait until the log matches `pattern`, and return its first group."""
        event = Event()
        for _ in range(STARTS_WITHIN * 10):
            if match := re.search(pattern, self.log.read_text(errors="replace")):
                return match[1]
            assert self.process.poll() is None, self.log.read_text(errors="replace")
            event.wait(0.1)
        raise AssertionError(f"{pattern} is not in\n{self.log.read_text(errors='replace')}")

    def kill(self) -> None:
        """Kill the process with all its children: executors and their Python processes."""
        os.killpg(self.process.pid, signal.SIGKILL)
        self.process.wait()


def start_program(name: str, log: Path, *words: str, environment: Mapping[str, str] | None = None) -> Server:
    """Start a program of Spark in a new process group."""
    own = {"SPARK_HOME": str(HOME), "SPARK_LOCAL_IP": "127.0.0.1", "PYSPARK_PYTHON": sys.executable}
    given = {each: value for each, value in os.environ.items() if each != "SPARK_REMOTE"}
    with log.open("wb") as file:
        process = subprocess.Popen(
            [HOME / "bin" / name, *words],
            env=given | SMALL | own | (environment or {}),
            stdout=file,
            stderr=subprocess.STDOUT,
            start_new_session=True,
            cwd=log.parent,
        )
    return Server(process, log)


@dataclass
class Cluster:
    """A master, and workers that can be killed and replaced."""

    folder: Path
    master: Server
    url: str
    workers: list[Server] = field(default_factory=list)

    def worker(self) -> Server:
        """Start a worker and wait until it is registered."""
        place = self.folder / f"worker-{len(self.workers)}"
        place.mkdir()
        words = [WORKER, "--host", "127.0.0.1", "--port", "0", "--webui-port", "0", "--work-dir", str(place)]
        words += ["--cores", "2", "--memory", "1g", self.url]
        server = start_program("spark-class", place / "log", *words)
        self.workers.append(server)
        server.wait_for_log("(Successfully registered with master)")
        return server


@contextmanager
def standalone(folder: Path) -> Iterator[Cluster]:
    """Run a cluster without workers. Its REST interface for submitting programs is disabled."""
    folder.mkdir()
    options = {"SPARK_MASTER_OPTS": "-Dspark.master.rest.enabled=false"}
    words = (MASTER, "--host", "127.0.0.1", "--port", "0", "--webui-port", "0")
    with ExitStack() as ends:
        master = start_program("spark-class", folder / "master.log", *words, environment=options)
        ends.callback(master.kill)
        cluster = Cluster(folder, master, master.wait_for_log(r"Starting Spark master at (spark://\S+)"))
        ends.callback(lambda: [worker.kill() for worker in cluster.workers if worker.process.poll() is None])
        yield cluster


@contextmanager
def connect_server(folder: Path, port: int = 0) -> Iterator[tuple[Server, str]]:
    """Run a Spark Connect server, and return it with its address."""
    folder.mkdir()
    words = ["--class", CONNECT, "--master", "local[2]"]
    settings = {"spark.connect.grpc.binding.port": str(port), "spark.ui.enabled": "false"}
    settings |= {"spark.connect.grpc.binding.address": "127.0.0.1", "spark.driver.host": "127.0.0.1"}
    words += [each for name, value in settings.items() for each in ("--conf", f"{name}={value}")]
    server = start_program("spark-submit", folder / "connect.log", *words, "spark-internal")
    try:
        port = server.wait_for_log(r"Spark Connect server started at: .*?:(\d+)")
        yield server, f"sc://127.0.0.1:{port}"
    finally:
        if server.process.poll() is None:
            server.kill()
