"""Predicates as the tables have them: a linear path, an operator, a literal; and where branches pass."""

from __future__ import annotations

from typing import NamedTuple

from tidings.relational.branches import Branch
from tidings.relational.tables import path_id


class Predicate(NamedTuple):
    """A row of Query_Predicate without its chain, the text of its path, and its branching information."""

    linearpath_id: int
    op: str
    value: str | None
    number: float | None
    path: str
    info: str

    @classmethod
    def of(cls, branch: Branch) -> Predicate:
        literal = branch.literal
        number = literal + 0.0 if isinstance(literal, float) else None  # -0.0 is 0.0
        value = literal if isinstance(literal, str) else None if number is None else repr(number)
        return cls(path_id(branch.path), branch.operator, value, number, branch.path, branch.info)

    @property
    def columns(self) -> tuple[int, str, str | None, float | None]:
        return self[:4]


class Asked(NamedTuple):
    """The predicates of an alternative, equalities first, and whether they say all there is to say."""

    predicates: list[Predicate]
    exact: bool
