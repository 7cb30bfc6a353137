"""What is in the outbox, read as it was written: oldest changes first, with all that follows from them.

Nothing is marked as read. Whoever has written a change down elsewhere lets it be forgotten, and reads the next ones. A
cursor over ids would lose changes: in PostgreSQL, a transaction that began earlier may end later.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable, Iterator, Mapping
from itertools import accumulate
from typing import Any

from tidings.objects.definition import Change, Cut, Told
from tidings.objects.model import Kind
from tidings.objects.noticed import Noticed
from tidings.objects.reasons import Hit, How, Object, Step
from tidings.objects.triggers.asking import Asking
from tidings.objects.triggers.dialect import Dialect
from tidings.objects.triggers.words import texts

MOST_ROWS = 50_000
"""Of what follows from changes so much is held at once, unless it follows from a single one."""

Row = tuple[Any, ...]
Rows = Mapping[int, list[Row]]


class Reading(Asking):
    """An outbox that is read and emptied."""

    def changes(self, most: int) -> list[Noticed]:
        """The oldest changes, at most so many, and fewer if very much follows from them; none if there are none."""
        self.need_outbox()
        with self.snapshot():
            found = self.ask(
                f"{_CHANGES.format(id=_id(self.dialect), at=_at(self.dialect))} LIMIT {int(most)}"
            )
            rows = found[: _fitting(self._counts(found))]
            found_in = [self._following(query, rows) for query in (_REACHED, _STEPS, _HITS, _CUTS)]
        return [_noticed(row, *(each.get(row[0], []) for each in found_in)) for row in rows]

    def forget(self, ids: Iterable[str]) -> int:
        """Changes that were written down elsewhere go, with what followed from them; gives how many went.

        Their moments are compared, too: an outbox that was made anew since has other changes of these numbers.
        """
        self.need_outbox()
        all = sorted(set(ids))
        numbers = texts(int(each.rpartition("/")[2]) for each in all)
        if not all:
            return 0
        these = f"id IN ({numbers}) AND {_id(self.dialect)} IN ({self.dialect.listed('$1')})"
        return self.do(f"DELETE FROM tidings_changes WHERE {these}", json.dumps(all))

    def _counts(self, changes: Collection[Row]) -> list[int]:
        """How many rows follow from each change."""
        counted: dict[int, int] = {}
        for table in ("reached", "steps", "hits"):
            for change, count in self._of(
                f"SELECT change, count(*) FROM tidings_{table}", changes, "GROUP BY change"
            ):
                counted[change] = counted.get(change, 0) + count
        return [counted.get(row[0], 0) for row in changes]

    def _following(self, query: str, changes: Collection[Row]) -> Rows:
        found: dict[int, list[Row]] = {}
        for change, *row in self._of(query, changes):
            found.setdefault(change, []).append(tuple(row))
        return found

    def _of(self, query: str, changes: Collection[Row], then: str = "") -> list[Row]:
        numbers = texts(int(row[0]) for row in changes)
        return self.ask(f"{query} WHERE change IN ({numbers}) {then}") if changes else []


_CHANGES = """
SELECT id, {id}, {at}, kind, class, family, key, CAST(attributes AS text), CAST(before AS text), CAST(after AS text),
    association, other_family, other_key, author_family, author_key
FROM tidings_changes ORDER BY id"""
_REACHED = "SELECT change, family, key FROM tidings_reached"
_STEPS = "SELECT change, family, key, association, forwards, to_family, to_key FROM tidings_steps"
_HITS = "SELECT change, subscriber_family, subscriber_key, family, key, how, by, forwards FROM tidings_hits"
_CUTS = "SELECT change, what, most, found FROM tidings_cuts"


def _id(dialect: Dialect) -> str:
    """The number alone would be that of another change once the outbox was removed and installed anew."""
    return f"{_at(dialect)} || '/' || CAST(id AS text)"


def _at(dialect: Dialect) -> str:
    return dialect.moment("at")


def _fitting(counts: Iterable[int]) -> int:
    """How many of the changes are held at once: at least one, or nothing would ever be read on."""
    return max(1, sum(total <= MOST_ROWS for total in accumulate(counts)))


def _noticed(row: Row, reached: list[Row], steps: list[Row], hits: list[Row], cuts: list[Row]) -> Noticed:
    _, id, at, kind, cls, family, key, attributes, before, after, association, *others = row
    told = Told(
        frozenset(Object(*each) for each in reached),
        frozenset(_steps(steps)),
        frozenset(_hits(hits)),
        frozenset(Cut(*each) for each in cuts),
    )
    change = Change(Kind(kind), Object(family, key), frozenset(_json(attributes) or ()))
    other, author = _object(*others[:2]), _object(*others[2:])
    return Noticed(id, at, cls, change, told, _json(before), _json(after), association, other, author)


def _object(family: str | None, key: str | None) -> Object | None:
    return None if family is None else Object(family, key)


def _steps(rows: Iterable[Row]) -> Iterator[Step]:
    for family, key, association, forwards, to_family, to_key in rows:
        yield Step(Object(family, key), association, bool(forwards), Object(to_family, to_key))


def _hits(rows: Iterable[Row]) -> Iterator[Hit]:
    for who_family, who_key, family, key, how, by, forwards in rows:
        yield Hit(Object(who_family, who_key), Object(family, key), How(how), by, bool(forwards))


def _json(text: str | None) -> Any:
    return None if text is None else json.loads(text)
