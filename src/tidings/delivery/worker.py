"""Delivery worker: sends due messages with several threads, so that a slow receiver does not delay others.

Several processes may deliver from one store. The messages of a killed process are taken over by another one when its
lease ends; receivers recognise repeated messages by their ids.
"""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Iterator, Sequence
from concurrent.futures import ALL_COMPLETED, FIRST_COMPLETED, Future, wait
from functools import partial
from itertools import groupby
from time import monotonic
from typing import Any, TypeVar

from tidings.core.lifecycle import Worker
from tidings.delivery.dispatcher import (
    DEAD,
    DELIVERED,
    FAILED,
    GONE,
    DeliveryEvent,
    DeliveryListener,
    DeliveryRun,
    Dispatcher,
    ignore_event,
    plan_runs,
)
from tidings.delivery.host_pool import HostPool
from tidings.delivery.sql.dead_deliveries import DeadDelivery
from tidings.delivery.sql.destination_store import Destination
from tidings.delivery.sql.leases import CursorLease

POLL_SECONDS = 0.5
BUSY_POLL_SECONDS = 0.1
"""Interval of checks for new notifications during deliveries: the query goes over all subscribers with
destinations."""
LINGER_SECONDS = 0.01
"""Time to wait for more runs to end after the first one, so that one transaction records several."""
MAX_WOKEN_SUBSCRIBERS = 1_000
"""Number of subscribers whose cursors wake in one step."""
LEASES_PER_THREAD = 2
"""Number of cursors that are leased per thread: a thread that is done continues with the next one at once."""
MAX_QUEUE_SECONDS = 1.0
"""A leased cursor that waits longer than this for a thread is released for other processes."""
MAX_LEASED_LETTERS = 50
"""Number of replayed dead letters that are leased at once."""

_log = logging.getLogger("tidings.delivery")

T = TypeVar("T")


class DeadLetterRetry:
    """Sends replayed dead letters, oldest first for each destination; safe to use from several threads."""

    def __init__(self, dispatcher: Dispatcher) -> None:
        self._dispatcher, self._store, self._policy = dispatcher, dispatcher.store, dispatcher.policy

    def take(self) -> Iterator[tuple[Destination, list[DeadDelivery]]]:
        """Lease the dead letters that are due, grouped by destination."""
        letters = self._store.dead_deliveries.take(MAX_LEASED_LETTERS, self._policy.lease)
        destinations = self._store.destinations.find_many({letter.destination for letter in letters})
        ordered = sorted(letters, key=lambda letter: (letter.destination, letter.number))
        for id, group in groupby(ordered, key=lambda letter: letter.destination):
            if destination := destinations.get(id):
                yield destination, list(group)

    def run(self, destination: Destination, letters: Sequence[DeadDelivery]) -> list[DeliveryEvent]:
        """Send letters to their destination. Letters without time left are released before their lease ends."""
        end, events = monotonic() + self._policy.run_seconds, []
        for index, letter in enumerate(letters):
            if self._dispatcher.stopping.is_set() or (index and monotonic() > end):
                self.release(letters[index:])
                break
            event, is_gone = self._retry(letter, destination)
            events.append(event)
            if is_gone:
                self.release(letters[index + 1 :])
                break
        return events

    def release(self, letters: Sequence[DeadDelivery]) -> None:
        """Release letters that were not sent."""
        for letter in letters:
            self._store.dead_deliveries.release(letter)

    def _retry(self, letter: DeadDelivery, destination: Destination) -> tuple[DeliveryEvent, bool]:
        """Send a letter; return the event, and whether the receiver responded with 410."""
        sent, ids = self._dispatcher.redeliver(letter, destination)
        refusal = sent.refusal
        if refusal is None:
            self._store.dead_deliveries.remove_delivered(letter)
            outcome, problem, is_gone = DELIVERED, None, False
        else:
            problem, is_gone = refusal.problem, refusal.gone
            wait = (
                0.0 if is_gone else self._dispatcher.retry_seconds(letter.attempts_since_replay + 1, refusal)
            )
            self._store.dead_deliveries.record_failure(letter, problem, wait, GONE if is_gone else None)
            outcome = FAILED if wait is not None else DEAD
        event = DeliveryEvent(
            outcome, destination.kind, destination.id, letter.subscription, ids, 0.0, problem
        )
        return event, is_gone


class DeliveryWorker(Worker):
    """A worker that delivers due messages."""

    def __init__(
        self, dispatcher: Dispatcher, listener: DeliveryListener = ignore_event, poll: float = POLL_SECONDS
    ) -> None:
        super().__init__("delivery", poll)
        self.dispatcher, self._listener, self._poll = dispatcher, listener, poll
        self._policy, self._store = dispatcher.policy, dispatcher.store
        self._retry = DeadLetterRetry(dispatcher)
        self._pool = HostPool(self._policy.workers, self._policy.per_host)
        self._runs: dict[Future[DeliveryRun], CursorLease] = {}
        self._retries: dict[Future[list[DeliveryEvent]], list[DeadDelivery]] = {}
        self._unrecorded: list[DeliveryRun] = []
        """Runs that have ended and are not recorded in the store yet."""
        self._leases_per_thread, self._last_poll = LEASES_PER_THREAD, 0.0

    def step(self) -> int:
        """Deliver due messages without the thread; return the number of processed cursors and dead letters."""
        self._wake()
        started = self._start_runs(leases_per_thread=1) + self._start_retries()
        self._collect(None)
        return started

    def run_once(self) -> None:
        started = self._start()
        if self._in_progress():
            self._collect(self._poll)
        elif not started:
            self.stopping.wait(self._poll)

    def interrupt(self) -> None:
        self.dispatcher.stopping.set()

    def close(self) -> None:
        """Give deliveries in progress `grace` seconds to end. The rest stays in the store."""
        wait(self._in_progress(), self._policy.grace)
        for sender in self.dispatcher.senders.values():
            sender.end()
        self._pool.close()
        self._collect(None)
        for sender in self.dispatcher.senders.values():
            sender.close()

    @property
    def deliveries_in_progress(self) -> int:
        return sum(not future.done() for future in self._in_progress())

    def _in_progress(self) -> list[Future[Any]]:
        return [*self._runs, *self._retries]

    def _start(self) -> int:
        """Start due deliveries. While deliveries run, checks for new notifications are less frequent."""
        started = 0
        if not self._runs or monotonic() - self._last_poll > BUSY_POLL_SECONDS:
            self._wake()
            started = self._start_retries()
        return started + self._start_runs(self._leases_per_thread)

    def _wake(self) -> None:
        """Make cursors with new entries due."""
        self._store.clock_recovery.look()
        self._store.notifications.hand_over()
        self._store.dead_deliveries.expire(self._policy.dead_letter_age)
        self._store.delivery_cursors.wake(MAX_WOKEN_SUBSCRIBERS)
        self._last_poll = monotonic()

    def _start_runs(self, leases_per_thread: int) -> int:
        """Lease cursors until there are enough per thread, and start to deliver; return how many were leased."""
        self._record_runs()
        free = self._policy.workers * leases_per_thread - len(self._in_progress())
        if free <= 0:
            return 0
        per_host = Counter(lease.host for lease in self._runs.values())
        per_host.update(letters[0].host for letters in self._retries.values())
        limit = self._policy.per_host * leases_per_thread
        leased = self._store.delivery_cursors.take(free, self._policy.lease, per_host, limit)
        for planned in plan_runs(self._store, self._policy, leased) if leased else ():
            call = partial(self.dispatcher.run, planned)
            self._runs[self._pool.submit(planned.destination.host, call)] = planned.lease
        return len(leased)

    def _start_retries(self) -> int:
        started = 0
        for destination, letters in () if self._retries else self._retry.take():
            started += len(letters)
            call = partial(self._retry.run, destination, letters)
            self._retries[self._pool.submit(destination.host, call)] = letters
        return started

    def _collect(self, seconds: float | None) -> None:
        """Wait for deliveries and record their outcomes: of the first that ends, or without a limit of all."""
        until = FIRST_COMPLETED if seconds is not None else ALL_COMPLETED
        wait(self._in_progress(), seconds, until)
        if seconds is not None:
            wait(self._in_progress(), LINGER_SECONDS)
            self._release_late()
        for run, lease in _pop_done(self._runs):
            self._unrecorded += [DeliveryRun(lease, None)] if run.cancelled() else _result(run)
        self._record_runs()
        for retry, letters in _pop_done(self._retries):
            if retry.cancelled():
                self._retry.release(letters)
            else:
                self._publish([event for events in _result(retry) for event in events])

    def _release_late(self) -> None:
        """Release leases that have waited too long; while all threads are stuck, lease no more than they can hold."""
        progressed = any(run.done() for run in self._runs)
        cancelled = self._pool.cancel_waiting(MAX_QUEUE_SECONDS)
        if cancelled or progressed:
            self._leases_per_thread = LEASES_PER_THREAD if progressed else 1

    def _record_runs(self) -> None:
        """Record ended runs in the store. If it is unreachable they are recorded later, and nothing is sent again."""
        if not self._unrecorded:
            return
        worked = [(run.lease, run.outcome) for run in self._unrecorded if run.outcome is not None]
        idle = [run.lease for run in self._unrecorded if run.outcome is None]
        finished = self._store.delivery_cursors.finish(worked)
        recorded = dict(zip((lease for lease, _ in worked), finished, strict=True))
        if idle:
            self._store.delivery_cursors.release(idle)
        ended, self._unrecorded = self._unrecorded, []
        self._publish([event for run in ended if recorded.get(run.lease) for event in run.events])

    def _publish(self, events: list[DeliveryEvent]) -> None:
        for event in events:
            self._listener(event)


def _pop_done(futures: dict[Future[T], Any]) -> list[tuple[Future[T], Any]]:
    done = [future for future in futures if future.done()]
    return [(future, futures.pop(future)) for future in done]


def _result(done: Future[T]) -> list[T]:
    """Return the result in a list. A failure is logged, and retried when the lease ends."""
    if error := done.exception():
        _log.error("a delivery failed unexpectedly", exc_info=error)
        return []
    return [done.result()]
