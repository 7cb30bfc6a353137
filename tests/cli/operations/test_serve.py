"""`tidings serve` as people start it: everything in one process, parts alone, and how it ends."""

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

PATIENCE = 250
CLIENT = httpx.Client(timeout=60, verify=False)  # to read certificates takes longer than to ask


def until(holds: Callable[[], Any], what: str) -> Any:
    """What `holds` gives when it is something."""
    turn = threading.Event()
    for _ in range(PATIENCE * 10):
        if found := holds():
            return found
        turn.wait(0.1)
    raise AssertionError(f"waited in vain: {what}")


def ready(address: str) -> dict[str, str]:
    """What each part says."""
    answer = CLIENT.get(f"{address}/readyz")
    assert (answer.status_code == 200) == (answer.json()["status"] == "ready")
    return dict(answer.json()["checks"])


@contextmanager
def serving(folder: Path, *words: str) -> Iterator[tuple[subprocess.Popen[str], str]]:
    """A server that is killed at the end, if it has not ended before."""
    begin = start if "--only" in words else start_anew
    process = begin("serve", "--port", "0", *words, cwd=folder)
    try:
        yield process, listens_at(process)
    finally:
        process.kill()
        process.communicate()


def ended(process: subprocess.Popen[str], number: signal.Signals = signal.SIGTERM) -> tuple[int, str, str]:
    process.send_signal(number)
    printed, complained = process.communicate(timeout=PATIENCE)
    return process.returncode, printed, complained


def told(folder: Path, subscriber: str = "ana") -> list[tuple[int, str]]:
    with Service(folder / ".tidings") as service:
        return [(one.sequence, one.publication) for one in service.notifications(subscriber)]


@pytest.mark.spark
def test_everything_in_one_command(
    tidings: Tidings, terminal: Terminal, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The API answers while Spark starts; a publication is delivered, and one trace tells how; SIGTERM in the middle of
    the work loses nothing, and nothing comes twice.
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
        _delivered_and_traced(address, token, receiver)
        assert told(tmp_path) == [(1, "p-1")]
        expected = [(1, "p-1")]
        for number in range(2, 40):
            tidings("publish", json.dumps({"price": 1, "n": number}), "--id", f"p-{number}")
            expected.append((number, f"p-{number}"))
        until(lambda: len(told(tmp_path)) > 1, "work that is under way")
        code, _, complained = ended(process)
        assert (code, complained) == (0, "")
    assert terminal.call(tmp_path, "run", "--once", "--master", "local[2]").exit_code == 0
    assert told(tmp_path) == expected


def _delivered_and_traced(address: str, token: str, receiver: Receiver) -> None:
    """From the publisher's own trace to the webhook."""
    headers = {"authorization": f"Bearer {token}"}
    hook = {"kind": "webhook", "target": f"{receiver.url}/hook"}
    made = httpx.post(f"{address}/v1/destinations?subscriber=ana", json=hook, headers=headers)
    assert made.status_code == 201, made.text
    trace = "4bf92f3577b34da6a3ce929d0e0e4736"
    headers["traceparent"] = f"00-{trace}-00f067aa0ba902b7-01"
    taken = httpx.post(f"{address}/v1/publications?id=p-1", json={"price": 1}, headers=headers, timeout=60)
    assert taken.status_code == 201, taken.text
    until(lambda: receiver.posted, "the webhook")
    assert receiver.posted[0]["subject"] == "p-1"
    until(lambda: receiver.in_trace(trace) >= {"publish", "notify", "deliver"}, "the trace")
    [batch] = [one for one in receiver.named("match batch") if one.links]  # the first was of nothing
    assert [link.trace_id.hex() for link in batch.links] == [trace]


@pytest.mark.long
@pytest.mark.spark
def test_a_stream_that_dies_is_started_again(tidings: Tidings, tmp_path: Path) -> None:
    """Its JVM is killed. The shorter test is of one that does not start at all."""
    tidings("subscribe", "--as", "ana", "price < 10")
    with serving(tmp_path, "--master", "local[2]") as (process, address):
        until(lambda: ready(address)["stream"] == "ok", "the stream")
        os.kill(_jvm(process.pid), signal.SIGKILL)
        until(lambda: "Spark has ended" in ready(address)["stream"], "a stream that says that it died")
        until(lambda: ready(address)["stream"] == "ok", "a stream that is started again")
        tidings("publish", '{"price": 1}', "--id", "p-1")
        until(lambda: told(tmp_path) == [(1, "p-1")], "a notification")
        code, _, complained = ended(process)
    assert code == 0 and "the stream failed: Spark has ended" in complained


def _jvm(parent: int) -> int:
    """The JVM that a process has started."""
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            words = (folder / "stat").read_text().rpartition(")")[2].split()
            if int(words[1]) == parent and "java" in (folder / "comm").read_text():
                return int(folder.name)
        except OSError:
            continue  # it has ended meanwhile
    raise AssertionError("no JVM")


def test_serve_for_the_first_time_without_a_terminal_prints_where_the_token_is(tmp_path: Path) -> None:
    first = start("serve", "--port", "0", "--only", "api", cwd=tmp_path)
    assert first.stdout
    said = first.stdout.readline()
    file = tmp_path / ".tidings" / "administrator.token"
    token = file.read_text().strip()
    assert re.fullmatch(r"console  \S+  administrator token in .tidings/administrator.token\n", said)
    assert ended(first) == (0, "", "")
    with serving(tmp_path, "--only", "api") as (process, address):
        answer = httpx.get(f"{address}/v1/audiences", headers={"Authorization": f"Bearer {token}"})
        assert answer.status_code == 200
        code, printed, complained = ended(process)
    assert (code, complained) == (0, "") and "token" not in printed
    others = [path for path in tmp_path.rglob("*") if path.is_file() and path != file]
    assert token not in said + "".join(path.read_text(errors="replace") for path in others)


def test_serve_for_the_first_time_at_a_terminal_prints_the_token(tmp_path: Path) -> None:
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
    said = ""
    while "administrator.token" not in said:
        said += os.read(screen, 1_000).decode()
    process.terminate()
    with suppress(OSError):  # a terminal without a process behind it
        while os.read(screen, 1_000):
            pass
    os.close(screen)
    assert process.wait() == 0
    assert (
        f"administrator token: {(tmp_path / '.tidings' / 'administrator.token').read_text().strip()}" in said
    )


def test_a_stream_that_does_not_start_is_given_up(
    tidings: Tidings, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The API goes on; who runs nothing but the stream ends with an error."""
    monkeypatch.setenv("JAVA_HOME", str(tmp_path / "nowhere"))
    monkeypatch.setenv("TIDINGS_STREAM__RESTARTS", "1")
    with serving(tmp_path) as (process, address):
        until(lambda: "failed too often" in ready(address)["stream"], "a stream that is given up")
        assert "Spark needs Java" in ready(address)["stream"]
        assert httpx.get(f"{address}/healthz").status_code == 200
        code, _, complained = ended(process)
    assert code == 0 and complained.count("the stream failed") == 2, complained
    alone = tidings("serve", "--port", "0", "--only", "stream")
    assert alone.exit_code == 4 and "the stream failed too often" in alone.stderr


def test_delivery_alone_and_what_is_no_part(
    tidings: Tidings, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TIDINGS_PROT", "1")
    monkeypatch.setenv("TIDINGS_DRAIN", "5")
    with serving(tmp_path, "--only", "delivery") as (process, address):
        assert ready(address) == dict.fromkeys(("store", "hub", "delivery", "objects"), "ok")
        assert httpx.get(f"{address}/metadata/log").status_code == 404, "no API in this process"
        code, _, complained = ended(process)
    assert (code, complained) == (
        0,
        "warning  no setting has this variable (TIDINGS_PROT); did you mean TIDINGS_PORT?\n",
    )
    done = tidings("serve", "--only", "everything")
    assert done.exit_code == 2 and "accepted: api, stream, delivery" in done.stderr


def test_who_is_sent_news_is_let_go(tidings: Tidings, tmp_path: Path) -> None:
    """A stream of events that would go on for ever ends with the service, and is counted while it lasts."""
    token = tidings("token", "make", "all", "--scope", "administer").stdout.split("\n")[1]
    headers = {"authorization": f"Bearer {token}"}
    with (
        serving(tmp_path, "--only", "api") as (process, address),
        httpx.stream(
            "GET", f"{address}/v1/notifications/stream?subscriber=ana", headers=headers, timeout=PATIENCE
        ) as news,
    ):
        assert news.status_code == 200
        counted = httpx.get(f"{address}/metrics", headers=headers).text
        assert 'tidings_stream_clients{kind="sse"} 1.0' in counted
        process.send_signal(signal.SIGTERM)
        assert "data:" not in "".join(news.iter_text()), "it ends, and nothing came"
        assert process.wait(PATIENCE) == 0


def test_a_second_signal_does_not_wait(tmp_path: Path) -> None:
    """A request whose body does not come is waited for, and whoever waits is told; a second signal ends it at once."""
    with serving(tmp_path, "--only", "api") as (process, address):
        port = int(address.rpartition(":")[2])
        with socket.create_connection(("127.0.0.1", port)) as slow:
            slow.sendall(
                b"POST /RPC2 HTTP/1.1\r\nHost: x\r\nContent-Type: text/xml\r\nContent-Length: 9\r\n"
                b"Expect: 100-continue\r\n\r\n"
            )
            assert slow.recv(100).startswith(b"HTTP/1.1 100"), "it is under way"
            process.send_signal(signal.SIGINT)
            assert process.stderr
            assert process.stderr.readline() == "waiting for 1 request (5 seconds), for 20 seconds at most\n"
            assert process.stderr.readline().startswith("Ctrl-C again does not wait")
            process.send_signal(signal.SIGTERM)
            process.wait(PATIENCE)
        assert process.returncode in (128 + signal.SIGINT, 128 + signal.SIGTERM)
