"""Numbers in documents: what XPath's `number()` makes of texts."""

from __future__ import annotations

from typing import Any

import numpy as np

from tidings.kernels.compiled import inlined, reading
from tidings.kernels.doubles import nearest_double

_MINUS, _DOT, _ZERO, _NINE = 0x2D, 0x2E, 0x30, 0x39
_MOST_DIGITS = 18
"""So many digits fit into 63 bits. Longer numbers, not counting zeros in front, are left to somebody with more bits."""

NO_NUMBER, NUMBER, UNSURE = 0, 1, 2


@reading
def read_numbers(text: Any, start: Any, length: Any, number: Any, unsure: Any) -> int:
    """The number of each text, NaN for those that are none; how many are left to somebody else, listed in `unsure`."""
    count = 0
    for i in range(len(start)):
        state, value = _number(text, start[i], start[i] + length[i])
        number[i] = value
        if state == UNSURE:
            unsure[count] = i
            count += 1
    return count


@inlined
def _is_space(byte: int) -> bool:
    return byte == 0x20 or byte == 0x09 or byte == 0x0A or byte == 0x0D


@inlined
def _number(text: Any, at: int, end: int) -> Any:
    """Whitespace, perhaps a minus, digits with perhaps a dot among them, whitespace; nothing else is a number."""
    while at < end and _is_space(text[at]):
        at += 1
    while at < end and _is_space(text[end - 1]):
        end -= 1
    minus = at < end and text[at] == _MINUS
    if minus:
        at += 1
    digits, seen, counted, power, dotted = np.uint64(0), False, 0, 0, False
    while at < end:
        byte = text[at]
        if _ZERO <= byte <= _NINE:
            seen = True
            counted += 1 if counted or byte != _ZERO else 0
            power -= 1 if dotted else 0
            if counted <= _MOST_DIGITS:
                digits = digits * np.uint64(10) + np.uint64(byte - _ZERO)
        elif byte == _DOT and not dotted:
            dotted = True
        else:
            return NO_NUMBER, np.nan
        at += 1
    if not seen:
        return NO_NUMBER, np.nan
    if counted > _MOST_DIGITS:
        return UNSURE, np.nan
    if power == 0 or digits == np.uint64(0):
        value = np.float64(np.int64(digits))  # the processor rounds to the nearest
        return NUMBER, -value if minus else value
    good, bits = nearest_double(digits, power, minus)
    return (NUMBER, np.int64(bits).view(np.float64)) if good else (UNSURE, np.nan)
