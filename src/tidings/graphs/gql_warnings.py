"""Warnings about graph subscriptions, from what is known here: the loaded taxonomies and the last publications.

?s <= ex:Academia     no loaded taxonomy has the class
?year > 2003          <ex:year>2005</ex:year> of RDF/XML is text, and text does not compare with numbers
?date >= 2004         the dates of feed items are xsd:dateTime, which do not compare with numbers, either
?s <= ex:Academia     the categories of feed items are text, and text belongs to no class
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from tidings.errors import TextWarning
from tidings.graphs.gql import gql_parser
from tidings.graphs.gql.gql_tree import (
    Constraint,
    ConstraintKind,
    Pattern,
    PatternEdge,
    Variable,
    show_constraint,
    show_term,
)
from tidings.graphs.keys import TermMeaning, term_meaning
from tidings.graphs.model import STRING, Graph, Term, TermKind, literal
from tidings.graphs.values import meaning
from tidings.matching.compiler.language import Context, Knowledge
from tidings.values import parse_instant, to_number

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
    pattern = gql_parser.parse(context.text)
    in_classes = [each for each in pattern.constraints if each.asked in _CLASSES]
    known = knowledge.taxonomy().classes if in_classes else {}
    for constraint in in_classes:
        if constraint.operands[0] not in known:
            yield _unknown_class(constraint, context)
    compared = [each for each in pattern.constraints if each.asked in (*_CLASSES, *_VALUES)]
    graphs = [*knowledge.recent("graph")] if compared else []
    for constraint in compared:
        yield from _of_other_kinds(constraint, pattern, graphs, context)


def _unknown_class(constraint: Constraint, context: Context) -> TextWarning:
    name = show_term(constraint.operands[0])
    what = f"no loaded taxonomy has the class {name}: "
    if constraint.asked in _STRICT:
        what += "this can never match until one with it is loaded"
    else:
        what += (
            "until one with it is loaded, this matches only nodes whose type the publication itself states"
        )
    return context.warning(what, constraint.span, hint="load one: tidings taxonomy load FILE")


def _of_other_kinds(
    constraint: Constraint, pattern: Pattern, graphs: Sequence[Graph], context: Context
) -> Iterator[TextWarning]:
    """A comparison with values of one kind, where recent publications have values of other kinds."""
    operand = constraint.operands[0]
    wanted = TermMeaning.NODE if constraint.asked in _CLASSES else term_meaning(meaning(operand))
    for property in _properties(constraint, pattern):
        values = [edge.object for graph in graphs for edge in graph.edges if edge.property == property]
        kinds = {term_meaning(meaning(value)) for value in values} - {TermMeaning.UNKNOWN}
        text = any(_is_plain(value, wanted) for value in values)
        if text or (kinds and wanted in _CALLED and wanted not in kinds):
            yield _other_kind(
                constraint, property, wanted, TermMeaning.STRING if text else min(kinds), context
            )


def _properties(constraint: Constraint, pattern: Pattern) -> Iterator[Term]:
    """The properties whose values the constraint is about."""
    for edge in dict.fromkeys(pattern.edges):
        if _is_object(edge, constraint.variable) and isinstance(edge.property, Term):
            yield edge.property


def _is_object(edge: PatternEdge, name: str) -> bool:
    return isinstance(edge.object, Variable) and edge.object.name == name


def _is_plain(value: Term, wanted: TermMeaning) -> bool:
    """Whether a value is the text of a number or a date, where a number or a date is wanted."""
    if value.kind is not TermKind.LITERAL or value.datatype != STRING:
        return False
    if wanted is TermMeaning.NUMBER:
        return to_number(value.text.strip()) is not None
    return wanted is TermMeaning.MOMENT and parse_instant(value.text.strip()) is not None


def _other_kind(
    constraint: Constraint, property: Term, wanted: TermMeaning, found: TermMeaning, context: Context
) -> TextWarning:
    said = f"{show_term(property)} has {_CALLED[found]} in recent publications"
    if wanted is TermMeaning.NODE:
        return context.warning(f"{said}, and only nodes belong to a class", constraint.span)
    what = f"{said}, and {_CALLED[wanted]} do not compare with {_CALLED[found]}"
    if wanted is TermMeaning.STRING:
        what = f"{said}, which do not compare with text"
    return context.warning(what, constraint.span, hint=_hint(constraint, wanted, found))


def _hint(constraint: Constraint, wanted: TermMeaning, found: TermMeaning) -> str | None:
    operand = constraint.operands[0]
    if found is TermMeaning.STRING:
        asked = show_constraint(_with(constraint, literal(operand.text)))
        return f"compare text with text, character by character: {asked}"
    if (
        found is TermMeaning.MOMENT
        and wanted is TermMeaning.NUMBER
        and operand.text.isdecimal()
        and len(operand.text) == 4
    ):
        return f"write a date: ?{constraint.variable} {constraint.asked.value} {operand.text}-01-01"
    if found is TermMeaning.NUMBER and wanted is TermMeaning.STRING and to_number(operand.text) is not None:
        return f"write the number without quotes: {operand.text}"
    return None


def _with(constraint: Constraint, operand: Term) -> Constraint:
    return Constraint(constraint.variable, constraint.asked, (operand,))
