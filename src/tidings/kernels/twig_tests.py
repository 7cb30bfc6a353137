"""Values of a document's nodes against the tests of twigs."""

from __future__ import annotations

import numpy as np

from tidings.kernels.codes import find_string
from tidings.kernels.compiled import inlined
from tidings.kernels.strings import NOT_SOUGHT
from tidings.kernels.twig_arrays import (
    AT_MOST,
    EQUAL,
    GREATER,
    IS_NUMBER,
    LESS,
    OPERATOR_MASK,
    STARTS_WITH,
    STRING_SHIFT,
    TEST_NEGATED,
    UNEQUAL,
    Nodes,
    Twigs,
)


@inlined
def all_hold(twigs: Twigs, nodes: Nodes, at: int, tests: int, node: int) -> bool:
    for _ in range(tests):
        flags = np.int64(twigs.word[at])
        if flags & IS_NUMBER:
            low, high = np.uint64(twigs.word[at + 1]), np.uint64(twigs.word[at + 2])
            literal = np.int64(high << np.uint64(32) | low).view(np.float64)
            holds = _compares(flags & OPERATOR_MASK, nodes.number[node], literal)
            at += 3
        else:
            holds = _reads(twigs, nodes, flags & OPERATOR_MASK, node, flags >> STRING_SHIFT)
            at += 1
        if holds == (flags & TEST_NEGATED != 0):
            return False
    return True


@inlined
def _compares(operator: int, value: float, literal: float) -> bool:
    """What is no number is unequal to every number, and that is all."""
    if operator == EQUAL:
        return value == literal
    if operator == UNEQUAL:
        return value != literal
    if operator == LESS:
        return value < literal
    if operator == AT_MOST:
        return value <= literal
    if operator == GREATER:
        return value > literal
    return value >= literal


@inlined
def _reads(twigs: Twigs, nodes: Nodes, operator: int, node: int, literal: int) -> bool:
    """A node's value as a text. Equal texts have equal numbers; each is sought once."""
    if operator <= UNEQUAL:
        if nodes.string[node] == NOT_SOUGHT:
            nodes.string[node] = find_string(
                twigs.strings, 0, nodes.text, nodes.value[node], nodes.length[node]
            )
        return (nodes.string[node] == literal) == (operator == EQUAL)
    begin = twigs.strings.offsets[literal]
    size, length = twigs.strings.offsets[literal + 1] - begin, np.int64(nodes.length[node])
    last = 0 if operator == STARTS_WITH else length - size
    if size > length:
        return False
    for shift in range(last + 1):
        i = 0
        while i < size and twigs.strings.data[begin + i] == nodes.text[nodes.value[node] + shift + i]:
            i += 1
        if i == size:
            return True
    return False
