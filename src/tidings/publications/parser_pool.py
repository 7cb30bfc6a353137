"""Parsers in processes of their own, for a service that reads what strangers send.

    with ParserPool() as pool, pool.installed():
        isolated(rdf.decode, body, "application/rdf+xml")

A parser written in C or Rust that hangs, aborts or takes all memory would do so to the whole service. Here it does so
to a process that has a deadline for each call, a limit of memory, and no way to open a file or a socket. What ends it
is the problem of the one input that did; the next call gets a new process.

In a process that has installed no pool, a command or a task of Spark, `isolated` simply calls the function.
"""

from __future__ import annotations

import io
import logging
import os
import pickle
import socket
import struct
import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from enum import Enum
from pathlib import Path
from threading import Condition
from time import monotonic
from typing import Any, ParamSpec, TypeVar

from tidings.closing import Closing
from tidings.errors import DecodeProblem, Overloaded, restored
from tidings.limits import check_limits, limits_from

P = ParamSpec("P")
T = TypeVar("T")

PROGRAM = Path(__file__).with_name("parser_worker.py")
MODULES = (
    "tidings.publications.feeds",
    "tidings.publications.media_types",
    "tidings.publications.rdf",
    "tidings.publications.rdf_parts",
    "tidings.publications.rdf_simple",
    "tidings.publications.rpc_calls",
    "tidings.publications.xml_parser",
)
"""Where the functions are that may be called there."""

ENVIRONMENT = ("PATH", "LANG", "LC_ALL", "TZ", "PYTHONPATH", "PYTHONHOME", "PYTHONDONTWRITEBYTECODE")
"""What a parser process sees of the environment, besides limits and the folder of contexts."""

START_SECONDS = 60.0
"""How long a process may take to start, which depends on the machine alone."""

HEADER = struct.Struct("!Q")
_log = logging.getLogger("tidings.parsers")


@dataclass(frozen=True, slots=True)
class Limits:
    """What one call may take: seconds, and megabytes of memory; how many processes there are, and how many may wait."""

    seconds: int = 10
    memory: int = 1_024
    processes: int = 2
    waiting: int = 16

    def __post_init__(self) -> None:
        check_limits(self, {})


DEFAULT = limits_from("TIDINGS_PARSER_LIMITS", Limits)


class Lane(Enum):
    """Whose input it is. Strangers, and sites that feeds come from, never occupy the last process."""

    CALLERS = "callers"
    STRANGERS = "strangers"


class Outcome(Enum):
    """How a call ended in its process."""

    RETURNED = "returned"
    REFUSED = "refused"
    FAILED = "failed"
    NO_MEMORY = "no memory"


class ParserPool(Closing):
    """Processes that parse, from any number of threads. They are started when they are needed."""

    def __init__(self, limits: Limits = DEFAULT, modules: Sequence[str] = MODULES) -> None:
        self._limits, self._modules = limits, modules
        self._changed = Condition()
        self._idle: list[_Process] = []
        self._all: set[_Process] = set()
        self._busy = dict.fromkeys(Lane, 0)
        self._waiting = 0
        self._is_closed = False

    def call(self, lane: Lane, function: Callable[..., T], *args: Any) -> T:
        """What the function returns or raises in a parser process. One that has ended while it was idle is replaced."""
        for _ in range(self._limits.processes + 1):
            with suppress(_NotHandedOver), self._occupied(lane) as process:
                return process.call(function, args, self._limits)
        raise Overloaded("no parser process starts", hint="come back in a moment")

    @contextmanager
    def installed(self) -> Iterator[None]:
        """Use this pool for what is `isolated` in this process."""
        _installed.append(self)
        try:
            yield
        finally:
            _installed.remove(self)

    def close(self) -> None:
        """End all processes: what they are at fails."""
        with self._changed:
            self._is_closed = True
            for process in self._idle:
                process.end()
            for process in self._all.difference(self._idle):
                process.kill()
            self._idle.clear()
            self._changed.notify_all()

    @contextmanager
    def _occupied(self, lane: Lane) -> Iterator[_Process]:
        """A process for one call. One that is not idle after it has ended, or has to."""
        process = self._taken(lane)
        try:
            yield process
        finally:
            with self._changed:
                self._busy[lane] -= 1
                if process.is_over or self._is_closed:
                    process.end()
                    self._all.discard(process)
                else:
                    self._idle.append(process)
                self._changed.notify_all()

    def _taken(self, lane: Lane) -> _Process:
        with self._changed:
            if not self._has_room(lane):
                self._wait(lane)
            if self._is_closed:
                raise Overloaded("the service is ending")
            process = self._idle.pop() if self._idle else self._started()
            self._busy[lane] += 1
            return process

    def _wait(self, lane: Lane) -> None:
        if self._waiting >= self._limits.waiting:
            raise _too_many()
        self._waiting += 1
        try:
            found = self._changed.wait_for(
                lambda: self._has_room(lane) or self._is_closed, self._limits.seconds
            )
        finally:
            self._waiting -= 1
        if not found:
            raise _too_many()

    def _has_room(self, lane: Lane) -> bool:
        most = self._limits.processes
        of_strangers = self._busy[Lane.STRANGERS] < max(1, most - 1)
        return sum(self._busy.values()) < most and (lane is Lane.CALLERS or of_strangers)

    def _started(self) -> _Process:
        process = _Process(self._limits, self._modules)
        self._all.add(process)
        return process


_installed: list[ParserPool] = []


def isolated(function: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
    """Call a function of `MODULES`, in a parser process if this process has installed a pool."""
    assert not kwargs, "arguments are passed by position"
    if not _installed:
        return function(*args, **kwargs)
    return _installed[-1].call(Lane.CALLERS, function, *args)


def isolated_for(lane: Lane, function: Callable[..., T], *args: Any) -> T:
    """The same for input that may have to wait for that of others."""
    return _installed[-1].call(lane, function, *args) if _installed else function(*args)


class _Process:
    """One process, which does one thing at a time."""

    def __init__(self, limits: Limits, modules: Sequence[str]) -> None:
        self.is_over, self._is_ready = False, False
        self._socket, theirs = socket.socketpair()
        with theirs:
            self._process = subprocess.Popen(
                [sys.executable, "-P", PROGRAM, str(theirs.fileno()), str(limits.memory), *modules],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                pass_fds=[theirs.fileno()],
                env=_environment(),
                start_new_session=True,  # Ctrl-C is for those who drain
            )

    def call(self, function: Callable[..., T], args: Sequence[Any], limits: Limits) -> T:
        asked = (function.__module__, function.__qualname__, args, limits.seconds)
        try:
            self._hand_over(pickle.dumps(asked, pickle.HIGHEST_PROTOCOL), limits)
            outcome, value, self.is_over = self._answered(function, limits)
        except BaseException:
            self.is_over = True
            raise
        if outcome is Outcome.RETURNED:
            return value  # type: ignore[no-any-return]
        if outcome is Outcome.REFUSED:
            raise value
        if outcome is Outcome.NO_MEMORY:
            raise _no_memory(limits)
        raise RuntimeError(f"{function.__qualname__} failed in a parser process:\n{value}")

    def kill(self) -> None:
        """End the process; a call that is under way fails."""
        self.is_over = True
        self._process.kill()

    def end(self) -> None:
        """The same, when no call is under way."""
        self.kill()
        self._process.wait()
        self._socket.close()

    def _hand_over(self, request: bytes, limits: Limits) -> None:
        """It reads the whole request before it does anything, so that what goes wrong here is not due to the input."""
        try:
            if not self._is_ready:
                self._received(1, monotonic() + START_SECONDS)
                self._is_ready = True
            self._socket.settimeout(limits.seconds)
            self._socket.sendall(HEADER.pack(len(request)) + request)
        except (OSError, EOFError) as error:
            _log.warning("a parser process could not be asked: %s", error or "it has ended")
            raise _NotHandedOver from error

    def _answered(self, function: Callable[..., T], limits: Limits) -> tuple[Outcome, Any, bool]:
        until = monotonic() + limits.seconds
        try:
            [length] = HEADER.unpack(self._received(HEADER.size, until))
            found: tuple[Outcome, Any, bool] = _Answers(io.BytesIO(self._received(length, until))).load()
            return found
        except TimeoutError:
            _log.warning("%s took longer than %s s and was ended", function.__qualname__, limits.seconds)
            raise _too_long(limits) from None
        except (OSError, EOFError):
            status = self._process.wait()
            _log.warning("the process of %s ended with status %s", function.__qualname__, status)
            raise _no_memory(limits) from None

    def _received(self, size: int, until: float) -> bytearray:
        received = bytearray(size)
        rest = memoryview(received)
        while rest:
            self._socket.settimeout(max(0.001, until - monotonic()))
            count = self._socket.recv_into(rest)
            if not count:
                raise EOFError
            rest = rest[count:]
        return received


class _NotHandedOver(Exception):
    """A process that had ended before it was asked."""


class _Answers(pickle.Unpickler):
    """Reads answers: values of Tidings and of a few plain types, nothing that does something when it is read."""

    def find_class(self, module: str, name: str) -> Any:
        if (module, name) in _PLAIN:
            return super().find_class(module, name)
        found = (
            super().find_class(module, name) if module.startswith("tidings.") and "." not in name else None
        )
        if not isinstance(found, type) and found is not restored:
            raise pickle.UnpicklingError(f"{module}.{name} in an answer of a parser process")
        return found


_PLAIN = frozenset(
    (
        *(("builtins", name) for name in ("set", "frozenset", "bytearray")),
        *(("datetime", name) for name in ("datetime", "timezone", "timedelta")),
    )
)


def _environment() -> dict[str, str]:
    named = (name for name in os.environ if name in ENVIRONMENT or name.endswith(("_LIMITS", "_CONTEXTS")))
    return {name: os.environ[name] for name in named}


def _too_long(limits: Limits) -> DecodeProblem:
    accepted = f"what takes {limits.seconds} s at most (the limit seconds)"
    return DecodeProblem("this takes too long to read", accepted=accepted)


def _no_memory(limits: Limits) -> DecodeProblem:
    accepted = f"what takes {limits.memory:,} MB at most (the limit memory)"
    return DecodeProblem("this needs too much memory to be read, or ends its parser", accepted=accepted)


def _too_many() -> Overloaded:
    return Overloaded("too much waits to be read already", hint="come back in a moment")
