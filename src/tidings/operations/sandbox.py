"""Walls around a process that does what strangers say with libraries that connect by themselves.

    Walls(inside=False).build()

From then on this process reads no files but those that Python and its libraries are made of, writes none, runs no
programs, and connects to public addresses only. Python itself asks the walls before it does any of that, whichever
library wants it and in whichever thread (`sys.addaudithook`), and they look at the address that is connected to: what
its name leads to a moment later, or where a redirect leads, makes no difference. They cannot be taken down.

What is refused is an `OSError`, which libraries expect of files and networks.
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

from tidings.operations.egress_policy import is_private

PROGRAMS = frozenset(
    ("subprocess.Popen", "os.system", "os.exec", "os.posix_spawn", "os.spawn", "os.fork", "os.forkpty")
)
FILE_CHANGES = frozenset(
    ("os.remove", "os.rename", "os.mkdir", "os.rmdir", "os.link", "os.symlink", "os.truncate", "os.chmod")
)
WRITES = os.O_WRONLY | os.O_RDWR | os.O_CREAT | os.O_TRUNC
PRIVATE_ADDRESS = "an address in a private network, which nobody here has allowed"


class SandboxViolation(PermissionError):
    """What the walls do not let through."""


class Sandbox:
    """What this process may do once they are built; with `inside` it may connect to any address."""

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
        sys.addaudithook(self._hear)

    @property
    def refused(self) -> list[str]:
        """What this thread was refused; whoever has read it clears it."""
        found: list[str] | None = getattr(self._own, "refused", None)
        if found is None:
            found = self._own.refused = []
        return found

    def _hear(self, event: str, said: Any) -> None:
        look = self._events.get(event)
        if look is not None:
            look(said)

    def _refuse(self, what: str) -> None:
        self.refused.append(what)
        raise SandboxViolation(what)

    def _connect(self, said: Any) -> None:
        found, address = said
        if self.inside or address is None:  # a message over a socket that is connected
            return
        if found.family not in (socket.AF_INET, socket.AF_INET6):
            self._refuse("a socket that is no address on the web")
        if is_private_address(str(address[0])) and not self._is_own(address):
            self._refuse(PRIVATE_ADDRESS)

    def _bind(self, said: Any) -> None:
        with self._binding:
            self._bound.add(said[0])

    def _is_own(self, address: Any) -> bool:
        """Whether it leads to this very process: libraries wake their threads with a connection to themselves."""
        with self._binding:
            bound = list(self._bound)
        return any(each.fileno() >= 0 and each.getsockname()[:2] == address[:2] for each in bound)

    def _open(self, said: Any) -> None:
        path, _, flags = said
        if isinstance(path, int) or path is None:
            return
        found = os.path.realpath(os.fsdecode(path))
        if found == os.devnull:
            return
        if (flags or 0) & WRITES:
            self._refuse("a file that would be written")
        if not any(found == each or found.startswith(f"{each}{os.sep}") for each in self._readable):
            self._refuse("a file of this machine")

    def _program(self, _: Any) -> None:
        self._refuse("a program of this machine")

    def _change(self, _: Any) -> None:
        self._refuse("a file that would be changed")


def is_private_address(address: str) -> bool:
    """Whether an address is not public. A name is none: who connects to one learns only afterwards where it led."""
    try:
        return is_private(address)
    except ValueError:
        return True


def _pin_names() -> None:
    """Sockets that are given a name resolve it below Python, where nobody can look: here it is done before."""
    base = socket.socket.__mro__[1]

    def pinned(name: str) -> Callable[..., Any]:
        plain = getattr(base, name)

        def method(self: socket.socket, *args: Any) -> Any:
            *before, address = args
            return plain(self, *before, _resolved(self, address))

        return method

    for name in ("connect", "connect_ex", "sendto"):
        setattr(socket.socket, name, pinned(name))


def _resolved(found: socket.socket, address: Any) -> Any:
    if found.family not in (socket.AF_INET, socket.AF_INET6):
        return address
    host, port, *_ = address
    return socket.getaddrinfo(host, port, found.family, found.type)[0][4]


def _own_files() -> list[str]:
    """What Python, its libraries and TLS are made of."""
    tls = ssl.get_default_verify_paths()
    return [
        *(each for each in sys.path if Path(each).is_absolute() and Path(each).parent != Path(each)),
        *(each or "" for each in (tls.cafile, tls.capath, tls.openssl_cafile, tls.openssl_capath)),
        *zoneinfo.TZPATH,
        *(str(each) for each in mimetypes.knownfiles),
    ]
