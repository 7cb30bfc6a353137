"""Change sets and states for repositories: moves from their notifications, members from the results of rules.

A repository owns the rules of its scope. The sequence numbers of its notifications start at 1 without gaps, so a
request for deleted ones is detected and answered with an error.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from sqlalchemy import ColumnElement, Connection, Row, delete, select

from tidings.errors import Gone, InputError
from tidings.metadata.change_sets import ChangeSet, Move, RepositoryState
from tidings.metadata.sql.metadata_reader import ConnectionReader
from tidings.metadata.sql.resource_rows import load_strong_closure
from tidings.metadata.sql.tables import (
    APPLIED_COUNTER,
    metadata_identity,
    metadata_rules,
    rule_ends,
    rule_results,
)
from tidings.store import counters
from tidings.store.database import Database
from tidings.store.tables import notifications, subscribers

REPOSITORY_NAME = re.compile(r"[A-Za-z0-9._~-]{1,100}")
MAX_APPLIED_NOTIFICATIONS = 100
"""How many applied notifications of a repository are kept before they are deleted."""
_COLUMNS = tuple(
    notifications.c[name] for name in ("sequence", "subscription", "publication", "kind", "time")
)


@dataclass(frozen=True, slots=True)
class FeedPosition:
    """The position of a provider, and the last sequence number of a repository's notifications."""

    provider: str
    position: int
    schema: int
    sequence: int


def repository_scope(repository: str) -> str:
    """Return the prefix of the names of a repository's rules."""
    if not REPOSITORY_NAME.fullmatch(repository):
        accepted = "1 to 100 letters, digits and . _ ~ -"
        raise InputError("not a name of a repository", received=repository[:200], accepted=accepted)
    return f"{repository}/"


class RepositoryFeeds:
    """The repositories with rules at this provider."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def standing(self, repository: str) -> FeedPosition:
        """Return the position of the provider, and the last sequence number of the repository."""
        repository_scope(repository)
        with self._database.moment() as connection:
            return _standing(connection, repository)

    def changes(self, repository: str, after: int, limit: int = 1_000) -> ChangeSet:
        """Return the moves after a sequence number, with the resources they need.

        The moves of one transaction stay together, if there are not more than the limit.
        """
        scope = repository_scope(repository)
        with self._database.moment() as connection:
            at = _standing(connection, repository)
            rows = _read(connection, repository, after, limit)
            _refuse_gap(repository, at.sequence, after, rows, limit)
            told = _whole(rows, limit)
            moves = tuple(_move(row, scope) for row in told if row.subscription.startswith(scope))
            resources = load_strong_closure(connection, _needed(moves))
        last = told[-1].sequence if told else after
        more = last < at.sequence
        return ChangeSet(at.provider, at.position, at.schema, last, moves, resources, more)

    def state(self, repository: str) -> RepositoryState:
        """Return the members of all rules, with the resources they need."""
        scope = repository_scope(repository)
        with self._database.moment() as connection:
            at = _standing(connection, repository)
            members = _members(connection, repository, scope)
            resources = load_strong_closure(connection, {uri for uris in members.values() for uri in uris})
        return RepositoryState(at.provider, at.position, at.schema, at.sequence, members, resources)

    def rules(self, repository: str) -> dict[str, str]:
        """Return the rules of a repository by the names it uses."""
        scope = repository_scope(repository)
        with self._database.read() as connection:
            return _rules(connection, repository, scope)

    def acknowledge(self, repository: str, upto: int, keep: int = MAX_APPLIED_NOTIFICATIONS) -> int:
        """Delete the notifications of a repository up to a sequence number, which it has applied.

        Up to `keep` of them stay, so that not every request needs a write transaction. A repository that comes back
        with an older number, perhaps from a backup, gets an error as after `forget`, and fetches the state.
        """
        if not self.has_old(repository, upto, keep):
            return 0
        return self._forget(*_told_to(repository), notifications.c.sequence <= upto)

    def has_old(self, repository: str, upto: int, keep: int = MAX_APPLIED_NOTIFICATIONS) -> bool:
        """Whether a repository has enough applied notifications to be worth a transaction that deletes them."""
        c = notifications.c
        old = select(c.sequence).where(*_told_to(repository), c.sequence <= upto - keep).limit(1)
        with self._database.read() as connection:
            return connection.execute(old).first() is not None

    def forget(self, repository: str) -> int:
        """Delete the notifications of a repository, and return their number. Sequence numbers continue."""
        return self._forget(*_told_to(repository))

    def _forget(self, *which: ColumnElement[bool]) -> int:
        return self._database.transact(
            lambda connection: connection.execute(delete(notifications).where(*which)).rowcount
        )


def _told_to(repository: str) -> tuple[ColumnElement[bool], ...]:
    """Select the notifications of a repository, without those of a subscriber of the same name."""
    c = notifications.c
    return c.subscriber == repository, c.subscription.startswith(
        repository_scope(repository), autoescape=True
    )


def _standing(connection: Connection, repository: str) -> FeedPosition:
    provider = connection.execute(select(metadata_identity.c.id)).scalar_one()
    file = ConnectionReader(connection).schema()
    last = select(subscribers.c.last_sequence).where(subscribers.c.subscriber == repository)
    sequence = connection.execute(last).scalar() or 0
    return FeedPosition(
        provider, counters.current(connection, APPLIED_COUNTER), file.version if file else 0, sequence
    )


def _read(connection: Connection, repository: str, after: int, limit: int) -> list[Row[*tuple[Any, ...]]]:
    """Load one more than the limit, to detect whether a transaction ends there."""
    c = notifications.c
    wanted = select(*_COLUMNS).where(c.subscriber == repository, c.sequence > after)
    return list(connection.execute(wanted.order_by(c.sequence).limit(limit + 1)))


def _refuse_gap(
    repository: str, last: int, after: int, rows: Sequence[Row[*tuple[Any, ...]]], limit: int
) -> None:
    """Check that sequence numbers have no gap, as after deleted notifications."""
    end = rows[-1].sequence if len(rows) > limit else last
    if end == after + len(rows):
        return
    first = rows[0].sequence if rows else last + 1
    what = (
        "the number is not among those that were told"
        if after > last
        else "what was told then is kept no more"
    )
    raise Gone(
        what,
        where=repository,
        received=f"after {after}",
        accepted=f"{first - 1} to {last}",
        hint="ask for the state",
    )


def _whole(rows: list[Row[*tuple[Any, ...]]], limit: int) -> list[Row[*tuple[Any, ...]]]:
    """Limit the moves without splitting a transaction, whose moves have the same time."""
    if len(rows) <= limit:
        return rows
    whole = [row for row in rows[:limit] if row.time != rows[limit].time]
    return whole or rows[:limit]


def _move(row: Row[*tuple[Any, ...]], scope: str) -> Move:
    return Move(row.sequence, row.subscription.removeprefix(scope), row.publication, row.kind, row.time)


def _needed(moves: Sequence[Move]) -> set[str]:
    """Return the results of rules after the moves."""
    last = {(each.rule, each.uri): each.kind for each in moves}
    return {uri for (_, uri), kind in last.items() if kind != "left"}


def _rules(connection: Connection, repository: str, scope: str) -> dict[str, str]:
    c = metadata_rules.c
    rows = connection.execute(
        select(c.name, c.text).where(c.owner == repository, c.scope == scope).order_by(c.name)
    )
    return {name.removeprefix(scope): text for name, text in rows}


def _members(connection: Connection, repository: str, scope: str) -> dict[str, tuple[str, ...]]:
    """Return the results of each rule, including rules without results."""
    rules, ends, results = metadata_rules.c, rule_ends.c, rule_results.c
    of_it = rules.owner == repository, rules.scope == scope
    wanted = select(rules.name, results.uri).where(*of_it, ends.name == rules.name, results.rule == ends.rule)
    found: dict[str, set[str]] = {name: set() for name in _rules(connection, repository, scope)}
    for name, uri in connection.execute(wanted):
        found[name.removeprefix(scope)].add(uri)
    return {name: tuple(sorted(uris)) for name, uris in found.items()}
