"""Renumbering of names and strings in twigs and patterns, for merging segments."""

from __future__ import annotations

from typing import Any

import numpy as np

from tidings.matching.kernels.compiled import inlined, kernel
from tidings.matching.kernels.shapes.graph_patterns import (
    CONSTRAINT,
    COUNT_MASK,
    EDGE,
    GRAPH,
    HEAD,
    OPERAND,
    SIZE_MASK,
    STRING,
)
from tidings.matching.kernels.shapes.twig_arrays import COUNT_MASK as TESTS_MASK
from tidings.matching.kernels.shapes.twig_arrays import FIRSTS_SHIFT, IS_NUMBER, STRING_SHIFT, TESTS_SHIFT


@kernel
def renumber(words: Any, names: Any, strings: Any) -> None:
    """Replace the numbers of names and strings in words."""
    _walk(words, names, strings, True)


@kernel
def mark_used(words: Any, names: Any, strings: Any) -> None:
    """Mark the names and strings that occur in words."""
    _walk(words, names, strings, False)


@inlined
def _walk(words: Any, names: Any, strings: Any, change: bool) -> None:
    at, end = 0, len(words)
    while at < end:
        flags = np.int64(words[at])
        if flags & GRAPH:
            _walk_pattern(words, at, strings, change)
            at += int(flags & SIZE_MASK)
            continue
        if change:
            words[at + 1] = names[words[at + 1]]
        else:
            names[words[at + 1]] = 1
        at += 2
        for _ in range((flags >> TESTS_SHIFT & TESTS_MASK) + (flags >> FIRSTS_SHIFT & TESTS_MASK)):
            if words[at] & np.uint32(IS_NUMBER):
                at += 3
            else:
                _visit_string(words, at, STRING_SHIFT, strings, change)
                at += 1


@inlined
def _walk_pattern(words: Any, begin: int, strings: Any, change: bool) -> None:
    edges, at = np.int64(words[begin + 1]) & COUNT_MASK, begin + HEAD
    for _ in range(edges):
        for place in range(at, at + 3):
            if words[place] & np.uint32(1):
                _visit_string(words, place, 1, strings, change)
        at += EDGE
    for _ in range(words[begin + 2]):
        operands = np.int64(words[at + 1])
        at += CONSTRAINT
        for _ in range(operands):
            if words[at] <= np.uint32(STRING):
                _visit_string(words, at + 1, 0, strings, change)
            at += OPERAND


@inlined
def _visit_string(words: Any, at: int, shift: int, strings: Any, change: bool) -> None:
    """Visit a string's number, which is in a word above `shift` other bits."""
    word = np.int64(words[at])
    number = word >> shift
    if change:
        words[at] = np.uint32(np.int64(strings[number]) << shift | word & ((1 << shift) - 1))
    else:
        strings[number] = 1
