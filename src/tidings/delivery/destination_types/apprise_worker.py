"""Apprise in a sandboxed process: it opens its own connections, to any host that a target names.

`apprise_process` starts this file as a program. Requests and answers are JSON lines on standard input and output,
matched by `id`; answers may come in any order:

    {"id": 1, "target": "mailto://...", "title": "...", "text": "..."}
    {"id": 1, "problem": null}

It ends when its input is closed. The program imports no other module of this package, to start quickly and use little
memory.
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
except ModuleNotFoundError:  # an optional dependency
    apprise = None  # type: ignore[assignment]

UNKNOWN = "Apprise does not know this target"
MAX_LOG_LENGTH = 200
"""Maximum number of quoted characters of a log message of Apprise."""


def parse_target(target: str) -> Any:
    """Parse a target; return None if it is invalid. The service follows no redirects and keeps no files."""
    if apprise is None:
        hint = "pip install 'tidings[apprise]'"
        raise SetupError("Apprise, which sends mail and chat messages, is not installed", hint=hint)
    asset = apprise.AppriseAsset(
        storage_mode="memory",
        allow_templates=False,
        http_redirects=False,
        pgp_autogen=False,
        pem_autogen=False,
    )
    with capture_log():
        return apprise.Apprise.instantiate(target, asset=asset, suppress_exceptions=True)


class _LogCapture(logging.Handler):
    """Captures the log of Apprise per thread: only the log has the reason why a message was not accepted."""

    def __init__(self) -> None:
        super().__init__(logging.WARNING)
        self.thread = threading.local()

    def emit(self, record: logging.LogRecord) -> None:
        messages: list[str] | None = getattr(self.thread, "messages", None)
        if messages is not None:
            messages.append(record.getMessage()[:MAX_LOG_LENGTH])


_CAPTURE = _LogCapture()


@contextmanager
def capture_log() -> Iterator[list[str]]:
    """Capture the log of Apprise in this thread."""
    log = logging.getLogger("apprise")
    if _CAPTURE not in log.handlers:
        log.addHandler(_CAPTURE)
        log.propagate = False  # the problem of the delivery has the message
    _CAPTURE.thread.messages = []
    try:
        yield _CAPTURE.thread.messages
    finally:
        _CAPTURE.thread.messages = None


class RequestHandler:
    """Answers requests, each in a separate thread."""

    def __init__(self, sandbox: Sandbox, out: TextIO) -> None:
        self._sandbox, self._out, self._writing = sandbox, out, Lock()

    def answer(self, line: str) -> None:
        request = json.loads(line)
        try:
            problem = self._notify(request["target"], request["title"], request["text"])
        except Exception as error:  # noqa: BLE001 # an exception of a plugin fails only this message
            problem = f"the plugin of the service failed ({type(error).__name__})"
        with self._writing:
            self._out.write(json.dumps({"id": request["id"], "problem": problem}) + "\n")
            self._out.flush()

    def _notify(self, target: str, title: str, text: str) -> str | None:
        self._sandbox.refused.clear()
        service = parse_target(target)
        if service is None:
            return UNKNOWN
        with capture_log() as messages:
            if service.notify(title=title, body=text):
                return None
        blocked = self._sandbox.refused
        return (
            blocked[-1] if blocked else messages[-1] if messages else "the service did not accept the message"
        )


def main(threads: int, inside: bool) -> None:
    out = os.fdopen(os.dup(sys.stdout.fileno()), "w", encoding="utf-8")
    os.dup2(sys.stderr.fileno(), sys.stdout.fileno())  # output of libraries must not mix with answers
    logging.lastResort = None  # URLs in the logs of libraries are secrets
    sandbox = Sandbox(inside)
    parse_target("json://example.org")  # loads all plugins, the slowest part of the start
    sandbox.build()
    handler = RequestHandler(sandbox, out)
    pool = ThreadPoolExecutor(threads)
    for line in sys.stdin:
        pool.submit(handler.answer, line)
    os._exit(0)  # the parent has ended: open requests do not matter


if __name__ == "__main__":
    main(int(sys.argv[1]), sys.argv[2] == "inside")
