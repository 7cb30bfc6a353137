"""Dead letters are tried again when their owners say so: those of a destination one after the other, oldest first."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import groupby
from time import monotonic

from tidings.delivery.dispatcher import DEAD, DELIVERED, FAILED, GONE, DeliveryEvent, Dispatcher
from tidings.delivery.sql.dead_deliveries import DeadDelivery
from tidings.delivery.sql.destination_store import Destination

LETTERS = 50
"""How many are taken at once."""


class DeadLetterRetry:
    """Tries letters again, from any number of threads."""

    def __init__(self, courier: Dispatcher) -> None:
        self._courier, self._store, self._rules = courier, courier.store, courier.rules

    def take(self) -> Iterator[tuple[Destination, list[DeadDelivery]]]:
        """Letters that are to be tried now, by destination."""
        letters = self._store.dead_deliveries.take(LETTERS, self._rules.lease)
        known = self._store.destinations.find_many({letter.destination for letter in letters})
        ordered = sorted(letters, key=lambda one: (one.destination, one.number))
        for id, some in groupby(ordered, key=lambda one: one.destination):
            if to := known.get(id):
                yield to, list(some)

    def work(self, to: Destination, letters: Sequence[DeadDelivery]) -> list[DeliveryEvent]:
        """Try letters of a destination. Those that nobody came to in time are given back, before their lease ends."""
        until, happened = monotonic() + self._rules.run_seconds, []
        for turn, letter in enumerate(letters):
            if self._courier.stop.is_set() or (turn and monotonic() > until):
                self.release(letters[turn:])
                break
            tried, is_gone = self._tried(letter, to)
            happened.append(tried)
            if is_gone:
                self.release(letters[turn + 1 :])
                break
        return happened

    def release(self, letters: Sequence[DeadDelivery]) -> None:
        """Give back what was not tried."""
        for letter in letters:
            self._store.dead_deliveries.release(letter)

    def _tried(self, letter: DeadDelivery, to: Destination) -> tuple[DeliveryEvent, bool]:
        """What became of it, and whether its receiver wants no more at all."""
        sent, ids = self._courier.redeliver(letter, to)
        refusal = sent.refusal
        if refusal is None:
            self._store.dead_deliveries.delivered(letter)
            return DeliveryEvent(DELIVERED, to.kind, to.id, letter.subscription, ids, 0.0), False
        after = 0.0 if refusal.gone else self._courier.wait(letter.tries + 1, refusal)
        self._store.dead_deliveries.failed(letter, refusal.problem, after, GONE if refusal.gone else None)
        what = FAILED if after is not None else DEAD
        return DeliveryEvent(
            what, to.kind, to.id, letter.subscription, ids, 0.0, refusal.problem
        ), refusal.gone
