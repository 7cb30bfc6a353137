"""What a parser may do wrong, for processes in which parsers run."""

from __future__ import annotations

import os
import socket

from tidings.errors import DecodeProblem

__all__ = ["abort", "allocate", "connect", "count", "evil", "fail", "hang", "open_file", "refuse"]


def count(items: list[int]) -> int:
    return len(items)


def hang() -> None:
    """In a loop that no signal handler of Python's interrupts, as one in C."""
    while True:
        pass


def allocate() -> int:
    return len(b"x" * (8 << 30))


def abort() -> None:
    os.abort()


def fail() -> None:
    raise KeyError("a mistake")


def refuse() -> None:
    raise DecodeProblem("no", where="line 1", accepted="yes")


def open_file(path: str) -> bytes:
    with open(path, "rb") as file:  # noqa: PTH123 - the plainest way there is
        return file.read()


def connect(port: int) -> None:
    socket.create_connection(("127.0.0.1", port)).close()


class _Evil:
    def __reduce__(self) -> tuple[object, ...]:
        return os.system, ("true",)


def evil() -> object:
    return _Evil()
