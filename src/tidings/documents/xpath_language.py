"""XPath as a subscription language: bulk compilation, and warnings.

Texts that differ only in their literals are compiled together. The others are stored test by test, since a million
subscriptions may have a million shapes. Most of them are composed of pieces that many texts share (`xpath_composer`);
the rest is compiled one by one.
"""

from __future__ import annotations

import re
from array import array
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from tidings.documents.twigs import STRING_SHIFT, Twig, encode_twig
from tidings.documents.xpath.xpath_parser import DEFAULT
from tidings.documents.xpath_compiler import compile_xpath
from tidings.documents.xpath_composer import Composer
from tidings.documents.xpath_warnings import warn_about_xpath
from tidings.errors import SubscriptionError, TextWarning
from tidings.matching.compiler.blocks import join_irregular, literal_column
from tidings.matching.compiler.language import CompiledRows, Context, Knowledge, Language, first_warnings
from tidings.matching.compiler.plan import (
    Clause,
    ClauseBlock,
    IrregularClauses,
    IrregularTest,
    Numbers,
    Operands,
    Plan,
    TestShape,
    TwigWriter,
)
from tidings.values import Kind

_DIGITS = r"(?<![\w.\-].)(?:(?<=[0-9])[0-9]*+(?:\.[0-9]*+)?|(?<=-)(?:[0-9]++(?:\.[0-9]*+)?|\.[0-9]++)|(?<=\.)[0-9]++)"
"""A number after its first character. Digits that continue a name are not a number, and neither is their minus sign."""
_CUT = re.compile(rf"""(["'0-9.\-](?:(?<=")[^"]*+"|(?<=')[^']*+'|{_DIGITS}))""")
"""Literals. The pattern begins with a character set because `re` skips ahead to such a set quickly."""

_STRING, _NUMBER = "\x00", "\x01"
_MARK = re.compile("[\x00\x01]")
"""Placeholders for literals in a skeleton. No XPath contains these characters."""

_FEW = 32
"""Fewer texts of a skeleton are compiled one by one."""

COMPOSED_FROM = 8
"""Fewer texts are not composed: arrays have a fixed cost, and subscriptions also come one at a time."""

_NUMBERS_FROM = 1_000_003
"""First of the numbers that replace literals while a skeleton is compiled."""


def cut(text: str) -> list[str]:
    """Split a text into the parts around its literals, and the literals, alternating."""
    return _CUT.split(text)


@dataclass(frozen=True, slots=True)
class XPathLanguage(Language):
    """XPath, as the compiler uses it."""

    def compile(self, context: Context) -> Plan:
        return compile_xpath(context)

    def compile_rows(
        self, texts: Sequence[str], schema: object, limit: int, twigs: TwigWriter
    ) -> CompiledRows:
        return _BulkCompiler(texts, limit, twigs).rows()

    def warnings(self, context: Context, knowledge: Knowledge | None = None) -> tuple[TextWarning, ...]:
        return first_warnings(warn_about_xpath(context))


class _BulkCompiler:
    """Compiles many texts. Each is stored as a string and numbers: millions of lists would keep the collector busy."""

    def __init__(self, texts: Sequence[str], limit: int, twigs: TwigWriter) -> None:
        self._texts, self._limit = texts, limit
        self._skeletons: list[str | None] = []
        self._literals, self._first = list[str](), array("q", [0])
        self._twigs, self._into = twigs, CompiledRows()
        self._loose = IrregularClauseWriter(self._twigs.string)
        self._composer = Composer(self._twigs)

    def rows(self) -> CompiledRows:
        for text in self._texts:
            self._skeletons.append(self._skeleton(text))
            self._first.append(len(self._literals))
        for skeleton, rows in self._groups().items():
            if not self._compile_skeleton(skeleton, rows):
                for row in rows:
                    self._compose_or_compile(row)
        strings = self._twigs.all_strings()
        self._into.irregular = join_irregular([self._loose.finish(strings), self._composer.finish(strings)])
        return self._into

    def _skeleton(self, text: str) -> str | None:
        """Replace the literals by marks for their kinds; None if they cannot be cut out."""
        if len(self._texts) < COMPOSED_FROM:
            return None
        parts = cut(text)
        literals = parts[1::2]
        if len(text) > DEFAULT.length or '""' in literals or "''" in literals or _MARK.search(text):
            return None  # too long, or an empty string, which some functions refuse
        parts[1::2] = [_STRING if literal[0] in "\"'" else _NUMBER for literal in literals]
        self._literals += literals
        return "".join(parts)

    def _groups(self) -> dict[str, list[int]]:
        """Group the rows of frequent skeletons; all others are compiled."""
        counts, groups = Counter(self._skeletons), dict[str, list[int]]()
        for row, skeleton in enumerate(self._skeletons):
            if skeleton is None or counts[skeleton] < _FEW:
                self._compose_or_compile(row)
            else:
                groups.setdefault(skeleton, []).append(row)
        return groups

    def _compose_or_compile(self, row: int) -> None:
        skeleton = self._skeletons[row]
        if skeleton is None or not self._composer.add(row, _pieces(skeleton), self._literals_of(row)):
            self._compile_one(row)

    def _literals_of(self, row: int) -> list[str]:
        return self._literals[self._first[row] : self._first[row + 1]]

    def _compile_one(self, row: int) -> None:
        try:
            plan = compile_xpath(Context(self._texts[row], None, self._limit))
        except SubscriptionError as problem:
            self._into.problems[row] = problem.with_traceback(None)
            return
        for clause, twig, exact in zip(plan.clauses, plan.twigs, plan.exact, strict=True):
            self._loose.add(row, clause, self._twigs.add(encode_twig(twig, self._twigs), exact))

    def _compile_skeleton(self, skeleton: str, rows: Sequence[int]) -> bool:
        """Compile a skeleton once; return whether that was possible."""
        kinds = _MARK.findall(skeleton)
        if not kinds:
            return False
        marks = [_mark(kind, ordinal) for ordinal, kind in enumerate(kinds)]
        written = [*map(_write_mark, marks), ""]
        text = "".join(part for pair in zip(_pieces(skeleton), written, strict=True) for part in pair)
        try:
            plan = compile_xpath(Context(text, None, self._limit))
        except SubscriptionError:  # perhaps because of the placeholders: compile the texts one by one
            return False
        literals = zip(*map(self._literals_of, rows), strict=True)
        columns = [_column(kind, each) for kind, each in zip(kinds, literals, strict=True)]
        if not all(np.isfinite(column).all() for column in columns if isinstance(column, np.ndarray)):
            return False
        template = _Template(dict(zip(marks, columns, strict=True)), np.array(rows, np.int32))
        for clause, twig, exact in zip(plan.clauses, plan.twigs, plan.exact, strict=True):
            self._into.blocks.append(template.block(clause, twig, exact, self._twigs))
        return True


Column = npt.NDArray[np.float64] | list[str]


def _pieces(skeleton: str) -> list[str]:
    """Split a skeleton at its marks."""
    return skeleton.replace(_NUMBER, _STRING).split(_STRING)


def _mark(kind: str, ordinal: int) -> str | float:
    """Make a placeholder for the literals at one place. No text contains it: `\\ue000` is for private use."""
    return f"\ue000{ordinal}\ue001" if kind == _STRING else float(_NUMBERS_FROM + ordinal)


def _write_mark(mark: str | float) -> str:
    return f'"{mark}"' if isinstance(mark, str) else f"{mark:.0f}"


def _column(kind: str, literals: Sequence[str]) -> Column:
    if kind == _STRING:
        return [literal[1:-1] for literal in literals]
    return np.array([float(literal) for literal in literals])


@dataclass(frozen=True, slots=True)
class _Template:
    """The literal columns of a skeleton by placeholder."""

    columns: dict[str | float, Column]
    rows: npt.NDArray[np.int32]

    def block(self, clause: Clause, twig: Twig, exact: bool, into: TwigWriter) -> ClauseBlock:
        """Make the block of one clause of the skeleton, for all its texts."""
        shape = tuple(test.shape for test in clause)
        operands = tuple(
            Operands() if test.operand is None else self._operands(test.shape.kind, test.operand)
            for test in clause
        )
        first = into.add_many(self._words(twig, into), exact)
        return ClauseBlock(
            shape, operands, self.rows, np.arange(first, first + len(self.rows), dtype=np.int32)
        )

    def _operands(self, kind: Kind | None, mark: object) -> Operands:
        column = self._of(mark)
        if isinstance(column, np.ndarray):
            return Operands(Numbers(column, np.zeros(len(column), np.int64)))
        assert kind is Kind.STRING
        return Operands(literal_column(kind, column))

    def _of(self, mark: object) -> Column:
        if isinstance(mark, float) and mark < 0:
            column = self.columns[-mark]
            assert isinstance(column, np.ndarray)
            return -column
        assert isinstance(mark, str | float)
        return self.columns[mark]

    def _words(self, twig: Twig, into: TwigWriter) -> npt.NDArray[np.uint32]:
        """Encode the twig for each text, filling in the literals."""
        words = encode_twig(twig, TwigWriter(names=into.names))
        table = np.tile(np.array(words, np.uint32), (len(self.rows), 1))
        for place, mark in _places(twig):
            column = self._of(mark)
            if isinstance(column, np.ndarray):
                bits = column.view(np.uint64)
                table[:, place + 1] = bits & np.uint64(0xFFFFFFFF)
                table[:, place + 2] = bits >> np.uint64(32)
            else:
                numbers = np.array([into.string(text) for text in column], np.uint32)
                flags = np.uint32(words[place] & ((1 << STRING_SHIFT) - 1))
                table[:, place] = numbers << np.uint32(STRING_SHIFT) | flags
        return table


def _places(twig: Twig) -> list[tuple[int, str | float]]:
    """Return the place of each test of a twig among its words, and its literal."""
    position, places = 0, []
    for node in twig:
        position += 2
        for test in (*node.tests, *node.firsts):
            places.append((position, test.literal))
            position += 1 if isinstance(test.literal, str) else 3
    return places


_CODES = {Kind.STRING: "I", Kind.NUMBER: "d", None: "B"}
"""Array type codes of operands. A string is stored by its number, so that equal strings are stored once."""


class _Columns:
    """The operands of one test with their clauses: a column for its first use in a clause, one for its second, etc."""

    __slots__ = ("_clause", "_columns", "_shape", "_used")

    def __init__(self, shape: TestShape) -> None:
        self._shape = shape
        self._columns: list[tuple[array[Any], array[int]]] = []
        self._clause, self._used = -1, 0

    def put(self, clause: int, operand: float) -> None:
        """Add the operand of a clause; clauses come in ascending order."""
        if clause != self._clause:
            self._clause, self._used = clause, 0
        if self._used == len(self._columns):
            self._columns.append((array(_CODES[self._shape.kind]), array("i")))
        operands, clauses = self._columns[self._used]
        operands.append(operand)
        clauses.append(clause)
        self._used += 1

    def tests(self, strings: pa.Array[Any]) -> list[IrregularTest]:
        return [
            IrregularTest(self._shape, self._operands(operands, strings), np.array(clauses, np.int32))
            for operands, clauses in self._columns
        ]

    def _operands(self, operands: array[Any], strings: pa.Array[Any]) -> Operands:
        if self._shape.kind is None:
            return Operands()
        if self._shape.kind is Kind.STRING:
            return Operands(strings.take(pa.array(np.array(operands, np.uint32))))
        return Operands(Numbers(np.array(operands, np.float64), np.zeros(len(operands), np.int64)))


class IrregularClauseWriter:
    """Collects clauses and stores them test by test. Strings are numbered by `string`."""

    def __init__(self, string: Callable[[str], int]) -> None:
        self._string = string
        self._rows, self._twigs = array("i"), array("i")
        self._tests: dict[TestShape, _Columns] = {}

    def add(self, row: int, clause: Clause, twig: int) -> None:
        """Add a clause of subscription `row`."""
        for test in clause:
            columns = self._tests.get(test.shape)
            if columns is None:
                columns = self._tests[test.shape] = _Columns(test.shape)
            columns.put(len(self._rows), self._code(test.operand))
        self._rows.append(row)
        self._twigs.append(twig)

    def _code(self, operand: object) -> float:
        if isinstance(operand, str):
            return self._string(operand)
        assert operand is None or isinstance(operand, float), "XPath literals are strings and floats"
        return operand or 0

    def finish(self, strings: pa.Array[Any]) -> IrregularClauses:
        """Return the clauses; `strings` are in the order of their numbers."""
        tests = tuple(test for columns in self._tests.values() for test in columns.tests(strings))
        return IrregularClauses(np.array(self._rows, np.int32), tests, np.array(self._twigs, np.int32))
