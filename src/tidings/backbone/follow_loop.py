"""Following a log beside something else: in a thread of its own, from `with` to the end of it."""

from __future__ import annotations

import logging
from random import Random
from threading import Event, Thread

from tidings.backbone.following import PAGE, Follower
from tidings.backbone.log import Log
from tidings.errors import TidingsError
from tidings.provider import Provider
from tidings.store import Store

WAIT_SECONDS = 20.0
"""How long the other side is asked to wait for something new."""
FIRST_PAUSE, LONGEST_PAUSE = 0.2, 10.0

_log = logging.getLogger("tidings.backbone")


def pause(failures: int, chance: Random) -> float:
    """Seconds until the next try after so many failures in a row. Chance keeps followers from coming back together."""
    return min(LONGEST_PAUSE, FIRST_PAUSE * 2.0 ** min(failures - 1, 20)) * chance.uniform(0.5, 1.5)


class FollowLoop:
    """Follows a log. Whatever keeps it from that is said, and tried again, later and later."""

    def __init__(
        self, store: Store, provider: Provider, log: Log, page: int = PAGE, chance: Random | None = None
    ) -> None:
        self.log, self.provider = log, provider
        self.head: int | None = None
        """Where the log ended when it was looked at last."""
        self.problem: TidingsError | None = None
        """What keeps it from following now."""
        self._follower, self._chance = Follower(store, provider, log, page), chance or Random()
        self._stop = Event()
        self._thread = Thread(target=self._run, name="backbone", daemon=True)

    def __enter__(self) -> FollowLoop:
        self._thread.start()
        return self

    def __exit__(self, *failure: object) -> None:
        """What is waited for is ended; a page that is being applied is applied."""
        self._stop.set()
        self.log.end()
        self._thread.join()
        self.log.close()

    def _run(self) -> None:
        try:
            self._follow()
        finally:
            if not self._stop.is_set():  # by what is no error of ours: the thread shows it whole
                self.problem = TidingsError("following has ended", hint="start it again; the log says why")

    def _follow(self) -> None:
        failures = 0
        while not self._stop.is_set():
            try:
                done = self._follower.step(WAIT_SECONDS)
                self.head, failures = done.head, 0
                self._succeeded()
                if not done.applied:  # a server that lets nobody wait is not asked all the time
                    self._stop.wait(FIRST_PAUSE)
            except TidingsError as problem:
                failures += 1
                self._failed(problem)
                self._stop.wait(pause(failures, self._chance))

    def _succeeded(self) -> None:
        if self.problem is not None:
            _log.warning("%s is followed again", self.log.name)
        self.problem = None

    def _failed(self, problem: TidingsError) -> None:
        """The same problem is said once, however long it lasts."""
        if self._stop.is_set():
            return
        if self.problem is None or str(self.problem) != str(problem):
            _log.warning("cannot follow now: %s", problem)
        self.problem = problem
