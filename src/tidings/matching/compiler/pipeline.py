"""Compile subscriptions, each in its language, to the plans that an index is built from."""

from __future__ import annotations

from collections.abc import Iterable
from types import NoneType

from tidings.core.arguments import accepts, wrong_type
from tidings.events.schema.event_schema import EventSchema
from tidings.kinds import LANGUAGES
from tidings.matching.compiler.batch import Batch, Strings, compile_batch
from tidings.matching.compiler.context import DEFAULT_LIMIT, Context
from tidings.matching.compiler.plan import Compiled, Plan
from tidings.model import Subscription

_MANY = "compile_many([Subscription('s1', 'ana', 'predicates', 'price < 3')])"


@accepts(text=str, schema=(EventSchema, NoneType), limit=int)
def compile_text(text: str, schema: EventSchema | None = None, limit: int = DEFAULT_LIMIT) -> Plan:
    """Compile one text of the predicate language."""
    return LANGUAGES["predicates"].compile(Context(text, schema, limit))


@accepts(_MANY, subscriptions=Iterable, schema=(EventSchema, NoneType), limit=int)
def compile_many(
    subscriptions: Iterable[Subscription], schema: EventSchema | None = None, limit: int = DEFAULT_LIMIT
) -> Compiled:
    """Compile many subscriptions; refused ones are listed with their reasons."""
    rows = list(subscriptions)
    for row in rows:
        if not isinstance(row, Subscription):
            raise wrong_type("subscriptions", row, Subscription, _MANY)
    return compile_columns(
        [row.id for row in rows],
        [row.subscriber for row in rows],
        [row.language for row in rows],
        [row.text for row in rows],
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
    """Compile subscriptions given as four columns: lists of strings or Arrow arrays."""
    return compile_batch(Batch.of(ids, subscribers, languages, texts), LANGUAGES, schema, limit)
