"""Dead letters: publications that could not be processed, each once, with the reason."""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from sqlalchemy import Connection, bindparam, func, select, update

from tidings.store import bulk, counters
from tidings.store.audiences import labels
from tidings.store.database import Database
from tidings.store.encoding import decode_mapping, encode_mapping, escape_unstorable, now_text
from tidings.store.tables import dead_letters, overruns


@dataclass(frozen=True, slots=True)
class DeadLetter:
    """A publication that could not be processed, with the reason and its position.

    A stream sets the first five fields, and `subscription` if only the match with that subscription exceeded its budget
    and other subscribers have their notifications. The store sets the others: the source (the name of the stream), the
    number, which is a cursor, the time, and the label of the publication.

    A source keeps one letter for each position. Letters without one are told apart by `key`, which is not stored and by
    default the id of the publication.
    """

    publication: str
    reason: str
    facts: dict[str, Any]
    position: int | None = None
    body: bytes | None = None
    source: str = ""
    number: int = 0
    time: str = ""
    audience: str | None = None
    subscription: str | None = None
    key: str = ""


class DeadLetters:
    """The dead letters of all sources, in the order in which they came."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def add(self, source: str, letters: Iterable[DeadLetter]) -> int:
        """Add new letters; return how many were new."""
        added = list(letters)
        return self._database.transact(lambda connection: add_dead_letters(connection, source, added))

    def read(self, after: int = 0, limit: int = 1_000, source: str | None = None) -> list[DeadLetter]:
        """Read letters after a number, in order, of all sources or of one."""
        query = _LETTERS.where(dead_letters.c.number > after)
        if source is not None:
            query = query.where(dead_letters.c.source == source)
        with self._database.read() as connection:
            rows = connection.execute(query.order_by(dead_letters.c.number).limit(limit)).all()
        return [_letter(*row) for row in rows]

    def head(self) -> int:
        """Return the number of the last letter; 0 if there is none."""
        with self._database.read() as connection:
            return counters.current(connection, "dead_letters")

    def pages(self, after: int, upto: int) -> Iterator[list[DeadLetter]]:
        """Read the letters after a number, up to `upto`, in pages of bounded size."""
        number = dead_letters.c.number
        while after < upto:
            with self._database.read() as connection:
                end = bulk.end_of_page(connection, number, dead_letters.c.body, after, upto)
                rows = connection.execute(
                    _LETTERS.where(number > after, number <= end).order_by(number)
                ).all()
            yield [_letter(*row) for row in rows]
            after = end

    def find_at(self, source: str, position: int) -> DeadLetter | None:
        """Find the letter of a source at a position."""
        query = _LETTERS.where(dead_letters.c.id == _letter_id(source, f"@{position}"))
        with self._database.read() as connection:
            row = connection.execute(query).one_or_none()
        return _letter(*row) if row else None

    def count(self) -> int:
        """Count all letters."""
        with self._database.read() as connection:
            return int(connection.execute(select(func.count()).select_from(dead_letters)).scalar_one())


def add_dead_letters(connection: Connection, source: str, letters: Sequence[DeadLetter]) -> int:
    """Add new letters in the caller's transaction; return how many were new."""
    if not letters:
        return 0
    last = counters.lock(connection, "dead_letters")
    new: dict[str, DeadLetter] = {}
    for letter in letters:
        new.setdefault(_id(source, letter), letter)
    for row in bulk.select_among(connection, select(dead_letters.c.id), dead_letters.c.id, list(new)):
        del new[row.id]
    rows = [_row(source, letter, last + i) for i, letter in enumerate(new.values(), start=1)]
    bulk.insert_rows(connection, dead_letters, rows)
    _count_overruns(connection, [letter.subscription for letter in new.values() if letter.subscription])
    counters.advance(connection, "dead_letters", last + len(rows))
    return len(rows)


def _count_overruns(connection: Connection, exceeded: Iterable[str]) -> None:
    """Count the overruns of subscriptions, one for each occurrence."""
    times = Counter(exceeded)
    bulk.insert_missing(connection, overruns, [{"subscription": id, "count": 0} for id in sorted(times)])
    for id, more in sorted(times.items()):
        connection.execute(_ADD, {"id": id, "more": more})


_ADD = (
    update(overruns)
    .where(overruns.c.subscription == bindparam("id"))
    .values(count=overruns.c.count + bindparam("more"))
)


def _id(source: str, letter: DeadLetter) -> str:
    """Derive the id from source, subscription and the position of the publication, or else its key or id."""
    which = letter.key or letter.publication if letter.position is None else f"@{letter.position}"
    return _letter_id(source, f"{which}\0{letter.subscription}" if letter.subscription else which)


def _letter_id(source: str, which: str) -> str:
    named = f"{len(source)}:{source}{which}".encode("utf-8", "backslashreplace")
    return "d-" + hashlib.blake2b(named, digest_size=10).hexdigest()


def _row(source: str, letter: DeadLetter, number: int) -> tuple[object, ...]:
    id, publication, position, reason, facts, body, subscription = build_staged_row(source, letter)
    name = escape_unstorable(source)
    return number, id, name, publication, position, reason, facts, body, now_text(), subscription


def build_staged_row(source: str, letter: DeadLetter) -> tuple[object, ...]:
    """Build the values of a letter that do not depend on the letters before it."""
    publication, reason = escape_unstorable(letter.publication), escape_unstorable(letter.reason)
    values = publication, letter.position, reason, encode_mapping(letter.facts), letter.body
    return _id(source, letter), *values, letter.subscription


_READ = ("publication", "reason", "facts", "position", "body", "source", "number", "time")
_LETTERS = select(
    *(dead_letters.c[name] for name in _READ), labels.c.label, dead_letters.c.subscription
).join_from(dead_letters, labels, labels.c.publication == dead_letters.c.publication, isouter=True)


def _letter(publication: str, reason: str, facts: str, *fields: Any) -> DeadLetter:
    return DeadLetter(publication, reason, decode_mapping(facts) or {}, *fields)
