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
from tidings.metadata.sql.connections import StorePart, reading_snapshot, transacting
from tidings.metadata.sql.metadata_reader import ConnectionReader
from tidings.metadata.sql.resource_rows import load_strong_closure
from tidings.metadata.sql.tables import (
    metadata_rules,
    rule_ends,
    rule_results,
)
from tidings.store.tables import notifications, subscribers

REPOSITORY_NAME = re.compile(r"[A-Za-z0-9._~-]{1,100}")
MAX_APPLIED_NOTIFICATIONS = 100
"""Number of applied notifications of a repository that are kept."""
_COLUMNS = tuple(
    notifications.c[name] for name in ("sequence", "subscription", "publication", "kind", "time")
)


NotificationRow = Row[*tuple[Any, ...]]


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


class RepositoryFeeds(StorePart):
    """The repositories with rules at this provider."""

    @reading_snapshot
    def standing(self, connection: Connection, repository: str) -> FeedPosition:
        """Return the position of the provider, and the last sequence number of the repository."""
        repository_scope(repository)
        return _load_position(connection, repository)

    @reading_snapshot
    def changes(self, connection: Connection, repository: str, after: int, limit: int = 1_000) -> ChangeSet:
        """Return the moves after a sequence number, with the resources they need.

        The moves of one transaction stay together, if there are not more than the limit.
        """
        scope, position = repository_scope(repository), _load_position(connection, repository)
        rows = _read(connection, repository, after, limit)
        _check_no_gap(repository, position.sequence, after, rows, limit)
        page = _limit_rows(rows, limit)
        moves = tuple(_move(row, scope) for row in page if row.subscription.startswith(scope))
        resources = load_strong_closure(connection, _needed(moves))
        last = page[-1].sequence if page else after
        return ChangeSet(
            position.provider,
            position.position,
            position.schema,
            last,
            moves,
            resources,
            last < position.sequence,
        )

    @reading_snapshot
    def state(self, connection: Connection, repository: str) -> RepositoryState:
        """Return the members of all rules, with the resources they need."""
        scope, position = repository_scope(repository), _load_position(connection, repository)
        members = _members(connection, repository, scope)
        resources = load_strong_closure(connection, {uri for uris in members.values() for uri in uris})
        return RepositoryState(
            position.provider, position.position, position.schema, position.sequence, members, resources
        )

    def rules(self, repository: str) -> dict[str, str]:
        """Return the rules of a repository by the names it uses."""
        return self._call(_rules, repository, repository_scope(repository))

    def acknowledge(self, repository: str, upto: int, keep: int = MAX_APPLIED_NOTIFICATIONS) -> int:
        """Delete the notifications of a repository up to a sequence number, which it has applied.

        Up to `keep` of them stay, so that not every request needs a write transaction. A repository that comes back
        with an older number, perhaps from a backup, gets an error as after `forget`, and fetches the state.
        """
        return self._delete(repository, upto) if self.has_old(repository, upto, keep) else 0

    def has_old(self, repository: str, upto: int, keep: int = MAX_APPLIED_NOTIFICATIONS) -> bool:
        """Whether a repository has enough applied notifications to be worth a transaction that deletes them."""
        c = notifications.c
        old = select(c.sequence).where(*_addressed_to(repository), c.sequence <= upto - keep).limit(1)
        return bool(self._rows(old))

    def forget(self, repository: str) -> int:
        """Delete the notifications of a repository, and return their number. Sequence numbers continue."""
        return self._delete(repository)

    @transacting
    def _delete(self, connection: Connection, repository: str, upto: int | None = None) -> int:
        until = () if upto is None else (notifications.c.sequence <= upto,)
        return connection.execute(delete(notifications).where(*_addressed_to(repository), *until)).rowcount


def _addressed_to(repository: str) -> tuple[ColumnElement[bool], ...]:
    """Select the notifications of a repository, without those of a subscriber of the same name."""
    c, scope = notifications.c, repository_scope(repository)
    return c.subscriber == repository, c.subscription.startswith(scope, autoescape=True)


def _load_position(connection: Connection, repository: str) -> FeedPosition:
    reader = ConnectionReader(connection)
    file = reader.schema()
    last = select(subscribers.c.last_sequence).where(subscribers.c.subscriber == repository)
    sequence = connection.execute(last).scalar() or 0
    return FeedPosition(reader.identity(), reader.position(), file.version if file else 0, sequence)


def _read(connection: Connection, repository: str, after: int, limit: int) -> list[NotificationRow]:
    """Load one more than the limit, to detect whether a transaction ends there."""
    c = notifications.c
    query = select(*_COLUMNS).where(c.subscriber == repository, c.sequence > after)
    return list(connection.execute(query.order_by(c.sequence).limit(limit + 1)))


def _check_no_gap(
    repository: str, last: int, after: int, rows: Sequence[NotificationRow], limit: int
) -> None:
    """Raise Gone if sequence numbers have a gap, as after deleted notifications."""
    end = rows[-1].sequence if len(rows) > limit else last
    if end == after + len(rows):
        return
    first = rows[0].sequence if rows else last + 1
    message = "there is no such sequence number yet" if after > last else "the changes after it were deleted"
    received, accepted = f"after {after}", f"{first - 1} to {last}"
    raise Gone(message, where=repository, received=received, accepted=accepted, hint="ask for the state")


def _limit_rows(rows: list[NotificationRow], limit: int) -> list[NotificationRow]:
    """Limit the moves without splitting a transaction, whose moves have the same time."""
    if len(rows) <= limit:
        return rows
    complete = [row for row in rows[:limit] if row.time != rows[limit].time]
    return complete or rows[:limit]


def _move(row: NotificationRow, scope: str) -> Move:
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
    query = select(rules.name, results.uri).where(*of_it, ends.name == rules.name, results.rule == ends.rule)
    members: dict[str, set[str]] = {name: set() for name in _rules(connection, repository, scope)}
    for name, uri in connection.execute(query):
        members[name.removeprefix(scope)].add(uri)
    return {name: tuple(sorted(uris)) for name, uris in members.items()}
