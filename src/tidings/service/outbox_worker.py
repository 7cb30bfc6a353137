"""From a database's outbox to notifications: read changes, tell them, and only then let the outbox forget them.

Whoever is killed in between leaves them there. They are read again, and their ids are known: nobody is told twice, and
nobody is left out. For the same reason several may empty one outbox at the same time.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import takewhile
from threading import Event
from typing import Any

from tidings.core.lifecycle import Worker
from tidings.errors import PublicationError, TidingsError
from tidings.kinds import JSON
from tidings.model import Publication
from tidings.objects.notices import ObjectChange, derive_event_id, encode_event
from tidings.objects.sources import OpenSource, SourceRegistry, open_source
from tidings.objects.sql.object_store import ObjectSource
from tidings.service.ingest import publish_stream
from tidings.service.tidings import Tidings
from tidings.store.dead_letters import DeadLetter
from tidings.store.journal import AppendResult

BATCH_SIZE = 1_000
"""How many changes are told in one transaction."""
POLL_SECONDS = 1.0


@dataclass(frozen=True, slots=True)
class OutboxOptions:
    """How changes are told: at most so many at once, to whoever made them or not, and as events, too, or not."""

    batch: int = BATCH_SIZE
    tell_author: bool = False
    publish: bool = False


@dataclass(frozen=True, slots=True)
class Drained:
    """Changes that were told: new notifications, those that had been told before, new dead letters, new events."""

    source: str
    changes: int
    new: int
    repeated: int
    dead: int = 0
    published: int = 0

    def after(self, other: Drained) -> Drained:
        """Both together."""
        counts = ("changes", "new", "repeated", "dead", "published")
        return Drained(self.source, *(getattr(self, name) + getattr(other, name) for name in counts))


@dataclass(frozen=True, slots=True)
class CutOff:
    """A source, or the store, that cannot be used for now. As long as the problem stays the same it is said once."""

    source: str
    problem: TidingsError


@dataclass(frozen=True, slots=True)
class Back:
    """It can be used again."""

    source: str


DEFAULT_OPTIONS = OutboxOptions()
OutboxEvent = Drained | CutOff | Back
OutboxCallback = Callable[[OutboxEvent], None]


def drain_outbox(
    tidings: Tidings, source: OpenSource, how: OutboxOptions = DEFAULT_OPTIONS
) -> Iterator[Drained]:
    """Tell all that is in an outbox, some at a time; what has come out is told and forgotten there."""
    while noticed := source.database.changes(how.batch):
        published, refused = _publish(tidings, source, noticed) if how.publish else (0, 0)
        labels = source.database.labels(source.mapped, {one for each in noticed for one in each.objects()})
        told = tidings.tell(source.name, source.mapped.model, noticed, labels, how.tell_author)
        source.database.forget(each.id for each in noticed)
        dead = told.dead + refused
        yield Drained(source.name, len(noticed), told.new, told.repeated, dead, published)


def _publish(tidings: Tidings, source: OpenSource, noticed: Sequence[ObjectChange]) -> tuple[int, int]:
    """How many events are new, and how many new ones the event schema refused: those are dead letters.

    An id that is taken is that of an event that was published before something was killed; its object may have had
    other values then.
    """
    values = zip(noticed, _values(source, noticed), strict=True)
    bodies = {
        derive_event_id(source.name, each): encode_event(source.name, each, now) for each, now in values
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


def _values(source: OpenSource, noticed: Iterable[ObjectChange]) -> Iterator[Mapping[str, Any] | None]:
    """What the object of each change is like now."""
    changed = [(each.cls, str(each.change.object.key)) for each in noticed]
    keys: dict[str, set[str]] = {}
    for cls, key in changed:
        keys.setdefault(cls, set()).add(key)
    found = {cls: source.database.values(source.mapped, cls, those) for cls, those in keys.items()}
    return (found[cls].get(key) for cls, key in changed)


class OutboxFollower:
    """Empties outboxes again and again. A database that was there and is away for a while is asked again."""

    def __init__(
        self, tidings: Tidings, how: OutboxOptions = DEFAULT_OPTIONS, poll: float = POLL_SECONDS
    ) -> None:
        self._tidings, self._how, self._poll = tidings, how, poll
        self._sessions: dict[ObjectSource, Generator[Drained | None]] = {}
        self._away: dict[str, str] = {}

    def follow(self, sources: Iterable[ObjectSource], hear: OutboxCallback, stop: Event) -> None:
        """Until `stop` is set. A source that cannot be used the first time is refused: its address may be wrong."""
        following = list(sources)
        try:
            for source in following:
                self._step(source, hear, stop)
            while not stop.wait(self._poll):
                self.step(following, hear, stop)
        finally:
            self.close()

    def step(self, sources: Iterable[ObjectSource], hear: OutboxCallback, stop: Event) -> None:
        """Empty each outbox once. A source that cannot be used is said, and tried again with the next step."""
        wanted = list(sources)
        for gone in self._sessions.keys() - set(wanted):
            self._sessions.pop(gone).close()
        for source in wanted:
            self._try(source, hear, stop)

    def close(self) -> None:
        """Let go of the databases."""
        for session in self._sessions.values():
            session.close()

    def _try(self, source: ObjectSource, hear: OutboxCallback, stop: Event) -> None:
        try:
            self._step(source, hear, stop)
        except TidingsError as problem:
            self._sessions.pop(source, None)
            known, self._away[source.name] = self._away.get(source.name), str(problem)
            if known != str(problem):
                hear(CutOff(source.name, problem))

    def _step(self, source: ObjectSource, hear: OutboxCallback, stop: Event) -> None:
        session = self._sessions.setdefault(source, self._session(source))
        for drained in takewhile(lambda one: one is not None, session):
            assert drained is not None
            hear(drained)
            if stop.is_set():
                return
        if self._away.pop(source.name, None) is not None:
            hear(Back(source.name))

    def _session(self, source: ObjectSource) -> Generator[Drained | None]:
        """What is told, and None whenever nothing is left for now. The database stays open in between."""
        with open_source(source) as found:
            while True:
                yield from drain_outbox(self._tidings, found, self._how)
                yield None


_log = logging.getLogger("tidings.objects")


class OutboxWorker(Worker):
    """A worker that empties the outboxes of all databases; several processes may. Databases can be added meanwhile.

    A database that is unreachable is no `problem`: the others are served, and it is retried.
    """

    def __init__(
        self, tidings: Tidings, how: OutboxOptions = DEFAULT_OPTIONS, poll: float = POLL_SECONDS
    ) -> None:
        super().__init__("objects", poll)
        self._sources, self._poll = SourceRegistry(tidings.store), poll
        self._follower = OutboxFollower(tidings, how, poll)

    def run_once(self) -> None:
        self._follower.step(self._sources.list_sources(), _log_outbox_event, self.stopping)
        self.stopping.wait(self._poll)

    def close(self) -> None:
        self._follower.close()


def _log_outbox_event(news: OutboxEvent) -> None:
    if isinstance(news, CutOff):
        _log.warning("the database %s is cut off: %s", news.source, news.problem)
    elif isinstance(news, Back):
        _log.warning("the database %s is back", news.source)
    else:
        _log.info("%s: %d changes told, %d notifications", news.source, news.changes, news.new)
