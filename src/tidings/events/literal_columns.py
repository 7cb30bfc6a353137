"""Columns of literals: the literals at one place of many texts, read together, exactly as the parser reads them."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from enum import IntEnum
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from tidings.matching.compiler.plan import Literals, Numbers
from tidings.values import Kind, parse_instant, split_number, to_number

Mask = npt.NDArray[np.bool_]


class Sort(IntEnum):
    """What a literal looks like. Texts of one skeleton whose literals look alike have the same tree."""

    NUMBER = 0
    STRING = 1
    DATED_STRING = 2
    DATE = 3
    ODD = 4


_EVERYDAY = r"^-?[0-9]{1,15}(\.[0-9]{1,15})?$"
_NUMBER = re.compile(r"-?[0-9]+(?:\.[0-9]+)?(?:[eE][+-]?[0-9]+)?")
_DATED = r"^'[0-9]{4}-[0-9]{2}-[0-9]{2}"


@dataclass(frozen=True, slots=True)
class LiteralTexts:
    """Literals as written, and what each looks like."""

    texts: pa.Array[Any]
    sorts: npt.NDArray[np.uint8]

    @classmethod
    def of(cls, literals: Sequence[str]) -> LiteralTexts:
        texts = pa.array(literals, pa.string())
        return cls(texts, _string_sorts(texts) if literals[0].startswith("'") else _plain_sorts(texts))

    def take(self, places: npt.NDArray[np.int64]) -> LiteralTexts:
        return LiteralTexts(self.texts.take(pa.array(places)), self.sorts[places])

    def read(self, kind: Kind) -> tuple[Literals, Mask]:
        """Read the literals as a column of the given kind; the mask marks those that could not be read."""
        if kind is Kind.NUMBER:
            return _read_numbers(self.texts)
        if kind is Kind.INSTANT:
            return _read_instants(self.texts)
        return _read_strings(self.texts), np.zeros(len(self.texts), np.bool_)

    def names_instants(self) -> Mask:
        """Return which literals would be read as instants where instants are compared, even if refused there."""
        found = [parse_instant(text.strip("'")) for text in self.texts.to_pylist()]
        return np.array([instant is not None for instant in found], np.bool_)


def _mask(found: pa.Array[Any]) -> Mask:
    return np.asarray(found.to_numpy(zero_copy_only=False), np.bool_)


def _string_sorts(texts: pa.Array[Any]) -> npt.NDArray[np.uint8]:
    dated = _mask(pc.match_substring_regex(texts, _DATED))
    return np.where(dated, Sort.DATED_STRING, Sort.STRING).astype(np.uint8)


def _plain_sorts(texts: pa.Array[Any]) -> npt.NDArray[np.uint8]:
    sorts = np.zeros(len(texts), np.uint8)
    rare = np.flatnonzero(~_mask(pc.match_substring_regex(texts, _EVERYDAY)))
    for place, text in zip(rare, texts.take(pa.array(rare)).to_pylist(), strict=True):
        sorts[place] = _plain_sort(text)
    return sorts


def _plain_sort(text: str) -> Sort:
    if _NUMBER.fullmatch(text):
        return Sort.ODD if to_number(text) is None else Sort.NUMBER
    return Sort.ODD if parse_instant(text) is None else Sort.DATE


def _read_numbers(texts: pa.Array[Any]) -> tuple[Numbers, Mask]:
    """Read numbers. Arrow reads up to fifteen digits exactly; longer numbers may leave a rest."""
    nearest = texts.cast(pa.float64()).to_numpy(zero_copy_only=False) + 0.0  # -0.0 becomes 0.0
    rest = np.zeros(len(texts), np.int64)
    rare = np.flatnonzero(~_mask(pc.match_substring_regex(texts, _EVERYDAY)))
    for place, text in zip(rare, texts.take(pa.array(rare)).to_pylist(), strict=True):
        number = to_number(text)
        assert number is not None, "numbers too large for a double are Sort.ODD"
        nearest[place], rest[place] = split_number(number + 0)
    return Numbers(nearest, rest), np.zeros(len(texts), np.bool_)


def _read_strings(texts: pa.Array[Any]) -> pa.Array[Any]:
    inside = pc.utf8_slice_codeunits(texts, 1, -1)
    if pc.any(pc.match_substring(inside, "''")).as_py():
        inside = pc.replace_substring(inside, "''", "'")
    return inside.cast(pa.binary())


def _read_instants(texts: pa.Array[Any]) -> tuple[npt.NDArray[np.int64], Mask]:
    found = [parse_instant(text.strip("'")) for text in texts.to_pylist()]
    micros = np.array([0 if instant is None else instant.micros for instant in found], np.int64)
    return micros, np.array([instant is None or instant.between for instant in found], np.bool_)


def equal(left: Literals, right: Literals) -> Mask:
    """Return where two columns of one kind are equal."""
    if isinstance(left, Numbers) and isinstance(right, Numbers):
        same: Mask = (left.nearest == right.nearest) & (left.rest == right.rest)
        return same
    if isinstance(left, pa.Array):
        return _mask(pc.equal(left, right))
    return np.asarray(left == right, np.bool_)


def is_before(low: Literals, high: Literals) -> Mask:
    """Return where the first of two columns of one kind is less than the second."""
    if isinstance(low, Numbers) and isinstance(high, Numbers):
        before: Mask = (low.nearest < high.nearest) | ((low.nearest == high.nearest) & (low.rest < high.rest))
        return before
    if isinstance(low, pa.Array):
        return _mask(pc.less(low, high))
    return np.asarray(low < high, np.bool_)  # type: ignore[operator]
