"""Delivery at work: what is due is carried out by a few threads, so that a receiver that is slow delays no other.

Several processes may work on one store. What a process was about when it was killed is taken by another when its lease
ends; receivers know what comes again by its id.
"""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Iterable, Sequence
from concurrent.futures import ALL_COMPLETED, FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from itertools import groupby
from threading import Event, Thread
from typing import Any, TypeVar

from tidings.delivery.courier import Courier, Run, Work
from tidings.delivery.happened import DEAD, DELIVERED, FAILED, Happened, Listener, nobody
from tidings.delivery.quiet import quiet_until
from tidings.errors import TidingsError
from tidings.store import Destination, Lane, Letter
from tidings.store.destinations import ACTIVE

LOOK_SECONDS = 0.5
LINGER_SECONDS = 0.005
"""When one is done, others may be in a moment: what became of them is written down together."""
PART = 1_000
"""How many subscribers are looked after in one round."""
LETTERS = 50
"""How many dead letters are tried again in one round."""

_log = logging.getLogger("tidings.delivery")

T = TypeVar("T")


class DeliveryLoop:
    """Delivers what is due, in a thread of its own from `with` to the end of it, or step by step."""

    def __init__(self, courier: Courier, listener: Listener = nobody, look: float = LOOK_SECONDS) -> None:
        self.courier, self._listener, self._look = courier, listener, look
        self._rules, self._store = courier.rules, courier.store
        self._pool = ThreadPoolExecutor(self._rules.workers, "delivery")
        self._lanes: dict[Future[Run], Lane] = {}
        self._letters: dict[Future[list[Happened]], str] = {}
        self.problem: str | None = None
        """What keeps it from going on, if something does."""
        self._stop = Event()
        self._thread = Thread(target=self._run, name="delivery", daemon=True)

    @property
    def is_alive(self) -> bool:
        """Whether its thread runs: what is no error of ours ends it, and is shown whole."""
        return self._thread.is_alive()

    def step(self) -> int:
        """One round, to its end: how many lanes and dead letters were worked on. For whoever wants to decide when."""
        begun = self._begin()
        self._settle(None)
        return begun

    def __enter__(self) -> DeliveryLoop:
        self._thread.start()
        return self

    def __exit__(self, *failure: object) -> None:
        """What is under way has a while to end; the rest stays in the store, as it was."""
        self._stop.set()
        self.courier.stop.set()
        self._thread.join()
        self.close()

    def close(self) -> None:
        wait(self._running(), self._rules.grace)
        for sender in self.courier.senders.values():
            sender.end()
        self._pool.shutdown()
        self._settle(None)
        for sender in self.courier.senders.values():
            sender.close()

    def _run(self) -> None:
        while not self._stop.is_set():
            try:
                begun = self._begin()
                self.problem = None
                if self._lanes or self._letters:
                    self._settle(self._look)
                elif not begun:
                    self._stop.wait(self._look)
            except TidingsError as problem:  # a store that is away for a while comes back
                self.problem = str(problem)
                _log.warning("delivery cannot go on now: %s", problem)
                self._stop.wait(self._look)

    def _begin(self) -> int:
        """Take as much as there are threads free, and begin it."""
        self._store.notifications.hand_over()
        self._store.undelivered.expire(self._rules.letters)
        self._store.lanes.wake(PART)
        return self._begin_lanes() + self._begin_letters()

    def _begin_lanes(self) -> int:
        free = self._free()
        if not free:
            return 0
        running = Counter(lane.place for lane in self._lanes.values())
        taken = self._store.lanes.take(free, self._rules.lease, running, self._rules.per_place)
        for work in self._prepared(taken):
            self._lanes[self._pool.submit(self.courier.work, work)] = work.lane
        return len(taken)

    def _prepared(self, taken: Sequence[Lane]) -> Iterable[Work]:
        """What there is to know of lanes, asked once for all of them; what is quiet now is put off."""
        if not taken:
            return
        known = self._store.destinations.find_many([lane.destination for lane in taken])
        quiet = self._store.preferences.quiet_of([lane.subscriber for lane in taken])
        delayed = self._store.lanes.within({lane.subscription for lane in taken})
        for lane in taken:
            to, hours = known.get(lane.destination), quiet.get(lane.subscriber)
            until = quiet_until(hours, self.courier.now()) if hours else None
            if to is None or to.state != ACTIVE:
                self._store.lanes.release(lane)
            elif until is not None:
                self._store.lanes.put_off(lane, until)
            else:
                yield Work(lane, to, bool(lane.gathers) or lane.subscription in delayed)

    def _begin_letters(self) -> int:
        """Those of a destination go one after the other, the oldest first."""
        if not self._free() or self._letters:
            return 0
        letters = self._store.undelivered.take(LETTERS, self._rules.lease)
        known = self._store.destinations.find_many({letter.destination for letter in letters})
        ordered = sorted(letters, key=lambda one: (one.destination, one.number))
        for id, some in groupby(ordered, key=lambda one: one.destination):
            if to := known.get(id):
                self._letters[self._pool.submit(self._redeliver, list(some), to)] = to.place
        return len(letters)

    def _redeliver(self, letters: Sequence[Letter], to: Destination) -> list[Happened]:
        happened = []
        for letter in letters:
            if self.courier.stop.is_set():
                self._store.undelivered.release(letter)
            else:
                happened.append(self._tried(letter, to))
        return happened

    def _tried(self, letter: Letter, to: Destination) -> Happened:
        sent, ids = self.courier.redeliver(letter, to)
        if sent.refusal is None:
            self._store.undelivered.delivered(letter)
            return Happened(DELIVERED, to.kind, to.id, letter.subscription, ids, 0.0)
        problem = sent.refusal.problem
        after = self.courier.wait(letter.tries + 1, sent.refusal)
        self._store.undelivered.failed(letter, problem, after)
        what = FAILED if after is not None else DEAD
        return Happened(what, to.kind, to.id, letter.subscription, ids, 0.0, problem)

    def _running(self) -> list[Future[Any]]:
        return [*self._lanes, *self._letters]

    def _free(self) -> int:
        return max(0, self._rules.workers - len(self._lanes) - len(self._letters))

    def _settle(self, seconds: float | None) -> None:
        """Write down what became of what is done: of one at least, or with no limit of all."""
        until = FIRST_COMPLETED if seconds is not None else ALL_COMPLETED
        wait(self._running(), seconds, until)
        if seconds is not None:
            wait(self._running(), LINGER_SECONDS)
        self._settle_lanes([_result(one) for one in _done(self._lanes)])
        for happened in [_result(one) for one in _done(self._letters)]:
            for each in happened or ():
                self._listener(each)

    def _settle_lanes(self, runs: Sequence[Run | None]) -> None:
        known = [run for run in runs if run is not None]
        for run in known:
            if run.progress is None:
                self._store.lanes.release(run.lane)
        worked = [run for run in known if run.progress is not None]
        noted = self._store.lanes.finish([(run.lane, run.progress) for run in worked if run.progress])
        for run, was_mine in zip(worked, noted, strict=True):
            if run.gone and was_mine:
                self._store.destinations.disable(run.lane.destination, run.gone)
            for each in run.happened if was_mine else ():
                self._listener(each)


def _done(running: dict[Future[T], Any]) -> list[Future[T]]:
    """Those that came to an end, which are not running any more."""
    done = [each for each in running if each.done()]
    for each in done:
        del running[each]
    return done


def _result(done: Future[T]) -> T | None:
    """What came of it; what failed is said, and tried again when its lease ends."""
    if error := done.exception():
        _log.error("delivery failed at a destination", exc_info=error)
        return None
    return done.result()
