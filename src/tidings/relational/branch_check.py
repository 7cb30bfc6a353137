"""BrPred: the check that the branches of a subscription meet in the same elements (section 3.5).

A branch has found nodes. The tag path of a node gives the possible positions of the branching points, its id path the
nodes there. So every branch is a relation from branching points to node ids, and the branches meet if the natural join
of these relations is not empty.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, NamedTuple

import pyarrow as pa

from tidings.documents import xml_decoder
from tidings.documents.reference_matcher import matches
from tidings.documents.xpath import xpath_parser
from tidings.documents.xpath.xpath_tree import Expression
from tidings.errors import DecodeProblem
from tidings.relational.linear_match import positions
from tidings.relational.tables import Version

_POINT = re.compile(r"bp#(\d+)=(\d+)")
_ARRAY = re.compile(r"\{([^}]*)\}")


class BranchNode(NamedTuple):
    """A node that a branch has found."""

    tagpath_id: int
    idpath: str


@dataclass(frozen=True, slots=True)
class BpPosition:
    """Branching points and their possible positions in a tag path: `{bp#1,bp#2},{2,4},{3,4}` of figure 3.11."""

    points: tuple[int, ...]
    arrays: tuple[tuple[int, ...], ...]

    def show(self) -> str:
        arrays = [",".join(map(str, array)) for array in self.arrays]
        return ",".join(f"{{{inside}}}" for inside in (",".join(f"bp#{n}" for n in self.points), *arrays))

    @classmethod
    def read(cls, text: str) -> BpPosition:
        points, *arrays = (inside.split(",") if inside else [] for inside in _ARRAY.findall(text))
        return cls(
            tuple(int(point[3:]) for point in points), tuple(tuple(map(int, array)) for array in arrays)
        )

    def relation(self, idpath: str) -> Relation:
        """Return the node ids at the branching points of an id path (figure 3.14)."""
        ids = idpath.split(".")
        return Relation(self.points, frozenset(tuple(ids[at - 1] for at in array) for array in self.arrays))


@dataclass(frozen=True, slots=True)
class Relation:
    """Node ids by branching point."""

    points: tuple[int, ...]
    rows: frozenset[tuple[str, ...]]

    def __or__(self, other: Relation) -> Relation:
        return Relation(self.points, self.rows | other.rows)

    def join(self, other: Relation) -> Relation:
        """Return the natural join: equal at common points."""
        common = [point for point in self.points if point in other.points]
        mine, theirs = [self.points.index(p) for p in common], [other.points.index(p) for p in common]
        new = [i for i, point in enumerate(other.points) if point not in common]
        partners: dict[tuple[str, ...], list[tuple[str, ...]]] = {}
        for row in other.rows:
            partners.setdefault(tuple(row[i] for i in theirs), []).append(tuple(row[i] for i in new))
        rows = (row + more for row in self.rows for more in partners.get(tuple(row[i] for i in mine), ()))
        return Relation((*self.points, *(other.points[i] for i in new)), frozenset(rows))


EVERYTHING = Relation((), frozenset({()}))


def bp_position(linear: str, info: str, tag: str) -> BpPosition:
    """Return the positions of a linear path's branching points in a tag path (`bp_pos_udf` of figure 3.10)."""
    numbered = [(int(number), int(step)) for number, step in _POINT.findall(info)]
    arrays = positions(linear, tag, tuple(step for _, step in numbered))
    return BpPosition(tuple(number for number, _ in numbered), arrays)


Positions = Mapping[tuple[int, int], BpPosition]
"""TagPath_BrInfo: by the ids of a tag path and of a branching information."""


def converted(
    infos: Sequence[int], branches: Iterable[Iterable[BranchNode]], known: Positions
) -> list[Relation]:
    """Return the relation of each branch: the union over the nodes it has found."""
    relations = []
    for info, found in zip(infos, branches, strict=True):
        nodes = iter(found)
        tagpath_id, idpath = next(nodes)
        relation = known[tagpath_id, info].relation(idpath)
        for tagpath_id, idpath in nodes:
            relation |= known[tagpath_id, info].relation(idpath)
        relations.append(relation)
    return relations


def brpred(infos: Sequence[int], branches: Iterable[Iterable[BranchNode]], known: Positions) -> bool:
    """Return whether the branches meet: the natural join of their relations is not empty."""
    joined = EVERYTHING
    for relation in converted(infos, branches, known):
        joined = joined.join(relation)
        if not joined.rows:
            return False
    return True


# Functions for `mapInArrow`: the branch check, and verification with the reference matcher of what joins cannot decide.
# The branch check reads TagPath_BrInfo once per worker, like `brpred_udf` (section 3.5.2).


Stage = Callable[[Iterable[Any]], Iterator[Any]]

CHECKED = "event_id string, subscription string, subscriber string, text string"
PAIRS = "event_id string, subscription string, subscriber string"
TEXTS = 10_000
"""Maximum number of parsed texts that a worker caches."""


@lru_cache(maxsize=2)
def _positions(version: Version) -> Positions:
    """Cached, because a worker process runs many tasks."""
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
            checked = batch.select(["event_id", "subscription", "subscriber", "text"])
            yield checked.filter(pa.array(kept, pa.bool_()))

    return run


def _meets(info: str, branches: list[list[dict[str, Any]]], known: Positions) -> bool:
    found = [[BranchNode(**node) for node in nodes] for nodes in branches]
    return brpred(list(map(int, info.split("&"))), found, known)


class WantedText(NamedTuple):
    """A subscription whose text has to be evaluated."""

    subscription: str
    subscriber: str | None
    text: str


@lru_cache(maxsize=TEXTS)
def _expression(text: str) -> Expression:
    return xpath_parser.parse(text)


def verify() -> Stage:
    """Documents with candidates (publication, body, wanted: `WantedText`s) in, matches out."""

    def run(batches: Iterable[Any]) -> Iterator[Any]:
        for batch in batches:
            for event_id, body, wanted in zip(*batch.columns, strict=True):
                asked = [WantedText(**each) for each in wanted.as_py()]
                yield _pairs(event_id.as_py(), _matching(body.as_py(), asked))

    return run


@lru_cache(maxsize=2)
def _everywhere(version: Version) -> list[WantedText]:
    return [WantedText(*row) for row in version.alive("query_everywhere", ["subscriber", "text"])]


def verify_everywhere(version: Version) -> Stage:
    """Documents (publication, body) in; matches with the subscriptions that joins cannot select out."""

    def run(batches: Iterable[Any]) -> Iterator[Any]:
        asked = _everywhere(version)
        for batch in batches:
            for event_id, body in zip(*batch.columns, strict=True):
                with suppress(DecodeProblem):  # reported among the rejects when all documents are parsed
                    yield _pairs(event_id.as_py(), _matching(body.as_py(), asked))

    return run


def _matching(body: bytes, asked: Iterable[WantedText]) -> list[WantedText]:
    document = xml_decoder.decode(body)
    return [wanted for wanted in asked if matches(_expression(wanted.text), document)]


def _pairs(event_id: str, matched: Sequence[WantedText]) -> Any:
    columns = {
        "event_id": [event_id] * len(matched),
        "subscription": [wanted.subscription for wanted in matched],
        "subscriber": [wanted.subscriber for wanted in matched],
    }
    return pa.RecordBatch.from_pydict(columns, pa.schema([(name, pa.string()) for name in columns]))
