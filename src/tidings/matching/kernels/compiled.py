"""How kernels are compiled."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from typing import Annotated, Any

import numpy as np
from numba import njit, types
from numba.core import event

_OPTIONS = {"cache": True, "nogil": True, "_nrt": False, "no_cfunc_wrapper": True}


def reading(function: Any) -> Any:
    """Compile a kernel that allocates nothing, cached on disk, without the interpreter's lock.

    `_nrt=False` leaves out the counting of references to arrays. Numba prunes it for plain array arguments only:
    with arrays grouped in a NamedTuple an atomic increment and decrement remain around each helper with a loop, and
    they cost the JSON decoder two thirds of its speed. The caller holds the arrays as long as the kernel runs.
    """
    return _once_for_all_numbers(_cached(njit(**_OPTIONS)(function)))


def inlined(function: Any) -> Any:
    """Compile a kernel's helper into every kernel that calls it.

    Then a NamedTuple of arrays given to it is not copied, and helpers cost nothing: matching is twice as fast as with
    calls, and as fast as in one long function. Python cannot call a helper: code that takes each array of a
    NamedTuple out of its Python object is longer than most helpers, and a third of what there would be to compile.
    """
    return _once_for_all_numbers(
        _cached(njit(**_OPTIONS, forceinline=True, no_cpython_wrapper=True)(function))
    )


def _cached(kernel: Any) -> Any:
    """Keep compiled code only as long as no kernel source changes.

    Numba compares the file of the function alone. Helpers of other files are compiled into it: after an upgrade, a
    kernel would go on with the old ones.
    """
    file = kernel._cache._cache_file
    file._source_stamp = file._source_stamp, _sources()
    return kernel


@cache
def _sources() -> str:
    """Return a digest of all kernel sources, those of the sub-packages included."""
    folder = Path(__file__).parent
    digest = hashlib.blake2b(digest_size=16)
    for path in sorted(folder.rglob("*.py")):
        source = path.read_bytes()
        digest.update(f"{path.relative_to(folder)} {len(source)} ".encode() + source)
    return digest.hexdigest()


def _once_for_all_numbers(kernel: Any) -> Any:
    """Compile a kernel for integers, not for 0 as well.

    Numba takes the 0 of `found = 0` for a type of its own until the loop behind it shows otherwise, and has by then
    compiled whatever `found` was given to, and all that calls, a second time.
    """
    resolve = kernel.get_call_template

    def get_call_template(args: Any, kws: Any) -> Any:
        return resolve([types.unliteral(a) for a in args], {k: types.unliteral(v) for k, v in kws.items()})

    kernel.get_call_template = get_call_template
    return kernel


@contextmanager
def observe_compilation(begins: Callable[[], object], ends: Callable[[], object]) -> Iterator[None]:
    """Call `begins` before a kernel is compiled and `ends` after it while the `with` block runs.

    In a new installation the first call of a kernel compiles it, for up to a minute.
    """
    listener = _Listener(begins, ends)
    event.register("numba:compile", listener)
    try:
        yield
    finally:
        event.unregister("numba:compile", listener)


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


# The types of arrays in groups: a kernel that is handed an address must know what stands there.


I32 = Annotated[Any, np.int32]
I64 = Annotated[Any, np.int64]
U8 = Annotated[Any, np.uint8]
U32 = Annotated[Any, np.uint32]
U64 = Annotated[Any, np.uint64]
F64 = Annotated[Any, np.float64]
