"""Rows of measurements, and tables of them."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Literal

RESULTS = Path(__file__).parent / "results" / "latest.json"

Role = Literal["ours", "peer", "limit"]
"""Tidings; an engine of another project; a program written by hand for one workload, as a measure of the machine."""


@dataclass(frozen=True)
class Row:
    """One line of the table. Times are CPU seconds, medians where there were several runs.

    If an engine was not measured, its figures are None and `note` gives the reason. `events_per_second` is wall-clock,
    only given if several processes do the work. `p50_seconds` and `p99_seconds` are percentiles of single calls.
    `changes_per_second` counts subscriptions added and removed during the run. `linear_paths` counts the different
    linear paths of XPath subscriptions. `edges_per_cpu_second` is given where graphs are decoded without matching.
    `stored_bytes_per_subscription` is on disk. `taken` describes the run: command, commit, date and machine.
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
    """Return the rows with their ratios to the best peer and to the limit of their workload and size."""
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
    """Return the rows measured now, and the rows of earlier runs that they do not replace.

    A workload is replaced size by size with its peers and limits, so that ratios come from one run. Our engines that
    were not measured now keep their rows and ratios, such as the plans on Spark, which are a separate part.
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
    """Save all rows as JSON, for tools and for the next comparison."""
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
    """Format the cells of a row."""
    return (
        row.workload,
        f"{row.subscriptions:,}",
        row.engine,
        _format(row.events_per_cpu_second, "{:,.0f}".format),
        _format(row.edges_per_cpu_second, "{:,.0f}".format),
        _format(row.events_per_second, "{:,.0f}".format),
        _format(row.ratio_to_best_peer, "{:.3g}".format),
        _format(row.fraction_of_limit, "{:.3g}".format),
        _format(row.seconds_per_event, duration),
        _format(row.matches_per_event, "{:,.1f}".format),
        _format(row.build_seconds, duration),
        _format(row.bytes_per_subscription, "{:,.0f}".format),
        _format(row.stored_bytes_per_subscription, "{:,.0f}".format),
        _format(row.seconds_per_added_subscription, duration),
        _format(row.p50_seconds, duration),
        _format(row.p99_seconds, duration),
        _format(row.changes_per_second, "{:,.0f}".format),
        _format(row.linear_paths, "{:,}".format),
        row.note,
    )


def _format(value: float | None, form: Callable[[float], str]) -> str:
    return "" if value is None else form(value)


def duration(seconds: float) -> str:
    for unit, size in (("s", 1.0), ("ms", 1e-3), ("µs", 1e-6)):
        if seconds >= size:
            return f"{seconds / size:.3g} {unit}"
    return f"{seconds / 1e-9:.3g} ns"


def table(rows: Iterable[Row]) -> str:
    """Format a plain-text table; numbers are right-aligned."""
    used, lines = _used_columns(rows)
    widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
    return "\n".join(
        "  ".join(
            cell.ljust(width) if column in TEXTS else cell.rjust(width)
            for column, cell, width in zip(used, line, widths, strict=True)
        ).rstrip()
        for line in lines
    )


def markdown(rows: Iterable[Row]) -> str:
    """Format the same table in Markdown."""
    used, (headings, *lines) = _used_columns(rows)
    ruler = ["---" if column in TEXTS else "---:" for column in used]
    return "\n".join("| " + " | ".join(line) + " |" for line in (headings, ruler, *lines))


def _used_columns(rows: Iterable[Row]) -> tuple[list[str], list[list[str]]]:
    """Return the non-empty columns, and the lines of a table of them, headings first."""
    lines = [cells(row) for row in rows]
    used = [at for at in range(len(HEADINGS)) if at < 4 or any(line[at] for line in lines)]
    return [HEADINGS[at] for at in used], [[line[at] for at in used] for line in (HEADINGS, *lines)]
