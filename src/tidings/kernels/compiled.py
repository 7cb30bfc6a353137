"""How the kernels that read bytes are compiled."""

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
