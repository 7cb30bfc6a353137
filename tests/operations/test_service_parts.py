"""The parts of the service as processes of their own, over PostgreSQL, with the stream on an external Spark.

A publication is delivered by server-sent events and webhook in one trace, and kills in between neither lose nor
repeat notifications.
"""

from __future__ import annotations

import json
import re
import signal
import subprocess
from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing
from itertools import count, islice
from pathlib import Path
from threading import Thread
from typing import Any

import httpx
import pytest

from tests.cli.operations.test_serve import until
from tests.support.processes.command_line import start
from tests.support.servers.postgres import Server
from tests.support.servers.spark_servers import connect_server, standalone
from tests.support.servers.trace_receiver import Receiver

pytestmark = [pytest.mark.spark, pytest.mark.long]
TRACE = "4bf92f3577b34da6a3ce929d0e0e4736"


class Parts(ExitStack):
    """Processes of `tidings serve --only ...`, each with a home of its own, and the notifications of ana."""

    def __init__(self, folder: Path, store: str, receiver: Receiver) -> None:
        super().__init__()
        self._folder, self._store, self.receiver = folder, store, receiver
        self._numbers = count(1)
        self.received: list[str] = []
        self.url = self.token = ""

    def begin(self) -> None:
        """Start the API and delivery, and a subscriber with a stream and a webhook."""
        api, line = self.start("api")
        [self.url] = re.findall(r"http://\S+", line)
        self.token = (self._folder / "api" / "administrator.token").read_text().strip()
        self.start("delivery")
        self.ask("POST", "/v1/subscriptions", json={"id": "s-1", "text": "price < 10", "subscriber": "ana"})
        hook = {"kind": "webhook", "target": f"{self.receiver.url}/hook"}
        self.ask("POST", "/v1/destinations?subscriber=ana", json=hook)
        following = Thread(target=self.follow)
        following.start()
        self.callback(following.join)
        self.callback(api.terminate)

    def start(self, part: str, *words: str) -> tuple[subprocess.Popen[str], str]:
        """Start a part, and return it with the first line that it prints."""
        home = ("--home", str(self._folder / part), "--store", self._store)
        with (self._folder / f"{part}.log").open("a") as log:
            process = start(
                "serve", "--only", part, "--port", "0", *home, *words, cwd=self._folder, stderr=log
            )
        self.callback(process.communicate)
        self.callback(process.kill)
        assert process.stdout
        line = process.stdout.readline()
        assert line, (self._folder / f"{part}.log").read_text()
        return process, line

    def stream(self, *words: str) -> tuple[subprocess.Popen[str], Callable[[], str]]:
        """Start a stream, and return it with a function that reads its state."""
        process, line = self.start("stream", *words)
        address = re.findall(r"http://\S+/readyz", line)[0]

        def state() -> str:
            return str(httpx.get(address).json()["checks"]["stream"])

        until(lambda: state() == "ok", "the stream")
        return process, state

    def ask(self, method: str, path: str, **more: Any) -> None:
        headers = {"authorization": f"Bearer {self.token}"} | more.pop("headers", {})
        answer = httpx.request(method, self.url + path, headers=headers, timeout=60, **more)
        assert answer.status_code == 201, answer.text

    def publish(self, times: int, trace: str | None = None) -> None:
        headers = {"traceparent": f"00-{trace}-00f067aa0ba902b7-01"} if trace else {}
        for number in islice(self._numbers, times):
            self.ask("POST", f"/v1/publications?id=p-{number}", json={"price": 1}, headers=headers)

    def follow(self) -> None:
        """Record the notifications of ana from a stream until the API ends."""
        path = f"{self.url}/v1/notifications/stream?subscriber=ana"
        headers = {"authorization": f"Bearer {self.token}"}
        with httpx.stream("GET", path, headers=headers, timeout=60) as stream:
            for line in stream.iter_lines():
                if line.startswith("data:"):
                    self.received.append(json.loads(line.removeprefix("data:"))["subject"])

    def await_all(self, times: int) -> None:
        """Wait until each publication so far is received once, in order, by both ways."""
        expected = [f"p-{number}" for number in range(1, times + 1)]
        until(lambda: len(self.received) >= times, "server-sent events")
        until(lambda: len(self.receiver.posted) >= times, "webhooks")
        assert self.received == expected
        assert [each["subject"] for each in self.receiver.posted] == expected


@pytest.fixture
def parts(postgres_server: Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Parts]:
    monkeypatch.setenv("SPARK_LOCAL_IP", "127.0.0.1")
    monkeypatch.setenv("TIDINGS_LOGGING__LEVEL", "info")
    monkeypatch.setenv("TIDINGS_DELIVERY__PRIVATE_CALLBACKS", "true")
    with closing(Receiver()) as receiver:
        monkeypatch.setenv("TIDINGS_TRACES__ENDPOINT", receiver.url)
        with Parts(tmp_path, postgres_server.empty(), receiver) as parts:
            parts.begin()
            yield parts


def test_service_parts_on_standalone_cluster_survive_kills(parts: Parts, tmp_path: Path) -> None:
    """The worker and then the stream process are killed, and replaced."""
    with standalone(tmp_path / "spark") as cluster:
        worker = cluster.worker()
        stream, state = parts.stream("--master", cluster.url)
        parts.publish(3, TRACE)
        parts.await_all(3)
        check_one_trace(parts.receiver)
        worker.kill()
        parts.publish(3)
        cluster.worker()
        parts.await_all(6)
        assert state() == "ok"
        parts.publish(20)
        stream.kill()
        parts.publish(3)
        stream, _ = parts.stream("--master", cluster.url)
        parts.await_all(29)
        stream.send_signal(signal.SIGTERM)
        assert stream.wait(100) == 0


def test_service_parts_through_spark_connect_survive_kills(
    parts: Parts, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The stream process is killed, while its query goes on at the server until another stream starts. Then the
    server is killed and replaced, and the stream recovers by itself.
    """
    with ExitStack() as ends:
        server, address = ends.enter_context(connect_server(tmp_path / "first"))
        monkeypatch.setenv("SPARK_REMOTE", address)
        stream, _ = parts.stream()
        parts.publish(3, TRACE)
        parts.await_all(3)
        check_one_trace(parts.receiver)
        parts.publish(20)
        stream.kill()
        parts.publish(3)
        stream, state = parts.stream()
        parts.await_all(26)
        parts.publish(20)
        server.kill()
        parts.publish(3)
        ends.enter_context(connect_server(tmp_path / "second", int(address.rpartition(":")[2])))
        parts.await_all(49)
        until(lambda: state() == "ok", "a stream that is well again")
        stream.send_signal(signal.SIGTERM)
        assert stream.wait(100) == 0
    logged = (tmp_path / "stream.log").read_text()
    assert logged.count("the stream failed: the stream ended (Spark)") == 1 and "Traceback" not in logged


def check_one_trace(receiver: Receiver) -> None:
    """Check that the spans of a publication from three processes are one trace; the batch has another one, with a
    link.
    """
    until(lambda: receiver.in_trace(TRACE) >= {"publish", "notify", "deliver"}, "the trace")
    assert {link.trace_id.hex() for batch in receiver.named("match batch") for link in batch.links} == {TRACE}
