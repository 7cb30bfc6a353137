"""Works on one lane: makes messages of its next entries, has them sent in order, and says what became of that.

Nothing is written here; the loop writes what became of many lanes at once.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from random import Random
from threading import BoundedSemaphore, Event
from time import monotonic

from tidings.delivery.happened import DEAD, DELIVERED, FAILED, Happened
from tidings.delivery.messages import Message, digest, single
from tidings.delivery.rules import Rules
from tidings.delivery.sending import Refusal, Sender, Sent
from tidings.delivery.turns import Work
from tidings.model import WITHHELD, Notification
from tidings.store import Destination, Lane, Letter, Progress, Read, Store, Stretch, instant

READERS = 4
"""How many read the store at once: more would each open a connection of their own, again and again."""
GONE = "the receiver says that it is gone (410)"
VANISHED = "whoever delivered it ended each time"


def is_open(told: Notification) -> bool:
    """Whether its subscriber may see now what a notification is about; what they may not is not delivered. The store
    says so with each that it reads: grants that were revoked meanwhile count.
    """
    return told.kind != WITHHELD


@dataclass(frozen=True, slots=True)
class Run:
    """What became of a lane: nothing, if it was not worked on. `happened` is true once it is written down."""

    lane: Lane
    progress: Progress | None
    happened: tuple[Happened, ...] = ()


class Courier:
    """Delivers, from any number of threads."""

    def __init__(
        self,
        store: Store,
        senders: Mapping[str, Sender],
        rules: Rules,
        chance: Random | None = None,
    ) -> None:
        self.store, self.senders, self.rules = store, senders, rules
        self._chance = chance or Random()
        self._reading = BoundedSemaphore(READERS)
        self.stop = Event()

    def work(self, work: Work) -> Run:
        """Deliver the next entries of a lane, until one is not taken or it is somebody else's turn."""
        lane = work.lane
        if self.stop.is_set():
            return Run(lane, None)
        if lane.attempts > len(self.rules.retries):
            return self._given_up(work)
        messages, last = self._messages(work)
        began = monotonic()
        sent = self._sent(work.to, messages, began)
        if self.stop.is_set() and sent.refusal and not sent.refusal.status:
            sent = Sent(sent.taken)  # it was ended here, which says nothing about the receiver
        if messages and not sent.taken and sent.refusal is None:
            return Run(lane, None)
        return self._run(work, messages, last, sent, monotonic() - began)

    def redeliver(self, letter: Letter, to: Destination) -> tuple[Sent, tuple[str, ...]]:
        """Try a dead letter again, with what its subscriber may see of it now."""
        stretch = Stretch(letter.subscriber, letter.subscription, letter.first, letter.last)
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

    def _sent(self, to: Destination, messages: Sequence[Message], began: float) -> Sent:
        def enough() -> bool:
            return self.stop.is_set() or monotonic() - began > self.rules.run_seconds

        return self.senders[to.kind].send(to, messages, enough) if messages else Sent(0)

    def _messages(self, work: Work) -> tuple[Sequence[Message], int]:
        """The next messages, and the last entry that they stand for."""
        stretch, together = work.lane.next(self.rules.run), work.lane.together
        read = work.read or self._read(stretch, None if together else self.rules.run_bytes)
        last = read.entries[-1].number if read.entries else work.lane.told
        return self._made(read, stretch, together), stretch.last if together else last

    def _read(self, stretch: Stretch, most_bytes: int | None) -> Read:
        with self._reading:
            return self.store.runs.read(stretch, self.rules.largest, most_bytes)

    def _made(self, read: Read, stretch: Stretch, together: bool) -> Sequence[Message]:
        """Messages of entries, oldest first. This is the place where it is looked again who may see what."""
        left, found = [entry for entry in read.entries if is_open(entry.notification)], read.publications
        if together:
            most = self.rules.digest_bytes
            return [digest(left, found, stretch.first, stretch.last, most)] if left else []
        largest = self.rules.largest
        return [single(entry, found.get(entry.notification.publication), largest) for entry in left]

    def _run(self, work: Work, messages: Sequence[Message], last: int, sent: Sent, seconds: float) -> Run:
        """The cursor stands before the first message that was not taken; what nobody may see it passes by."""
        taken = messages[: sent.taken]
        ids = tuple(id for message in taken for id in message.ids)
        happened = (_happened(DELIVERED, work, ids, seconds),) if ids else ()
        if sent.taken == len(messages):
            return Run(work.lane, Progress(last, len(ids)), happened)
        next_one = messages[sent.taken]
        told = next_one.first - 1
        if sent.refusal is None:
            return Run(work.lane, Progress(told, len(ids)), happened)
        attempts = 1 + (work.lane.attempts if told == work.lane.told else 0)
        return self._refused(
            work, next_one, Progress(told, len(ids)), sent.refusal, attempts, happened, seconds
        )

    def _refused(
        self,
        work: Work,
        message: Message,
        before: Progress,
        refusal: Refusal,
        attempts: int,
        happened: tuple[Happened, ...],
        seconds: float,
    ) -> Run:
        gone = GONE if refusal.gone else None
        wait = self.wait(attempts, refusal) if not gone else 0.0
        problem = refusal.problem
        if wait is not None:
            failed = _happened(FAILED, work, message.ids, seconds, problem)
            progress = Progress(before.told, before.delivered, problem, wait, gone=gone)
            return Run(work.lane, progress, (*happened, failed))
        letter = self._letter(work, message, problem, attempts)
        progress = Progress(message.last, before.delivered, problem, letter=letter)
        return Run(work.lane, progress, (*happened, _happened(DEAD, work, message.ids, seconds, problem)))

    def _given_up(self, work: Work) -> Run:
        """Whoever took it vanished too often: its first message is given up unseen."""
        messages, last = self._messages(work)
        if not messages:
            return Run(work.lane, Progress(last, 0))
        letter = self._letter(work, messages[0], VANISHED, work.lane.attempts)
        progress = Progress(messages[0].last, 0, VANISHED, letter=letter)
        return Run(work.lane, progress, (_happened(DEAD, work, messages[0].ids, 0.0, VANISHED),))

    def _letter(self, work: Work, message: Message, problem: str, attempts: int) -> Letter:
        lane, moment = work.lane, instant(self.now())
        return Letter(
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
        return self.store.lanes.now()


def _happened(
    what: str, work: Work, ids: tuple[str, ...], seconds: float, problem: str | None = None
) -> Happened:
    return Happened(what, work.to.kind, work.to.id, work.lane.subscription, ids, seconds, problem)
