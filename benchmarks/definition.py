"""What a workload's events match, by the definition: every test of every subscription, in NumPy.

Slow, and independent of every engine: the first events of each workload are checked against it.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from benchmarks.workloads import Events, Integers, Subscriptions
from tidings.matching.compiler.plan import Relation

_LEAST, _MOST = np.iinfo(np.int64).min, np.iinfo(np.int64).max


def matches(subscriptions: Subscriptions, events: Events) -> Integers:
    """How many subscriptions each event satisfies."""
    low, high = _bounds(subscriptions)
    return np.array([_of_one(subscriptions, low, high, *event) for event in _values(events)], np.int64)


def _bounds(asked: Subscriptions) -> tuple[Integers, Integers]:
    """Every test as a closed interval of whole numbers."""
    relation = asked.relation
    low = np.where(
        np.isin(relation, (Relation.LT, Relation.LE)), _LEAST, asked.low + (relation == Relation.GT)
    )
    high = np.where(
        np.isin(relation, (Relation.GT, Relation.GE)), _MOST, asked.high - (relation == Relation.LT)
    )
    return low, high


def _values(events: Events) -> list[tuple[npt.NDArray[np.bool_], Integers]]:
    """For each event, which attributes it has, and its values."""
    found = []
    for begin, end in zip(events.starts[:-1], events.starts[1:], strict=True):
        present, value = (
            np.zeros(len(events.attributes), np.bool_),
            np.zeros(len(events.attributes), np.int64),
        )
        present[events.attribute[begin:end]] = True
        value[events.attribute[begin:end]] = events.value[begin:end]
        found.append((present, value))
    return found


def _of_one(
    asked: Subscriptions, low: Integers, high: Integers, present: npt.NDArray[np.bool_], value: Integers
) -> int:
    mine = value[asked.attribute]
    true = present[asked.attribute] & (mine >= low) & (mine <= high)
    clauses = np.logical_and.reduceat(true, asked.starts[:-1])
    return len(np.unique(asked.owner[clauses]))
