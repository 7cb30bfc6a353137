"""Lines of a text, and pieces of a text put together."""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import njit

from tidings.matching.kernels.bytes import ONES, copy, zeros
from tidings.matching.kernels.compiled import inlined
from tidings.matching.kernels.decode.json_tokens import skip_space

_LF, _CR = 10, 13
_LINE_FEEDS = ONES * np.uint64(_LF)


@njit(cache=True, nogil=True)  # type: ignore[untyped-decorator]
def split_lines(text: Any, words: Any) -> Any:
    """Starts, ends and numbers (from one) of the lines that are not blank, and how many line ends there are.

    A line ends with \\n or \\r\\n, the last one also with the text. `words` is the text again, eight bytes at a time,
    without the rest: most have no line end, and are passed over.
    """
    breaks = 0
    for i in range(len(text)):
        breaks += text[i] == _LF
    places = np.empty(breaks + 1, np.int64)
    found, rest = 0, 8 * len(words)
    for w in range(len(words)):
        if zeros(words[w] ^ _LINE_FEEDS):
            found = _line_feeds(text, 8 * w, 8 * w + 8, places, found)
    _line_feeds(text, rest, len(text), places, found)
    places[breaks] = len(text)
    return (*_lines(text, places), breaks)


@inlined
def _line_feeds(text: Any, first: int, end: int, places: Any, found: int) -> int:
    """Write down where line feeds are; how many are written down now."""
    for i in range(first, end):
        if text[i] == _LF:
            places[found] = i
            found += 1
    return found


@njit(cache=True, nogil=True)  # type: ignore[untyped-decorator]
def _lines(text: Any, places: Any) -> Any:
    """The lines that end at these places."""
    starts, ends = np.empty(len(places), np.int64), np.empty(len(places), np.int64)
    numbers = np.empty(len(places), np.int64)
    lines, start = 0, 0
    for number in range(len(places)):
        i = places[number]
        end = i - 1 if i > start and i < len(text) and text[i - 1] == _CR else i
        if skip_space(text, start, end) < end:
            starts[lines], ends[lines], numbers[lines] = start, end, number + 1
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
        copy(text, starts[i], max(0, lengths[i]), data, offsets[i])
    return offsets, data
