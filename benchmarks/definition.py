"""Reference matching of a workload: every test of every subscription, in NumPy.

It is slow and independent of all engines. The first events of each workload are checked against it.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from benchmarks.workloads import Events, Integers, Subscriptions
from tidings.matching.compiler.plan import Relation

_LEAST, _MOST = np.iinfo(np.int64).min, np.iinfo(np.int64).max


def matches(subscriptions: Subscriptions, events: Events) -> Integers:
    """Count the subscriptions that each event satisfies."""
    low, high = _bounds(subscriptions)
    return np.array([_count_matches(subscriptions, low, high, *event) for event in _values(events)], np.int64)


def _bounds(subscriptions: Subscriptions) -> tuple[Integers, Integers]:
    """Convert every test into a closed interval of integers."""
    relation = subscriptions.relation
    low = np.where(
        np.isin(relation, (Relation.LT, Relation.LE)), _LEAST, subscriptions.low + (relation == Relation.GT)
    )
    high = np.where(
        np.isin(relation, (Relation.GT, Relation.GE)), _MOST, subscriptions.high - (relation == Relation.LT)
    )
    return low, high


def _values(events: Events) -> list[tuple[npt.NDArray[np.bool_], Integers]]:
    """Return for each event which attributes it has, and its values."""
    rows = []
    for begin, end in zip(events.starts[:-1], events.starts[1:], strict=True):
        present, value = (
            np.zeros(len(events.attributes), np.bool_),
            np.zeros(len(events.attributes), np.int64),
        )
        present[events.attribute[begin:end]] = True
        value[events.attribute[begin:end]] = events.value[begin:end]
        rows.append((present, value))
    return rows


def _count_matches(
    subscriptions: Subscriptions,
    low: Integers,
    high: Integers,
    present: npt.NDArray[np.bool_],
    value: Integers,
) -> int:
    tested = value[subscriptions.attribute]
    satisfied = present[subscriptions.attribute] & (tested >= low) & (tested <= high)
    clauses = np.logical_and.reduceat(satisfied, subscriptions.starts[:-1])
    return len(np.unique(subscriptions.owner[clauses]))
