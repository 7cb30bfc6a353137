"""Subscriptions as expressions of a rule language, events as the dictionaries such a language takes."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise

import numpy as np

from benchmarks.peers.intervals import UNBOUNDED, Intervals
from benchmarks.workloads import Events

Event = dict[str, str | int]
MISSING = -UNBOUNDED
"""The number that an event lacks, where a language wants one: an expression asks for something greater."""


def expressions(asked: Intervals) -> Iterator[str]:
    """One for each subscription, its clauses in parentheses: `(f0 == "v17" && f1 >= 20134)`."""
    clauses = list(_clauses(asked))
    bounds = np.searchsorted(asked.owner, np.arange(asked.size + 1)).tolist()
    return (" || ".join(clauses[first:last]) for first, last in pairwise(bounds))


def _clauses(asked: Intervals) -> Iterator[str]:
    equal = asked.equal[asked.attribute].tolist()
    columns = (equal, asked.attribute.tolist(), asked.low.tolist(), asked.high.tolist())
    tests = [_test(*each) for each in zip(*columns, strict=True)]
    for begin, end in pairwise(asked.starts.tolist()):
        yield f"({' && '.join(tests[begin:end])})"


def _test(equal: bool, attribute: int, low: int, high: int) -> str:
    if equal:
        return f'f{attribute} == "v{low}"'
    lower = f"f{attribute} {'>' if low == MISSING else '>='} {low}"
    return lower if high == UNBOUNDED else f"f{attribute} <= {high} && {lower}"


def dictionaries(asked: Intervals, events: Events) -> list[Event]:
    """What is only compared by equality as strings, the rest as numbers."""
    mine, equal = asked.asked(events), asked.equal.tolist()
    attribute, value = mine.attribute.tolist(), mine.value.tolist()
    return [
        {f"f{attribute[at]}": f"v{value[at]}" if equal[attribute[at]] else value[at] for at in range(*run)}
        for run in pairwise(mine.starts.tolist())
    ]
