"""Processes in which Apprise runs: usually one, started with the first message.

A single message cannot be cancelled. After a timeout its process gets no new requests and is killed when its other
requests are done; a new process replaces it.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from concurrent.futures import Future
from contextlib import suppress
from itertools import count
from pathlib import Path
from threading import Lock, Thread

from tidings.core.lifecycle import Closeable

PROGRAM = Path(__file__).with_name("apprise_worker.py")
ENVIRONMENT = ("PATH", "LANG", "LC_ALL", "TZ", "PYTHONPATH", "PYTHONHOME", "SSL_CERT_FILE", "SSL_CERT_DIR")
"""Environment variables that it inherits. Those of a proxy are left out: it would resolve names outside the sandbox."""
ENDED = "the process that sends mail and chat messages ended"


class AppriseProcess(Closeable):
    """Sends with Apprise; safe to use from several threads."""

    def __init__(self, threads: int, inside: bool, seconds: float) -> None:
        """`seconds` is the timeout of one message."""
        self._threads, self._inside, self.seconds = threads, inside, seconds
        self._guard = Lock()
        self._running: list[_Process] = []

    def send(self, target: str, title: str, text: str) -> str | None:
        """Send one message; return the problem, or None."""
        process = self._process()
        number, answer = process.ask({"target": target, "title": title, "text": text})
        try:
            return answer.result(self.seconds)
        except TimeoutError:
            process.give_up(number)
            return f"the service did not answer within {self.seconds:g} seconds"

    def close(self) -> None:
        """Cancel messages in progress; they fail."""
        with self._guard:
            running, self._running = self._running, []
        for process in running:
            process.end()

    def _process(self) -> _Process:
        with self._guard:
            self._running = [process for process in self._running if not process.is_over]
            process = next((process for process in self._running if process.takes_more), None)
            if process is None:
                process = _Process(self._threads, self._inside)
                self._running.append(process)
            return process


class _Process:
    """One process, and its open requests."""

    def __init__(self, threads: int, inside: bool) -> None:
        self.takes_more, self.is_over = True, False
        self._guard, self._writing, self._numbers = Lock(), Lock(), count(1)
        self._requests: dict[int, Future[str | None]] = {}
        self._late: set[int] = set()
        self._process = subprocess.Popen(
            [sys.executable, "-P", PROGRAM, str(threads), "inside" if inside else "outside"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            env={name: os.environ[name] for name in ENVIRONMENT if name in os.environ},
            start_new_session=True,  # Ctrl-C ends it only after the drain
        )
        self._reader = Thread(target=self._read, name="apprise", daemon=True)
        self._reader.start()

    def ask(self, request: dict[str, str]) -> tuple[int, Future[str | None]]:
        """Send a request; return its number, and the future problem."""
        answer: Future[str | None] = Future()
        with self._guard:
            number = next(self._numbers)
            self._requests[number] = answer
        if self.is_over:
            self._fail()
        else:
            self._write(json.dumps({"id": number, **request}).encode() + b"\n")
        return number, answer

    def give_up(self, number: int) -> None:
        """Stop waiting for an answer, and accept no new requests."""
        self.takes_more = False
        self._late.add(number)
        self._end_if_idle()

    def end(self) -> None:
        self.takes_more = False
        self._process.kill()
        self._reader.join()

    def _write(self, line: bytes) -> None:
        assert self._process.stdin
        with self._writing, suppress(BrokenPipeError):  # it ended: the reader fails all open requests
            self._process.stdin.write(line)
            self._process.stdin.flush()

    def _read(self) -> None:
        """Pass on answers until the process ends."""
        assert self._process.stdin and self._process.stdout
        for line in self._process.stdout:
            response = json.loads(line)
            with self._guard:
                answer = self._requests.pop(response["id"])
            answer.set_result(response["problem"])
            self._end_if_idle()
        self.takes_more, self.is_over = False, True
        self._process.wait()
        self._fail()
        with self._writing, suppress(BrokenPipeError):
            self._process.stdin.close()
        self._process.stdout.close()

    def _fail(self) -> None:
        with self._guard:
            answers = list(self._requests.values())
            self._requests.clear()
        for answer in answers:
            answer.set_result(ENDED)

    def _end_if_idle(self) -> None:
        with self._guard:
            open_requests = self._requests.keys() - self._late
        if not self.takes_more and not open_requests:
            self._process.kill()
