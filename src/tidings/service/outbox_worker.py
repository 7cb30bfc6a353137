"""Worker that drains the outboxes of databases: read changes, store notifications, then delete the changes.

A process that is killed in between leaves the changes in the outbox. They are read again, and their notifications have
the same ids: none is lost, and none comes twice. For the same reason several processes may drain one outbox.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import takewhile
from threading import Event
from typing import Any, ClassVar

from tidings.core.lifecycle import Worker
from tidings.errors import PublicationError, TidingsError
from tidings.ingest.publisher import publish_stream
from tidings.kinds import JSON
from tidings.model import Publication
from tidings.objects.notices import ObjectChange, derive_event_id, encode_event
from tidings.objects.sources import OpenSource, SourceRegistry, open_source
from tidings.objects.sql.object_store import ObjectSource
from tidings.service.tidings import Tidings
from tidings.store.dead_letters import DeadLetter
from tidings.store.journal import AppendResult

BATCH_SIZE = 1_000
"""Changes per transaction."""
POLL_SECONDS = 1.0


@dataclass(frozen=True, slots=True)
class OutboxOptions:
    """Changes per batch; whether to notify their author, and whether to publish them as events, too."""

    batch: int = BATCH_SIZE
    notify_author: bool = False
    publish: bool = False


@dataclass(frozen=True, slots=True)
class DrainResult:
    """Counts of a batch of changes: new notifications, repeated ones, new dead letters, new events."""

    label: ClassVar[str] = "drained"
    source: str
    changes: int
    new: int
    repeated: int
    dead: int = 0
    published: int = 0

    def __add__(self, other: DrainResult) -> DrainResult:
        counts = ("changes", "new", "repeated", "dead", "published")
        return DrainResult(self.source, *(getattr(self, name) + getattr(other, name) for name in counts))


@dataclass(frozen=True, slots=True)
class SourceUnreachable:
    """A database, or the store, that cannot be used now; reported once per problem."""

    label: ClassVar[str] = "cutoff"
    source: str
    problem: TidingsError


@dataclass(frozen=True, slots=True)
class SourceRecovered:
    """A database that can be used again."""

    label: ClassVar[str] = "back"
    source: str


DEFAULT_OPTIONS = OutboxOptions()
OutboxEvent = DrainResult | SourceUnreachable | SourceRecovered
OutboxCallback = Callable[[OutboxEvent], None]


def drain_outbox(
    tidings: Tidings, source: OpenSource, options: OutboxOptions = DEFAULT_OPTIONS
) -> Iterator[DrainResult]:
    """Notify of all changes in an outbox, batch by batch; a batch is deleted there before its result is yielded."""
    while changes := source.database.changes(options.batch):
        published, rejected = _publish(tidings, source, changes) if options.publish else (0, 0)
        objects = {object for change in changes for object in change.objects()}
        labels = source.database.labels(source.mapped, objects)
        outcome = tidings.notify_of_changes(
            source.name, source.mapped.model, changes, labels, options.notify_author
        )
        source.database.delete_changes(change.id for change in changes)
        dead = outcome.dead + rejected
        yield DrainResult(source.name, len(changes), outcome.new, outcome.repeated, dead, published)


def _publish(tidings: Tidings, source: OpenSource, changes: Sequence[ObjectChange]) -> tuple[int, int]:
    """Publish changes as events; return how many are new, and how many new ones the event schema rejected.

    Rejected events become dead letters. An id that is taken belongs to an event that was published before a crash; its
    object may have had other values then.
    """
    values = zip(changes, _read_values(source, changes), strict=True)
    bodies = {
        derive_event_id(source.name, change): encode_event(source.name, change, now) for change, now in values
    }
    events = (Publication(id, JSON, body) for id, body in bodies.items())
    outcomes = [*publish_stream(tidings.store, events, tidings.checked_against)]
    letters = [
        DeadLetter(id, problem.message(), problem.facts(), body=bodies[id])
        for id, problem in zip(bodies, outcomes, strict=True)
        if isinstance(problem, PublicationError)
    ]
    new = sum(isinstance(outcome, AppendResult) and outcome.new for outcome in outcomes)
    return new, tidings.store.dead_letters.add(source.name, letters)


def _read_values(source: OpenSource, changes: Iterable[ObjectChange]) -> Iterator[Mapping[str, Any] | None]:
    """Yield the current values of the object of each change."""
    changed = [(change.cls, str(change.change.object.key)) for change in changes]
    keys: dict[str, set[str]] = {}
    for cls, key in changed:
        keys.setdefault(cls, set()).add(key)
    values = {cls: source.database.values(source.mapped, cls, those) for cls, those in keys.items()}
    return (values[cls].get(key) for cls, key in changed)


class OutboxFollower:
    """Drains outboxes again and again. A database that becomes unreachable is retried."""

    def __init__(
        self, tidings: Tidings, options: OutboxOptions = DEFAULT_OPTIONS, poll: float = POLL_SECONDS
    ) -> None:
        self._tidings, self._options, self._poll = tidings, options, poll
        self._sessions: dict[ObjectSource, Generator[DrainResult | None]] = {}
        self._unreachable: dict[str, str] = {}

    def follow(self, sources: Iterable[ObjectSource], notify: OutboxCallback, stop: Event) -> None:
        """Drain until `stop` is set. A failure of the first attempt is raised: the address may be wrong."""
        followed = list(sources)
        try:
            for source in followed:
                self._drain(source, notify, stop)
            while not stop.wait(self._poll):
                self.drain_all(followed, notify, stop)
        finally:
            self.close()

    def drain_all(self, sources: Iterable[ObjectSource], notify: OutboxCallback, stop: Event) -> None:
        """Drain each outbox once. An unreachable source is reported, and retried by the next call."""
        current = list(sources)
        for removed in self._sessions.keys() - set(current):
            self._sessions.pop(removed).close()
        for source in current:
            self._try_drain(source, notify, stop)

    def close(self) -> None:
        """Close the connections to the databases."""
        for session in self._sessions.values():
            session.close()

    def _try_drain(self, source: ObjectSource, notify: OutboxCallback, stop: Event) -> None:
        try:
            self._drain(source, notify, stop)
        except TidingsError as problem:
            self._sessions.pop(source, None)
            reported = self._unreachable.get(source.name)
            self._unreachable[source.name] = str(problem)
            if reported != str(problem):
                notify(SourceUnreachable(source.name, problem))

    def _drain(self, source: ObjectSource, notify: OutboxCallback, stop: Event) -> None:
        session = self._sessions.setdefault(source, self._open_session(source))
        for result in takewhile(lambda result: result is not None, session):
            assert result is not None
            notify(result)
            if stop.is_set():
                return
        if self._unreachable.pop(source.name, None) is not None:
            notify(SourceRecovered(source.name))

    def _open_session(self, source: ObjectSource) -> Generator[DrainResult | None]:
        """Yield results, and None whenever the outbox is empty. The database stays open in between."""
        with open_source(source) as opened:
            while True:
                yield from drain_outbox(self._tidings, opened, self._options)
                yield None


_log = logging.getLogger("tidings.objects")


class OutboxWorker(Worker):
    """Worker that drains the outboxes of all databases, those added while it runs included.

    An unreachable database is not a `problem` of the worker: the others are served, and it is retried.
    """

    def __init__(
        self, tidings: Tidings, options: OutboxOptions = DEFAULT_OPTIONS, poll: float = POLL_SECONDS
    ) -> None:
        super().__init__("objects", poll)
        self._sources, self._poll = SourceRegistry(tidings.store), poll
        self._follower = OutboxFollower(tidings, options, poll)

    def run_once(self) -> None:
        self._follower.drain_all(self._sources.list_sources(), _log_outbox_event, self.stopping)
        self.stopping.wait(self._poll)

    def close(self) -> None:
        self._follower.close()


def _log_outbox_event(event: OutboxEvent) -> None:
    if isinstance(event, SourceUnreachable):
        _log.warning("the database %s is unreachable: %s", event.source, event.problem)
    elif isinstance(event, SourceRecovered):
        _log.warning("the database %s is reachable again", event.source)
    else:
        _log.info("%s: %d changes, %d notifications", event.source, event.changes, event.new)
