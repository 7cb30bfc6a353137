"""`tidings serve` as a process: all parts, single parts, and shutdown."""

from __future__ import annotations

import json
import os
import pty
import re
import signal
import socket
import subprocess
import threading
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager, suppress
from pathlib import Path
from typing import Any

import httpx
import pytest

from tests.support.processes.command_line import Tidings, listens_at, start, start_anew
from tests.support.processes.terminal import Terminal
from tests.support.servers.trace_receiver import Receiver
from tidings.service.tidings import Tidings as Service

TIMEOUT = 250
CLIENT = httpx.Client(timeout=60, verify=False)  # reading certificates takes longer than a request


def until(holds: Callable[[], Any], what: str) -> Any:
    """Poll until `holds` returns a true value, and return it."""
    turn = threading.Event()
    for _ in range(TIMEOUT * 10):
        if value := holds():
            return value
        turn.wait(0.1)
    raise AssertionError(f"timed out: {what}")


def ready(address: str) -> dict[str, str]:
    """Return the readiness check of each part."""
    answer = CLIENT.get(f"{address}/readyz")
    assert (answer.status_code == 200) == (answer.json()["status"] == "ready")
    return dict(answer.json()["checks"])


@contextmanager
def serving(folder: Path, *words: str) -> Iterator[tuple[subprocess.Popen[str], str]]:
    """Run a server, and kill it at the end if it is still running."""
    start_process = start if "--only" in words else start_anew
    process = start_process("serve", "--port", "0", *words, cwd=folder)
    try:
        yield process, listens_at(process)
    finally:
        process.kill()
        process.communicate()


def signal_and_wait(
    process: subprocess.Popen[str], number: signal.Signals = signal.SIGTERM
) -> tuple[int, str, str]:
    process.send_signal(number)
    output, errors = process.communicate(timeout=TIMEOUT)
    return process.returncode, output, errors


def notifications_of(folder: Path, subscriber: str = "ana") -> list[tuple[int, str]]:
    with Service(folder / ".tidings") as service:
        return [(one.sequence, one.publication) for one in service.notifications(subscriber)]


@pytest.mark.spark
def test_serve_delivers_traces_and_survives_sigterm_without_loss(
    tidings: Tidings, terminal: Terminal, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The API answers while Spark starts, a publication is delivered and traced, and SIGTERM in the middle of the
    work neither loses nor repeats notifications.
    """
    tidings("subscribe", "--as", "ana", "price < 10")
    token = tidings("token", "make", "all", "--scope", "administer").stdout.split("\n")[1]
    receiver = Receiver()
    monkeypatch.setenv("TIDINGS_TRACES__ENDPOINT", receiver.url)
    with (
        closing(receiver),
        serving(tmp_path, "--master", "local[2]", "--private-callbacks") as (process, address),
    ):
        assert ready(address)["stream"] == "Spark is starting"
        assert httpx.get(f"{address}/healthz").json() == {"status": "alive"}
        until(lambda: ready(address)["stream"] == "ok", "the stream")
        assert process.stdout
        assert process.stdout.readline() == "stream  local[2], 1 segment, position 0, lag 0\n"
        second = tidings("serve", "--port", "0")
        assert second.exit_code == 4 and "another process runs the stream" in second.stderr
        assert f"process {process.pid}" in second.stderr and "--only api" in second.stderr
        _check_delivered_and_traced(address, token, receiver)
        assert notifications_of(tmp_path) == [(1, "p-1")]
        expected = [(1, "p-1")]
        for number in range(2, 40):
            tidings("publish", json.dumps({"price": 1, "n": number}), "--id", f"p-{number}")
            expected.append((number, f"p-{number}"))
        until(lambda: len(notifications_of(tmp_path)) > 1, "work that is under way")
        code, _, errors = signal_and_wait(process)
        assert (code, errors) == (0, "")
    assert terminal.call(tmp_path, "run", "--once", "--master", "local[2]").exit_code == 0
    assert notifications_of(tmp_path) == expected


def _check_delivered_and_traced(address: str, token: str, receiver: Receiver) -> None:
    """Publish with a trace, and wait until the webhook and the trace have arrived."""
    headers = {"authorization": f"Bearer {token}"}
    hook = {"kind": "webhook", "target": f"{receiver.url}/hook"}
    created = httpx.post(f"{address}/v1/destinations?subscriber=ana", json=hook, headers=headers)
    assert created.status_code == 201, created.text
    trace = "4bf92f3577b34da6a3ce929d0e0e4736"
    headers["traceparent"] = f"00-{trace}-00f067aa0ba902b7-01"
    published = httpx.post(
        f"{address}/v1/publications?id=p-1", json={"price": 1}, headers=headers, timeout=60
    )
    assert published.status_code == 201, published.text
    until(lambda: receiver.posted, "the webhook")
    assert receiver.posted[0]["subject"] == "p-1"
    until(lambda: receiver.in_trace(trace) >= {"publish", "notify", "deliver"}, "the trace")
    [batch] = [one for one in receiver.named("match batch") if one.links]  # the first batch is empty
    assert [link.trace_id.hex() for link in batch.links] == [trace]


@pytest.mark.long
@pytest.mark.spark
def test_serve_restarts_stream_when_jvm_is_killed(tidings: Tidings, tmp_path: Path) -> None:
    """The faster test below covers a stream that never starts."""
    tidings("subscribe", "--as", "ana", "price < 10")
    with serving(tmp_path, "--master", "local[2]") as (process, address):
        until(lambda: ready(address)["stream"] == "ok", "the stream")
        os.kill(_jvm(process.pid), signal.SIGKILL)
        until(lambda: "Spark has ended" in ready(address)["stream"], "a stream that says that it died")
        until(lambda: ready(address)["stream"] == "ok", "a stream that is started again")
        tidings("publish", '{"price": 1}', "--id", "p-1")
        until(lambda: notifications_of(tmp_path) == [(1, "p-1")], "a notification")
        code, _, errors = signal_and_wait(process)
    assert code == 0 and "the stream failed: Spark has ended" in errors


def _jvm(parent: int) -> int:
    """Return the pid of the JVM that a process has started."""
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            words = (folder / "stat").read_text().rpartition(")")[2].split()
            if int(words[1]) == parent and "java" in (folder / "comm").read_text():
                return int(folder.name)
        except OSError:
            continue  # the process has ended meanwhile
    raise AssertionError("no JVM")


def test_serve_first_time_without_terminal_prints_path_of_token(tmp_path: Path) -> None:
    first = start("serve", "--port", "0", "--only", "api", cwd=tmp_path)
    assert first.stdout
    line = first.stdout.readline()
    file = tmp_path / ".tidings" / "administrator.token"
    token = file.read_text().strip()
    assert re.fullmatch(r"console  \S+  administrator token in .tidings/administrator.token\n", line)
    assert signal_and_wait(first) == (0, "", "")
    with serving(tmp_path, "--only", "api") as (process, address):
        answer = httpx.get(f"{address}/v1/audiences", headers={"Authorization": f"Bearer {token}"})
        assert answer.status_code == 200
        code, output, errors = signal_and_wait(process)
    assert (code, errors) == (0, "") and "token" not in output
    others = [path for path in tmp_path.rglob("*") if path.is_file() and path != file]
    assert token not in line + "".join(path.read_text(errors="replace") for path in others)


def test_serve_first_time_at_terminal_prints_token(tmp_path: Path) -> None:
    screen, terminal = pty.openpty()
    process = start_anew(
        "serve",
        "--port",
        "0",
        "--only",
        "api",
        cwd=tmp_path,
        stdin=terminal,
        stdout=terminal,
        stderr=terminal,
    )
    os.close(terminal)
    text = ""
    while "administrator.token" not in text:
        text += os.read(screen, 1_000).decode()
    process.terminate()
    with suppress(OSError):  # a terminal without a process behind it
        while os.read(screen, 1_000):
            pass
    os.close(screen)
    assert process.wait() == 0
    assert (
        f"administrator token: {(tmp_path / '.tidings' / 'administrator.token').read_text().strip()}" in text
    )


def test_serve_gives_up_stream_that_cannot_start(
    tidings: Tidings, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The API goes on; a process with the stream alone ends with an error."""
    monkeypatch.setenv("JAVA_HOME", str(tmp_path / "nowhere"))
    monkeypatch.setenv("TIDINGS_STREAM__RESTARTS", "1")
    with serving(tmp_path) as (process, address):
        until(lambda: "failed too often" in ready(address)["stream"], "a stream that is given up")
        assert "Spark needs Java" in ready(address)["stream"]
        assert httpx.get(f"{address}/healthz").status_code == 200
        code, _, errors = signal_and_wait(process)
    assert code == 0 and errors.count("the stream failed") == 2, errors
    alone = tidings("serve", "--port", "0", "--only", "stream")
    assert alone.exit_code == 4 and "the stream failed too often" in alone.stderr


def test_serve_only_delivery_and_unknown_part_is_rejected(
    tidings: Tidings, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TIDINGS_PROT", "1")
    monkeypatch.setenv("TIDINGS_DRAIN", "5")
    with serving(tmp_path, "--only", "delivery") as (process, address):
        assert ready(address) == dict.fromkeys(("store", "hub", "delivery", "objects"), "ok")
        assert httpx.get(f"{address}/metadata/log").status_code == 404, "no API in this process"
        code, _, errors = signal_and_wait(process)
    assert (code, errors) == (
        0,
        "warning  no setting has this variable (TIDINGS_PROT); did you mean TIDINGS_PORT?\n",
    )
    result = tidings("serve", "--only", "everything")
    assert result.exit_code == 2 and "accepted: api, stream, delivery" in result.stderr


def test_serve_sigterm_ends_event_streams(tidings: Tidings, tmp_path: Path) -> None:
    """An endless event stream ends with the service, and is counted while it lasts."""
    token = tidings("token", "make", "all", "--scope", "administer").stdout.split("\n")[1]
    headers = {"authorization": f"Bearer {token}"}
    with (
        serving(tmp_path, "--only", "api") as (process, address),
        httpx.stream(
            "GET", f"{address}/v1/notifications/stream?subscriber=ana", headers=headers, timeout=TIMEOUT
        ) as stream,
    ):
        assert stream.status_code == 200
        metrics = httpx.get(f"{address}/metrics", headers=headers).text
        assert 'tidings_stream_clients{kind="sse"} 1.0' in metrics
        process.send_signal(signal.SIGTERM)
        assert "data:" not in "".join(stream.iter_text()), "it ends, and nothing came"
        assert process.wait(TIMEOUT) == 0


def test_serve_second_signal_ends_at_once(tmp_path: Path) -> None:
    """The service waits for a request whose body does not arrive, and says so; a second signal ends it at once."""
    with serving(tmp_path, "--only", "api") as (process, address):
        port = int(address.rpartition(":")[2])
        with socket.create_connection(("127.0.0.1", port)) as slow:
            slow.sendall(
                b"POST /RPC2 HTTP/1.1\r\nHost: x\r\nContent-Type: text/xml\r\nContent-Length: 9\r\n"
                b"Expect: 100-continue\r\n\r\n"
            )
            assert slow.recv(100).startswith(b"HTTP/1.1 100"), "the request is running"
            process.send_signal(signal.SIGINT)
            assert process.stderr
            assert process.stderr.readline() == "waiting for 1 request (5 seconds), for 20 seconds at most\n"
            assert process.stderr.readline().startswith("Ctrl-C again does not wait")
            process.send_signal(signal.SIGTERM)
            process.wait(TIMEOUT)
        assert process.returncode in (128 + signal.SIGINT, 128 + signal.SIGTERM)
