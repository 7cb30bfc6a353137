"""Binding tables and their natural join (paper 002, section 4.2, figure 8).

    A   ⋆1          ⋆1  B           A   ⋆1  B
    A   B           C   B           A   C   B
    A   C     ⋈     D   B     =     A   E   B
    A   E           E   B

Each edge of G_M has a table of the published edges that may stand for it. The rows of the join over the edges of a
subscription are its bindings: every edge is there, and each star means one term throughout.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from functools import reduce
from typing import NamedTuple

from research.graphs.merged_graph import Label, Row, Star


class Table(NamedTuple):
    """Rows below the labels they stand for."""

    columns: tuple[Label, ...]
    rows: list[Row]


def joined(tables: Sequence[Table]) -> Table:
    """The natural join of all of them.

    The paper leaves the order open. In the order they were written, (A, p, ?x) (B, q, ?y) (?x, r, ?y) makes every pair
    of an ?x with an ?y before the third edge throws most of them away.
    """
    return reduce(natural_join, in_order(tables))


def in_order(tables: Sequence[Table]) -> list[Table]:
    """Next is always a table that adds few stars, and among those one that shares some; short ones first."""
    left = sorted(tables, key=lambda table: len(table.rows))
    known: set[Label] = set()
    order: list[Table] = []

    def adds(table: Table) -> tuple[int, bool]:
        stars = {column for column in table.columns if isinstance(column, Star)}
        return len(stars - known), known.isdisjoint(stars)

    while left:
        best = left.pop(min(range(len(left)), key=lambda at: adds(left[at])))
        known.update(best.columns)
        order.append(best)
    return order


def natural_join(left: Table, right: Table) -> Table:
    """Rows that agree in all columns with the same label, put together; all pairs if there is no such column."""
    common = [column for column in left.columns if column in right.columns]
    added = [column for column in right.columns if column not in left.columns]
    from_left = [left.columns.index(column) for column in common]
    from_right = [right.columns.index(column) for column in common]
    rest = [right.columns.index(column) for column in added]
    by_key: dict[Row, list[Row]] = defaultdict(list)
    for row in right.rows:
        by_key[tuple(row[at] for at in from_right)].append(tuple(row[at] for at in rest))
    rows = [row + more for row in left.rows for more in by_key.get(tuple(row[at] for at in from_left), ())]
    return Table((*left.columns, *added), rows)
