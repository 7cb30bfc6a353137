"""`tidings serve` as processes that are killed, suspended, terminated and restarted."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path

import httpx

from tests.cli.operations.test_serve import until
from tests.support.servers.ports import free_port

SETTINGS = {
    "TIDINGS_SPARK__MASTER": "local[2]",
    "TIDINGS_STREAM__BATCH_SIZE": "60",
    "TIDINGS_STREAM__MAX_BACKOFF": "2",
    "TIDINGS_STREAM__RESTARTS": "1000",
    "TIDINGS_DELIVERY__PRIVATE_CALLBACKS": "true",
    "TIDINGS_DELIVERY__TIMEOUT": "2",
    "TIDINGS_DELIVERY__RETRY_DELAYS": str([0.5] * 100),
    "TIDINGS_LOGGING__LEVEL": "info",
    "TIDINGS_LOGGING__FORMAT": "json",
}
"""Small batches, so that a fault hits one, and so many retries that no receiver is given up."""

ENDS_WITHIN = 60


@dataclass(frozen=True)
class Running:
    """A process of a part: the server itself, the JVM of Spark, or a Python worker."""

    pid: int
    parent: int
    session: int
    words: str

    @property
    def kind(self) -> str:
        if "java" in self.words.partition(" ")[0]:
            return "jvm"
        return "worker" if "pyspark" in self.words else "server"


def processes() -> Iterator[Running]:
    """Yield all live processes of this machine."""
    for folder in Path("/proc").glob("[0-9]*"):
        with suppress(OSError):
            state, parent, _, session, *_ = (folder / "stat").read_text().rpartition(")")[2].split()
            words = (folder / "cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace")
            if state != "Z":
                yield Running(int(folder.name), int(parent), int(session), words)


@dataclass
class Part:
    """One `tidings serve`, with a port and a session of its own, by which its child processes are found."""

    name: str
    words: tuple[str, ...]
    folder: Path
    port: int = field(default_factory=free_port)
    process: subprocess.Popen[bytes] | None = None
    sessions: list[int] = field(default_factory=list)

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    @property
    def log(self) -> Path:
        return self.folder / f"{self.name}.log"

    @property
    def is_alive(self) -> bool:
        return self.process is not None and self.process.poll() is None

    def start(self) -> None:
        command = [sys.executable, "-m", "tidings", "serve", "--port", str(self.port), *self.words]
        with self.log.open("ab") as log:
            log.write(b"--- start\n")
            log.flush()
            self.process = subprocess.Popen(
                command,
                cwd=self.folder,
                env=os.environ | SETTINGS,
                stdout=log,
                stderr=log,
                start_new_session=True,
            )
        self.sessions.append(self.process.pid)

    def running(self, *kinds: str) -> list[Running]:
        """Return its processes, including those left behind by earlier starts."""
        return [each for each in processes() if each.session in self.sessions and each.kind in kinds]

    def kill(self, *kinds: str) -> None:
        for each in self.running(*kinds):
            with suppress(ProcessLookupError):
                os.kill(each.pid, signal.SIGKILL)

    def kill_all(self) -> None:
        """Kill all its processes at once, as in a failure of the machine."""
        self.kill("server", "jvm", "worker")
        if self.process:
            self.process.wait()

    def state(self) -> dict[str, str]:
        """Return the readiness checks of its parts, or nothing without an answer."""
        with suppress(httpx.HTTPError):
            return dict(httpx.get(f"{self.url}/readyz", timeout=10).json()["checks"])
        return {}

    @property
    def is_ready(self) -> bool:
        state = self.state()
        return bool(state) and set(state.values()) == {"ok"}

    def end(self) -> int:
        """Terminate it, and return its exit code."""
        assert self.process
        self.process.send_signal(signal.SIGTERM)
        return self.process.wait(ENDS_WITHIN)

    def await_ready(self) -> None:
        def ready() -> bool:
            if not self.is_alive:
                self.start()
            return self.is_ready

        until(ready, f"{self.name}: {self.state()}, {self.log}")


@contextmanager
def suspended(process: Running) -> Iterator[None]:
    """Suspend a process for a while, as on a machine that swaps."""
    with suppress(ProcessLookupError):
        os.kill(process.pid, signal.SIGSTOP)
    try:
        yield
    finally:
        with suppress(ProcessLookupError):
            os.kill(process.pid, signal.SIGCONT)


def choose_process(dice: random.Random, running: list[Running]) -> Running | None:
    return dice.choice(running) if running else None
