"""Pool of parser processes for input that the service does not trust.

    with ParserPool() as pool, pool.install():
        run_isolated(rdf.decode, body, "application/rdf+xml")

A parser written in C or Rust that hangs, aborts or exhausts memory would take the whole service with it. Here it runs
in a process with a deadline for each call, a memory limit, and no way to open a file or a socket. If the process dies,
only the input that killed it is rejected; the next call gets a new process.

Without an installed pool, as in a command or a Spark task, `run_isolated` calls the function directly.
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

from tidings.core.lifecycle import Closeable
from tidings.core.limits import check_limits, limits_from
from tidings.errors import DecodeProblem, Overloaded, restore_error

P = ParamSpec("P")
T = TypeVar("T")

PROGRAM = Path(__file__).with_name("parser_worker.py")
MODULES = (
    "tidings.graphs.syndication.feed_parser",
    "tidings.documents.kind",
    "tidings.graphs.kind",
    "tidings.graphs.rdf.rdf_decoder",
    "tidings.graphs.rdf.multipart",
    "tidings.graphs.rdf.statements",
    "tidings.api.xml_rpc.xml_rpc_call",
    "tidings.parsers.xml_parser",
)
"""Modules whose functions may be called in a parser process."""

ENVIRONMENT = ("PATH", "LANG", "LC_ALL", "TZ", "PYTHONPATH", "PYTHONHOME", "PYTHONDONTWRITEBYTECODE")
"""Environment variables that a parser process inherits, besides limits and the folder of JSON-LD contexts."""

START_SECONDS = 60.0
"""Time limit for the start of a process; start-up depends on the machine, not on the input."""

HEADER = struct.Struct("!Q")
_log = logging.getLogger("tidings.parsers")


@dataclass(frozen=True, slots=True)
class Limits:
    """Seconds and megabytes of memory for one call; number of processes; number of calls that may wait."""

    seconds: int = 10
    memory: int = 1_024
    processes: int = 2
    waiting: int = 16

    def __post_init__(self) -> None:
        check_limits(self, {})


DEFAULT = limits_from("TIDINGS_PARSER_LIMITS", Limits)


class Lane(Enum):
    """Priority of a call. Unauthenticated callers and polled feeds never occupy the last process."""

    CALLERS = "callers"
    STRANGERS = "strangers"


class Outcome(Enum):
    """Outcome of a call in its process."""

    RETURNED = "returned"
    REFUSED = "refused"
    FAILED = "failed"
    NO_MEMORY = "no memory"


class ParserPool(Closeable):
    """Thread-safe pool of parser processes, started on demand."""

    def __init__(self, limits: Limits = DEFAULT, modules: Sequence[str] = MODULES) -> None:
        self._limits, self._modules = limits, modules
        self._changed = Condition()
        self._idle: list[_Process] = []
        self._all: set[_Process] = set()
        self._busy = dict.fromkeys(Lane, 0)
        self._waiting = 0
        self._is_closed = False

    def call(self, lane: Lane, function: Callable[..., T], *args: Any) -> T:
        """Call a function in a parser process and return its result. A process that died while idle is replaced."""
        for _ in range(self._limits.processes + 1):
            with suppress(_RequestNotSent), self._reserve(lane) as process:
                return process.call(function, args, self._limits)
        raise Overloaded("no parser process could be started", hint="try again in a moment")

    @contextmanager
    def install(self) -> Iterator[None]:
        """Use this pool for calls of `run_isolated` in this process."""
        _installed.append(self)
        try:
            yield
        finally:
            _installed.remove(self)

    def close(self) -> None:
        """Kill all processes; calls under way fail."""
        with self._changed:
            self._is_closed = True
            for process in self._idle:
                process.end()
            for process in self._all.difference(self._idle):
                process.kill()
            self._idle.clear()
            self._changed.notify_all()

    @contextmanager
    def _reserve(self, lane: Lane) -> Iterator[_Process]:
        """Reserve a process for one call; afterwards return it to the pool, or reap it if it has ended."""
        process = self._acquire(lane)
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

    def _acquire(self, lane: Lane) -> _Process:
        with self._changed:
            if not self._has_room(lane):
                self._wait(lane)
            if self._is_closed:
                raise Overloaded("the service is shutting down")
            process = self._idle.pop() if self._idle else self._start()
            self._busy[lane] += 1
            return process

    def _wait(self, lane: Lane) -> None:
        if self._waiting >= self._limits.waiting:
            raise _too_many()
        self._waiting += 1
        try:
            has_room = self._changed.wait_for(
                lambda: self._has_room(lane) or self._is_closed, self._limits.seconds
            )
        finally:
            self._waiting -= 1
        if not has_room:
            raise _too_many()

    def _has_room(self, lane: Lane) -> bool:
        maximum = self._limits.processes
        may_serve_strangers = self._busy[Lane.STRANGERS] < max(1, maximum - 1)
        return sum(self._busy.values()) < maximum and (lane is Lane.CALLERS or may_serve_strangers)

    def _start(self) -> _Process:
        process = _Process(self._limits, self._modules)
        self._all.add(process)
        return process


_installed: list[ParserPool] = []


def run_isolated(function: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
    """Call a function of `MODULES`, in a parser process if this process has installed a pool."""
    assert not kwargs, "arguments are passed by position"
    if not _installed:
        return function(*args, **kwargs)
    return _installed[-1].call(Lane.CALLERS, function, *args)


def run_isolated_for(lane: Lane, function: Callable[..., T], *args: Any) -> T:
    """Call a function like `run_isolated`, with the priority of a lane."""
    return _installed[-1].call(lane, function, *args) if _installed else function(*args)


class _Process:
    """One parser process, which serves one call at a time."""

    def __init__(self, limits: Limits, modules: Sequence[str]) -> None:
        self.is_over, self._is_ready = False, False
        self._socket, remote_end = socket.socketpair()
        with remote_end:
            self._process = subprocess.Popen(
                [sys.executable, "-P", PROGRAM, str(remote_end.fileno()), str(limits.memory), *modules],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                pass_fds=[remote_end.fileno()],
                env=_build_environment(),
                start_new_session=True,  # so that Ctrl-C does not end calls that the service still drains
            )

    def call(self, function: Callable[..., T], args: Sequence[Any], limits: Limits) -> T:
        request = (function.__module__, function.__qualname__, args, limits.seconds)
        try:
            self._send(pickle.dumps(request, pickle.HIGHEST_PROTOCOL), limits)
            outcome, value, self.is_over = self._receive_answer(function, limits)
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
        """Kill the process; a call under way fails."""
        self.is_over = True
        self._process.kill()

    def end(self) -> None:
        """Kill and reap the process when no call is under way."""
        self.kill()
        self._process.wait()
        self._socket.close()

    def _send(self, request: bytes, limits: Limits) -> None:
        """Send the request. The process reads all of it before parsing, so a failure here is not due to the input."""
        try:
            if not self._is_ready:
                self._receive(1, monotonic() + START_SECONDS)
                self._is_ready = True
            self._socket.settimeout(limits.seconds)
            self._socket.sendall(HEADER.pack(len(request)) + request)
        except (OSError, EOFError) as error:
            _log.warning("parser process did not accept the request: %s", error or "it has exited")
            raise _RequestNotSent from error

    def _receive_answer(self, function: Callable[..., T], limits: Limits) -> tuple[Outcome, Any, bool]:
        until = monotonic() + limits.seconds
        try:
            [length] = HEADER.unpack(self._receive(HEADER.size, until))
            answer: tuple[Outcome, Any, bool] = _AnswerUnpickler(
                io.BytesIO(self._receive(length, until))
            ).load()
            return answer
        except TimeoutError:
            _log.warning("%s exceeded its deadline of %s s", function.__qualname__, limits.seconds)
            raise _too_long(limits) from None
        except (OSError, EOFError):
            status = self._process.wait()
            _log.warning("parser process of %s exited with status %s", function.__qualname__, status)
            raise _no_memory(limits) from None

    def _receive(self, size: int, until: float) -> bytearray:
        received = bytearray(size)
        remaining = memoryview(received)
        while remaining:
            self._socket.settimeout(max(0.001, until - monotonic()))
            count = self._socket.recv_into(remaining)
            if not count:
                raise EOFError
            remaining = remaining[count:]
        return received


class _RequestNotSent(Exception):
    """The process exited before it accepted the request."""


class _AnswerUnpickler(pickle.Unpickler):
    """Restricted unpickler: accepts classes of Tidings and a few plain types, no callables."""

    def find_class(self, module: str, name: str) -> Any:
        if (module, name) in _PLAIN_TYPES:
            return super().find_class(module, name)
        is_ours = module.startswith("tidings.") and "." not in name
        value = super().find_class(module, name) if is_ours else None
        if not isinstance(value, type) and value is not restore_error:
            raise pickle.UnpicklingError(f"a parser process returned {module}.{name}, which is not accepted")
        return value


_PLAIN_TYPES = frozenset(
    (
        *(("builtins", name) for name in ("set", "frozenset", "bytearray")),
        *(("datetime", name) for name in ("datetime", "timezone", "timedelta")),
    )
)


def _build_environment() -> dict[str, str]:
    inherited = (
        name for name in os.environ if name in ENVIRONMENT or name.endswith(("_LIMITS", "_CONTEXTS"))
    )
    return {name: os.environ[name] for name in inherited}


def _too_long(limits: Limits) -> DecodeProblem:
    accepted = f"input that is parsed within {limits.seconds} s (the limit seconds)"
    return DecodeProblem("parsing took too long", accepted=accepted)


def _no_memory(limits: Limits) -> DecodeProblem:
    accepted = f"input that is parsed within {limits.memory:,} MB (the limit memory)"
    return DecodeProblem("parsing took too much memory, or the parser crashed", accepted=accepted)


def _too_many() -> Overloaded:
    return Overloaded("too many inputs are waiting to be parsed", hint="try again in a moment")
