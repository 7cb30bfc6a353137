"""The hash that leads to strings and keys: FNV-1a over the bytes, mixed once more at the end."""

from __future__ import annotations

from typing import Any

import numpy as np

from tidings.kernels.compiled import inlined

FNV_BASIS = np.uint64(0xCBF29CE484222325)
FNV_PRIME = np.uint64(0x100000001B3)


@inlined
def hash_bytes(data: Any, start: int, length: int) -> Any:
    h = FNV_BASIS
    for i in range(start, start + length):
        h = (h ^ np.uint64(data[i])) * FNV_PRIME
    return finished(h)


@inlined
def finished(h: Any) -> Any:
    """The hash of bytes that were taken in one by one."""
    return h ^ (h >> np.uint64(29))
