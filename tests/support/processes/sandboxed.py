"""Forbidden and allowed actions of libraries in the sandbox: `python sandboxed.py PORT FILE` prints their results."""

from __future__ import annotations

import asyncio
import http.client
import json
import os
import smtplib
import socket
import subprocess
import sys
import threading
import time
import urllib.request
from collections.abc import Callable
from pathlib import Path
from typing import Any

import apprise
import requests

from tidings.operations.sandbox import Sandbox, SandboxViolation

PORT, FILE = int(sys.argv[1]), sys.argv[2]


def connect_in_thread() -> None:
    """Threads of libraries are sandboxed as well."""
    raised: list[Exception] = []

    def connect() -> None:
        try:
            socket.create_connection(("127.0.0.1", PORT), 5)
        except OSError as error:
            raised.append(error)

    thread = threading.Thread(target=connect)
    thread.start()
    thread.join()
    raise raised[0]


def send_udp(host: str) -> None:
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sender:
        sender.sendto(b"x", (host, PORT))


def send_message() -> None:
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sender:
        sender.sendmsg([b"x"], [], 0, ("127.0.0.1", PORT))


def call_method(method: str, *address: Any, family: int = socket.AF_INET) -> None:
    with socket.socket(family) as found:
        getattr(found, method)(*address)


def connect_to_itself() -> None:
    """Connect to this process, as libraries do to wake a thread."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        socket.create_connection(server.getsockname(), 5).close()


INSIDE: dict[str, Callable[[], object]] = {
    "connect": lambda: call_method("connect", ("127.0.0.1", PORT)),
    "connect by name": lambda: call_method("connect", ("localhost", PORT)),
    "connect_ex by name": lambda: call_method("connect_ex", ("localhost", PORT)),
    "connect in other words": lambda: call_method("connect", ("127.1", PORT)),
    "connect to nowhere": lambda: call_method("connect", ("0.0.0.0", PORT)),
    "mapped": lambda: call_method("connect", ("::ffff:127.0.0.1", PORT), family=socket.AF_INET6),
    "below Python": lambda: socket.socket.__mro__[1].connect(socket.socket(), ("localhost", PORT)),  # type: ignore[attr-defined]
    "create_connection": lambda: socket.create_connection(("localhost", PORT), 5),
    "thread": connect_in_thread,
    "udp": lambda: send_udp("127.0.0.1"),
    "udp by name": lambda: send_udp("localhost"),
    "sendmsg": send_message,
    "asyncio": lambda: asyncio.run(asyncio.open_connection("localhost", PORT)),  # type: ignore[arg-type]
    "unix": lambda: call_method("connect", "/tmp/any.sock", family=socket.AF_UNIX),
    "http": lambda: http.client.HTTPConnection("127.0.0.1", PORT).request("GET", "/"),
    "smtp": lambda: smtplib.SMTP("localhost", PORT, timeout=5),
    "urllib": lambda: urllib.request.urlopen(f"http://localhost:{PORT}/"),
    "requests": lambda: requests.get(f"http://localhost:{PORT}/", timeout=5),
}
HERE: dict[str, Callable[[], object]] = {
    "read": lambda: Path(FILE).read_text(),
    "read by descriptor": lambda: os.open(FILE, os.O_RDONLY),
    "read by a way round": lambda: Path(
        f"{Path(json.__file__).parent}/../../../../../../../..{FILE}"
    ).read_text(),
    "write": lambda: Path(FILE).write_text("x"),
    "write a library": lambda: Path(apprise.__file__).open("a"),  # noqa: SIM115
    "remove": lambda: Path(FILE).unlink(),
    "run": lambda: subprocess.run(["true"], check=True),
    "shell": lambda: os.system("true"),
    "fork": os.fork,
    "exec": lambda: os.execv("/bin/true", ["true"]),
    "spawn": lambda: os.posix_spawn("/bin/true", ["true"], {}),
}
FREE: dict[str, Callable[[], object]] = {
    "pair": socket.socketpair,
    "itself": connect_to_itself,
    "asyncio": lambda: asyncio.run(asyncio.sleep(0)),
    "a library's file": lambda: Path(json.__file__).read_text(),
    "time": time.time,
}


def try_action(action: Callable[[], object]) -> str:
    try:
        action()
    except Exception as error:  # noqa: BLE001 # the error is the result
        while not isinstance(error, SandboxViolation) and (cause := error.__cause__ or error.__context__):
            error = cause  # type: ignore[assignment]
        reason = getattr(error, "reason", error)
        return "refused" if isinstance(reason, SandboxViolation) else repr(error)
    return "done"


if __name__ == "__main__":
    walls = Sandbox(inside=len(sys.argv) > 3)
    walls.build()
    found = {
        part: {name: try_action(action) for name, action in actions.items()}
        for part, actions in (("inside", INSIDE), ("here", HERE), ("free", FREE))
    }
    sys.stdout.write(json.dumps(found))
