"""Paper 003's tables 5.1 and 5.2 with our results: seconds for 10,000 documents, including parsing."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from benchmarks.rows import Row, duration
from benchmarks.workloads.stock_documents import EASE, MANY, title

MESSAGES = 10_000
PLANS = ("unroll", "share", "share-bucket")
TABLE_5_1 = {
    0.1: (56, 107, 26.3),
    1.0: (61, 154, 44.6),
    10.0: (70, 504, 195),
    100.0: (161, 2369, 1210),
}
"""By matches per document: seconds of each plan with a million subscriptions."""

TABLE_5_2 = {100_000: (52, 101, 75), 200_000: (55, 221, 119), 1_000_000: (70, 504, 195)}
"""By subscriptions, of which one in a hundred thousand matches. Both on DB2 8.1, a Pentium IV of 1.4 GHz, 512 MB."""

OURS = ("index", *(f"relational, {plan}" for plan in PLANS))


class Line(NamedTuple):
    """A line: matches per million, number of subscriptions, our seconds by engine, the paper's by plan."""

    share: float
    subscriptions: int
    seconds: dict[str, float]
    paper: tuple[float, ...]


def lines(rows: Sequence[Row]) -> list[Line]:
    """Return the measured sizes and shares, in wall-clock time where several cores did the work."""
    seconds_by_place: dict[tuple[float, int], dict[str, float]] = {}
    shares = {title(share): share for share in EASE}
    for row in rows:
        if row.workload in shares and row.engine in OURS and row.seconds_per_event is not None:
            place = shares[row.workload], row.subscriptions
            each = 1 / row.events_per_second if row.events_per_second else row.seconds_per_event
            seconds_by_place.setdefault(place, {})[row.engine] = each * MESSAGES
    return [Line(*place, seconds, _paper(*place)) for place, seconds in sorted(seconds_by_place.items())]


def _paper(share: float, subscriptions: int) -> tuple[float, ...]:
    if subscriptions == 1_000_000:
        return TABLE_5_1[share]
    return TABLE_5_2.get(subscriptions, ()) if share == MANY else ()


def table(rows: Sequence[Row]) -> str:
    """Format a table for the docs; empty if there are no measurements."""
    measured = lines(rows)
    engines = [engine for engine in OURS if any(engine in line.seconds for line in measured)]
    headings = ["subscriptions", "notifications", *engines, *(f"paper's {plan}" for plan in PLANS)]
    texts = [headings, ["---:"] * len(headings), *(_cells(line, engines) for line in measured)]
    return "\n".join(f"| {' | '.join(text)} |" for text in texts) if measured else ""


def _cells(line: Line, engines: Sequence[str]) -> list[str]:
    notifications = line.share * line.subscriptions / 1e6 * MESSAGES
    ours = [duration(line.seconds[engine]) if engine in line.seconds else "" for engine in engines]
    paper = [f"{seconds:,g} s" for seconds in line.paper] or [""] * len(PLANS)
    return [f"{line.subscriptions:,}", f"{notifications:,.0f}", *ours, *paper]
