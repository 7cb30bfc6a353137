"""Subscriptions as expressions of a rule language, events as dictionaries for such a language."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise

import numpy as np

from benchmarks.peers.intervals import UNBOUNDED, Intervals
from benchmarks.workloads import Events

Event = dict[str, str | int]
MISSING = -UNBOUNDED
"""Replaces missing numbers where a language requires a value: expressions test for greater ones."""


def expressions(intervals: Intervals) -> Iterator[str]:
    """Return one expression per subscription, with clauses in parentheses: `(f0 == "v17" && f1 >= 20134)`."""
    clauses = list(_clauses(intervals))
    bounds = np.searchsorted(intervals.owner, np.arange(intervals.size + 1)).tolist()
    return (" || ".join(clauses[first:last]) for first, last in pairwise(bounds))


def _clauses(intervals: Intervals) -> Iterator[str]:
    equal = intervals.equal[intervals.attribute].tolist()
    columns = (equal, intervals.attribute.tolist(), intervals.low.tolist(), intervals.high.tolist())
    tests = [_test(*each) for each in zip(*columns, strict=True)]
    for begin, end in pairwise(intervals.starts.tolist()):
        yield f"({' && '.join(tests[begin:end])})"


def _test(equal: bool, attribute: int, low: int, high: int) -> str:
    if equal:
        return f'f{attribute} == "v{low}"'
    lower = f"f{attribute} {'>' if low == MISSING else '>='} {low}"
    return lower if high == UNBOUNDED else f"f{attribute} <= {high} && {lower}"


def dictionaries(intervals: Intervals, events: Events) -> list[Event]:
    """Convert events: attributes with only equality tests become strings, all others numbers."""
    selected, equal = intervals.select_attributes(events), intervals.equal.tolist()
    attribute, value = selected.attribute.tolist(), selected.value.tolist()
    return [
        {f"f{attribute[at]}": f"v{value[at]}" if equal[attribute[at]] else value[at] for at in range(*run)}
        for run in pairwise(selected.starts.tolist())
    ]
