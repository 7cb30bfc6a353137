"""What happens to candidates in Spark's tasks: the branch check, and the verification of what joins cannot say.

Both are functions for `mapInArrow`. The branch check reads TagPath_BrInfo once for each worker, as `brpred_udf` does
(section 3.5.2). Verification asks the definition of matching.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from functools import lru_cache
from typing import Any

import pyarrow as pa

from tidings.errors import DecodeProblem
from tidings.languages import xpath
from tidings.languages.xpath_tree import Expression
from tidings.matching.documents import matches
from tidings.publications import xml
from tidings.relational.brpred import BpPosition, Found, Positions, brpred
from tidings.relational.versions import Version

Stage = Callable[[Iterable[Any]], Iterator[Any]]

CHECKED = "event_id string, subscription string, text string"
PAIRS = "event_id string, subscription string"
TEXTS = 10_000
"""How many parsed texts a worker keeps."""


@lru_cache(maxsize=2)
def _positions(version: Version) -> Positions:
    """Kept, because a worker process runs many tasks."""
    rows = version.rows("tagpath_brinfo")
    keys = zip(rows["tagpath_id"].to_pylist(), rows["brinfo_id"].to_pylist(), strict=True)
    return dict(zip(keys, map(BpPosition.read, rows["bp_position"].to_pylist()), strict=True))


def check_branches(version: Version) -> Stage:
    """Candidates (event_id, subscription, text, branchpoint_info, branches) in, those whose branches meet out."""

    def run(batches: Iterable[Any]) -> Iterator[Any]:
        known = _positions(version)
        for batch in batches:
            infos, branches = batch.column("branchpoint_info").to_pylist(), batch.column("branches")
            kept = [info is None or _meets(info, branches[i].as_py(), known) for i, info in enumerate(infos)]
            yield batch.select(["event_id", "subscription", "text"]).filter(pa.array(kept, pa.bool_()))

    return run


def _meets(info: str, branches: list[list[dict[str, Any]]], known: Positions) -> bool:
    found = [[Found(**node) for node in nodes] for nodes in branches]
    return brpred(list(map(int, info.split("&"))), found, known)


@lru_cache(maxsize=TEXTS)
def _expression(text: str) -> Expression:
    return xpath.parse(text)


def verify() -> Stage:
    """Documents with candidates (publication, body, wanted: their subscriptions and texts) in, matches out."""

    def run(batches: Iterable[Any]) -> Iterator[Any]:
        for batch in batches:
            for event_id, body, wanted in zip(*batch.columns, strict=True):
                asked = [(each["subscription"], each["text"]) for each in wanted.as_py()]
                yield _pairs(event_id.as_py(), _matching(body.as_py(), asked))

    return run


@lru_cache(maxsize=2)
def _everywhere(version: Version) -> list[tuple[str, str]]:
    return version.alive("query_everywhere", "text")


def verify_everywhere(version: Version) -> Stage:
    """Documents (publication, body) in; their matches with the subscriptions that the joins have no hold on out."""

    def run(batches: Iterable[Any]) -> Iterator[Any]:
        asked = _everywhere(version)
        for batch in batches:
            for event_id, body in zip(*batch.columns, strict=True):
                with suppress(DecodeProblem):  # it is among the rejects: whoever parses all documents says so
                    yield _pairs(event_id.as_py(), _matching(body.as_py(), asked))

    return run


def _matching(body: bytes, asked: Iterable[tuple[str, str]]) -> list[str]:
    document = xml.decode(body)
    return [subscription for subscription, text in asked if matches(_expression(text), document)]


def _pairs(event_id: str, subscriptions: list[str]) -> Any:
    columns = {"event_id": [event_id] * len(subscriptions), "subscription": subscriptions}
    return pa.RecordBatch.from_pydict(columns, pa.schema([(name, pa.string()) for name in columns]))
