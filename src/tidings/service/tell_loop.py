"""Telling about objects beside something else: in a thread of its own, from `with` to the end of it.

Databases that are added or removed meanwhile are heard of. One that is away for a while is said once, and asked again.
"""

from __future__ import annotations

import logging
from threading import Event, Thread

from tidings.errors import TidingsError
from tidings.service.sources import Sources
from tidings.service.telling import AS_EVER, POLL_SECONDS, Back, CutOff, Follower, How, News
from tidings.service.tidings import Tidings

_log = logging.getLogger("tidings.objects")


class TellLoop:
    """Empties the outboxes of all databases that were added. Several processes may."""

    def __init__(self, tidings: Tidings, how: How = AS_EVER, poll: float = POLL_SECONDS) -> None:
        self._sources, self._poll = Sources(tidings.store), poll
        self._follower = Follower(tidings, how, poll)
        self._stop = Event()
        self._away: str | None = None
        self._thread = Thread(target=self._run, name="objects", daemon=True)

    def __enter__(self) -> TellLoop:
        self._thread.start()
        return self

    def __exit__(self, *failure: object) -> None:
        """Changes that are being told are told to their end."""
        self._stop.set()
        self._thread.join()

    @property
    def problem(self) -> str | None:
        """What keeps it from its work. A database that is away is none: the others are told about."""
        return None if self._thread.is_alive() else "telling about objects has ended; the log says why"

    def _run(self) -> None:
        try:
            while not self._stop.is_set():
                self._step()
                self._stop.wait(self._poll)
        finally:
            self._follower.close()

    def _step(self) -> None:
        try:
            self._follower.step(self._sources.all(), _hear, self._stop)
            self._away = None
        except TidingsError as problem:  # the store itself: it comes back
            if self._away != str(problem):
                _log.warning("objects cannot be told about now: %s", problem)
            self._away = str(problem)


def _hear(news: News) -> None:
    if isinstance(news, CutOff):
        _log.warning("the database %s is cut off: %s", news.source, news.problem)
    elif isinstance(news, Back):
        _log.warning("the database %s is back", news.source)
    else:
        _log.info("%s: %d changes told, %d notifications", news.source, news.changes, news.new)
