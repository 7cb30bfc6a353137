"""Delivery at work: what is due is carried out by a few threads, so that a receiver that is slow delays no other.

Several processes may work on one store. What a process was about when it was killed is taken by another when its lease
ends; receivers know what comes again by its id.
"""

from __future__ import annotations

import logging
from collections import Counter
from concurrent.futures import ALL_COMPLETED, FIRST_COMPLETED, Future, wait
from functools import partial
from threading import Event, Thread
from time import monotonic
from typing import Any, TypeVar

from tidings.delivery.dead_letters import DeadLetterRetry
from tidings.delivery.dispatcher import (
    DeliveryEvent,
    DeliveryListener,
    DeliveryRun,
    Dispatcher,
    ignore_event,
    plan_runs,
)
from tidings.delivery.host_pool import HostPool
from tidings.delivery.sql.dead_deliveries import DeadDelivery
from tidings.delivery.sql.leases import CursorLease
from tidings.errors import TidingsError

LOOK_SECONDS = 0.5
BUSY_SECONDS = 0.1
"""How long news wait at most while there is something to do: they are looked for among all who have destinations."""
LINGER_SECONDS = 0.01
"""When one is done, others may be in a moment: what became of them is written down together."""
PART = 1_000
"""How many subscribers are looked after in one round."""
AHEAD = 2
"""How many times as many lanes are taken as there are threads: a thread that is done has the next one at once."""
PATIENCE_SECONDS = 1.0
"""What has been waiting for a thread for longer than this is left to others."""

_log = logging.getLogger("tidings.delivery")

T = TypeVar("T")


class DeliveryWorker:
    """Delivers what is due, in a thread of its own from `with` to the end of it, or step by step."""

    def __init__(
        self, courier: Dispatcher, listener: DeliveryListener = ignore_event, look: float = LOOK_SECONDS
    ) -> None:
        self.courier, self._listener, self._look = courier, listener, look
        self._rules, self._store = courier.rules, courier.store
        self._redelivery = DeadLetterRetry(courier)
        self._line = HostPool(self._rules.workers, self._rules.per_place)
        self._lanes: dict[Future[DeliveryRun], CursorLease] = {}
        self._letters: dict[Future[list[DeliveryEvent]], list[DeadDelivery]] = {}
        self._ended: list[DeliveryRun] = []
        """What is to be written down yet."""
        self._times, self._looked = AHEAD, 0.0
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
        self._look_around()
        begun = self._begin_lanes(times=1) + self._begin_letters()
        self._settle(None)
        return begun

    def __enter__(self) -> DeliveryWorker:
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
        self._line.close()
        self._settle(None)
        for sender in self.courier.senders.values():
            sender.close()

    def _run(self) -> None:
        while not self._stop.is_set():
            try:
                begun = self._begin()
                self.problem = None
                if self._running():
                    self._settle(self._look)
                elif not begun:
                    self._stop.wait(self._look)
            except TidingsError as problem:  # a store that is away for a while comes back
                self.problem = str(problem)
                _log.warning("delivery cannot go on now: %s", problem)
                self._stop.wait(self._look)

    def _begin(self) -> int:
        """Begin what is due. While there is something to do, what is new is looked for now and then only."""
        begun = 0
        if not self._lanes or monotonic() - self._looked > BUSY_SECONDS:
            self._look_around()
            begun = self._begin_letters()
        return begun + self._begin_lanes(self._times)

    def _look_around(self) -> None:
        self._store.clock_recovery.look()
        self._store.notifications.hand_over()
        self._store.dead_deliveries.expire(self._rules.letters)
        self._store.delivery_cursors.wake(PART)
        self._looked = monotonic()

    def _begin_lanes(self, times: int) -> int:
        """Take `times` as many lanes as there are threads, with those that were taken before; how many were taken."""
        self._write_down()
        free = self._rules.workers * times - len(self._running())
        if free <= 0:
            return 0
        running = Counter(lane.place for lane in self._lanes.values())
        running.update(letters[0].place for letters in self._letters.values())
        taken = self._store.delivery_cursors.take(
            free, self._rules.lease, running, self._rules.per_place * times
        )
        for work in plan_runs(self._store, self._rules, taken) if taken else ():
            self._lanes[self._line.submit(work.to.place, partial(self.courier.work, work))] = work.lane
        return len(taken)

    def _begin_letters(self) -> int:
        begun = 0
        for to, letters in () if self._letters else self._redelivery.take():
            begun += len(letters)
            self._letters[self._line.submit(to.place, partial(self._redelivery.work, to, letters))] = letters
        return begun

    @property
    def under_way(self) -> int:
        """How many deliveries are being made."""
        return sum(not one.done() for one in self._running())

    def _running(self) -> list[Future[Any]]:
        return [*self._lanes, *self._letters]

    def _settle(self, seconds: float | None) -> None:
        """Write down what became of what is done: of one at least, or with no limit of all."""
        until = FIRST_COMPLETED if seconds is not None else ALL_COMPLETED
        wait(self._running(), seconds, until)
        if seconds is not None:
            wait(self._running(), LINGER_SECONDS)
            self._drop_late()
        for future, lane in _done(self._lanes):
            self._ended += [DeliveryRun(lane, None)] if future.cancelled() else _result(future)
        self._write_down()
        for tried, letters in _done(self._letters):
            if tried.cancelled():
                self._redelivery.release(letters)
            else:
                self._tell([each for happened in _result(tried) for each in happened])

    def _drop_late(self) -> None:
        """What waits too long is given back. As long as all threads are held up, nothing else is taken."""
        went_on = any(each.done() for each in self._lanes)
        dropped = self._line.drop(PATIENCE_SECONDS)
        if dropped or went_on:
            self._times = AHEAD if went_on else 1

    def _write_down(self) -> None:
        """Note what became of runs. If the store is away, they are noted when it is back: nothing is sent again."""
        if not self._ended:
            return
        worked = [(run.lane, run.progress) for run in self._ended if run.progress is not None]
        idle = [run.lane for run in self._ended if run.progress is None]
        noted = dict(
            zip((lane for lane, _ in worked), self._store.delivery_cursors.finish(worked), strict=True)
        )
        if idle:
            self._store.delivery_cursors.release(idle)
        ended, self._ended = self._ended, []
        self._tell([each for run in ended if noted.get(run.lane) for each in run.happened])

    def _tell(self, happened: list[DeliveryEvent]) -> None:
        for each in happened:
            self._listener(each)


def _done(running: dict[Future[T], Any]) -> list[tuple[Future[T], Any]]:
    """Those that came to an end, which are not running any more."""
    done = [each for each in running if each.done()]
    return [(each, running.pop(each)) for each in done]


def _result(done: Future[T]) -> list[T]:
    """What came of it; what failed is said, and tried again when its lease ends."""
    if error := done.exception():
        _log.error("delivery failed at a destination", exc_info=error)
        return []
    return [done.result()]
