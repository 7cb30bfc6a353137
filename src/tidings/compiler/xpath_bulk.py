"""Compile very many XPaths at once: texts that differ only in their literals are compiled together.

What is left is compiled one by one, and kept test by test: a million subscriptions may have a million shapes.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from tidings.compiler.blocks import literal_column
from tidings.compiler.bulk import Rows
from tidings.compiler.composed import Composer
from tidings.compiler.context import Context
from tidings.compiler.loose import LooseWriter
from tidings.compiler.plan import Clause, ClauseBlock, Numbers, Operands, Plan
from tidings.compiler.twig_words import STRING_SHIFT, TwigWriter, halves
from tidings.compiler.twigs import Twig
from tidings.compiler.xpath import compile_xpath
from tidings.errors import SubscriptionError
from tidings.languages.xpath import DEFAULT
from tidings.schema.event_schema import EventSchema
from tidings.values import Kind

_NUMBER = r"(?<![\w.\-].)(?:(?<=[0-9])[0-9]*+(?:\.[0-9]*+)?|(?<=-)(?:[0-9]++(?:\.[0-9]*+)?|\.[0-9]++)|(?<=\.)[0-9]++)"
"""A number behind its first character. It is none if a name goes on with it, and neither is its minus."""
_CUT = re.compile(rf"""(["'0-9.\-](?:(?<=")[^"]*+"|(?<=')[^']*+'|{_NUMBER}))""")
"""Literals. The pattern begins with a set of characters because `re` skips ahead to such a set quickly."""

_FEW = 32
"""Fewer texts of a skeleton are compiled one by one."""

_NUMBERS_FROM = 1_000_003
"""Numbers that stand for literals while a skeleton is compiled."""

Literals = list[str]


def cut(text: str) -> list[str]:
    """What stands around the literals of a text, and the literals, in turn."""
    return _CUT.split(text)


@dataclass(frozen=True, slots=True)
class XPathFront:
    """How XPaths are compiled."""

    def compile(self, context: Context) -> Plan:
        return compile_xpath(context)

    def compile_rows(self, texts: Sequence[str], schema: EventSchema | None, limit: int) -> Rows:
        return _Many(texts, limit).rows()


@dataclass(slots=True)
class _Group:
    """The texts of one skeleton: their rows and literals."""

    rows: list[int] = field(default_factory=list)
    literals: list[Literals] = field(default_factory=list)


class _Many:
    def __init__(self, texts: Sequence[str], limit: int) -> None:
        self._texts, self._limit = texts, limit
        self._twigs, self._into = TwigWriter(), Rows()
        self._loose = LooseWriter(self._twigs.string)
        self._composer = Composer(self._twigs, self._loose)

    def rows(self) -> Rows:
        for skeleton, group in self._groups().items():
            if not self._together(skeleton, group):
                for row, literals in zip(group.rows, group.literals, strict=True):
                    if not self._composer.add(row, skeleton[::2], literals):
                        self._single(row)
        self._into.twigs = self._twigs.finish()
        self._into.loose = self._loose.finish(self._into.twigs.strings)
        return self._into

    def _groups(self) -> dict[tuple[str, ...], _Group]:
        """Texts by skeleton: what stands around the literals, and of which kind each is."""
        groups: dict[tuple[str, ...], _Group] = {}
        for row, text in enumerate(self._texts):
            parts = cut(text)
            literals = parts[1::2]
            if len(text) > DEFAULT.length or '""' in literals or "''" in literals:
                self._single(row)  # refused for its length, or for what an empty string is compared with
                continue
            parts[1::2] = ["s" if literal[0] in "\"'" else "n" for literal in literals]
            group = groups.setdefault(tuple(parts), _Group())
            group.rows.append(row)
            group.literals.append(literals)
        return groups

    def _single(self, row: int) -> None:
        try:
            plan = compile_xpath(Context(self._texts[row], None, self._limit))
        except SubscriptionError as problem:
            self._into.problems[row] = problem
            return
        for clause, twig, exact in zip(plan.clauses, plan.twigs, plan.exact, strict=True):
            self._loose.add(row, clause, self._twigs.add(twig, exact))

    def _together(self, skeleton: tuple[str, ...], group: _Group) -> bool:
        """Compile a skeleton once; whether that was possible."""
        kinds = skeleton[1::2]
        if len(group.rows) < _FEW or not kinds:
            return False
        marks = [_mark(kind, ordinal) for ordinal, kind in enumerate(kinds)]
        text = "".join(
            part for pair in zip(skeleton[::2], [*map(_written, marks), ""], strict=True) for part in pair
        )
        try:
            plan = compile_xpath(Context(text, None, self._limit))
        except (
            SubscriptionError
        ):  # perhaps because of what stands for the literals: the texts speak for themselves
            return False
        columns = [_column(kind, [each[i] for each in group.literals]) for i, kind in enumerate(kinds)]
        if not all(np.isfinite(column).all() for column in columns if isinstance(column, np.ndarray)):
            return False
        template = _Template(dict(zip(marks, columns, strict=True)), np.array(group.rows, np.int32))
        for clause, twig, exact in zip(plan.clauses, plan.twigs, plan.exact, strict=True):
            self._into.blocks.append(template.block(clause, twig, exact, self._twigs))
        return True


Column = npt.NDArray[np.float64] | list[str]


def _mark(kind: str, ordinal: int) -> str | float:
    """A literal that stands for the literals at one place. No text has it: `\\ue000` is nobody's character."""
    return f"\ue000{ordinal}\ue001" if kind == "s" else float(_NUMBERS_FROM + ordinal)


def _written(mark: str | float) -> str:
    return f'"{mark}"' if isinstance(mark, str) else f"{mark:.0f}"


def _column(kind: str, literals: Literals) -> Column:
    if kind == "s":
        return [literal[1:-1] for literal in literals]
    return np.array([float(literal) for literal in literals])


@dataclass(frozen=True, slots=True)
class _Template:
    """A skeleton's literals by what stands for them."""

    columns: dict[str | float, Column]
    rows: npt.NDArray[np.int32]

    def block(self, clause: Clause, twig: Twig, exact: bool, into: TwigWriter) -> ClauseBlock:
        """One clause of the skeleton, for all its texts."""
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
        """The words of the twig for each text: those of what stands for literals are filled in."""
        scratch = TwigWriter(names=into.names)
        words = scratch.words_of(twig)
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
    """Where the tests of a twig stand among its words, and their literals."""
    at, found = 0, []
    for node in twig:
        at += 2
        for test in (*node.tests, *node.firsts):
            found.append((at, test.literal))
            at += 1 if isinstance(test.literal, str) else 1 + len(halves(test.literal))
    return found
