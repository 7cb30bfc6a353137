"""Groups of texts that differ only in their literals: the common part is their *skeleton*, the literals are
columns.

One pattern cuts a text into skeleton and literals, without parsing. Texts of a frequent skeleton are then
recognised by a pattern of their own, which is several times faster. Both cut every text at the same places.
The literals at one place of many texts are read together, exactly as the parser reads them.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from enum import IntEnum
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from tidings.matching.compiler.plan import Literals, Numbers
from tidings.values import Kind, parse_instant, split_number, to_number

_STRING = r"'[^']*+(?:''[^']*+)*+'"
# A superset of numbers and dates: texts with anything else are compiled one by one.
_PLAIN = r"[0-9.eE+\-:TtZz]*+"
# Strings, names in double quotes, and numbers that do not end a name. The pattern begins with a character set because
# `re` skips ahead to such a set quickly.
_CUT = re.compile(
    rf"""(["'0-9\-](?:(?<=')[^']*+'(?:'[^']*+')*+|(?<=")[^"]*+"|(?<![A-Za-z0-9_.\-].)(?<=[0-9\-]){_PLAIN}))""",
    re.DOTALL,
)
_ACTIVE, _OFTEN, _SHARE = 8, 16, 20
"""Number of skeletons whose own pattern is tried before a text is cut, number of texts after which a skeleton is
considered for that, and its minimum share, every twentieth text: failed tries cost more than cutting."""

Recognise = Callable[[str], "re.Match[str] | None"]
Key = tuple[tuple[str, ...], tuple[bool, ...]]
"""The text around the literals, and which of them are strings."""


@dataclass(slots=True, eq=False)
class Skeleton:
    """The texts of one skeleton: their rows, and their literals one text after the other."""

    parts: list[str]
    rows: list[int] = field(default_factory=list)
    literals: list[str] = field(default_factory=list)

    @property
    def width(self) -> int:
        return len(self.parts) // 2

    def column(self, ordinal: int) -> list[str]:
        """Return the literals at one place of all texts."""
        return self.literals[ordinal :: self.width]


def group_texts(texts: Iterable[str]) -> list[Skeleton]:
    """Group texts by skeleton."""
    skeletons: dict[Key, Skeleton] = {}
    active: dict[Skeleton, Recognise] = {}
    for row, text in enumerate(texts):
        for skeleton, recognise in active.items():
            match = recognise(text)
            if match is not None:
                skeleton.rows.append(row)
                skeleton.literals.extend(match.groups())
                break
        else:
            skeleton = _cut_text(row, text, skeletons)
            if len(skeleton.rows) % _OFTEN == 0 and len(skeleton.rows) * _SHARE > row:
                _activate(skeleton, active)
    return list(skeletons.values())


def _cut_text(row: int, text: str, skeletons: dict[Key, Skeleton]) -> Skeleton:
    parts = _CUT.split(text)
    if '"' in text:
        parts = _join_names(parts)
    literals = parts[1::2]
    key = tuple(parts[::2]), tuple([literal[0] == "'" for literal in literals])
    skeleton = skeletons.get(key)
    if skeleton is None:
        skeleton = skeletons[key] = Skeleton(parts)
    skeleton.rows.append(row)
    skeleton.literals.extend(literals)
    return skeleton


def _join_names(parts: list[str]) -> list[str]:
    """Put names in double quotes, which were cut out too, back into the skeleton."""
    joined = parts[:1]
    for literal, following in zip(parts[1::2], parts[2::2], strict=True):
        if literal[0] == '"':
            joined[-1] += literal + following
        else:
            joined += [literal, following]
    return joined


def _activate(skeleton: Skeleton, active: dict[Skeleton, Recognise]) -> None:
    """Recognise a frequent skeleton by its own pattern, in place of the least frequent one."""
    if len(active) == _ACTIVE:
        weakest = min(active, key=lambda skeleton: len(skeleton.rows))
        if len(weakest.rows) >= len(skeleton.rows):
            return
        del active[weakest]
    active[skeleton] = re.compile(_own_pattern(skeleton.parts)).fullmatch


def _own_pattern(parts: Sequence[str]) -> str:
    def pattern(place: int, part: str) -> str:
        if place % 2 == 0:
            return re.escape(part)
        return f"({_STRING})" if part[0] == "'" else rf"([0-9\-]{_PLAIN})"

    return "".join(pattern(place, part) for place, part in enumerate(parts))


def literal_ends(text: str) -> list[int]:
    """Return the end positions of the literals of a text."""
    return [found.end() for found in _CUT.finditer(text) if found[0][0] != '"']


Mask = npt.NDArray[np.bool_]


class Sort(IntEnum):
    """Lexical form of a literal. Texts of one skeleton whose literals look alike have the same tree."""

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
    """Literals as written, and their lexical forms."""

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
        instants = [parse_instant(text.strip("'")) for text in self.texts.to_pylist()]
        return np.array([instant is not None for instant in instants], np.bool_)


def _mask(values: pa.Array[Any]) -> Mask:
    return np.asarray(values.to_numpy(zero_copy_only=False), np.bool_)


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
    remainder = np.zeros(len(texts), np.int64)
    rare = np.flatnonzero(~_mask(pc.match_substring_regex(texts, _EVERYDAY)))
    for place, text in zip(rare, texts.take(pa.array(rare)).to_pylist(), strict=True):
        number = to_number(text)
        assert number is not None, "numbers too large for a double are Sort.ODD"
        nearest[place], remainder[place] = split_number(number + 0)
    return Numbers(nearest, remainder), np.zeros(len(texts), np.bool_)


def _read_strings(texts: pa.Array[Any]) -> pa.Array[Any]:
    inside = pc.utf8_slice_codeunits(texts, 1, -1)
    if pc.any(pc.match_substring(inside, "''")).as_py():
        inside = pc.replace_substring(inside, "''", "'")
    return inside.cast(pa.binary())


def _read_instants(texts: pa.Array[Any]) -> tuple[npt.NDArray[np.int64], Mask]:
    instants = [parse_instant(text.strip("'")) for text in texts.to_pylist()]
    micros = np.array([0 if instant is None else instant.micros for instant in instants], np.int64)
    return micros, np.array([instant is None or instant.between for instant in instants], np.bool_)


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
        result: Mask = (low.nearest < high.nearest) | ((low.nearest == high.nearest) & (low.rest < high.rest))
        return result
    if isinstance(low, pa.Array):
        return _mask(pc.less(low, high))
    return np.asarray(low < high, np.bool_)  # type: ignore[operator]
