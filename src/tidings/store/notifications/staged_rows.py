"""Staging tables of PostgreSQL: tasks of a stream write rows in parallel, and one transaction commits them.

    task      write(attempt, rows)      rows of a random attempt key, invisible to readers of notifications
    driver    commit(batch, attempts)   the rows of the successful attempts become notifications, set at a time

The outcome is that of `batch_commit`, which is the specification. The attempt of a task that failed, was repeated or
outlived its batch is not named by any commit; later commits delete its rows, a limited number each time. The tables are
not logged, and a crash of the server empties them: a commit that does not find all rows raises, and the stream repeats
the batch.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any, NamedTuple

from sqlalchemy import ARRAY, BigInteger, Connection, TextClause, bindparam, text

from tidings.errors import StoreError
from tidings.model import MATCHED, notification_id
from tidings.store import bulk, counters, dead_letters, names
from tidings.store.database import Database
from tidings.store.dead_letters import DeadLetter
from tidings.store.encoding import (
    Clock,
    MatchRow,
    escape_unstorable,
    format_instant,
    notification_row,
    now_text,
    utc_now,
)
from tidings.store.notifications import deferred_notifications
from tidings.store.notifications.batch_commit import CommitResult, advance_match_position, mark_batch
from tidings.store.tables import staged_dead_letters, staged_matches

SWEPT_ROWS = 20_000
"""How many rows of abandoned attempts a commit deletes at most, in each table."""
SWEPT_ATTEMPTS = 100
"""How many abandoned attempts it deletes at most."""
ABANDONED_AFTER = timedelta(days=1)
"""Age at which a stream deletes attempts of other streams. Its own are abandoned as soon as it commits without them."""


class RowCounts(NamedTuple):
    """The numbers of matches and dead letters of an attempt."""

    matches: int
    letters: int


class StagedRows:
    """The staging tables of a store on PostgreSQL."""

    def __init__(self, database: Database, clock: Clock = utc_now) -> None:
        self._database, self._clock = database, clock

    def write(
        self,
        stream: str,
        source: str,
        attempt: int,
        matches: Sequence[MatchRow],
        letters: Sequence[tuple[int, DeadLetter]] = (),
    ) -> None:
        """Add rows to an attempt durably; each dead letter, of `source`, has its place in the attempt."""
        match_rows = [_build_match_row(attempt, match) for match in matches]
        letter_rows = [
            (attempt, place, *dead_letters.build_staged_row(source, letter)) for place, letter in letters
        ]
        added = {"attempt": attempt, "stream": stream, "since": format_instant(self._clock())}
        added |= {"matches": len(match_rows), "letters": len(letter_rows)}

        def add(connection: Connection) -> None:
            connection.execute(_ADD_ROWS, added)
            bulk.insert_rows(connection, staged_matches, match_rows)
            bulk.insert_rows(connection, staged_dead_letters, letter_rows)

        self._database.transact(add)

    def commit(
        self,
        stream: str,
        batch: int,
        attempts: Mapping[int, RowCounts],
        source: str | None = None,
        position: int | None = None,
    ) -> CommitResult:
        """Commit the rows of attempts as `Notifications.commit_batch` commits a batch.

        The attempts are in the order of their publications.
        """
        names.check("a stream's name", stream)

        def write(connection: Connection) -> CommitResult:
            moment = self._clock()
            done = _write_batch(connection, stream, batch, attempts, source or stream, moment)
            if position is not None:
                advance_match_position(connection, position)
            _sweep(connection, stream, format_instant(moment - ABANDONED_AFTER))
            return done

        return self._database.transact(write)


def _build_match_row(attempt: int, match: MatchRow) -> tuple[object, ...]:
    id = notification_id(match.publication, match.subscription)
    subscriber, _, _, subscription, publication, _, because, bindings, _ = notification_row(id, match, 0, "")
    return attempt, match.position, id, publication, subscription, subscriber, because, bindings


def _write_batch(
    connection: Connection,
    stream: str,
    batch: int,
    attempts: Mapping[int, RowCounts],
    source: str,
    moment: datetime,
) -> CommitResult:
    """Commit a batch in the caller's transaction."""
    if not mark_batch(connection, stream, batch):
        return CommitResult(0, 0, skipped=True)
    if not attempts:
        return CommitResult(0, 0)
    _lock_attempts(connection, stream, attempts)
    given, letters = (sum(counts) for counts in zip(*attempts.values(), strict=True))
    chosen = {"attempts": list(attempts)}
    counts = _notify(connection, chosen, given, moment) if given else CommitResult(0, 0)
    if letters:
        _add_dead_letters(connection, chosen, source)
    for statement in _DELETE_ATTEMPTS:
        connection.execute(statement, chosen)
    return counts


def _lock_attempts(connection: Connection, stream: str, attempts: Mapping[int, RowCounts]) -> None:
    """Lock the attempts against tasks that still write and against sweeps; raise if rows are missing."""
    rows = connection.execute(_LOCK_ATTEMPTS, {"stream": stream, "attempts": list(attempts)})
    staged = {attempt: RowCounts(matches, letters) for attempt, matches, letters in rows}
    if staged != attempts:
        raise StoreError(
            "the staged rows of a batch are no longer complete",
            hint="PostgreSQL has crashed or failed over since the tasks wrote them; the stream repeats the batch"
            " when it starts again",
        )


def _notify(connection: Connection, chosen: dict[str, Any], given: int, moment: datetime) -> CommitResult:
    """Turn the matches of attempts into notifications, deferred where a delay is accepted."""
    connection.execute(_PLAN_FOR_MANY_ROWS)
    connection.execute(_ADD_SUBSCRIBERS, chosen)
    connection.execute(_LOCK_SUBSCRIBERS, chosen)
    unseen = connection.execute(_DELETE_UNSEEN, chosen).rowcount
    values = chosen | {"kind": MATCHED, "time": format_instant(moment)}
    later = _defer(connection, values, moment) if deferred_notifications.has_delays(connection) else 0
    new = int(connection.execute(_ADD_NOTIFICATIONS, values).scalar_one())
    return CommitResult(new, given - unseen - new - later, deferred=later, unseen=unseen)


def _defer(connection: Connection, values: dict[str, Any], moment: datetime) -> int:
    """Defer the notifications of subscriptions that accept a delay; return how many."""
    last = counters.lock(connection, deferred_notifications.COUNTER)
    groups = connection.execute(_ADD_DEFERRED, values | {"last": last}).all()
    if not groups:
        return 0
    deferred = sum(int(group.matches) for group in groups)
    counters.advance(connection, deferred_notifications.COUNTER, last + deferred)
    delays = {(group.subscription, group.subscriber): group.within for group in groups}
    deferred_notifications.set_deadlines(connection, delays, moment)
    return deferred


def _add_dead_letters(connection: Connection, chosen: dict[str, Any], source: str) -> None:
    last = counters.lock(connection, "dead_letters")
    values = chosen | {"last": last, "source": escape_unstorable(source), "time": now_text()}
    counters.advance(connection, "dead_letters", last + connection.execute(_ADD_LETTERS, values).scalar_one())


def _sweep(connection: Connection, stream: str, old: str) -> None:
    """Delete rows of abandoned attempts, a limited number.

    An attempt that is locked belongs to a commit, or to a task that is still writing: it is left to a later sweep.
    """
    wanted = {"stream": stream, "old": old, "most": SWEPT_ATTEMPTS}
    abandoned = list(connection.execute(_LOCK_ABANDONED, wanted).scalars())
    if not abandoned:
        return
    chosen = {"attempts": abandoned}
    for statement in _SWEEP_ROWS:
        connection.execute(statement, chosen | {"most": SWEPT_ROWS})
    connection.execute(_DELETE_EMPTY_ATTEMPTS, chosen)


# Statements. A task and a sweep lock the row of the attempt first, so neither misses rows that the other one changes.


def _with_attempts(statement: str) -> TextClause:
    return text(statement).bindparams(bindparam("attempts", type_=ARRAY(BigInteger)))


_ADD_ROWS = text(
    "INSERT INTO staged_attempts (attempt, stream, matches, letters, since)"
    " VALUES (:attempt, :stream, :matches, :letters, :since)"
    " ON CONFLICT (attempt) DO UPDATE SET matches = staged_attempts.matches + excluded.matches,"
    " letters = staged_attempts.letters + excluded.letters"
)
_LOCK_ATTEMPTS = _with_attempts(
    "SELECT attempt, matches, letters FROM staged_attempts"
    " WHERE attempt = ANY(:attempts) AND stream = :stream ORDER BY attempt FOR UPDATE"
)
_PLAN_FOR_MANY_ROWS = text(
    "SELECT set_config('work_mem', '64MB', true), set_config('jit', 'off', true)"
)  # sorts in memory; the sizes of tables that were empty a moment ago are estimated too badly for the compiler
_ADD_SUBSCRIBERS = _with_attempts(
    "INSERT INTO subscribers (subscriber, last_sequence)"
    " SELECT DISTINCT subscriber, 0 FROM staged_matches WHERE attempt = ANY(:attempts) ORDER BY subscriber"
    " ON CONFLICT DO NOTHING"
)
_LOCK_SUBSCRIBERS = _with_attempts(
    "SELECT count(*) FROM (SELECT FROM subscribers WHERE subscriber IN"
    " (SELECT subscriber FROM staged_matches WHERE attempt = ANY(:attempts))"
    " ORDER BY subscriber FOR UPDATE OF subscribers) AS locked"
)
_DELETE_UNSEEN = _with_attempts(
    "DELETE FROM staged_matches AS s USING audience_labels AS l"
    " WHERE s.attempt = ANY(:attempts) AND l.publication = s.publication AND NOT EXISTS"
    " (SELECT FROM audience_grants AS g"
    " WHERE g.subscriber = s.subscriber AND g.label = l.label AND g.until IS NULL)"
)
_NEW = (
    "new AS (SELECT DISTINCT ON (s.id) s.* FROM staged_matches AS s WHERE s.attempt = ANY(:attempts)"
    " AND NOT EXISTS (SELECT FROM deferred_notifications AS d WHERE d.id = s.id)"
    " AND NOT EXISTS (SELECT FROM notifications AS n WHERE n.id = s.id)"
    " ORDER BY s.id, s.position)"
)
"""The first match of each pair without a notification, as a common table expression."""
_DELAYED = "w.id = new.subscription AND w.subscriber = new.subscriber AND w.removed IS NULL"
_ADD_DEFERRED = _with_attempts(
    f"WITH {_NEW}, added AS (INSERT INTO deferred_notifications"
    " (subscriber, position, id, subscription, publication, kind, because, bindings, time)"
    " SELECT new.subscriber, :last + row_number() OVER (ORDER BY new.position, new.subscription), new.id,"
    " new.subscription, new.publication, :kind, new.because, new.bindings, :time"
    f" FROM new JOIN subscriptions AS w ON {_DELAYED} AND w.within IS NOT NULL"
    " RETURNING subscriber, subscription)"
    " SELECT new.subscription, new.subscriber, w.within, count(*) AS matches"
    f" FROM added AS new JOIN subscriptions AS w ON {_DELAYED}"
    " GROUP BY new.subscription, new.subscriber, w.within"
)
_ADD_NOTIFICATIONS = _with_attempts(
    f"WITH {_NEW}, added AS (INSERT INTO notifications"
    " (subscriber, sequence, id, subscription, publication, kind, because, bindings, time)"
    " SELECT new.subscriber, u.last_sequence + row_number()"
    " OVER (PARTITION BY new.subscriber ORDER BY new.position, new.subscription), new.id,"
    " new.subscription, new.publication, :kind, new.because, new.bindings, :time"
    " FROM new JOIN subscribers AS u ON u.subscriber = new.subscriber"
    " RETURNING subscriber, sequence),"
    " last AS (SELECT subscriber, max(sequence) AS sequence, count(*) AS count FROM added GROUP BY subscriber),"
    " advanced AS (UPDATE subscribers SET last_sequence = last.sequence"
    " FROM last WHERE subscribers.subscriber = last.subscriber RETURNING last.count)"
    " SELECT coalesce(sum(count), 0) FROM advanced"
)
_ADD_LETTERS = _with_attempts(
    "WITH new AS (SELECT DISTINCT ON (s.id) s.*, array_position(:attempts, s.attempt) AS task"
    " FROM staged_dead_letters AS s WHERE s.attempt = ANY(:attempts)"
    " AND NOT EXISTS (SELECT FROM dead_letters AS d WHERE d.id = s.id) ORDER BY s.id, task, s.place),"
    " added AS (INSERT INTO dead_letters"
    " (number, id, source, publication, position, reason, facts, body, time, subscription)"
    " SELECT :last + row_number() OVER (ORDER BY task, place), id, :source, publication, position, reason,"
    " facts, body, :time, subscription FROM new RETURNING subscription),"
    " counted AS (INSERT INTO budget_overruns AS o (subscription, count)"
    " SELECT subscription, count(*) FROM added WHERE subscription IS NOT NULL GROUP BY subscription"
    " ORDER BY subscription ON CONFLICT (subscription) DO UPDATE SET count = o.count + excluded.count)"
    " SELECT count(*) FROM added"
)
_DELETE_ATTEMPTS = [
    _with_attempts(f"DELETE FROM {table} WHERE attempt = ANY(:attempts)")
    for table in ("staged_matches", "staged_dead_letters", "staged_attempts")
]
_LOCK_ABANDONED = text(
    "SELECT attempt FROM staged_attempts WHERE stream = :stream OR since < :old"
    " ORDER BY since LIMIT :most FOR UPDATE SKIP LOCKED"
)
_SWEEP_ROWS = [
    _with_attempts(
        f"WITH gone AS (DELETE FROM {table} WHERE ctid = ANY(ARRAY("
        f"SELECT ctid FROM {table} WHERE attempt = ANY(:attempts) LIMIT :most)) RETURNING attempt)"
        f" UPDATE staged_attempts AS a SET {column} = a.{column} - g.count"
        " FROM (SELECT attempt, count(*) AS count FROM gone GROUP BY attempt) AS g WHERE a.attempt = g.attempt"
    )
    for table, column in (("staged_matches", "matches"), ("staged_dead_letters", "letters"))
]
_DELETE_EMPTY_ATTEMPTS = _with_attempts(
    "DELETE FROM staged_attempts WHERE attempt = ANY(:attempts) AND matches = 0 AND letters = 0"
)
