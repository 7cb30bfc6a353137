"""Graph patterns as a subscription language: bulk compilation, and warnings.

Most texts are composed of words that other texts share (`pattern_composer`); the others are parsed. A few texts are
compiled individually: arrays have a fixed cost, and subscriptions are also registered singly.

Warnings use the loaded taxonomies and the last publications:

    ?s <= ex:Academia     no loaded taxonomy has the class
    ?year > 2003          <ex:year>2005</ex:year> of RDF/XML is text, and text does not compare with numbers
    ?date >= 2004         the dates of feed items are xsd:dateTime, which do not compare with numbers, either
    ?s <= ex:Academia     the categories of feed items are text, and text belongs to no class
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from tidings.errors import SubscriptionError, TextWarning
from tidings.graphs.keys import TermMeaning, term_meaning
from tidings.graphs.model import STRING, Graph, Term, TermKind, literal, meaning
from tidings.graphs.pattern_compiler import compile_gql, plan_of
from tidings.graphs.pattern_composer import Composer
from tidings.graphs.pattern_numbers import PatternNumbers
from tidings.graphs.pattern_words import encode_pattern
from tidings.graphs.patterns import pattern_parser
from tidings.graphs.patterns.pattern_tree import (
    Constraint,
    ConstraintKind,
    Pattern,
    PatternEdge,
    Variable,
    show_constraint,
    show_term,
)
from tidings.matching.compiler.blocks import operands_of
from tidings.matching.compiler.language import CompiledRows, Context, Knowledge, Language, first_warnings
from tidings.matching.compiler.plan import Clause, ClauseBlock, Plan, TestShape, TwigWriter
from tidings.values import parse_instant, to_number

_Member = tuple[int, int, Clause]
"""A subscription's row, the number of its pattern, its tests."""

COMPOSED_FROM = 8
"""Smaller batches are compiled text by text."""


@dataclass(frozen=True, slots=True)
class GqlLanguage(Language):
    """GQL and SPARQL patterns, as the compiler uses them."""

    def compile(self, context: Context) -> Plan:
        return compile_gql(context)

    def compile_rows(
        self, texts: Sequence[str], schema: object, limit: int, twigs: TwigWriter
    ) -> CompiledRows:
        rows = CompiledRows()
        numbers, parsed = PatternNumbers(twigs), dict[int, Pattern]()
        composer = Composer(numbers) if len(texts) >= COMPOSED_FROM else None
        for row, text in enumerate(texts):
            if composer is not None and composer.add(row, text):
                continue
            try:
                pattern = pattern_parser.parse(text)
            except SubscriptionError as problem:
                rows.problems[row] = problem.with_traceback(None)
                continue
            if composer is None or not numbers.add(row, pattern):
                parsed[row] = pattern
        rows.blocks = blocks_of(parsed, twigs)
        rows.irregular = numbers.finish(twigs.all_strings())
        return rows

    def warnings(self, context: Context, knowledge: Knowledge | None = None) -> tuple[TextWarning, ...]:
        return () if knowledge is None else first_warnings(warn_about_graphs(context, knowledge))


def blocks_of(patterns: Mapping[int, Pattern], twigs: TwigWriter) -> list[ClauseBlock]:
    """Make one block per shape from the clauses of patterns, by row; the patterns go to `twigs`."""
    grouped: dict[tuple[TestShape, ...], list[_Member]] = {}
    for row, pattern in patterns.items():
        plan = plan_of(pattern)
        for clause, twig, exact in zip(plan.clauses, plan.twigs, plan.exact, strict=True):
            shape = tuple(test.shape for test in clause)
            grouped.setdefault(shape, []).append(
                (row, twigs.add(encode_pattern(twig, twigs.string), exact), clause)
            )
    return [_block(shape, members) for shape, members in grouped.items()]


def _block(shape: tuple[TestShape, ...], members: Sequence[_Member]) -> ClauseBlock:
    columns = [[clause[place].operand for _, _, clause in members] for place in range(len(shape))]
    operands = tuple(operands_of(test, column) for test, column in zip(shape, columns, strict=True))
    rows, patterns, _ = zip(*members, strict=True)
    return ClauseBlock(shape, operands, np.array(rows, np.int32), np.array(patterns, np.int32))


_STRICT = (ConstraintKind.BELOW, ConstraintKind.ABOVE)
_CLASSES = (ConstraintKind.AT_CLASS, ConstraintKind.AT_OR_BELOW, ConstraintKind.AT_OR_ABOVE, *_STRICT)
_VALUES = (
    ConstraintKind.EQUAL,
    ConstraintKind.LESS,
    ConstraintKind.AT_MOST,
    ConstraintKind.GREATER,
    ConstraintKind.AT_LEAST,
)
_CALLED = {
    TermMeaning.NODE: "nodes",
    TermMeaning.LANGUAGE: "text with a language",
    TermMeaning.STRING: "text",
    TermMeaning.NUMBER: "numbers",
    TermMeaning.BOOLEAN: "booleans",
    TermMeaning.MOMENT: "dates",
}


def warn_about_graphs(context: Context, knowledge: Knowledge) -> Iterator[TextWarning]:
    """Warn about a GQL text that compiles; taxonomies and publications are read only if it needs them."""
    pattern = pattern_parser.parse(context.text)
    in_classes = [each for each in pattern.constraints if each.kind in _CLASSES]
    classes = knowledge.taxonomy().classes if in_classes else {}
    for constraint in in_classes:
        if constraint.operands[0] not in classes:
            yield _unknown_class(constraint, context)
    compared = [each for each in pattern.constraints if each.kind in (*_CLASSES, *_VALUES)]
    graphs = [*knowledge.recent("graph")] if compared else []
    for constraint in compared:
        yield from _of_other_kinds(constraint, pattern, graphs, context)


def _unknown_class(constraint: Constraint, context: Context) -> TextWarning:
    name = show_term(constraint.operands[0])
    message = f"no loaded taxonomy has the class {name}: "
    if constraint.kind in _STRICT:
        message += "this can never match until one with it is loaded"
    else:
        message += (
            "until one with it is loaded, this matches only nodes whose type the publication itself states"
        )
    return context.warning(message, constraint.span, hint="load one: tidings taxonomy load FILE")


def _of_other_kinds(
    constraint: Constraint, pattern: Pattern, graphs: Sequence[Graph], context: Context
) -> Iterator[TextWarning]:
    """Warn about a comparison whose property has values of other kinds in recent publications."""
    operand = constraint.operands[0]
    expected = TermMeaning.NODE if constraint.kind in _CLASSES else term_meaning(meaning(operand))
    for property in _properties(constraint, pattern):
        values = [edge.object for graph in graphs for edge in graph.edges if edge.property == property]
        kinds = {term_meaning(meaning(value)) for value in values} - {TermMeaning.UNKNOWN}
        text = any(_is_plain(value, expected) for value in values)
        if text or (kinds and expected in _CALLED and expected not in kinds):
            yield _other_kind(
                constraint, property, expected, TermMeaning.STRING if text else min(kinds), context
            )


def _properties(constraint: Constraint, pattern: Pattern) -> Iterator[Term]:
    """Yield the properties whose values the constraint tests."""
    for edge in dict.fromkeys(pattern.edges):
        if _is_object(edge, constraint.variable) and isinstance(edge.property, Term):
            yield edge.property


def _is_object(edge: PatternEdge, name: str) -> bool:
    return isinstance(edge.object, Variable) and edge.object.name == name


def _is_plain(value: Term, expected: TermMeaning) -> bool:
    """Return whether a value is the text of a number or date, where a number or date is expected."""
    if value.kind is not TermKind.LITERAL or value.datatype != STRING:
        return False
    if expected is TermMeaning.NUMBER:
        return to_number(value.text.strip()) is not None
    return expected is TermMeaning.MOMENT and parse_instant(value.text.strip()) is not None


def _other_kind(
    constraint: Constraint, property: Term, expected: TermMeaning, actual: TermMeaning, context: Context
) -> TextWarning:
    values = f"{show_term(property)} has {_CALLED[actual]} in recent publications"
    if expected is TermMeaning.NODE:
        return context.warning(f"{values}, and only nodes belong to a class", constraint.span)
    message = f"{values}, and {_CALLED[expected]} do not compare with {_CALLED[actual]}"
    if expected is TermMeaning.STRING:
        message = f"{values}, which do not compare with text"
    return context.warning(message, constraint.span, hint=_hint(constraint, expected, actual))


def _hint(constraint: Constraint, expected: TermMeaning, actual: TermMeaning) -> str | None:
    operand = constraint.operands[0]
    if actual is TermMeaning.STRING:
        comparison = show_constraint(_with(constraint, literal(operand.text)))
        return f"compare text with text, character by character: {comparison}"
    if (
        actual is TermMeaning.MOMENT
        and expected is TermMeaning.NUMBER
        and operand.text.isdecimal()
        and len(operand.text) == 4
    ):
        return f"write a date: ?{constraint.variable} {constraint.kind.value} {operand.text}-01-01"
    if (
        actual is TermMeaning.NUMBER
        and expected is TermMeaning.STRING
        and to_number(operand.text) is not None
    ):
        return f"write the number without quotes: {operand.text}"
    return None


def _with(constraint: Constraint, operand: Term) -> Constraint:
    return Constraint(constraint.variable, constraint.kind, (operand,))
