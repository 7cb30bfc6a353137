"""From a subscription's text to its plan. Reading `REWRITES` is reading the compiler."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from types import NoneType

from tidings.core.arguments import accepts, wrong_type
from tidings.documents.xpath_bulk import XPathFront
from tidings.events.check import check
from tidings.events.contradictions import drop_contradictions, refuse_impossible
from tidings.events.predicate_bulk import Front, Language
from tidings.events.predicate_warnings import CHECKS
from tidings.events.predicates import parse
from tidings.events.rewrites import distribute, drop_repeated, drop_subsumed, push_not_down
from tidings.events.schema.event_schema import EventSchema
from tidings.events.tree import Tree
from tidings.graphs.gql_bulk import GqlFront
from tidings.matching.compiler.batch import Batch, Strings, compile_batch
from tidings.matching.compiler.context import DEFAULT_LIMIT, Context
from tidings.matching.compiler.plan import Compiled, Plan
from tidings.model import Subscription

REWRITES: tuple[Callable[[Tree, Context], Tree], ...] = (
    push_not_down,
    distribute,
    drop_repeated,
    drop_contradictions,
    drop_subsumed,
    refuse_impossible,
)
"""What is done with a checked tree, in this order, until it is in clauses."""


_MANY = "compile_many([Subscription('s1', 'ana', 'predicates', 'price < 3')])"


def parse_and_check(text: str, schema: EventSchema | None = None) -> Tree:
    """The tree of a text, checked against the schema, with every operator and literal settled."""
    return _understand(Context(text, schema))


def _understand(context: Context) -> Tree:
    return check(parse(context.text, context.schema), context)


def to_clauses(tree: Tree, context: Context) -> Tree:
    """A checked tree as an `or` of `and`s."""
    for rewrite in REWRITES:
        tree = rewrite(tree, context)
    return tree


LANGUAGES: Mapping[str, Language] = {
    "predicates": Front(_understand, to_clauses, CHECKS),
    "xpath": XPathFront(),
    "gql": GqlFront(),
}
"""What a subscription may be written in, and how it is compiled."""


@accepts(text=str, schema=(EventSchema, NoneType), limit=int)
def compile_text(text: str, schema: EventSchema | None = None, limit: int = DEFAULT_LIMIT) -> Plan:
    """The plan of a text in the language of predicates."""
    return LANGUAGES["predicates"].compile(Context(text, schema, limit))


@accepts(_MANY, subscriptions=Iterable, schema=(EventSchema, NoneType), limit=int)
def compile_many(
    subscriptions: Iterable[Subscription], schema: EventSchema | None = None, limit: int = DEFAULT_LIMIT
) -> Compiled:
    """Compile many subscriptions; those that are refused are listed with their reasons, the others are done."""
    given = list(subscriptions)
    for each in given:
        if not isinstance(each, Subscription):
            raise wrong_type("subscriptions", each, Subscription, _MANY)
    return compile_columns(
        [each.id for each in given],
        [each.subscriber for each in given],
        [each.language for each in given],
        [each.text for each in given],
        schema,
        limit,
    )


def compile_columns(
    ids: Strings,
    subscribers: Strings,
    languages: Strings,
    texts: Strings,
    schema: EventSchema | None = None,
    limit: int = DEFAULT_LIMIT,
) -> Compiled:
    """The same from four columns: lists of strings or Arrow arrays."""
    return compile_batch(Batch.of(ids, subscribers, languages, texts), LANGUAGES, schema, limit)
