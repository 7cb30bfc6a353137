"""Retry of dead letters that their owners replay: one after the other per destination, oldest first."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import groupby
from time import monotonic

from tidings.delivery.dispatcher import DEAD, DELIVERED, FAILED, GONE, DeliveryEvent, Dispatcher
from tidings.delivery.sql.dead_deliveries import DeadDelivery
from tidings.delivery.sql.destination_store import Destination

MAX_LEASED_LETTERS = 50


class DeadLetterRetry:
    """Sends dead letters again; safe to use from several threads."""

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
        """Send a letter; return the event, and whether the receiver is gone."""
        sent, ids = self._dispatcher.redeliver(letter, destination)
        refusal = sent.refusal
        if refusal is None:
            self._store.dead_deliveries.delivered(letter)
            what, problem, is_gone = DELIVERED, None, False
        else:
            problem, is_gone = refusal.problem, refusal.gone
            wait = 0.0 if is_gone else self._dispatcher.retry_seconds(letter.tries + 1, refusal)
            self._store.dead_deliveries.failed(letter, problem, wait, GONE if is_gone else None)
            what = FAILED if wait is not None else DEAD
        event = DeliveryEvent(what, destination.kind, destination.id, letter.subscription, ids, 0.0, problem)
        return event, is_gone
