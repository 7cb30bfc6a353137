"""From a subscription's text to its plan. Reading `REWRITES` is reading the compiler."""

from __future__ import annotations

from collections.abc import Callable

from tidings.compiler.check import check
from tidings.compiler.context import DEFAULT_LIMIT, Context
from tidings.compiler.contradictions import drop_contradictions, refuse_impossible
from tidings.compiler.lower import lower
from tidings.compiler.plan import Plan
from tidings.compiler.rewrites import distribute, drop_repeated, drop_subsumed, push_not_down
from tidings.languages.predicates import parse
from tidings.languages.tree import Tree
from tidings.schema.event_schema import EventSchema

REWRITES: tuple[Callable[[Tree, Context], Tree], ...] = (
    push_not_down,
    distribute,
    drop_repeated,
    drop_contradictions,
    drop_subsumed,
    refuse_impossible,
)
"""What is done with a checked tree, in this order, until it is in clauses."""


def understand(text: str, schema: EventSchema | None = None) -> Tree:
    """The tree of a text, checked against the schema, with every operator and literal settled."""
    return check(parse(text), Context(text, schema))


def to_clauses(tree: Tree, context: Context) -> Tree:
    """A checked tree as an `or` of `and`s."""
    for rewrite in REWRITES:
        tree = rewrite(tree, context)
    return tree


def compile_text(text: str, schema: EventSchema | None = None, limit: int = DEFAULT_LIMIT) -> Plan:
    """The plan of a text."""
    return lower(to_clauses(understand(text, schema), Context(text, schema, limit)))
