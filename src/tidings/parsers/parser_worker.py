"""Main program of a parser process: serves parse calls one by one until the pool closes its socket.

    python parser_worker.py SOCKET MEGABYTES MODULE...

A timer ends it when a call takes too long, in case the pool that should kill it was itself killed.
"""

from __future__ import annotations

import codecs
import faulthandler
import importlib
import io
import os
import pickle
import resource as process_limits
import signal
import socket
import sys
import traceback
from collections.abc import Callable, Sequence
from datetime import datetime
from pathlib import Path
from typing import Any

from tidings.errors import TidingsError
from tidings.graphs.rdf.json_ld import FOLDER, contexts
from tidings.parsers.parser_pool import HEADER, Outcome
from tidings.parsers.xml_bytes import CODECS

GRACE = 5
"""Seconds beyond the deadline that the pool has to kill the process before its own timer does."""

RETIREMENT = 0.5
"""Share of the memory limit above which a process is replaced: allocators seldom return memory."""


def main(descriptor: int, memory: int, modules: Sequence[str]) -> None:
    """Serve the calls that arrive at a socket until the pool closes it."""
    pool = socket.socket(fileno=descriptor)
    loaded = {name: importlib.import_module(name) for name in modules}
    _preload()
    initial = process_limits.getrusage(process_limits.RUSAGE_SELF).ru_maxrss
    _confine(memory << 20)
    pool.sendall(b"!")
    while request := _receive_request(pool):
        module, name, args, seconds = pickle.loads(request)
        signal.setitimer(signal.ITIMER_REAL, seconds + GRACE)
        outcome, value = _call(getattr(loaded[module], name), args)
        used = process_limits.getrusage(process_limits.RUSAGE_SELF).ru_maxrss - initial
        is_last = outcome is Outcome.NO_MEMORY or used > RETIREMENT * (memory << 10)
        answer = pickle.dumps((outcome, value, is_last), pickle.HIGHEST_PROTOCOL)
        signal.setitimer(signal.ITIMER_REAL, 0)
        pool.sendall(HEADER.pack(len(answer)) + answer)


def _preload() -> None:
    """Load codecs and contexts now: after `_confine` no file can be opened."""
    for name in CODECS:
        codecs.lookup(name)
    datetime.strptime("2000", "%Y")  # imports the modules that strptime needs
    contexts(os.environ.get(FOLDER, ""))


def _confine(memory: int) -> None:
    """Limit additional memory, and forbid opening files and sockets, for Python and every library."""
    statm = Path("/proc/self/statm")
    if statm.exists():
        maximum = int(statm.read_text().split()[0]) * process_limits.getpagesize() + memory
        process_limits.setrlimit(process_limits.RLIMIT_AS, (maximum, maximum))
    os.dup2(os.open(os.devnull, os.O_WRONLY), 2)  # allocators print to standard error before they abort
    faulthandler.disable()
    process_limits.setrlimit(process_limits.RLIMIT_CORE, (0, 0))
    process_limits.setrlimit(process_limits.RLIMIT_NOFILE, (0, 0))


def _call(function: Callable[..., Any], args: Sequence[Any]) -> tuple[Outcome, Any]:
    try:
        return Outcome.RETURNED, function(*args)
    except TidingsError as problem:
        return Outcome.REFUSED, problem
    except MemoryError:
        return Outcome.NO_MEMORY, None
    except Exception:  # noqa: BLE001 - an internal error is raised and logged by the pool
        return Outcome.FAILED, traceback.format_exc()


def _receive_request(pool: socket.socket) -> bytes | None:
    """Receive the next request; None when the pool has closed the socket."""
    header = _receive_exactly(pool, HEADER.size)
    return None if header is None else _receive_exactly(pool, HEADER.unpack(header)[0])


def _receive_exactly(pool: socket.socket, size: int) -> bytes | None:
    received = io.BytesIO()
    while received.tell() < size:
        piece = pool.recv(min(size - received.tell(), 1 << 20))
        if not piece:
            return None
        received.write(piece)
    return received.getvalue()


if __name__ == "__main__":
    main(int(sys.argv[1]), int(sys.argv[2]), sys.argv[3:])
