"""Storage of twigs and graph patterns as words, one after the other, with numbered names and strings.

What the words mean is defined where they are encoded: `documents.twig_words` and `graphs.pattern_words`.
"""

from __future__ import annotations

import struct
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from tidings.matching.compiler.plan import Twigs

Words = npt.NDArray[np.uint32]
Sizes = npt.NDArray[np.int64]
Flags = npt.NDArray[np.bool_]

_FLUSH = 1 << 20


@dataclass(slots=True)
class TwigWriter:
    """Collects the words of twigs, and numbers the twigs in the order in which they are added."""

    names: dict[str, int] = field(default_factory=dict)
    strings: dict[str, int] = field(default_factory=dict)
    _count: int = 0
    _words: list[int] = field(default_factory=list)
    _sizes: list[int] = field(default_factory=list)
    _exact: list[bool] = field(default_factory=list)
    _parts: list[tuple[Words, Sizes, Flags]] = field(default_factory=list)

    def add(self, words: Sequence[int], exact: bool) -> int:
        """Add a twig and return its number."""
        self._words += words
        self._sizes.append(len(words))
        self._exact.append(exact)
        self._count += 1
        if len(self._words) > _FLUSH:
            self._flush()
        return self._count - 1

    def add_many(self, words: npt.NDArray[np.uint32], exact: bool) -> int:
        """Add twigs of equally many words, one per row, and return the number of the first."""
        count, width = (int(size) for size in words.shape)
        return self.add_part(words.reshape(-1), np.full(count, width), np.full(count, exact))

    def add_part(self, words: Words, sizes: Sizes, exact: Flags) -> int:
        """Add twigs of the given sizes, one after the other, and return the number of the first."""
        self._flush()
        self._parts.append((words, sizes, exact))
        self._count += len(sizes)
        return self._count - len(sizes)

    def name(self, name: str) -> int:
        """Return the number of a name."""
        return self.names.setdefault(name, len(self.names))

    def string(self, text: str) -> int:
        """Return the number of a string."""
        return self.strings.setdefault(text, len(self.strings))

    def _flush(self) -> None:
        if self._sizes:
            words = np.array(self._words, np.uint32)
            self._parts.append((words, np.array(self._sizes), np.array(self._exact, np.bool_)))
            self._words, self._sizes, self._exact = [], [], []

    def all_strings(self) -> pa.Array[Any]:
        """Return the strings in the order of their numbers."""
        return pa.array(list(self.strings), pa.string()).cast(pa.binary())

    def finish(self) -> Twigs:
        self._flush()
        if not self._parts:
            return Twigs()
        words, sizes, exact = (np.concatenate(column) for column in zip(*self._parts, strict=True))
        starts = np.concatenate(([0], np.cumsum(sizes))).astype(np.int64)
        return Twigs(starts, words, exact, tuple(self.names), self.all_strings())


def split_double(number: float) -> tuple[int, int]:
    """Split the bits of a double into two words, the lower first."""
    return _split_bits(struct.pack("<d", number))


def split_integer(number: int) -> tuple[int, int]:
    """Split a signed 64-bit integer into two words, the lower first."""
    return _split_bits(struct.pack("<q", number))


def _split_bits(packed: bytes) -> tuple[int, int]:
    low, high = struct.unpack("<II", packed)
    return low, high
