"""GoRules ZEN (Rust, by zen-engine): one decision table with hit policy "collect" and a row for each clause.

f0       | f1         | subscription
"v17"    | >= 20134   | 0
"""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import zen

from benchmarks.engine import Counts, Engine
from benchmarks.peers.expressions import dictionaries
from benchmarks.peers.intervals import MOST, UNBOUNDED, Intervals, to_intervals
from benchmarks.workloads import Events, Subscriptions
from tests.support.packages import Unavailable

COLUMNS = 200
"""Limit of attributes in a table: every row has a cell for each."""


class Zen(Engine):
    name = "ZEN decision table"

    def prepare(self, subscriptions: Subscriptions) -> None:
        self._intervals = to_intervals(subscriptions, MOST)
        if len(self._intervals.attributes) > COLUMNS:
            raise Unavailable(f"not tried with a table of more than {COLUMNS} columns")
        self._text = json.dumps(_decision(self._intervals))

    def build(self) -> None:
        self._decision = zen.ZenEngine().create_decision(zen.ZenDecisionContent(self._text))

    def give(self, events: Events) -> None:
        self._events = dictionaries(self._intervals, events)

    def match(self) -> list[Any]:
        return [self._decision.evaluate(event) for event in self._events]

    def counts(self, answer: list[Any]) -> Counts:
        owners = ({row["subscription"] for row in each["result"]} for each in answer)
        return np.array([len(found) for found in owners], np.int64)


def _decision(intervals: Intervals) -> dict[str, Any]:
    nodes = [
        {"id": "in", "type": "inputNode", "name": "in"},
        {"id": "table", "type": "decisionTableNode", "name": "table", "content": _table(intervals)},
        {"id": "out", "type": "outputNode", "name": "out"},
    ]
    edges = [
        {"id": f"{source}-{target}", "type": "edge", "sourceId": source, "targetId": target}
        for source, target in (("in", "table"), ("table", "out"))
    ]
    return {"contentType": "application/vnd.gorules.decision", "nodes": nodes, "edges": edges}


def _table(intervals: Intervals) -> dict[str, Any]:
    fields = [f"f{at}" for at in range(len(intervals.attributes))]
    return {
        "hitPolicy": "collect",
        "inputs": [{"id": name, "name": name, "field": name} for name in fields],
        "outputs": [{"id": "subscription", "name": "subscription", "field": "subscription"}],
        "rules": _rows(intervals),
    }


def _rows(intervals: Intervals) -> list[dict[str, str]]:
    owners = enumerate(intervals.owner.tolist())
    rows = [{"_id": str(clause), "subscription": str(owner)} for clause, owner in owners]
    tests = zip(
        intervals.clause.tolist(),
        intervals.attribute.tolist(),
        intervals.low.tolist(),
        intervals.high.tolist(),
        strict=True,
    )
    for clause, attribute, low, high in tests:
        rows[clause][f"f{attribute}"] = _cell(bool(intervals.equal[attribute]), low, high)
    return rows


def _cell(equal: bool, low: int, high: int) -> str:
    if equal:
        return f'"v{low}"'
    if low == -UNBOUNDED:
        return f"<= {high}"
    return f">= {low}" if high == UNBOUNDED else f"[{low}..{high}]"
