"""Apprise, in a process of its own with walls around it: it connects by itself, to wherever a target says.

`apprise_process` starts this file as a program. Requests and answers are lines of JSON on the standard input and
output, matched by `id`, and answers come as they are ready:

    {"id": 1, "target": "mailto://...", "title": "...", "text": "..."}
    {"id": 1, "problem": null}

It ends when nobody writes to it any more. As a program it imports nothing of the folder that it is in, so that it
starts quickly and takes little memory.
"""

from __future__ import annotations

import json
import logging
import os
import sys
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from threading import Lock
from typing import Any, TextIO

from tidings.errors import SetupError
from tidings.operations.sandbox import Sandbox

try:
    import apprise
except ModuleNotFoundError:  # it is an extra
    apprise = None  # type: ignore[assignment]

UNKNOWN = "Apprise does not know this target"
SAID = 200
"""How many characters of what Apprise says stand in the problem."""


def parse_target(target: str) -> Any:
    """What Apprise makes of a target; nothing if it is none. It follows no redirects and keeps no files."""
    if apprise is None:
        hint = "pip install 'tidings[apprise]'"
        raise SetupError("Apprise is not installed, by which mail and chat are sent", hint=hint)
    asset = apprise.AppriseAsset(
        storage_mode="memory",
        allow_templates=False,
        http_redirects=False,
        pgp_autogen=False,
        pem_autogen=False,
    )
    with capture_log():
        return apprise.Apprise.instantiate(target, asset=asset, suppress_exceptions=True)


class _Ear(logging.Handler):
    """Apprise says only in its log why something was not taken. Several threads send: each hears what it caused."""

    def __init__(self) -> None:
        super().__init__(logging.WARNING)
        self.own = threading.local()

    def emit(self, record: logging.LogRecord) -> None:
        heard: list[str] | None = getattr(self.own, "heard", None)
        if heard is not None:
            heard.append(record.getMessage()[:SAID])


_EAR = _Ear()


@contextmanager
def capture_log() -> Iterator[list[str]]:
    """What Apprise says to this thread meanwhile."""
    log = logging.getLogger("apprise")
    if _EAR not in log.handlers:
        log.addHandler(_EAR)
        log.propagate = False  # what it says is in the problem of the delivery
    _EAR.own.heard = []
    try:
        yield _EAR.own.heard
    finally:
        _EAR.own.heard = None


class Worker:
    """Answers requests, each in a thread of its own."""

    def __init__(self, walls: Sandbox, out: TextIO) -> None:
        self._walls, self._out, self._writing = walls, out, Lock()

    def work(self, line: str) -> None:
        request = json.loads(line)
        try:
            problem = self._notify(request["target"], request["title"], request["text"])
        except Exception as error:  # noqa: BLE001 # whatever a plugin raises is this target's problem alone
            problem = f"the service could not be spoken to ({type(error).__name__})"
        with self._writing:
            self._out.write(json.dumps({"id": request["id"], "problem": problem}) + "\n")
            self._out.flush()

    def _notify(self, target: str, title: str, text: str) -> str | None:
        self._walls.refused.clear()
        service = parse_target(target)
        if service is None:
            return UNKNOWN
        with capture_log() as said:
            if service.notify(title=title, body=text):
                return None
        refused = self._walls.refused
        return refused[-1] if refused else said[-1] if said else "the service did not take it"


def main(threads: int, inside: bool) -> None:
    out = os.fdopen(os.dup(sys.stdout.fileno()), "w", encoding="utf-8")
    os.dup2(sys.stderr.fileno(), sys.stdout.fileno())  # what a library prints is no answer
    logging.lastResort = None  # addresses in what libraries log are secrets
    walls = Sandbox(inside)
    parse_target("json://example.org")  # reads all of its plugins, which takes longer than anything else
    walls.build()
    worker = Worker(walls, out)
    pool = ThreadPoolExecutor(threads)
    for line in sys.stdin:
        pool.submit(worker.work, line)
    os._exit(0)  # nobody is left to hear of what is under way


if __name__ == "__main__":
    main(int(sys.argv[1]), sys.argv[2] == "inside")
