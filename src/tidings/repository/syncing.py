"""Keeping a repository up to date, whatever becomes of its providers.

One provider is followed. When it cannot be, the next one is tried at once; when none can be, all of them are tried
again, later and later. What is held stays, and answers queries all the while.
"""

from __future__ import annotations

from collections.abc import Sequence
from random import Random
from threading import Event

from tidings.backbone.follow_loop import FIRST_PAUSE, WAIT_SECONDS, pause
from tidings.backbone.peer import Unreachable
from tidings.errors import Gone, TidingsError
from tidings.repository.following import BATCH, Behind, Follower
from tidings.repository.links import Link
from tidings.repository.news import CutOff, Listener
from tidings.repository.rule_files import RuleFile
from tidings.store import Store

PASSING = (Unreachable, Gone, Behind)
"""What may be over the next time. Anything else ends it."""


class Syncing:
    """Follows one of several providers."""

    def __init__(
        self,
        store: Store,
        links: Sequence[Link],
        rules: RuleFile,
        tell: Listener = lambda _: None,
        batch: int = BATCH,
        chance: Random | None = None,
    ) -> None:
        self._store, self._links, self._tell = store, links, tell
        self._followers = [Follower(store, link, rules, tell, batch) for link in links]
        self._chance, self._stop, self._failures = chance or Random(), Event(), 0

    def once(self) -> None:
        """Catch up with the first provider that answers, and end."""
        problems: list[TidingsError] = []
        for follower in self._followers:
            try:
                follower.connect()
                while follower.step(wait=0):
                    pass
                return
            except PASSING as problem:
                problems.append(problem)
        raise problems[0]

    def run(self) -> None:
        """Follow until `stop` is called, maybe by another thread, or by a signal."""
        turn = 0
        while not self._stop.is_set():
            at = turn % len(self._links)
            try:
                self._follow(self._followers[at])
            except PASSING as problem:
                turn += 1
                self._failed(self._links[at], problem)

    def stop(self) -> None:
        """What is waited for is ended; a change set that is being applied is applied."""
        self._stop.set()
        for link in self._links:
            link.end()

    def _follow(self, follower: Follower) -> None:
        follower.connect()
        while not self._stop.is_set():
            before = self._store.repository.cursor()
            follower.step(WAIT_SECONDS)
            self._failures = 0
            if (
                self._store.repository.cursor() == before
            ):  # a server that lets nobody wait is not asked all the time
                self._stop.wait(FIRST_PAUSE)

    def _failed(self, link: Link, problem: TidingsError) -> None:
        if self._stop.is_set():
            return
        self._failures += 1
        rounds, rest = divmod(self._failures, len(self._links))
        seconds = 0.0 if rest else pause(rounds, self._chance)
        held = self._store.repository.counts().resources
        self._tell(CutOff(link.name, str(problem), seconds, held))
        self._stop.wait(seconds)
