"""Measurements beside the tables of paper 003, and the goals for documents."""

from __future__ import annotations

from benchmarks import documents, paper003
from benchmarks.goals import goals
from benchmarks.rows import Role, Row
from benchmarks.workloads.stock_documents import title


def row(workload: str, size: int, engine: str, seconds: float, role: Role = "ours") -> Row:
    return Row(workload, size, engine, 1 / seconds, None, None, 1.0, seconds_per_event=seconds, role=role)


STOCK = [
    row(title(10.0), 100_000, "index", 20e-6),
    row(title(10.0), 1_000_000, "index", 30e-6),
    row(title(10.0), 1_000_000, "index: match", 10e-6),
    row(title(100.0), 1_000_000, "index", 120e-6),
    row(title(10.0), 10_000, "relational, unroll", 5e-3),
]
REAL = [
    row("anthology", 130_000, "parsing alone (lxml)", 20e-6, "limit"),
    row("anthology", 130_000, documents.MATCH, 70e-6),
    row("anthology", 2_700_000, "parsing alone (lxml)", 20e-6, "limit"),
    row("anthology", 2_700_000, documents.MATCH, 50e-6),
]


def test_table_shows_measured_and_published_seconds() -> None:
    assert paper003.table(STOCK).splitlines() == [
        "| subscriptions | notifications | index | relational, unroll | paper's unroll | paper's share | "
        "paper's share-bucket |",
        "| ---: | ---: | ---: | ---: | ---: | ---: | ---: |",
        "| 10,000 | 1,000 |  | 50 s |  |  |  |",
        "| 100,000 | 10,000 | 200 ms |  | 52 s | 101 s | 75 s |",
        "| 1,000,000 | 100,000 | 300 ms |  | 70 s | 504 s | 195 s |",
        "| 1,000,000 | 1,000,000 | 1.2 s |  | 161 s | 2,369 s | 1,210 s |",
    ]
    assert paper003.table(REAL) == ""


def test_goals_for_documents_are_reported() -> None:
    report = goals([*STOCK, *REAL]).splitlines()[2:]
    at = "10,000 stock documents at 1,000,000 subscriptions"
    grown = "the same at 1,000,000 beside 100,000 subscriptions, with ten times the matches"
    assert report == [
        f"| {at}, 100,000 notifications | at most 1 s | 300 ms | met |",
        f"| {at}, 1,000,000 notifications | at most 1 s | 1.2 s | missed: 83% of it |",
        f"| {grown} | at most 1.30 x | 1.50 x | missed: 87% of it |",
        "| matching real documents at 2,700,000 subscriptions, beside parsing them | at most 3.00 x | 2.50 x | met |",
    ]
