"""From a placed model to SQL: an outbox, triggers that write down what changed, and one that finds out who is told."""

from __future__ import annotations

from collections.abc import Iterator

from tidings.objects.placing import Placed
from tidings.objects.summary import summary
from tidings.objects.triggers.dialect import Dialect, Piece, What
from tidings.objects.triggers.places import Places
from tidings.objects.triggers.recording import recording
from tidings.objects.triggers.telling import indexes, telling


def generated(placed: Placed, dialect: Dialect) -> tuple[Piece, ...]:
    """All that is to be installed, in an order in which it can be."""
    places = Places(placed)
    pieces = [*dialect.tables(), *indexes(places), *dialect.helpers(places)]
    for trigger in (*telling(places, dialect), *recording(places, dialect)):
        pieces += dialect.trigger(trigger)
    return tuple(pieces)


def script(placed: Placed, dialect: Dialect, source: str) -> str:
    """All of it as a text that people can read, and `sqlite3` and `psql` can run."""
    return "\n".join((*_head(placed, dialect, source), *_statements(placed, dialect)))


def _head(placed: Placed, dialect: Dialect, source: str) -> Iterator[str]:
    yield f"-- Whom a change concerns, found out by {dialect.title} itself in the transaction of the change."
    yield f"-- Generated from {source}: {summary(placed.model)}"
    yield "-- Change the model and generate again rather than this. All names begin with tidings_."
    yield ""


def _statements(placed: Placed, dialect: Dialect) -> Iterator[str]:
    yield "BEGIN;"
    yield ""
    for piece in generated(placed, dialect):
        yield piece.sql
        yield ""
    yield "COMMIT;"
    yield ""


def count_triggers(pieces: tuple[Piece, ...]) -> int:
    return sum(piece.what is What.TRIGGER for piece in pieces)
