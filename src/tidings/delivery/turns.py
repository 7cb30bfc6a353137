"""Whose turn it is: what is done with lanes that were taken, asked and written for all of them at once.

Most lanes have one entry. A question to the store for each of them would take longer than the delivery.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from tidings.delivery.quiet import quiet_until
from tidings.delivery.rules import Rules
from tidings.store import Destination, Lane, Read, Store
from tidings.store.destinations import ACTIVE

FEW = 4
"""Lanes with no more entries than this have them read together; the others read for themselves, while these go."""
SMALL = 20_000
"""So many bytes a publication has at most that is read for many lanes at once."""


@dataclass(frozen=True, slots=True)
class Work:
    """A lane that was taken, where it leads, and what was read of its next entries, if that was."""

    lane: Lane
    to: Destination
    read: Read | None


def turns(store: Store, rules: Rules, taken: Sequence[Lane]) -> list[Work]:
    """What is to be delivered now. Lanes of destinations that are not active are given back, those of subscribers who
    want to be left alone are put off, digests are begun.
    """
    known, now = store.runs.known(taken, rules.run, FEW, SMALL), store.lanes.now()
    ends = {who: quiet_until(hours, now) for who, hours in known.quiet.items()}
    idle, later, ready = [], [], []
    for lane, read in zip(taken, known.read, strict=True):
        to, end = known.destinations.get(lane.destination), ends.get(lane.subscriber)
        if to is None or to.state != ACTIVE:
            idle.append(lane)
        elif end is not None:
            later.append((lane, end))
        else:
            ready.append(Work(lane, to, read))
    if idle:
        store.lanes.release(idle)
    if later:
        store.lanes.put_off(later)
    return _begun(store, rules, ready)


def _begun(store: Store, rules: Rules, ready: Sequence[Work]) -> list[Work]:
    """Those that are still ours. A digest is begun before it is sent, so that it is the same however often it is."""
    new = {work.lane.key: work.to for work in ready if work.lane.together and work.lane.gathered is None}
    if not new:
        return list(ready)
    old = [work for work in ready if work.lane.key not in new]
    begun = store.lanes.gather([work.lane for work in ready if work.lane.key in new], rules.digest)
    read = store.runs.read_short([lane.next(rules.run) for lane in begun], FEW, SMALL)
    return old + [Work(lane, new[lane.key], each) for lane, each in zip(begun, read, strict=True)]
