"""Session listener: after each commit, report its changes and their subscribers (`notice`).

The events of a session:

    before_flush             a flush begins
    first write              of the flush: the state before is read
    after_flush              the state after is compared; changes wait for the transaction
    after_commit             of a savepoint: changes wait for the enclosing transaction; of a transaction: reported
    after_transaction_end    changes of a rolled back transaction are dropped
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal, Protocol

from sqlalchemy import Connection, event
from sqlalchemy.orm import ORMExecuteState, Session, SessionTransaction, scoped_session, sessionmaker

from tidings.core.arguments import accepts, each_is
from tidings.core.suggest import printable, shorten_list
from tidings.errors import InputError, NotificationFailed
from tidings.objects.listener.changes import FlushContext
from tidings.objects.listener.flush import Flush, ListenerOptions, WatchSource, check_watch
from tidings.objects.listener.snapshot import MappedTables
from tidings.objects.model.class_model import Model
from tidings.objects.notices import ObjectChange
from tidings.objects.propagation import UNLIMITED, Limits, Object, Watch

ObjectLabels = Mapping[Object, str]


class Notifier(Protocol):
    """A receiver of changes such as `Tidings`."""

    def notify_of_changes(
        self, source: str, model: Model, changes: Iterable[ObjectChange], labels: ObjectLabels
    ) -> Any: ...


@dataclass
class ChangeBatch:
    """Changes, and labels of the objects in them."""

    changes: list[ObjectChange] = field(default_factory=list)
    labels: dict[Object, str] = field(default_factory=dict)

    def extend(self, other: ChangeBatch) -> None:
        self.changes += other.changes
        self.labels |= other.labels


@dataclass(frozen=True)
class ChangeSink:
    """Receiver of changes; a store needs labels, which are read while the objects exist."""

    report: Callable[[Model, ChangeBatch], object]
    labelled: bool

    @classmethod
    def build(
        cls, report: Callable[[list[ObjectChange]], object] | Notifier, source: str | None
    ) -> ChangeSink:
        if callable(report):
            return cls(lambda model, batch: report(batch.changes), False)
        if source is None:
            raise InputError(
                "a store keeps changes under the name of their source",
                accepted="source=, a short name of the database",
            )
        return cls(
            lambda model, batch: report.notify_of_changes(source, model, batch.changes, batch.labels), True
        )


AUTHOR_KEY = "tidings_author"
"""Key in a session's `info` for the author of its changes: class and key."""

SessionTarget = Session | type[Session] | sessionmaker[Any] | scoped_session[Any]


@accepts("notice(Session, Base, report=tidings)")
def notice(
    sessions: SessionTarget,
    base: Any,
    *,
    report: Callable[[list[ObjectChange]], object] | Notifier,
    source: str | None = None,
    watches: WatchSource = (),
    limits: Limits = UNLIMITED,
    bulk: Literal["refuse", "ignore"] = "refuse",
) -> SessionListener:
    """Listen to sessions, and report after each commit its changes of objects with the subscribers to notify.

    `sessions` is a session, a class of sessions, a `sessionmaker` or a `scoped_session`; `base` is the declarative base
    whose classes are marked. `report` is called with a list of all changes of a transaction, or is a `Tidings`: in its
    store they become notifications of `source`. `watches` are all `Watch` values, or a function that returns those of
    given objects: `watches(connection, objects)`. Statements that change rows without their objects are rejected,
    unless `bulk` is `"ignore"`.
    """
    if bulk not in ("refuse", "ignore"):
        raise InputError("unknown value of bulk", received=printable(repr(bulk)), accepted="refuse, ignore")
    tables, sink = MappedTables(base), ChangeSink.build(report, source)
    if not callable(watches):
        for watch in each_is("watches", watches, Watch):
            check_watch(tables, watch)
    options = ListenerOptions(tables, watches, limits, sink.labelled)
    return SessionListener(sessions, options, sink, bulk == "refuse")


@dataclass
class _SessionState:
    """State of a session: its flush, and the changes that wait for each of its transactions."""

    flush: Flush | None = None
    pending: dict[SessionTransaction, ChangeBatch] = field(default_factory=dict)
    committed: ChangeBatch | None = None
    hooks: list[tuple[Connection, Callable[..., None]]] = field(default_factory=list)


class SessionListener:
    """Listener of sessions, until `stop()`."""

    def __init__(
        self, sessions: SessionTarget, options: ListenerOptions, sink: ChangeSink, rejects_bulk: bool
    ) -> None:
        self._sessions, self._options, self._sink = _check_sessions(sessions), options, sink
        self._rejects_bulk, self._is_listening = rejects_bulk, True
        self._unreported = ChangeBatch()
        self._listeners: dict[str, Callable[..., None]] = {
            "after_begin": self._handle_begin,
            "before_flush": self._handle_flush_start,
            "after_flush": self._handle_flush_end,
            "after_commit": self._handle_commit,
            "after_transaction_end": self._handle_transaction_end,
            "do_orm_execute": self._handle_execute,
        }
        for name, listener in self._listeners.items():
            event.listen(self._sessions, name, listener)

    @property
    def model(self) -> Model:
        return self._options.tables.model

    @property
    def unreported(self) -> tuple[ObjectChange, ...]:
        """Committed changes for which `report` failed."""
        return tuple(self._unreported.changes)

    def report_again(self) -> None:
        """Report the unreported changes again, with the same ids."""
        batch, self._unreported = self._unreported, ChangeBatch()
        if batch.changes:
            self._report(batch)

    def stop(self) -> None:
        """Stop listening; changes of open transactions are not reported."""
        if self._is_listening:
            self._is_listening = False
            for name, listener in self._listeners.items():
                event.remove(self._sessions, name, listener)

    def _get_state(self, session: Session) -> _SessionState:
        """Return the state, which is stored in the session and ends with it."""
        state: _SessionState = session.info.setdefault(self, _SessionState())
        return state

    def _handle_begin(
        self, session: Session, transaction: SessionTransaction, connection: Connection
    ) -> None:
        if not transaction.nested:
            self._attach(session, connection)

    def _attach(self, session: Session, connection: Connection) -> None:
        """Listen to the connection, the only source of the statements of a flush."""
        hooks = self._get_state(session).hooks
        if all(each is not connection for each, _ in hooks):

            def hook(connection: Connection, statement: Any, *arguments: Any) -> None:
                self._handle_statement(session, statement)

            event.listen(connection, "before_execute", hook)
            hooks.append((connection, hook))

    def _handle_flush_start(self, session: Session, context: FlushContext, instances: Any) -> None:
        self._get_state(session).flush = Flush(self._options, context)
        if session.in_transaction():  # begun before the listener
            self._attach(session, self._connection(session))

    def _handle_statement(self, session: Session, statement: Any) -> None:
        if not self._is_listening or not getattr(statement, "is_dml", False):
            return
        flush = self._get_state(session).flush
        if flush is None or not flush.is_writing:
            self._reject_bulk(statement)
        elif not flush.has_read_before:
            flush.read_before(self._connection(session))

    def _handle_execute(self, state: ORMExecuteState) -> None:
        if state.is_insert or state.is_update or state.is_delete:
            self._reject_bulk(state.statement)

    def _reject_bulk(self, statement: Any) -> None:
        """Reject a bulk statement: the listener cannot see which objects it changes."""
        table = getattr(statement, "table", None)
        if self._rejects_bulk and getattr(table, "fullname", None) in self._options.tables.tracked_tables:
            raise InputError(
                "a bulk statement changes objects of the model without the session's instances",
                received=f"{type(statement).__name__.upper()} {table}",
                accepted="changes of instances: session.add, attributes, session.delete",
                hint='triggers capture such statements (tidings model triggers); bulk="ignore" allows them unreported',
            )

    def _connection(self, session: Session) -> Connection:
        mapper = next(iter(self._options.tables.mappers.values()))
        return session.connection(bind_arguments={"mapper": mapper})

    def _handle_flush_end(self, session: Session, context: FlushContext) -> None:
        flush = self._get_state(session).flush
        transaction = session.get_nested_transaction() or session.get_transaction()
        if flush is None or not flush.has_read_before or transaction is None:
            return
        changes = flush.read_after(self._connection(session), self._author(session))
        if changes:
            self._get_state(session).pending.setdefault(transaction, ChangeBatch()).extend(
                ChangeBatch(changes, flush.labels)
            )

    def _author(self, session: Session) -> Object | None:
        author = session.info.get(AUTHOR_KEY)
        if author is None:
            return None
        if not isinstance(author, tuple | list) or len(author) != 2 or author[0] not in self.model.classes:
            raise InputError(
                "not an author",
                where=f"session.info[{AUTHOR_KEY!r}]",
                received=printable(repr(author)),
                accepted=f"class and key, such as (Student, 3); classes are {shorten_list(self.model.classes)}",
            )
        return Object(self.model.family(author[0]), str(author[1]))

    def _handle_commit(self, session: Session) -> None:
        """Handle a commit; a released savepoint still waits for its enclosing transaction."""
        state, nested = self._get_state(session), session.get_nested_transaction()
        transaction = nested or session.get_transaction()
        batch = None if transaction is None else state.pending.pop(transaction, None)
        if batch is None:
            return
        if nested is None:
            state.committed = batch
        else:
            state.pending.setdefault(_enclosing_transaction(nested), ChangeBatch()).extend(batch)

    def _handle_transaction_end(self, session: Session, transaction: SessionTransaction) -> None:
        """Report changes here, not in `after_commit`: an error there would leave the session half committed."""
        state = self._get_state(session)
        state.pending.pop(transaction, None)
        if transaction.parent is not None:
            state.flush = None
            return
        for connection, hook in state.hooks:
            event.remove(connection, "before_execute", hook)
        batch, state.hooks, state.committed = state.committed, [], None
        if batch is not None:
            self._report(batch)

    def _report(self, batch: ChangeBatch) -> None:
        try:
            self._sink.report(self.model, batch)
        except BaseException as error:
            self._unreported.extend(batch)
            if not isinstance(error, Exception):
                raise
            raise NotificationFailed(
                "the changes are committed, but could not be reported",
                noticed=batch.changes,
                received=printable(f"{type(error).__name__}: {error}", 200),
                hint="the listener keeps them: call report_again()",
            ) from error


def _enclosing_transaction(nested: SessionTransaction) -> SessionTransaction:
    """Return the savepoint or transaction around a savepoint."""
    transaction = nested.parent
    while transaction is not None and transaction.parent is not None and not transaction.nested:
        transaction = transaction.parent
    assert transaction is not None, "a savepoint is in a transaction"
    return transaction


def _check_sessions(sessions: Any) -> Any:
    is_class = isinstance(sessions, type) and issubclass(sessions, Session)
    if not is_class and not isinstance(sessions, Session | sessionmaker | scoped_session):
        raise InputError(
            "not a session",
            received=printable(repr(sessions)),
            accepted="a Session, a class of sessions, a sessionmaker or a scoped_session",
        )
    return sessions
