"""Sandbox of a process that runs libraries, which open their own connections, on untrusted input.

    Sandbox(inside=False).build()

From then on this process reads only the files of Python and its libraries, writes none, runs no programs, and connects
to public addresses only. An audit hook (`sys.addaudithook`) checks each of these operations, whichever library or
thread starts it. It checks the address of the connection itself, so redirects and changed names gain nothing. An audit
hook cannot be removed.

A violation is an `OSError`, which libraries expect of files and networks.
"""

from __future__ import annotations

import mimetypes
import os
import socket
import ssl
import sys
import threading
import zoneinfo
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any
from weakref import WeakSet

from tidings.operations.egress_policy import PRIVATE_ADDRESS, is_private

PROGRAMS = frozenset(
    ("subprocess.Popen", "os.system", "os.exec", "os.posix_spawn", "os.spawn", "os.fork", "os.forkpty")
)
FILE_CHANGES = frozenset(
    ("os.remove", "os.rename", "os.mkdir", "os.rmdir", "os.link", "os.symlink", "os.truncate", "os.chmod")
)
WRITES = os.O_WRONLY | os.O_RDWR | os.O_CREAT | os.O_TRUNC


class SandboxViolation(PermissionError):
    """An operation that the sandbox does not allow."""


class Sandbox:
    """The restrictions of this process; with `inside` it may connect to any address."""

    def __init__(self, inside: bool, readable: Iterable[str] = ()) -> None:
        self.inside = inside
        self._readable = tuple({os.path.realpath(each) for each in (*_own_files(), *readable) if each})
        self._bound: WeakSet[socket.socket] = WeakSet()
        self._binding, self._own = threading.Lock(), threading.local()
        self._events: dict[str, Callable[[Any], None]] = {
            "open": self._open,
            "socket.bind": self._bind,
            **dict.fromkeys(("socket.connect", "socket.sendto", "socket.sendmsg"), self._connect),
            **dict.fromkeys(PROGRAMS, self._program),
            **dict.fromkeys(FILE_CHANGES, self._change),
        }

    def build(self) -> None:
        sys.dont_write_bytecode = True
        if not self.inside:
            _pin_names()
        sys.addaudithook(self._audit)

    @property
    def refused(self) -> list[str]:
        """Violations of this thread; the reader clears the list."""
        violations: list[str] | None = getattr(self._own, "refused", None)
        if violations is None:
            violations = self._own.refused = []
        return violations

    def _audit(self, event: str, arguments: Any) -> None:
        check = self._events.get(event)
        if check is not None:
            check(arguments)

    def _refuse(self, event: str) -> None:
        self.refused.append(event)
        raise SandboxViolation(event)

    def _connect(self, arguments: Any) -> None:
        connected, address = arguments
        if self.inside or address is None:  # None: a message over a connected socket
            return
        if connected.family not in (socket.AF_INET, socket.AF_INET6):
            self._refuse("a socket that is not an internet address")
        if is_private_address(str(address[0])) and not self._is_own(address):
            self._refuse(PRIVATE_ADDRESS)

    def _bind(self, arguments: Any) -> None:
        with self._binding:
            self._bound.add(arguments[0])

    def _is_own(self, address: Any) -> bool:
        """Return whether an address is bound by this process: libraries wake their threads over such a connection."""
        with self._binding:
            bound = list(self._bound)
        return any(each.fileno() >= 0 and each.getsockname()[:2] == address[:2] for each in bound)

    def _open(self, arguments: Any) -> None:
        path, _, flags = arguments
        if isinstance(path, int) or path is None:
            return
        real = os.path.realpath(os.fsdecode(path))
        if real == os.devnull:
            return
        if (flags or 0) & WRITES:
            self._refuse("a file that would be written")
        if not any(real == root or real.startswith(f"{root}{os.sep}") for root in self._readable):
            self._refuse("a file of this machine")

    def _program(self, _: Any) -> None:
        self._refuse("a program of this machine")

    def _change(self, _: Any) -> None:
        self._refuse("a file that would be changed")


def is_private_address(address: str) -> bool:
    """Return whether an address is not public. A name counts as private: its address is known too late."""
    try:
        return is_private(address)
    except ValueError:
        return True


def _pin_names() -> None:
    """Resolve names before sockets connect: sockets would resolve them in C, where no audit hook sees the address."""
    base = socket.socket.__mro__[1]

    def pinned(name: str) -> Callable[..., Any]:
        plain = getattr(base, name)

        def method(self: socket.socket, *args: Any) -> Any:
            *leading, address = args
            return plain(self, *leading, _resolve_address(self, address))

        return method

    for name in ("connect", "connect_ex", "sendto"):
        setattr(socket.socket, name, pinned(name))


def _resolve_address(used: socket.socket, address: Any) -> Any:
    if used.family not in (socket.AF_INET, socket.AF_INET6):
        return address
    host, port, *_ = address
    return socket.getaddrinfo(host, port, used.family, used.type)[0][4]


def _own_files() -> list[str]:
    """List the files and folders of Python, its libraries and TLS."""
    tls = ssl.get_default_verify_paths()
    return [
        *(each for each in sys.path if Path(each).is_absolute() and Path(each).parent != Path(each)),
        *(each or "" for each in (tls.cafile, tls.capath, tls.openssl_cafile, tls.openssl_capath)),
        *zoneinfo.TZPATH,
        *(str(each) for each in mimetypes.knownfiles),
    ]
