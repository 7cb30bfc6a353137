"""BrPred: whether the branches of a subscription meet in the same elements (section 3.5).

A branch has found nodes; each node's tag path says where the branching points may stand in it, its id path which nodes
stand there. So every branch gives a relation from branching points to node ids. The branches meet if the natural join
of these relations is not empty.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from tidings.relational.linear import positions

_POINT = re.compile(r"bp#(\d+)=(\d+)")
_ARRAY = re.compile(r"\{([^}]*)\}")


class Found(NamedTuple):
    """A node that a branch has found."""

    tagpath_id: int
    idpath: str


@dataclass(frozen=True, slots=True)
class BpPosition:
    """Branching points and where they may stand in a tag path: `{bp#1,bp#2},{2,4},{3,4}` of figure 3.11."""

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
        """The node ids at the branching points of an id path (figure 3.14)."""
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
        """The natural join: equal at the points that both have."""
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
    """Where the branching points of a linear path stand in a tag path (`bp_pos_udf` of figure 3.10)."""
    numbered = [(int(number), int(step)) for number, step in _POINT.findall(info)]
    arrays = positions(linear, tag, tuple(step for _, step in numbered))
    return BpPosition(tuple(number for number, _ in numbered), arrays)


Positions = Mapping[tuple[int, int], BpPosition]
"""TagPath_BrInfo: by the ids of a tag path and of a branching information."""


def converted(infos: Sequence[int], branches: Iterable[Iterable[Found]], known: Positions) -> list[Relation]:
    """The relation of each branch: that of every node it has found, together."""
    relations = []
    for info, found in zip(infos, branches, strict=True):
        nodes = iter(found)
        tagpath_id, idpath = next(nodes)
        relation = known[tagpath_id, info].relation(idpath)
        for tagpath_id, idpath in nodes:
            relation |= known[tagpath_id, info].relation(idpath)
        relations.append(relation)
    return relations


def brpred(infos: Sequence[int], branches: Iterable[Iterable[Found]], known: Positions) -> bool:
    """Whether the branches meet: the natural join of their relations is not empty."""
    joined = EVERYTHING
    for relation in converted(infos, branches, known):
        joined = joined.join(relation)
        if not joined.rows:
            return False
    return True
