"""Rows: what is kept of a measurement, and the tables they make."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Literal

RESULTS = Path(__file__).parent / "results" / "latest.json"

Role = Literal["ours", "peer", "limit"]
"""Tidings; somebody else's engine; a program written by hand for this one workload, as a measure of the machine."""


@dataclass(frozen=True)
class Row:
    """One line of the table. Times are CPU seconds, medians where there were several runs.

    Where an engine was not measured, its figures are None and `note` says why. `events_per_second` is wall-clock,
    given only where the work is done by several processes. `p50_seconds` and `p99_seconds` are of single calls:
    half of them, and 99 of 100, took no longer. `changes_per_second` is how many subscriptions came and went meanwhile.
    `linear_paths` is how many different ones XPath subscriptions have. `edges_per_cpu_second` is told where graphs are
    read, and nothing is matched. `stored_bytes_per_subscription` is on the disk.
    `taken` says by which command, when, and on what.
    """

    workload: str
    subscriptions: int
    engine: str
    events_per_cpu_second: float | None
    build_seconds: float | None
    bytes_per_subscription: float | None
    matches_per_event: float | None
    ratio_to_best_peer: float | None = None
    fraction_of_limit: float | None = None
    seconds_per_event: float | None = None
    seconds_per_added_subscription: float | None = None
    events_per_second: float | None = None
    p50_seconds: float | None = None
    p99_seconds: float | None = None
    changes_per_second: float | None = None
    linear_paths: int | None = None
    edges_per_cpu_second: float | None = None
    stored_bytes_per_subscription: float | None = None
    role: Role = "ours"
    note: str = ""
    taken: str = ""


def compared(rows: Sequence[Row]) -> list[Row]:
    """The rows, each with its ratio to the best peer and to the limit of its workload and size."""
    peer, limit = _fastest(rows, "peer"), _fastest(rows, "limit")
    return [
        replace(
            row,
            ratio_to_best_peer=_ratio(row, peer.get((row.workload, row.subscriptions))),
            fraction_of_limit=_ratio(row, limit.get((row.workload, row.subscriptions))),
        )
        for row in rows
    ]


def merged(before: Sequence[Row], now: Sequence[Row]) -> list[Row]:
    """The rows measured now, and those of earlier runs that they do not replace.

    A workload is replaced size by size with its peers and limits, so that ratios are of one run. Engines of ours that
    were not measured now stay, with the ratios that they had: the plans on Spark, which are a part of their own.
    """
    sizes = {(row.workload, row.subscriptions) for row in now}
    engines = {(row.workload, row.subscriptions, row.engine) for row in now}

    def stays(row: Row) -> bool:
        size = row.workload, row.subscriptions
        return size not in sizes or (row.role == "ours" and (*size, row.engine) not in engines)

    return [*filter(stays, before), *compared(now)]


def _fastest(rows: Iterable[Row], role: Role) -> dict[tuple[str, int], float]:
    best: dict[tuple[str, int], float] = {}
    for row in rows:
        if row.role == role and row.events_per_cpu_second is not None:
            key = row.workload, row.subscriptions
            best[key] = max(best.get(key, 0.0), row.events_per_cpu_second)
    return best


def _ratio(row: Row, best: float | None) -> float | None:
    return None if best is None or row.events_per_cpu_second is None else row.events_per_cpu_second / best


def save(rows: Sequence[Row], path: Path = RESULTS) -> None:
    """All rows as JSON, for machines and for the next comparison."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps([asdict(row) for row in rows], indent=1) + "\n")


def load(path: Path = RESULTS) -> list[Row]:
    return [Row(**row) for row in json.loads(path.read_text())]


HEADINGS = (
    "workload",
    "subscriptions",
    "engine",
    "events / CPU s",
    "edges / CPU s",
    "events / s",
    "x best peer",
    "of the limit",
    "time / event",
    "matches / event",
    "build",
    "bytes / sub.",
    "stored bytes / sub.",
    "time / added sub.",
    "p50",
    "p99",
    "changes / s",
    "linear paths",
    "note",
)
TEXTS = ("workload", "engine", "note")


def cells(row: Row) -> tuple[str, ...]:
    """A row as people read it."""
    return (
        row.workload,
        f"{row.subscriptions:,}",
        row.engine,
        _shown(row.events_per_cpu_second, "{:,.0f}".format),
        _shown(row.edges_per_cpu_second, "{:,.0f}".format),
        _shown(row.events_per_second, "{:,.0f}".format),
        _shown(row.ratio_to_best_peer, "{:.3g}".format),
        _shown(row.fraction_of_limit, "{:.3g}".format),
        _shown(row.seconds_per_event, duration),
        _shown(row.matches_per_event, "{:,.1f}".format),
        _shown(row.build_seconds, duration),
        _shown(row.bytes_per_subscription, "{:,.0f}".format),
        _shown(row.stored_bytes_per_subscription, "{:,.0f}".format),
        _shown(row.seconds_per_added_subscription, duration),
        _shown(row.p50_seconds, duration),
        _shown(row.p99_seconds, duration),
        _shown(row.changes_per_second, "{:,.0f}".format),
        _shown(row.linear_paths, "{:,}".format),
        row.note,
    )


def _shown(value: float | None, form: Callable[[float], str]) -> str:
    return "" if value is None else form(value)


def duration(seconds: float) -> str:
    for unit, size in (("s", 1.0), ("ms", 1e-3), ("µs", 1e-6)):
        if seconds >= size:
            return f"{seconds / size:.3g} {unit}"
    return f"{seconds / 1e-9:.3g} ns"


def table(rows: Iterable[Row]) -> str:
    """A plain table in columns; numbers to the right."""
    used, lines = _filled(rows)
    widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
    return "\n".join(
        "  ".join(
            cell.ljust(width) if column in TEXTS else cell.rjust(width)
            for column, cell, width in zip(used, line, widths, strict=True)
        ).rstrip()
        for line in lines
    )


def markdown(rows: Iterable[Row]) -> str:
    """The same table for the docs."""
    used, (headings, *lines) = _filled(rows)
    ruler = ["---" if column in TEXTS else "---:" for column in used]
    return "\n".join("| " + " | ".join(line) + " |" for line in (headings, ruler, *lines))


def _filled(rows: Iterable[Row]) -> tuple[list[str], list[list[str]]]:
    """The columns in which some row has something, and the lines of a table of those, headings first."""
    lines = [cells(row) for row in rows]
    used = [at for at in range(len(HEADINGS)) if at < 4 or any(line[at] for line in lines)]
    return [HEADINGS[at] for at in used], [[line[at] for at in used] for line in (HEADINGS, *lines)]
