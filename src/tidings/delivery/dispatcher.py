"""Dispatcher of deliveries: builds messages from the next entries of a cursor and sends them in order.

    leases ──plan_runs──▶ planned runs ──Dispatcher.run──▶ DeliveryRun(lease, outcome, events)

The dispatcher does not write to the store; the worker records the outcomes of many runs in one transaction.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from random import Random
from threading import BoundedSemaphore, Event
from time import monotonic

from tidings.delivery.delivery_policy import DeliveryPolicy
from tidings.delivery.destination_types.sender import Refusal, Sender, SendResult
from tidings.delivery.messages import Message, build_digest, build_message
from tidings.delivery.quiet_hours import quiet_until
from tidings.delivery.retries import choose_retry_delay, has_attempts_left
from tidings.delivery.sql.cursors import RunOutcome
from tidings.delivery.sql.dead_deliveries import DeadDelivery
from tidings.delivery.sql.destination_store import ACTIVE, HUB, Destination
from tidings.delivery.sql.leases import CursorLease, EntryRange
from tidings.delivery.sql.pending import EntryBatch
from tidings.model import WITHHELD, Notification
from tidings.store.encoding import format_instant
from tidings.store.store import Store

MAX_PREFETCHED_ENTRIES = 4
"""Cursors with at most this many entries have them read in one query: most have one, and a query for each would take
longer than the delivery. Other runs read their own entries, in their threads."""
MAX_PREFETCHED_BYTES = 20_000
"""Publications larger than this are not read ahead for many cursors at once."""
MAX_READERS = 4
"""Maximum number of runs that read the store at once: more would open and close connections all the time."""
GONE = "the receiver is gone (410)"
WORKER_LOST = "the process that delivered it ended each time"

DELIVERED, FAILED, DEAD = "delivered", "failed", "dead"


@dataclass(frozen=True, slots=True)
class DeliveryEvent:
    """Outcome of sending notifications of a subscription to a destination, for metrics, logs and traces.

    `what` is `delivered`, `failed` (and retried later) or `dead`; `ids` are those of the notifications.
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
"""A function that is called in the worker's thread with each event, once it is durable."""


def ignore_event(_: DeliveryEvent) -> None:
    """Do nothing: the default listener."""


@dataclass(frozen=True, slots=True)
class PlannedRun:
    """A leased cursor, its destination, and its next entries if they were read ahead."""

    lease: CursorLease
    destination: Destination
    entries: EntryBatch | None


@dataclass(frozen=True, slots=True)
class DeliveryRun:
    """The outcome of a run, None if nothing was sent. Its events become valid once the outcome is recorded."""

    lease: CursorLease
    outcome: RunOutcome | None
    events: tuple[DeliveryEvent, ...] = ()


def plan_runs(store: Store, policy: DeliveryPolicy, leased: Sequence[CursorLease]) -> list[PlannedRun]:
    """Select the entries to deliver now.

    Cursors of inactive destinations are released, those of subscribers in their quiet hours are deferred, and digests
    are started.
    """
    context = store.pending_entries.load_context(
        leased, policy.run, MAX_PREFETCHED_ENTRIES, MAX_PREFETCHED_BYTES
    )
    now = store.delivery_cursors.now()
    quiet_ends = {subscriber: quiet_until(hours, now) for subscriber, hours in context.quiet.items()}
    idle, deferred, ready = [], [], []
    for lease, entries in zip(leased, context.entries, strict=True):
        destination, quiet_end = (
            context.destinations.get(lease.destination),
            quiet_ends.get(lease.subscriber),
        )
        if destination is None or destination.state != ACTIVE:
            idle.append(lease)
        elif quiet_end is not None and destination.kind != HUB:
            deferred.append((lease, quiet_end))
        else:
            ready.append(PlannedRun(lease, destination, entries))
    if idle:
        store.delivery_cursors.release(idle)
    if deferred:
        store.delivery_cursors.put_off(deferred)
    return _start_digests(store, policy, ready)


def _start_digests(store: Store, policy: DeliveryPolicy, ready: Sequence[PlannedRun]) -> list[PlannedRun]:
    """Fix the last entry of each new digest before it is sent, so that every attempt sends the same digest.

    Leases that were lost meanwhile are left out.
    """
    new = {
        run.lease.key: run.destination
        for run in ready
        if run.lease.is_digest and run.lease.digest_end is None
    }
    if not new:
        return list(ready)
    others = [run for run in ready if run.lease.key not in new]
    started = store.delivery_cursors.gather(
        [run.lease for run in ready if run.lease.key in new], policy.digest
    )
    ranges = [lease.next(policy.run) for lease in started]
    batches = store.pending_entries.read_short(ranges, MAX_PREFETCHED_ENTRIES, MAX_PREFETCHED_BYTES)
    return others + [
        PlannedRun(lease, new[lease.key], entries) for lease, entries in zip(started, batches, strict=True)
    ]


def is_visible(notification: Notification) -> bool:
    """Return whether the subscriber may see the publication now. The store applies revoked grants whenever it reads."""
    return notification.kind != WITHHELD


class Dispatcher:
    """Delivers entries; safe to use from several threads."""

    def __init__(
        self,
        store: Store,
        senders: Mapping[str, Sender],
        policy: DeliveryPolicy,
        chance: Random | None = None,
    ) -> None:
        self.store, self.senders, self.policy = store, senders, policy
        self._chance = chance or Random()
        self._readers = BoundedSemaphore(MAX_READERS)
        self.stopping = Event()

    def run(self, run: PlannedRun) -> DeliveryRun:
        """Deliver the next entries of a cursor, until one is refused or the limits of a run are reached."""
        if self.stopping.is_set():
            return DeliveryRun(run.lease, None)
        if not has_attempts_left(self.policy, run.lease.attempts):
            return self._give_up(run)
        messages, last = self._build_next(run)
        start = monotonic()
        sent = self._send(run.destination, messages, start)
        if self.stopping.is_set() and sent.refusal and not sent.refusal.status:
            sent = SendResult(sent.accepted)  # the request was cancelled here: the receiver is not at fault
        if messages and not sent.accepted and sent.refusal is None:
            return DeliveryRun(run.lease, None)
        return self._conclude(run, messages, last, sent, monotonic() - start)

    def redeliver(self, letter: DeadDelivery, destination: Destination) -> tuple[SendResult, tuple[str, ...]]:
        """Send a dead letter again, as far as its subscriber may still see it; return the ids of its notifications."""
        entry_range = EntryRange(letter.subscriber, letter.subscription, letter.first, letter.last)
        messages = self._build_messages(self._read(entry_range, None), entry_range, letter.digest)
        sent = self._send(destination, messages, monotonic())
        return sent, tuple(id for message in messages for id in message.ids)

    def retry_seconds(self, attempts: int, refusal: Refusal) -> float | None:
        """Return how long to wait after this many failed attempts; None to give up."""
        return choose_retry_delay(self.policy, attempts, refusal, self._chance)

    def now(self) -> datetime:
        return self.store.delivery_cursors.now()

    def _send(self, destination: Destination, messages: Sequence[Message], start: float) -> SendResult:
        def is_enough() -> bool:
            return self.stopping.is_set() or monotonic() - start > self.policy.run_seconds

        if not messages:
            return SendResult(0)
        return self.senders[destination.kind].send(destination, messages, is_enough)

    def _build_next(self, run: PlannedRun) -> tuple[Sequence[Message], int]:
        """Build the next messages; return them with the last entry that they cover."""
        entry_range, is_digest = run.lease.next(self.policy.run), run.lease.is_digest
        batch = run.entries or self._read(entry_range, None if is_digest else self.policy.run_bytes)
        last = batch.entries[-1].number if batch.entries else run.lease.position
        return self._build_messages(batch, entry_range, is_digest), entry_range.last if is_digest else last

    def _read(self, entry_range: EntryRange, max_bytes: int | None) -> EntryBatch:
        with self._readers:
            return self.store.pending_entries.read(entry_range, self.policy.largest, max_bytes)

    def _build_messages(
        self, batch: EntryBatch, entry_range: EntryRange, is_digest: bool
    ) -> Sequence[Message]:
        """Build messages, oldest first, without notifications that the subscriber may not see any more."""
        visible = [entry for entry in batch.entries if is_visible(entry.notification)]
        publications = batch.publications
        if is_digest and visible:
            first, last, limit = entry_range.first, entry_range.last, self.policy.digest_bytes
            return [build_digest(visible, publications, first, last, limit)]
        limit = self.policy.largest
        return [
            build_message(entry, publications.get(entry.notification.publication), limit) for entry in visible
        ]

    def _conclude(
        self, run: PlannedRun, messages: Sequence[Message], last: int, sent: SendResult, seconds: float
    ) -> DeliveryRun:
        """Move the cursor in front of the first message that was not accepted, or to the last entry."""
        ids = tuple(id for message in messages[: sent.accepted] for id in message.ids)
        events = (_build_event(DELIVERED, run, ids, seconds),) if ids else ()
        if sent.accepted == len(messages):
            return DeliveryRun(run.lease, RunOutcome(last, len(ids)), events)
        message = messages[sent.accepted]
        outcome = RunOutcome(message.first - 1, len(ids))
        if sent.refusal is None:
            return DeliveryRun(run.lease, outcome, events)
        refused, event = self._handle_refusal(run, message, outcome, sent.refusal, seconds)
        return DeliveryRun(run.lease, refused, (*events, event))

    def _handle_refusal(
        self, run: PlannedRun, message: Message, so_far: RunOutcome, refusal: Refusal, seconds: float
    ) -> tuple[RunOutcome, DeliveryEvent]:
        """Retry the message later, or make a dead letter of it and continue behind it."""
        problem = refusal.problem
        attempts = 1 + (run.lease.attempts if so_far.position == run.lease.position else 0)
        wait = 0.0 if refusal.gone else self.retry_seconds(attempts, refusal)
        if wait is not None:
            reason = GONE if refusal.gone else None
            outcome = replace(so_far, problem=problem, wait=wait, gone=reason)
            return outcome, _build_event(FAILED, run, message.ids, seconds, problem)
        letter = self._build_letter(run, message, problem, attempts)
        outcome = replace(so_far, position=message.last, problem=problem, letter=letter)
        return outcome, _build_event(DEAD, run, message.ids, seconds, problem)

    def _give_up(self, run: PlannedRun) -> DeliveryRun:
        """Give up the first message without sending it: each process that tried to send it was lost."""
        messages, last = self._build_next(run)
        if not messages:
            return DeliveryRun(run.lease, RunOutcome(last, 0))
        message = messages[0]
        letter = self._build_letter(run, message, WORKER_LOST, run.lease.attempts)
        outcome = RunOutcome(message.last, 0, WORKER_LOST, letter=letter)
        return DeliveryRun(run.lease, outcome, (_build_event(DEAD, run, message.ids, 0.0, WORKER_LOST),))

    def _build_letter(self, run: PlannedRun, message: Message, problem: str, attempts: int) -> DeadDelivery:
        return DeadDelivery(
            destination=run.lease.destination,
            subscription=run.lease.subscription,
            subscriber=run.lease.subscriber,
            host=run.lease.host,
            first=message.first,
            last=message.last,
            digest=message.is_digest,
            message=message.id,
            problem=problem,
            attempts=attempts,
            time=format_instant(self.now()),
        )


def _build_event(
    kind: str, run: PlannedRun, ids: tuple[str, ...], seconds: float, problem: str | None = None
) -> DeliveryEvent:
    destination = run.destination
    return DeliveryEvent(
        kind, destination.kind, destination.id, run.lease.subscription, ids, seconds, problem
    )
