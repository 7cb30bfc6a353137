"""The processes in which Apprise runs: one, as a rule, started when it is first needed.

A message that takes too long cannot be ended by itself. The process it hangs in is asked for nothing more, and is ended
when all else that it was asked for is done; a new one takes its place.
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

from tidings.core.closeable import Closeable

PROGRAM = Path(__file__).with_name("apprise_worker.py")
KEPT = ("PATH", "LANG", "LC_ALL", "TZ", "PYTHONPATH", "PYTHONHOME", "SSL_CERT_FILE", "SSL_CERT_DIR")
"""What it sees of the environment. A proxy would resolve names where nobody looks; the rest does not concern it."""
ENDED = "the process that speaks to mail and chat ended"


class AppriseProcess(Closeable):
    """Sends by Apprise, from any number of threads."""

    def __init__(self, threads: int, inside: bool, seconds: float) -> None:
        """`seconds` is how long one message may take."""
        self._threads, self._inside, self.seconds = threads, inside, seconds
        self._guard = Lock()
        self._running: list[_Process] = []

    def send(self, target: str, title: str, text: str) -> str | None:
        """Send one message; the problem, if there is one."""
        process = self._process()
        number, answer = process.ask({"target": target, "title": title, "text": text})
        try:
            return answer.result(self.seconds)
        except TimeoutError:
            process.give_up(number)
            return f"the service takes longer than {self.seconds:g} seconds"

    def close(self) -> None:
        """End what is under way: it fails."""
        with self._guard:
            running, self._running = self._running, []
        for process in running:
            process.end()

    def _process(self) -> _Process:
        with self._guard:
            self._running = [each for each in self._running if not each.is_over]
            found = next((each for each in self._running if each.takes_more), None)
            if found is None:
                found = _Process(self._threads, self._inside)
                self._running.append(found)
            return found


class _Process:
    """One process, and what it was asked."""

    def __init__(self, threads: int, inside: bool) -> None:
        self.takes_more, self.is_over = True, False
        self._guard, self._writing, self._numbers = Lock(), Lock(), count(1)
        self._asked: dict[int, Future[str | None]] = {}
        self._late: set[int] = set()
        self._process = subprocess.Popen(
            [sys.executable, "-P", PROGRAM, str(threads), "inside" if inside else "outside"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            env={name: os.environ[name] for name in KEPT if name in os.environ},
            start_new_session=True,  # Ctrl-C is for those who drain
        )
        self._reader = Thread(target=self._read, name="apprise", daemon=True)
        self._reader.start()

    def ask(self, request: dict[str, str]) -> tuple[int, Future[str | None]]:
        """Hand a request over; its number, and the problem that is answered."""
        answer: Future[str | None] = Future()
        with self._guard:
            number = next(self._numbers)
            self._asked[number] = answer
        if self.is_over:
            self._fail()
        else:
            self._write(json.dumps({"id": number, **request}).encode() + b"\n")
        return number, answer

    def give_up(self, number: int) -> None:
        """Wait for an answer no longer, and for nothing new."""
        self.takes_more = False
        self._late.add(number)
        self._end_if_idle()

    def end(self) -> None:
        self.takes_more = False
        self._process.kill()
        self._reader.join()

    def _write(self, line: bytes) -> None:
        assert self._process.stdin
        with self._writing, suppress(BrokenPipeError):  # it ended: its reader says so to all who wait
            self._process.stdin.write(line)
            self._process.stdin.flush()

    def _read(self) -> None:
        """Pass answers on until it ends, by itself or because it was ended."""
        assert self._process.stdin and self._process.stdout
        for line in self._process.stdout:
            said = json.loads(line)
            with self._guard:
                answer = self._asked.pop(said["id"])
            answer.set_result(said["problem"])
            self._end_if_idle()
        self.takes_more, self.is_over = False, True
        self._process.wait()
        self._fail()
        with self._writing, suppress(BrokenPipeError):
            self._process.stdin.close()
        self._process.stdout.close()

    def _fail(self) -> None:
        with self._guard:
            left = list(self._asked.values())
            self._asked.clear()
        for answer in left:
            answer.set_result(ENDED)

    def _end_if_idle(self) -> None:
        with self._guard:
            waited_for = self._asked.keys() - self._late
        if not self.takes_more and not waited_for:
            self._process.kill()
