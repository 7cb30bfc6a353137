"""What a query answers, by definition: whoever is faster is tested against this.

Of all ways to choose resources for the variables, those count with which the condition holds. What they choose for the
variables that are shown is a row, once: the variable that is asked for, and others that something is selected of.
Rows are ordered by values; those without one come last, whichever way the order goes, and ties are ordered by URIs.

`search Rule x` stands for what the rule has as its results, not for what its text would find here: a repository has not
all that the provider has seen.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass
from functools import cmp_to_key, partial
from itertools import product
from typing import Any

from tidings.languages.rules_tree import Path, Query
from tidings.metadata.answers import Answer, Cell, cell, columns, shown
from tidings.metadata.definition import Asking
from tidings.metadata.resources import Resource
from tidings.metadata.schema import Schema

Row = dict[str, Resource]


def answer(
    query: Query,
    resources: Iterable[Resource],
    schema: Schema,
    members: Mapping[str, Collection[str]] | None = None,
) -> Answer:
    """The answer among resources. `members` are the results of rules that may be searched by name."""
    return _Asked({each.uri: each for each in resources}, schema, {}, members or {}).answer(query)


@dataclass(frozen=True, slots=True)
class _Asked(Asking):
    members: Mapping[str, Collection[str]]

    def extension(self, name: str) -> list[Resource]:
        if name in self.schema.classes:
            return Asking.extension(self, name)
        return [self.resources[uri] for uri in self.members[name] if uri in self.resources]

    def answer(self, query: Query) -> Answer:
        before: Callable[[Row, Row], int] = partial(self.compare, query)
        rows = sorted(self.rows(query), key=cmp_to_key(before))
        kept = rows[: query.limit]
        if not query.select:
            return Answer(resources=tuple(row[query.of] for row in kept))
        cells = (tuple(self.cell(path, row) for path in query.select) for row in kept)
        return Answer(columns(query), tuple(cells))

    def rows(self, query: Query) -> list[Row]:
        variables = [each.variable for each in query.searched]
        found: dict[tuple[str, ...], Row] = {}
        for chosen in product(*(self.extension(each.extension) for each in query.searched)):
            bound = dict(zip(variables, chosen, strict=True))
            if query.where is None or self.true(query.where, bound):
                row = {variable: bound[variable] for variable in shown(query)}
                found[tuple(each.uri for each in row.values())] = row
        return list(found.values())

    def cell(self, path: Path, row: Row) -> Cell:
        return cell(path, self.values(path, row))

    def compare(self, query: Query, one: Row, other: Row) -> int:
        """Which of two rows comes first: -1 for the first one."""
        for path, falls in query.order:
            left, right = self.cell(path, one), self.cell(path, other)
            if (left is None) != (right is None):
                return 1 if left is None else -1
            if left != right:
                return -_compared(left, right) if falls else _compared(left, right)
        return _compared([each.uri for each in one.values()], [each.uri for each in other.values()])


def _compared(left: Any, right: Any) -> int:
    return -1 if left < right else int(left > right)
