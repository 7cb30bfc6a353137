"""Works on one lane: makes messages of its next entries, has them sent in order, and says what became of that.

Nothing is written here; the loop writes what became of many lanes at once.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from random import Random
from threading import BoundedSemaphore, Event
from time import monotonic

from tidings.delivery.destination_types.sender import Refusal, Sender, SendResult
from tidings.delivery.messages import Message, build_digest, build_message
from tidings.delivery.policy import DeliveryPolicy
from tidings.delivery.quiet_hours import quiet_until
from tidings.delivery.sql.cursors import RunOutcome
from tidings.delivery.sql.dead_deliveries import DeadDelivery
from tidings.delivery.sql.destination_store import ACTIVE, Destination
from tidings.delivery.sql.leases import CursorLease, EntryRange
from tidings.delivery.sql.pending import EntryBatch
from tidings.model import WITHHELD, Notification
from tidings.store.encoding import format_instant
from tidings.store.store import Store

# Whose turn it is: what is done with lanes that were taken, asked and written for all of them at once.
#
# Most lanes have one entry. A question to the store for each of them would take longer than the delivery.


FEW = 4
"""Lanes with no more entries than this have them read together; the others read for themselves, while these go."""
SMALL = 20_000
"""So many bytes a publication has at most that is read for many lanes at once."""


@dataclass(frozen=True, slots=True)
class PlannedRun:
    """A lane that was taken, where it leads, and what was read of its next entries, if that was."""

    lane: CursorLease
    to: Destination
    read: EntryBatch | None


def plan_runs(store: Store, rules: DeliveryPolicy, taken: Sequence[CursorLease]) -> list[PlannedRun]:
    """What is to be delivered now. Lanes of destinations that are not active are given back, those of subscribers who
    want to be left alone are put off, digests are begun.
    """
    known, now = store.pending_entries.known(taken, rules.run, FEW, SMALL), store.delivery_cursors.now()
    ends = {who: quiet_until(hours, now) for who, hours in known.quiet.items()}
    idle, later, ready = [], [], []
    for lane, read in zip(taken, known.read, strict=True):
        to, end = known.destinations.get(lane.destination), ends.get(lane.subscriber)
        if to is None or to.state != ACTIVE:
            idle.append(lane)
        elif end is not None:
            later.append((lane, end))
        else:
            ready.append(PlannedRun(lane, to, read))
    if idle:
        store.delivery_cursors.release(idle)
    if later:
        store.delivery_cursors.put_off(later)
    return _begun(store, rules, ready)


def _begun(store: Store, rules: DeliveryPolicy, ready: Sequence[PlannedRun]) -> list[PlannedRun]:
    """Those that are still ours. A digest is begun before it is sent, so that it is the same however often it is."""
    new = {work.lane.key: work.to for work in ready if work.lane.together and work.lane.gathered is None}
    if not new:
        return list(ready)
    old = [work for work in ready if work.lane.key not in new]
    begun = store.delivery_cursors.gather([work.lane for work in ready if work.lane.key in new], rules.digest)
    read = store.pending_entries.read_short([lane.next(rules.run) for lane in begun], FEW, SMALL)
    return old + [PlannedRun(lane, new[lane.key], each) for lane, each in zip(begun, read, strict=True)]


# What a delivery tells those who count: metrics, logs, traces.


DELIVERED, FAILED, DEAD = "delivered", "failed", "dead"


@dataclass(frozen=True, slots=True)
class DeliveryEvent:
    """`what` became of notifications of a subscription, on their way to a destination of a kind: delivered, failed (and
    tried again later) or dead. `ids` are the notifications, `seconds` is how long it took.
    """

    what: str
    kind: str
    destination: str
    subscription: str
    ids: tuple[str, ...]
    seconds: float
    problem: str | None = None

    @property
    def count(self) -> int:
        return len(self.ids)


DeliveryListener = Callable[[DeliveryEvent], None]
"""Is called in the thread of the loop, after it is durable."""


def ignore_event(_: DeliveryEvent) -> None:
    """Nobody counts."""


READERS = 4
"""How many read the store at once: more would each open a connection of their own, again and again."""
GONE = "the receiver says that it is gone (410)"
WORKER_LOST = "whoever delivered it ended each time"


def is_visible(told: Notification) -> bool:
    """Whether its subscriber may see now what a notification is about; what they may not is not delivered. The store
    says so with each that it reads: grants that were revoked meanwhile count.
    """
    return told.kind != WITHHELD


@dataclass(frozen=True, slots=True)
class DeliveryRun:
    """What became of a lane: nothing, if it was not worked on. `happened` is true once it is written down."""

    lane: CursorLease
    progress: RunOutcome | None
    happened: tuple[DeliveryEvent, ...] = ()


class Dispatcher:
    """Delivers, from any number of threads."""

    def __init__(
        self,
        store: Store,
        senders: Mapping[str, Sender],
        rules: DeliveryPolicy,
        chance: Random | None = None,
    ) -> None:
        self.store, self.senders, self.rules = store, senders, rules
        self._chance = chance or Random()
        self._reading = BoundedSemaphore(READERS)
        self.stop = Event()

    def work(self, work: PlannedRun) -> DeliveryRun:
        """Deliver the next entries of a lane, until one is not taken or it is somebody else's turn."""
        lane = work.lane
        if self.stop.is_set():
            return DeliveryRun(lane, None)
        if lane.attempts > len(self.rules.retries):
            return self._given_up(work)
        messages, last = self._messages(work)
        began = monotonic()
        sent = self._sent(work.to, messages, began)
        if self.stop.is_set() and sent.refusal and not sent.refusal.status:
            sent = SendResult(sent.taken)  # it was ended here, which says nothing about the receiver
        if messages and not sent.taken and sent.refusal is None:
            return DeliveryRun(lane, None)
        return self._run(work, messages, last, sent, monotonic() - began)

    def redeliver(self, letter: DeadDelivery, to: Destination) -> tuple[SendResult, tuple[str, ...]]:
        """Try a dead letter again, with what its subscriber may see of it now."""
        stretch = EntryRange(letter.subscriber, letter.subscription, letter.first, letter.last)
        messages = self._made(self._read(stretch, None), stretch, letter.digest)
        sent = self._sent(to, messages, monotonic())
        return sent, tuple(id for message in messages for id in message.ids)

    def wait(self, attempts: int, refusal: Refusal) -> float | None:
        """For how long to wait after so many failed attempts; nothing if that was the last.

        Waits differ a little, so that what failed together does not come back together.
        """
        if refusal.hopeless or attempts > len(self.rules.retries):
            return None
        wait = max(self.rules.retries[attempts - 1], refusal.after)
        return wait * self._chance.uniform(1.0, 1.0 + self.rules.jitter)

    def _sent(self, to: Destination, messages: Sequence[Message], began: float) -> SendResult:
        def enough() -> bool:
            return self.stop.is_set() or monotonic() - began > self.rules.run_seconds

        return self.senders[to.kind].send(to, messages, enough) if messages else SendResult(0)

    def _messages(self, work: PlannedRun) -> tuple[Sequence[Message], int]:
        """The next messages, and the last entry that they stand for."""
        stretch, together = work.lane.next(self.rules.run), work.lane.together
        read = work.read or self._read(stretch, None if together else self.rules.run_bytes)
        last = read.entries[-1].number if read.entries else work.lane.told
        return self._made(read, stretch, together), stretch.last if together else last

    def _read(self, stretch: EntryRange, most_bytes: int | None) -> EntryBatch:
        with self._reading:
            return self.store.pending_entries.read(stretch, self.rules.largest, most_bytes)

    def _made(self, read: EntryBatch, stretch: EntryRange, together: bool) -> Sequence[Message]:
        """Messages of entries, oldest first. This is the place where it is looked again who may see what."""
        left, found = [entry for entry in read.entries if is_visible(entry.notification)], read.publications
        if together:
            most = self.rules.digest_bytes
            return [build_digest(left, found, stretch.first, stretch.last, most)] if left else []
        largest = self.rules.largest
        return [build_message(entry, found.get(entry.notification.publication), largest) for entry in left]

    def _run(
        self, work: PlannedRun, messages: Sequence[Message], last: int, sent: SendResult, seconds: float
    ) -> DeliveryRun:
        """The cursor stands before the first message that was not taken; what nobody may see it passes by."""
        taken = messages[: sent.taken]
        ids = tuple(id for message in taken for id in message.ids)
        happened = (_happened(DELIVERED, work, ids, seconds),) if ids else ()
        if sent.taken == len(messages):
            return DeliveryRun(work.lane, RunOutcome(last, len(ids)), happened)
        next_one = messages[sent.taken]
        told = next_one.first - 1
        if sent.refusal is None:
            return DeliveryRun(work.lane, RunOutcome(told, len(ids)), happened)
        attempts = 1 + (work.lane.attempts if told == work.lane.told else 0)
        return self._refused(
            work, next_one, RunOutcome(told, len(ids)), sent.refusal, attempts, happened, seconds
        )

    def _refused(
        self,
        work: PlannedRun,
        message: Message,
        before: RunOutcome,
        refusal: Refusal,
        attempts: int,
        happened: tuple[DeliveryEvent, ...],
        seconds: float,
    ) -> DeliveryRun:
        gone = GONE if refusal.gone else None
        wait = self.wait(attempts, refusal) if not gone else 0.0
        problem = refusal.problem
        if wait is not None:
            failed = _happened(FAILED, work, message.ids, seconds, problem)
            progress = RunOutcome(before.told, before.delivered, problem, wait, gone=gone)
            return DeliveryRun(work.lane, progress, (*happened, failed))
        letter = self._letter(work, message, problem, attempts)
        progress = RunOutcome(message.last, before.delivered, problem, letter=letter)
        return DeliveryRun(
            work.lane, progress, (*happened, _happened(DEAD, work, message.ids, seconds, problem))
        )

    def _given_up(self, work: PlannedRun) -> DeliveryRun:
        """Whoever took it vanished too often: its first message is given up unseen."""
        messages, last = self._messages(work)
        if not messages:
            return DeliveryRun(work.lane, RunOutcome(last, 0))
        letter = self._letter(work, messages[0], WORKER_LOST, work.lane.attempts)
        progress = RunOutcome(messages[0].last, 0, WORKER_LOST, letter=letter)
        return DeliveryRun(work.lane, progress, (_happened(DEAD, work, messages[0].ids, 0.0, WORKER_LOST),))

    def _letter(self, work: PlannedRun, message: Message, problem: str, attempts: int) -> DeadDelivery:
        lane, moment = work.lane, format_instant(self.now())
        return DeadDelivery(
            lane.destination,
            lane.subscription,
            lane.subscriber,
            lane.place,
            message.first,
            message.last,
            message.is_digest,
            message.id,
            problem,
            attempts,
            moment,
        )

    def now(self) -> datetime:
        return self.store.delivery_cursors.now()


def _happened(
    what: str, work: PlannedRun, ids: tuple[str, ...], seconds: float, problem: str | None = None
) -> DeliveryEvent:
    return DeliveryEvent(what, work.to.kind, work.to.id, work.lane.subscription, ids, seconds, problem)
