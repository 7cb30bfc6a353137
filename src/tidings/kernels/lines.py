"""Lines of a text, and pieces of a text put together."""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import njit

from tidings.kernels.json_scan import skip_space

_LF, _CR = 10, 13


@njit(cache=True, nogil=True)  # type: ignore[untyped-decorator]
def split_lines(text: Any) -> Any:
    """Starts, ends and numbers (from one) of the lines that are not blank.

    A line ends with \\n or \\r\\n, the last one also with the text.
    """
    breaks = 0
    for i in range(len(text)):
        breaks += text[i] == _LF
    starts, ends = np.empty(breaks + 1, np.int64), np.empty(breaks + 1, np.int64)
    numbers = np.empty(breaks + 1, np.int64)
    lines, number, start = 0, 0, 0
    for i in range(len(text) + 1):
        if i < len(text) and text[i] != _LF:
            continue
        end = i - 1 if i > start and i < len(text) and text[i - 1] == _CR else i
        number += 1
        if skip_space(text, start, end) < end:
            starts[lines], ends[lines], numbers[lines] = start, end, number
            lines += 1
        start = i + 1
    return starts[:lines], ends[:lines], numbers[:lines]


@njit(cache=True, nogil=True)  # type: ignore[untyped-decorator]
def gather(text: Any, starts: Any, lengths: Any) -> Any:
    """The pieces one after the other, and the offsets between them; a negative length is nothing."""
    offsets = np.zeros(len(starts) + 1, np.int64)
    for i in range(len(starts)):
        offsets[i + 1] = offsets[i] + max(0, lengths[i])
    data = np.empty(offsets[-1], np.uint8)
    for i in range(len(starts)):
        at, shift = offsets[i], starts[i] - offsets[i]
        for k in range(at, offsets[i + 1]):
            data[k] = text[k + shift]
    return offsets, data
