"""Binary searches in a part of a sorted array."""

from __future__ import annotations

from typing import Any

from tidings.matching.kernels.compiled import inlined


@inlined
def lower_bound(values: Any, value: int, low: int, high: int) -> int:
    """The first place whose value is not less."""
    while low < high:
        middle = (low + high) >> 1
        if values[middle] < value:
            low = middle + 1
        else:
            high = middle
    return low


@inlined
def upper_bound(values: Any, value: int, low: int, high: int) -> int:
    """The first place whose value is greater."""
    while low < high:
        middle = (low + high) >> 1
        if values[middle] <= value:
            low = middle + 1
        else:
            high = middle
    return low
