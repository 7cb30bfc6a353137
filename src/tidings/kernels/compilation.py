"""When kernels are compiled: at their first call in a new installation, for up to a minute."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from numba.core import event

_COMPILE = "numba:compile"


@contextmanager
def observed(begins: Callable[[], object], ends: Callable[[], object]) -> Iterator[None]:
    """Call `begins` before a kernel is compiled, and `ends` after it, as long as the `with` block runs."""
    listener = _Listener(begins, ends)
    event.register(_COMPILE, listener)
    try:
        yield
    finally:
        event.unregister(_COMPILE, listener)


class _Listener(event.Listener):  # type: ignore[misc]
    """A kernel compiles those that it calls: only the outermost counts."""

    def __init__(self, begins: Callable[[], object], ends: Callable[[], object]) -> None:
        self._begins, self._ends, self._depth = begins, ends, 0

    def on_start(self, _: Any) -> None:
        self._depth += 1
        if self._depth == 1:
            self._begins()

    def on_end(self, _: Any) -> None:
        self._depth -= 1
        if self._depth == 0:
            self._ends()
