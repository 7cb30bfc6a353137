"""Recovery time of `tidings serve` after `kill -9` of the whole service, and of Spark's JVM alone.

    accepted    from the restart of the service until a publication is acknowledged
    notified    until that publication has become a notification

The service is restarted as soon as it is dead, as systemd or Kubernetes would do. Times are wall-clock.
"""

from __future__ import annotations

import json
import os
import signal
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeVar

import httpx

from benchmarks.harness import Bench
from benchmarks.processes import ticks
from benchmarks.rows import Row
from benchmarks.scale import Scale
from benchmarks.service import LISTENER, TIMEOUT, UNLIMITED, add_subscriptions, find_free_port
from benchmarks.service_clients import Server, event
from tidings.service.authorization import Access
from tidings.service.tidings import Tidings

NAME = "recovery"
ENGINE = "tidings serve"
POLL_SECONDS = 0.05

T = TypeVar("T")


def run(bench: Bench, scale: Scale) -> None:
    """Kill and restart the service, then its JVM, once per run of the scale."""
    count = scale.service_subscriptions
    with tempfile.TemporaryDirectory() as folder, _prepare(Path(folder), count) as service:
        service.start()
        service.publish_until_notified()
        bench.say(f"{NAME}: ready with {count:,} subscriptions")
        kills: dict[str, list[Recovery]] = {"the service": [], "Spark's JVM": []}
        for _ in range(max(1, scale.runs)):
            kills["the service"].append(service.recover(service.kill_all_and_restart))
            kills["Spark's JVM"].append(service.recover(service.kill_jvm))
    for killed, recoveries in kills.items():
        accepted = [recovery.accepted for recovery in recoveries]
        notified = [recovery.notified for recovery in recoveries]
        bench.keep(_build_row(f"{NAME}, kill -9 of {killed}, publication accepted", count, accepted))
        bench.keep(_build_row(f"{NAME}, kill -9 of {killed}, notification written", count, notified))


@dataclass
class Recovery:
    """Seconds since the kill."""

    accepted: float
    notified: float


@dataclass
class Service:
    """The service in a process that is killed and restarted."""

    server: Server
    home: Path
    log: Path
    published: int = 0
    process: subprocess.Popen[bytes] | None = None
    http: httpx.Client = field(default_factory=lambda: httpx.Client(trust_env=False, timeout=TIMEOUT))

    def start(self) -> None:
        port = self.server.address.rpartition(":")[2]
        command = [sys.executable, "-m", "tidings", "serve", "--port", port, "--home", str(self.home)]
        environment = os.environ | {"TIDINGS_API_LIMITS": UNLIMITED}
        with self.log.open("ab") as log:
            self.process = subprocess.Popen(command, stdout=log, stderr=log, env=environment)

    def kill_all_and_restart(self) -> None:
        """Kill the main process only; its children must end by themselves."""
        assert self.process is not None
        self.process.kill()
        self.process.wait()
        self.start()

    def kill_jvm(self) -> None:
        assert self.process is not None
        for process in ticks(self.process.pid):
            command = Path(f"/proc/{process.number}/cmdline")
            if command.exists() and command.read_bytes().split(b"\0")[0].endswith(b"java"):
                os.kill(process.number, signal.SIGKILL)

    def recover(self, kill: Callable[[], None]) -> Recovery:
        """Kill, then publish; measure the times until the publication is accepted and notified."""
        began = time.perf_counter()
        kill()
        return self.publish_until_notified(began)

    def publish_until_notified(self, began: float = 0.0) -> Recovery:
        last = self._wait_for(lambda: self._publish())
        accepted = time.perf_counter() - began
        self._wait_for(lambda: self._find_notification(last))
        return Recovery(accepted, time.perf_counter() - began)

    def _publish(self) -> str | None:
        body = event(self.published + 1)
        answer = self._request("POST", "/v1/publications", content=body, content_type="application/json")
        if answer is None:
            return None
        self.published += 1
        return str(answer["id"])

    def _find_notification(self, publication: str) -> bool | None:
        after = max(0, self.published - 2)
        answer = self._request("GET", f"/v1/notifications?subscriber={LISTENER}&after={after}")
        return publication in json.dumps(answer) or None

    def _request(self, method: str, path: str, content: bytes | None = None, content_type: str = "") -> Any:
        """Return the answer, or None while the service does not answer."""
        headers = {"Authorization": f"Bearer {self.server.token}", "Content-Type": content_type}
        try:
            answer = self.http.request(method, self.server.address + path, content=content, headers=headers)
        except httpx.TransportError:
            return None
        return answer.json() if answer.is_success else None

    def _wait_for(self, find: Callable[[], T | None]) -> T:
        until = time.monotonic() + TIMEOUT
        while time.monotonic() < until:
            if (result := find()) is not None:
                return result
            time.sleep(POLL_SECONDS)
        raise RuntimeError(f"the service does not recover: {self.log.read_text()[-2_000:]}")


@contextmanager
def _prepare(folder: Path, subscriptions: int) -> Iterator[Service]:
    """Prepare a home with subscriptions; end the service that uses it when the block ends."""
    with Tidings(folder / "home") as tidings:
        token = Access(tidings.store).make("benchmark", ["administer"]).secret
        add_subscriptions(tidings, subscriptions)
    server = Server(f"http://127.0.0.1:{find_free_port()}", token)
    service = Service(server, folder / "home", folder / "log")
    try:
        yield service
    finally:
        if service.process is not None:
            service.process.terminate()
            service.process.wait()


def _build_row(workload: str, subscriptions: int, times: list[float]) -> Row:
    return Row(
        workload,
        subscriptions,
        ENGINE,
        events_per_cpu_second=None,
        build_seconds=None,
        bytes_per_subscription=None,
        matches_per_event=None,
        p50_seconds=statistics.median(times),
        p99_seconds=max(times),
    )
