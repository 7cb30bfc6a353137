"""Compilation of predicate texts to plans, one by one and in bulk. Reading `REWRITES` is reading the
compiler.

In bulk, each skeleton is compiled once, and its literals are read as columns:

    texts -> skeletons -> shapes (lexical forms of literals) -> one tree per shape -> blocks of clauses
                                              └─ texts that could differ: one by one

The result equals that of compiling one by one; `literal_guards` decides which texts cannot use a shape.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from tidings.atoms import Aspect, Column
from tidings.core import suggest
from tidings.errors import SubscriptionError, TextWarning
from tidings.events.check import check
from tidings.events.literal_guards import find_guarded_texts
from tidings.events.predicate_parser import parse
from tidings.events.predicate_tree import Comparison, Not, Slots, Tree, comparisons, rewrite
from tidings.events.predicate_warnings import CHECKS
from tidings.events.rewrites import (
    clauses_of,
    comparison_of,
    distribute,
    drop_contradictions,
    drop_repeated,
    drop_subsumed,
    push_not_down,
    refuse_impossible,
)
from tidings.events.schema.domains import Domain
from tidings.events.schema.event_schema import EventSchema
from tidings.events.skeletons import LiteralTexts, Mask, Skeleton, Sort, group_texts, literal_ends
from tidings.matching.compiler.blocks import join_literals, literal_column, merge, pack, take_literals
from tidings.matching.compiler.language import CompiledRows, Context, Knowledge, Language, first_warnings
from tidings.matching.compiler.plan import (
    Clause,
    ClauseBlock,
    Literals,
    Operands,
    Plan,
    Relation,
    Test,
    TestShape,
    TwigWriter,
)
from tidings.values import Kind

REWRITES: tuple[Callable[[Tree, Context], Tree], ...] = (
    push_not_down,
    distribute,
    drop_repeated,
    drop_contradictions,
    drop_subsumed,
    refuse_impossible,
)
"""The rewrites that turn a checked tree into clauses, in this order."""


def compile_predicates(context: Context) -> Plan:
    """Compile one text."""
    return lower(to_clauses(interpret(context), context))


def parse_and_check(text: str, schema: EventSchema | None = None) -> Tree:
    """Parse a text and check it against the schema; operators and literals of the tree are resolved."""
    return interpret(Context(text, schema))


def interpret(context: Context) -> Tree:
    """Parse and check the text of a context."""
    return check(parse(context.text, context.schema), context)


def to_clauses(tree: Tree, context: Context) -> Tree:
    """Rewrite a checked tree as a disjunction of conjunctions."""
    for step in REWRITES:
        tree = step(tree, context)
    return tree


def lower(tree: Tree) -> Plan:
    """Make the plan of a tree in clauses: tests of columns against operands."""
    return Plan(tuple(_clause(parts) for parts in clauses_of(tree)), domains_of(tree))


def domains_of(tree: Tree) -> tuple[Domain, ...]:
    """Return the domains whose order the tree uses, each once."""
    orders = {leaf.order.name: leaf.order for leaf in comparisons(tree) if isinstance(leaf.order, Domain)}
    return tuple(orders.values())


def _clause(parts: tuple[Tree, ...]) -> Clause:
    return tuple(_test(part) for part in parts)


def _test(part: Tree) -> Test:
    return Test(shape_of(part), comparison_of(part).bound_operand)


def shape_of(part: Tree) -> TestShape:
    """Return the test of one part of a clause, without its operand."""
    comparison = comparison_of(part)
    column, relation = _column(comparison)
    return TestShape(column, relation, comparison.kind, negated=isinstance(part, Not))


def _column(comparison: Comparison) -> tuple[Column, Relation]:
    operator, order = comparison.operator, comparison.order
    if order is not None and operator.ordered is not None:
        return Column(comparison.path, operator.ordered.aspect, order.name), Relation.EQ
    if comparison.kind is Kind.INSTANT:
        return Column(comparison.path, Aspect.INSTANT), operator.relation
    return Column(comparison.path, operator.aspect), operator.relation


_FEW = 8
"""Fewer texts than this are compiled one by one: columns would cost more than they save."""
_TRIES = 8
"""Maximum number of texts of a shape that are tried as its example."""

Places = npt.NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class PredicateLanguage(Language):
    """The predicate language, as the compiler uses it."""

    def compile(self, context: Context) -> Plan:
        return compile_predicates(context)

    def compile_rows(
        self, texts: Sequence[str], schema: EventSchema | None, limit: int, twigs: TwigWriter
    ) -> CompiledRows:
        return compile_rows(self, texts, schema, limit)

    def warnings(self, context: Context, knowledge: Knowledge | None = None) -> tuple[TextWarning, ...]:
        tree = to_clauses(interpret(context), context)
        return first_warnings(warning for check in CHECKS for warning in check(tree, context))


def compile_rows(
    language: Language, texts: Sequence[str], schema: EventSchema | None, limit: int
) -> CompiledRows:
    """Compile texts, by row."""
    rows, singles = CompiledRows(), list[int]()
    for skeleton in group_texts(texts):
        singles.extend(_compile_skeleton(skeleton, texts, schema, limit, rows))
    plans = language.compile_each(sorted(singles), texts, schema, limit, rows)
    rows.blocks = merge([*rows.blocks, *pack(plans)])
    return rows


def _compile_skeleton(
    skeleton: Skeleton,
    texts: Sequence[str],
    schema: EventSchema | None,
    limit: int,
    into: CompiledRows,
) -> Iterator[int]:
    """Add the blocks of a skeleton's texts; yield the rows to compile one by one."""
    if len(skeleton.rows) < _FEW or not skeleton.width:
        yield from skeleton.rows
        return
    rows = np.array(skeleton.rows, np.int64)
    columns = [LiteralTexts.of(skeleton.column(ordinal)) for ordinal in range(skeleton.width)]
    for places in _iter_alike_places(columns):
        chosen = columns if places is None else [column.take(places) for column in columns]
        mine = rows if places is None else rows[places]
        shape = None if _is_odd(chosen) else _find_shape(texts, mine, schema, limit)
        yield from mine.tolist() if shape is None else _compile_shape(shape, chosen, mine, schema, into)


def _iter_alike_places(columns: Sequence[LiteralTexts]) -> Iterator[Places | None]:
    """Yield places whose literals look alike in every column; None for all places."""
    if all((column.sorts == column.sorts[0]).all() for column in columns):
        yield None
        return
    looks = np.zeros(len(columns[0].sorts), np.int64)
    for column in columns:
        # Renumbered each time: sorts as digits of one number would overflow in long lists.
        looks = np.unique(looks * len(Sort) + column.sorts, return_inverse=True)[1]
    for look in range(int(looks.max()) + 1):
        yield np.flatnonzero(looks == look)


def _is_odd(columns: Sequence[LiteralTexts]) -> bool:
    return any(column.sorts[0] == Sort.ODD for column in columns)


@dataclass(frozen=True, slots=True)
class _Shape:
    """A tree with placeholders for literals, itself and in clauses; and the kind of each literal.

    `place` is the text of the shape that it was made from.
    """

    tree: Tree
    clauses: Tree
    kinds: Mapping[int, Kind]
    place: int = 0


def _find_shape(texts: Sequence[str], rows: Places, schema: EventSchema | None, limit: int) -> _Shape | None:
    """Return the shape of the first valid text among a few, so that one bad literal does not slow down a million."""
    for place in range(0, len(rows), max(1, len(rows) // _TRIES)):
        shape = _shape_of(texts[rows[place]], schema, limit)
        if shape is not None:
            return replace(shape, place=place)
    return None


def _shape_of(text: str, schema: EventSchema | None, limit: int) -> _Shape | None:
    """Return the shape of a text, or None if the text is invalid or its literals cannot be replaced."""
    context = Context(text, schema, limit)
    ends = {end: ordinal for ordinal, end in enumerate(literal_ends(text))}
    try:
        with suggest.bounded_search(0):  # refused texts are compiled again one by one, with hints
            checked = interpret(context)
            if not _is_open(checked, ends):
                return None
            tree = rewrite(checked, lambda leaf: _replace_literals(leaf, ends))
            clauses = to_clauses(tree, context)
    except SubscriptionError:
        return None
    kinds = {
        ordinal: leaf.operand.kind
        for leaf in comparisons(tree)
        if isinstance(leaf.operand, Slots)
        for ordinal in leaf.operand.ordinals
    }
    return _Shape(tree, clauses, kinds)


def _is_open(tree: Tree, ends: Mapping[int, int]) -> bool:
    """Return whether the skeleton was cut exactly at the literals that the parser found."""
    leaves = [leaf for leaf in comparisons(tree) if leaf.kind not in (None, Kind.BOOLEAN)]
    spans = [span for leaf in leaves for span in leaf.spans.literals]
    whole = all(len(leaf.literals) == len(leaf.spans.literals) for leaf in leaves)
    return whole and sorted(span.end for span in spans) == sorted(ends)


def _replace_literals(leaf: Comparison, ends: Mapping[int, int]) -> Comparison:
    if leaf.kind is None or leaf.kind is Kind.BOOLEAN:
        return leaf
    ordinals = tuple(ends[span.end] for span in leaf.spans.literals)
    return replace(leaf, operand=Slots(ordinals, leaf.kind))


def _compile_shape(
    shape: _Shape,
    written: Sequence[LiteralTexts],
    rows: Places,
    schema: EventSchema | None,
    into: CompiledRows,
) -> list[int]:
    """Add the blocks of a shape's texts; return the rows to compile one by one."""
    columns: dict[int, Literals] = {}
    suspect: Mask = np.zeros(len(rows), np.bool_)
    for ordinal, kind in shape.kinds.items():
        columns[ordinal], unread = written[ordinal].read(kind)
        suspect |= unread | _dated_otherwise(written[ordinal], kind, shape.place)
    suspect |= find_guarded_texts(shape.tree, shape.clauses, columns, schema, len(rows))
    fine = np.flatnonzero(~suspect)
    if len(fine) < len(rows):
        columns = {ordinal: take_literals(column, fine) for ordinal, column in columns.items()}
    if len(fine):
        into.add_domains(domains_of(shape.clauses))
    for clause in clauses_of(shape.clauses) if len(fine) else ():
        operands = tuple(_operands(comparison_of(part), columns, len(fine)) for part in clause)
        block = ClauseBlock(tuple(map(shape_of, clause)), operands, rows[fine].astype(np.int32))
        into.blocks.append(block)
    return [int(row) for row in rows[suspect]]


def _dated_otherwise(written: LiteralTexts, kind: Kind, place: int) -> Mask:
    """Strings that name an instant although the example only has the form of one: '2004-99-99'."""
    if kind is not Kind.STRING or written.sorts[0] != Sort.DATED_STRING:
        return np.zeros(len(written.sorts), np.bool_)
    named = written.names_instants()
    return np.zeros_like(named) if named[place] else named


def _operands(leaf: Comparison, columns: Mapping[int, Literals], rows: int) -> Operands:
    """Return the operands of one predicate over all texts of its shape."""
    if leaf.kind is None:
        return Operands()
    if isinstance(leaf.operand, Slots):
        literals = [columns[ordinal] for ordinal in leaf.operand.ordinals]
    else:  # booleans are part of the skeleton: all its texts have the same
        literals = [literal_column(leaf.kind, [literal] * rows) for literal in leaf.literals]
    if leaf.operator.relation is Relation.BETWEEN:
        return Operands(literals[0], literals[1])
    if leaf.operator.relation is not Relation.IN:
        return Operands(literals[0])
    offsets = np.arange(rows + 1, dtype=np.int64) * len(literals)
    return Operands(_interleave(literals, rows), offsets=offsets)


def _interleave(columns: Sequence[Literals], rows: int) -> Literals:
    """Interleave columns: the first of every column, then the second of every column, and so on."""
    order = np.arange(rows * len(columns)).reshape(len(columns), rows).T.ravel()
    return take_literals(join_literals(columns), order)
