"""Random histories of deliveries, compared with a list for each destination and subscription.

Notifications arrive, receivers fail and recover, destinations are paused, resumed and added, workers vanish with their
leases, and time passes. At any time, what a receiver got of a subscription, without repeated ids, is a prefix of the
notifications since the destination was added, except for dead letters; after recovery it is all of them.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from random import Random
from tempfile import TemporaryDirectory

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from tests.support.stores.notified_store import BECAUSE, Clock
from tidings.delivery.delivery_policy import DeliveryPolicy
from tidings.delivery.destination_types.sender import Refusal, SendResult, StopCheck
from tidings.delivery.dispatcher import Dispatcher
from tidings.delivery.messages import Message
from tidings.delivery.sql.destination_store import Destination
from tidings.delivery.worker import DeliveryWorker
from tidings.model import Subscription
from tidings.store.database import sqlite_url
from tidings.store.encoding import MatchRow
from tidings.store.store import open_store

RULES = DeliveryPolicy(
    retry_delays=(5, 60), run=3, jitter=0.0, workers=4, per_host=2, dead_letter_age=timedelta(days=3650)
)
NAMES = ("s-1", "s-2", "s-3")


class Receiver:
    """A receiver that accepts a given number of messages, then refuses.

    It records what it accepted.
    """

    def __init__(self) -> None:
        self.accepted: dict[tuple[str, str], list[str]] = {}
        self.accepts: dict[str, int] = {}

    def check(self, target: str) -> str:
        return target

    def shown(self, target: str) -> str:
        return target

    def send(self, to: Destination, messages: Sequence[Message], enough: StopCheck) -> SendResult:
        for number, message in enumerate(messages):
            if not self.accepts.get(to.id, 1):
                return SendResult(number, Refusal("not now"))
            if to.id in self.accepts:
                self.accepts[to.id] -= 1
            json.loads(message.text)
            self.accepted.setdefault((to.id, message.subscription), []).extend(message.ids)
        return SendResult(len(messages))

    def end(self) -> None: ...

    def close(self) -> None: ...


class Histories(RuleBasedStateMachine):
    @initialize()
    def begin(self) -> None:
        self.folder = TemporaryDirectory()
        self.clock, self.receiver = Clock(), Receiver()
        self.store = open_store(sqlite_url(Path(self.folder.name) / "store.db"), self.clock)
        self.store.subscriptions.add_many([Subscription(n, "ana", "predicates", "a = 1") for n in NAMES])
        self.worker = DeliveryWorker(Dispatcher(self.store, {"test": self.receiver}, RULES, chance=Random(1)))
        self.notified: dict[str, list[str]] = {name: [] for name in NAMES}
        self.since: dict[str, dict[str, int]] = {}
        self.dead_ever: set[str] = set()
        self.batch = 0

    def teardown(self) -> None:
        if hasattr(self, "store"):
            self.check_all_delivered_after_recovery()
            self.worker.close()
            self.store.close()
            self.folder.cleanup()

    @rule(names=st.lists(st.sampled_from(NAMES), min_size=1, max_size=6))
    def notify(self, names: list[str]) -> None:
        self.batch += 1
        matches = [
            MatchRow(f"p-{self.batch}-{number}", name, "ana", BECAUSE) for number, name in enumerate(names)
        ]
        self.store.notifications.commit_batch("test", self.batch, matches)
        notifications = self.store.notifications.read("ana", limit=100_000)
        self.notified = {
            name: [one.id for one in notifications if one.subscription == name] for name in NAMES
        }

    @precondition(lambda self: len(self.since) < 3)
    @rule(subscription=st.sampled_from([None, *NAMES]), place=st.sampled_from(["here", "there"]))
    def add(self, subscription: str | None, place: str) -> None:
        destination = self.store.destinations.add(Destination("", "ana", subscription, "test", place, place))
        names = NAMES if subscription is None else (subscription,)
        self.since[destination.id] = {name: len(self.notified[name]) for name in names}

    @precondition(lambda self: self.since)
    @rule(data=st.data(), count=st.integers(0, 4))
    def fail_after(self, data: st.DataObject, count: int) -> None:
        self.receiver.accepts[data.draw(st.sampled_from(sorted(self.since)))] = count

    @rule()
    def recover(self) -> None:
        self.receiver.accepts.clear()

    @rule()
    def step(self) -> None:
        self.worker.step()

    @rule(seconds=st.sampled_from([1, 5, 60, 200, 4_000]))
    def advance_clock(self, seconds: int) -> None:
        self.clock.go(seconds)

    @rule(most=st.integers(1, 3))
    def abandon_leases(self, most: int) -> None:
        """Lease cursors and never return them."""
        self.store.delivery_cursors.wake(10)
        self.store.delivery_cursors.take(most, RULES.lease)

    @precondition(lambda self: self.since)
    @rule(data=st.data(), paused=st.booleans())
    def pause_or_resume(self, data: st.DataObject, paused: bool) -> None:
        id = data.draw(st.sampled_from(sorted(self.since)))
        (self.store.destinations.pause if paused else self.store.destinations.resume)(id)

    @precondition(lambda self: self.since)
    @rule(data=st.data())
    def replay(self, data: st.DataObject) -> None:
        self.store.dead_deliveries.replay(data.draw(st.sampled_from(sorted(self.since))))

    @invariant()
    def order_is_kept(self) -> None:
        """Without dead letters, the received ids are a prefix of the sent ones.

        Dead letters may arrive later or never.
        """
        for id, names in getattr(self, "since", {}).items():
            for name, before in names.items():
                arrived = dict.fromkeys(self.receiver.accepted.get((id, name), []))
                given_up = self.dead_letters_of(id, name)
                self.dead_ever |= given_up
                first = [one for one in arrived if one not in self.dead_ever]
                assert first == [one for one in self.notified[name] if one in first], "in order"
                settled = [one for one in self.notified[name][before:] if one in arrived or one in given_up]
                assert settled == self.notified[name][before:][: len(settled)], "nothing was skipped"

    def dead_letters_of(self, id: str, name: str) -> set[str]:
        letters = self.store.dead_deliveries.list(id, limit=100_000)
        return {one.message for one in letters if one.subscription == name}

    def check_all_delivered_after_recovery(self) -> None:
        self.receiver.accepts.clear()
        for id in self.since:
            self.store.destinations.resume(id)
            self.store.dead_deliveries.replay(id)
        self.clock.time = max(self.clock.time, datetime(2027, 1, 1, tzinfo=UTC))
        for _ in range(3):
            while self.worker.step():
                pass
            self.clock.go(1_000)
        for id, names in self.since.items():
            assert self.store.dead_deliveries.list(id) == []
            for name, before in names.items():
                accepted = self.receiver.accepted.get((id, name), [])
                assert set(accepted) == set(self.notified[name][before:])
                health = self.store.destinations.health("ana").get(name)
                assert health is None or health.delivered <= sum(map(len, self.receiver.accepted.values()))


TestHistories = Histories.TestCase
TestHistories.settings = settings(max_examples=settings().max_examples // 2, stateful_step_count=25)
