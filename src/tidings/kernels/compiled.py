"""How kernels are compiled."""

from __future__ import annotations

from typing import Any

from numba import njit


def reading(function: Any) -> Any:
    """Compile a kernel that allocates nothing, cached on disk, without the interpreter's lock.

    `_nrt=False` leaves out the counting of references to arrays. Numba prunes it for plain array arguments only:
    with arrays grouped in a NamedTuple an atomic increment and decrement remain around each helper with a loop, and
    they cost the JSON decoder two thirds of its speed. The caller holds the arrays as long as the kernel runs.
    """
    return njit(cache=True, nogil=True, _nrt=False)(function)


def inlined(function: Any) -> Any:
    """Compile a kernel's helper into every kernel that calls it.

    Then a NamedTuple of arrays given to it is not copied, and helpers cost nothing: matching is twice as fast as with
    calls, and as fast as in one long function.
    """
    return njit(cache=True, nogil=True, _nrt=False, forceinline=True)(function)
