"""Plans: compiled subscriptions, one by one and in bulk.

A plan is a list of clauses; a clause is a conjunction of tests; a test is a relation between a column of
atoms and an operand, or its negation. Many subscriptions differ only in their literals: a `ClauseBlock` has
the shape of such clauses once and their operands as columns, so that a million texts do not need a million
trees. Clauses with a rare shape are `IrregularClauses`: test by test, each with the clauses that contain it.
"""

from __future__ import annotations

import struct
from collections.abc import Sequence
from dataclasses import dataclass, field
from enum import IntEnum
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from tidings.atoms import Column
from tidings.events.schema.domains import Domain
from tidings.matching.array_functions import starts_of
from tidings.model import Reject
from tidings.values import Kind, Literal

__all__ = [
    "Clause",
    "ClauseBlock",
    "Compiled",
    "IrregularClauses",
    "IrregularTest",
    "Literals",
    "Numbers",
    "Operand",
    "Operands",
    "Plan",
    "Relation",
    "Test",
    "TestShape",
    "Twigs",
]


Operand = Literal | tuple[Literal, ...] | None


class Relation(IntEnum):
    """Comparison that some value of a column must satisfy with the operand; negated, that no value may satisfy.

    NE holds for every value for which EQ does not: a value of another kind differs.
    """

    EXISTS = 0
    EQ = 1
    NE = 2
    LT = 3
    LE = 4
    GT = 5
    GE = 6
    BETWEEN = 7
    IN = 8


@dataclass(frozen=True, slots=True)
class TestShape:
    """A test without its operand; `kind` is the kind of the operand (None for EXISTS)."""

    __test__ = False

    column: Column
    relation: Relation
    kind: Kind | None
    negated: bool = False


@dataclass(frozen=True, slots=True)
class Test:
    """A test with its operand: a literal, a pair for BETWEEN, several of one kind for IN, None for EXISTS."""

    __test__ = False

    shape: TestShape
    operand: Operand


Clause = tuple[Test, ...]


@dataclass(frozen=True, slots=True)
class Plan:
    """A compiled subscription: a publication matches if it satisfies all tests of one clause.

    `domains` are the ordered domains that the tests refer to. `twigs` has, for each clause, what to check
    after the tests: the branches of a document (a `Twig` of `documents.twigs`) or the pattern of a graph (a
    `Pattern` of `graphs.patterns.pattern_tree`). `exact` marks clauses whose tests are sufficient. A plan for events
    has no twigs.
    """

    clauses: tuple[Clause, ...]
    domains: tuple[Domain, ...] = ()
    twigs: tuple[Any, ...] = ()
    exact: tuple[bool, ...] = ()


@dataclass(frozen=True, slots=True)
class Numbers:
    """Exact numbers: the nearest doubles and the remainders (see `values.split_number`)."""

    nearest: npt.NDArray[np.float64]
    rest: npt.NDArray[np.int64]

    def __len__(self) -> int:
        return len(self.nearest)


Literals: TypeAlias = "Numbers | pa.Array[Any] | npt.NDArray[np.int64] | npt.NDArray[np.bool_]"
"""Literals of one kind: Numbers, a binary Arrow array of UTF-8 strings, microseconds (int64), or booleans."""


@dataclass(frozen=True, slots=True)
class Operands:
    """The operands of one test over all clauses of a block.

    Row i has `values[i]`; for BETWEEN also `upper[i]`; for IN it has `values[offsets[i]:offsets[i + 1]]`.
    EXISTS has none.
    """

    values: Literals | None = None
    upper: Literals | None = None
    offsets: npt.NDArray[np.int64] | None = None


NO_TWIGS = np.empty(0, np.int32)


@dataclass(frozen=True, slots=True)
class ClauseBlock:
    """Clauses of one shape. Row i belongs to subscription `rows[i]` of the `Compiled` that contains the
    block.

    `twigs` has the number of each clause's twig; it is empty for clauses about events.
    """

    shape: tuple[TestShape, ...]
    operands: tuple[Operands, ...]
    rows: npt.NDArray[np.int32]
    twigs: npt.NDArray[np.int32] = field(default_factory=lambda: NO_TWIGS)


@dataclass(frozen=True, slots=True)
class IrregularTest:
    """One test in many clauses: operand i is that of clause `clauses[i]`, each of which has the test once."""

    shape: TestShape
    operands: Operands
    clauses: npt.NDArray[np.int32]


@dataclass(frozen=True, slots=True)
class IrregularClauses:
    """Clauses of many shapes. Clause i belongs to subscription `rows[i]`; its twig is `twigs[i]`, or -1."""

    rows: npt.NDArray[np.int32] = field(default_factory=lambda: np.empty(0, np.int32))
    tests: tuple[IrregularTest, ...] = ()
    twigs: npt.NDArray[np.int32] = field(default_factory=lambda: NO_TWIGS)


@dataclass(frozen=True, slots=True)
class Twigs:
    """Twigs as numbers: twig i is `words[starts[i]:starts[i + 1]]` (see `documents.twigs`).

    Its names and strings are numbers, too. `exact` marks twigs that are implied by the tests of their
    clauses.
    """

    starts: npt.NDArray[np.int64] = field(default_factory=lambda: np.zeros(1, np.int64))
    words: npt.NDArray[np.uint32] = field(default_factory=lambda: np.empty(0, np.uint32))
    exact: npt.NDArray[np.bool_] = field(default_factory=lambda: np.empty(0, np.bool_))
    names: tuple[str, ...] = ()
    strings: pa.Array[Any] = field(default_factory=lambda: pa.array([], pa.binary()))

    def __len__(self) -> int:
        return len(self.exact)


@dataclass(frozen=True, slots=True)
class Compiled:
    """Subscriptions ready for an index, and rejected ones with the reasons.

    `subscriptions` are the accepted ones, a table with the string columns id, subscriber, language and text:
    a million objects would cost more than compiling their texts.
    """

    subscriptions: pa.Table
    blocks: tuple[ClauseBlock, ...]
    domains: tuple[Domain, ...]
    rejects: tuple[Reject, ...]
    irregular: IrregularClauses = field(default_factory=IrregularClauses)
    twigs: Twigs = field(default_factory=Twigs)


Words = npt.NDArray[np.uint32]
Sizes = npt.NDArray[np.int64]
Flags = npt.NDArray[np.bool_]

_FLUSH = 1 << 20


@dataclass(slots=True)
class TwigWriter:
    """Collects twigs and graph patterns as words, and numbers them, their names and their strings in order.

    The words are defined where they are encoded: `documents.twigs` and `graphs.pattern_words`.
    """

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
        return Twigs(starts_of(sizes), words, exact, tuple(self.names), self.all_strings())


def split_double(number: float) -> tuple[int, int]:
    """Split the bits of a double into two words, the lower first."""
    return _split_bits(struct.pack("<d", number))


def split_integer(number: int) -> tuple[int, int]:
    """Split a signed 64-bit integer into two words, the lower first."""
    return _split_bits(struct.pack("<q", number))


def _split_bits(packed: bytes) -> tuple[int, int]:
    low, high = struct.unpack("<II", packed)
    return low, high
