"""From a placed model to SQL: an outbox, triggers that write down what changed, and one that finds out who is told."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from tidings.errors import InputError
from tidings.objects.definition import UNLIMITED, Limits
from tidings.objects.placing import Placed
from tidings.objects.summary import summary
from tidings.objects.triggers.dialect import Dialect, Piece, What
from tidings.objects.triggers.places import Places
from tidings.objects.triggers.recording import recording
from tidings.objects.triggers.telling import indexes, telling
from tidings.schema.names import safe


def generated(placed: Placed, dialect: Dialect, limits: Limits = UNLIMITED) -> tuple[Piece, ...]:
    """All that is to be installed, in an order in which it can be."""
    places = Places(placed)
    pieces = [*dialect.tables(), *indexes(places), *dialect.helpers(places)]
    for trigger in (*telling(places, dialect, limits), *recording(places, dialect)):
        pieces += dialect.trigger(trigger)
    _check_names(pieces)
    return tuple(pieces)


def _check_names(pieces: list[Piece]) -> None:
    """`a_b` with links and the column `b` of `a` would share a name, and one of the two would go missing."""
    counted = Counter((piece.what, piece.name) for piece in pieces)
    for (what, name), count in counted.items():
        if count > 1:
            hint = "say another table or column: <<stored {table = ...}>>, {column = ...}"
            raise InputError(f"{count} of the model would need one {what.value}", received=name, hint=hint)


def script(placed: Placed, dialect: Dialect, source: str, limits: Limits = UNLIMITED) -> str:
    """All of it as a text that people can read, and `sqlite3` and `psql` can run."""
    return "\n".join((*_head(placed, dialect, source), *_statements(placed, dialect, limits)))


def _head(placed: Placed, dialect: Dialect, source: str) -> Iterator[str]:
    yield f"-- Whom a change concerns, found out by {dialect.title} itself in the transaction of the change."
    yield f"-- Generated from {safe(source)}: {summary(placed.model)}"
    yield "-- Change the model and generate again rather than this. All names begin with tidings_."
    yield ""


def _statements(placed: Placed, dialect: Dialect, limits: Limits) -> Iterator[str]:
    yield "BEGIN;"
    yield ""
    for piece in generated(placed, dialect, limits):
        yield piece.sql
        yield ""
    yield "COMMIT;"
    yield ""


def count_triggers(pieces: tuple[Piece, ...]) -> int:
    return sum(piece.what is What.TRIGGER for piece in pieces)
