"""Warnings about graph subscriptions, from what is known here: the loaded taxonomies and the last publications.

?s <= ex:Academia     no loaded taxonomy has the class
?year > 2003          <ex:year>2005</ex:year> of RDF/XML is text, and text does not compare with numbers
?date >= 2004         the dates of feed items are xsd:dateTime, which do not compare with numbers, either
?s <= ex:Academia     the categories of feed items are text, and text belongs to no class
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence

from tidings.compiler.context import Context
from tidings.errors import PublicationError, TextWarning
from tidings.graph_keys import Means, means
from tidings.graph_values import meaning
from tidings.graphs import STRING, Graph, Term, TermKind, literal
from tidings.languages import gql
from tidings.languages.gql_shown import show_constraint, show_term
from tidings.languages.gql_tree import Asked, Constraint, Pattern, PatternEdge, Variable
from tidings.publications import rdf
from tidings.publications.media_types import GRAPHS
from tidings.store import Store
from tidings.taxonomies import Taxonomy
from tidings.values import parse_instant, to_number

RECENT, LARGEST = 20, 64 * 1024
"""How many of the last publications are looked at, and how many bytes one may have."""

_STRICT = (Asked.BELOW, Asked.ABOVE)
_CLASSES = (Asked.AT_CLASS, Asked.AT_OR_BELOW, Asked.AT_OR_ABOVE, *_STRICT)
_VALUES = (Asked.EQUAL, Asked.LESS, Asked.AT_MOST, Asked.GREATER, Asked.AT_LEAST)
_CALLED = {
    Means.NODE: "nodes",
    Means.LANGUAGE: "text with a language",
    Means.STRING: "text",
    Means.NUMBER: "numbers",
    Means.BOOLEAN: "booleans",
    Means.MOMENT: "dates",
}


def warn_about_graphs(
    context: Context, taxonomy: Callable[[], Taxonomy], recent: Callable[[], Iterable[Graph]]
) -> Iterator[TextWarning]:
    """Warnings about a GQL text that compiles; taxonomy and publications are read only if it asks about them."""
    pattern = gql.parse(context.text)
    asking = [one for one in pattern.constraints if one.asked in _CLASSES]
    known = taxonomy().classes if asking else {}
    for constraint in asking:
        if constraint.operands[0] not in known:
            yield _unknown_class(constraint, context)
    compared = [one for one in pattern.constraints if one.asked in (*_CLASSES, *_VALUES)]
    graphs = [*recent()] if compared else []
    for constraint in compared:
        yield from _of_other_kinds(constraint, pattern, graphs, context)


def recent_graphs(store: Store) -> Iterator[Graph]:
    """The graphs among the last publications that everybody may see."""
    for entry in store.journal.latest(None, RECENT, LARGEST):
        publication = entry.publication
        whole = len(publication.body) == entry.size and publication.audience is None
        if whole and publication.media_type in GRAPHS:
            try:
                yield rdf.decode(publication.body, publication.media_type)
            except PublicationError:
                continue  # it is a dead letter, with its reason


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
    wanted = Means.NODE if constraint.asked in _CLASSES else means(meaning(operand))
    for property in _properties(constraint, pattern):
        values = [edge.object for graph in graphs for edge in graph.edges if edge.property == property]
        kinds = {means(meaning(value)) for value in values} - {Means.UNKNOWN}
        text = any(_is_plain(value, wanted) for value in values)
        if text or (kinds and wanted in _CALLED and wanted not in kinds):
            yield _other_kind(constraint, property, wanted, Means.STRING if text else min(kinds), context)


def _properties(constraint: Constraint, pattern: Pattern) -> Iterator[Term]:
    """The properties whose values the constraint is about."""
    for edge in dict.fromkeys(pattern.edges):
        if _is_object(edge, constraint.variable) and isinstance(edge.property, Term):
            yield edge.property


def _is_object(edge: PatternEdge, name: str) -> bool:
    return isinstance(edge.object, Variable) and edge.object.name == name


def _is_plain(value: Term, wanted: Means) -> bool:
    """Whether a value is the text of a number or a date, where a number or a date is wanted."""
    if value.kind is not TermKind.LITERAL or value.datatype != STRING:
        return False
    if wanted is Means.NUMBER:
        return to_number(value.text.strip()) is not None
    return wanted is Means.MOMENT and parse_instant(value.text.strip()) is not None


def _other_kind(
    constraint: Constraint, property: Term, wanted: Means, found: Means, context: Context
) -> TextWarning:
    said = f"{show_term(property)} has {_CALLED[found]} in recent publications"
    if wanted is Means.NODE:
        return context.warning(f"{said}, and only nodes belong to a class", constraint.span)
    what = f"{said}, and {_CALLED[wanted]} do not compare with {_CALLED[found]}"
    if wanted is Means.STRING:
        what = f"{said}, which do not compare with text"
    return context.warning(what, constraint.span, hint=_hint(constraint, wanted, found))


def _hint(constraint: Constraint, wanted: Means, found: Means) -> str | None:
    operand = constraint.operands[0]
    if found is Means.STRING:
        asked = show_constraint(_with(constraint, literal(operand.text)))
        return f"compare text with text, character by character: {asked}"
    if (
        found is Means.MOMENT
        and wanted is Means.NUMBER
        and operand.text.isdecimal()
        and len(operand.text) == 4
    ):
        return f"write a date: ?{constraint.variable} {constraint.asked.value} {operand.text}-01-01"
    if found is Means.NUMBER and wanted is Means.STRING and to_number(operand.text) is not None:
        return f"write the number without quotes: {operand.text}"
    return None


def _with(constraint: Constraint, operand: Term) -> Constraint:
    return Constraint(constraint.variable, constraint.asked, (operand,))
