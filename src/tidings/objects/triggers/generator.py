"""From a mapped model to SQL: an outbox, triggers that write down what changed, and one that finds out who is told."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from tidings.core.suggest import printable
from tidings.errors import InputError
from tidings.objects.model.relational_view import RelationalView
from tidings.objects.model.summary import summarize_model
from tidings.objects.model.table_mapping import MappedModel
from tidings.objects.propagation import UNLIMITED, Limits
from tidings.objects.triggers.capture_triggers import generate_capture_triggers
from tidings.objects.triggers.dialect import Dialect, SchemaObject, SchemaObjectKind
from tidings.objects.triggers.fanout_trigger import generate_fanout_triggers, generate_indexes


def generate_schema(
    mapped: MappedModel, dialect: Dialect, limits: Limits = UNLIMITED
) -> tuple[SchemaObject, ...]:
    """All that is to be installed, in an order in which it can be."""
    view = RelationalView(mapped)
    pieces = [*dialect.tables(), *generate_indexes(view), *dialect.helpers(view)]
    for trigger in (
        *generate_fanout_triggers(view, dialect, limits),
        *generate_capture_triggers(view, dialect),
    ):
        pieces += dialect.trigger(trigger)
    _check_names(pieces)
    return tuple(pieces)


def _check_names(pieces: list[SchemaObject]) -> None:
    """`a_b` with links and the column `b` of `a` would share a name, and one of the two would go missing."""
    counted = Counter((piece.what, piece.name) for piece in pieces)
    for (what, name), count in counted.items():
        if count > 1:
            hint = "say another table or column: <<stored {table = ...}>>, {column = ...}"
            raise InputError(f"{count} of the model would need one {what.value}", received=name, hint=hint)


def render_script(mapped: MappedModel, dialect: Dialect, source: str, limits: Limits = UNLIMITED) -> str:
    """All of it as a text that people can read, and `sqlite3` and `psql` can run."""
    return "\n".join((*_head(mapped, dialect, source), *_statements(mapped, dialect, limits)))


def _head(mapped: MappedModel, dialect: Dialect, source: str) -> Iterator[str]:
    yield f"-- Whom a change concerns, found out by {dialect.title} itself in the transaction of the change."
    yield f"-- Generated from {printable(source)}: {summarize_model(mapped.model)}"
    yield "-- Change the model and generate again rather than this. All names begin with tidings_."
    yield ""


def _statements(mapped: MappedModel, dialect: Dialect, limits: Limits) -> Iterator[str]:
    yield "BEGIN;"
    yield ""
    for piece in generate_schema(mapped, dialect, limits):
        yield piece.sql
        yield ""
    yield "COMMIT;"
    yield ""


def count_triggers(pieces: tuple[SchemaObject, ...]) -> int:
    return sum(piece.what is SchemaObjectKind.TRIGGER for piece in pieces)
