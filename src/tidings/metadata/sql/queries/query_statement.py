"""The SQL statement of a query without `or`: sets of resources, each built from those before it.

It starts at the variable with the fewest candidates, and follows the tree to the registered variable. Branches beside
that path are evaluated only for the resources on the path, and remove those without a partner:

    search CycleProvider c where c.serverPort = 80 and c.serverInformation.memory > 64

    q0   resources with the port 80
    q1   the targets of their serverInformation, with a memory above 64
    q2   those of q0 whose serverInformation is in q1

Pairs are not built unless both variables are selected: `c.a < d.b` holds for some d if it holds for the greatest b, and
`c.a != d.b` if it holds for the least or the greatest b. Only `contains` between two variables reads each text; and
where two variables are compared more than once, or by paths, pairs are checked, but not stored. Each set is computed
once, on both databases; nested queries instead would fail at the hundredth parenthesis in SQLite.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from itertools import pairwise

from tidings.errors import TooLarge
from tidings.metadata.rules.syntax import Operator
from tidings.metadata.sql.join_statements import POSITION_FUNCTIONS
from tidings.metadata.sql.queries.query_fragments import QueryStatement
from tidings.metadata.sql.queries.query_tree import (
    QueryEdge,
    QueryNode,
    QueryTree,
    path_between,
    spanning_order,
)

MAX_TABLES = 60
"""The maximal number of tables of the final join: SQLite's limit is 64."""


@dataclass(frozen=True, slots=True)
class StatementBuilder:
    """Builder of the statement of a tree."""

    tree: QueryTree
    fewest: Mapping[str, SmallestSet]
    made: QueryStatement

    def first(self, node: QueryNode) -> str:
        """Build the set of candidates of a variable, by its own tests."""
        return self.among(node, self.fewest[node.variable].few(self.made))

    def partners(self, edge: QueryEdge, node: QueryNode, others: str) -> str:
        """Build the set of candidates of a variable that are partners of a resource of a set."""
        if edge.by_value:
            return self.among(node, self.made.led_to(edge, others))
        return self.among(
            node, self.fewest[node.variable].few(self.made), self.made.meets("r.uri", edge, others)
        )

    def among(self, node: QueryNode, uris: str | None, *more: str) -> str:
        """Start the join with these few: SQLite evaluates CROSS JOINs in the written order."""
        asked = [*self.made.of_itself(node, "r.uri", uris is None), *more]
        tables = "metadata_resources r"
        if uris is not None:
            tables = f"(SELECT DISTINCT f.uri FROM ({uris}) f) d CROSS JOIN metadata_resources r"
            asked.insert(0, "r.uri = d.uri")
        return self.made.set(f"SELECT r.uri FROM {tables} WHERE {' AND '.join(asked)}")

    def beside(self, variable: str, those: str, besides: Iterable[str]) -> str:
        """Reduce a set to resources with partners in all branches, except for those that lead to `besides`."""
        for edge in self.tree[variable].edges:
            if edge.other not in besides:
                candidates = self.partners(edge.turned(variable), self.tree[edge.other], those)
                partners = self.beside(edge.other, candidates, (variable,))
                those = self.made.set(
                    f"SELECT x.uri FROM {those} x WHERE {self.made.meets('x.uri', edge, partners)}"
                )
        return those

    def along(self, start: str, end: str) -> str:
        """Build the set of the last variable of a path."""
        ways = path_between(self.tree, start, end)
        those = self.beside(start, self.first(self.tree[start]), ways[1:2])
        for at, (before, variable) in enumerate(pairwise(ways), 1):
            candidates = self.partners(self.edge(variable, before), self.tree[variable], those)
            those = self.beside(variable, candidates, (before, *ways[at + 1 : at + 2]))
        return those

    def edge(self, variable: str, other: str) -> QueryEdge:
        return next(edge for edge in self.tree[variable].edges if edge.other == other)

    def bindings(self, shown: tuple[str, ...], those: str) -> str:
        """Join the selected variables; the first ranges over a set."""
        before = spanning_order(self.tree, shown[0], shown[1:])
        uris, sets = {shown[0]: "x0.uri"}, {shown[0]: those}
        tables, conditions = [f"{those} x0"], list[str]()
        for at, (variable, other) in enumerate(before.items(), 1):
            edge = self.edge(variable, other)
            beside = {other, *(each for each, earlier in before.items() if earlier == variable)}
            candidates = self.partners(edge, self.tree[variable], sets[other])
            sets[variable] = self.beside(variable, candidates, beside)
            uris[variable] = self.joined(edge, uris[other], sets[variable], at, tables, conditions)
            conditions += [self.made.between(uris[variable], each, uris[other]) for each in edge.also]
        if len(tables) > MAX_TABLES:
            accepted = f"at most {MAX_TABLES} tables between what is shown"
            raise TooLarge(
                "the query has too many joins", received=f"{len(tables)} tables", accepted=accepted
            )
        chosen = ", ".join(uris[variable] for variable in shown)
        where = f" WHERE {' AND '.join(conditions)}" if conditions else ""
        return f"SELECT DISTINCT {chosen} FROM {' CROSS JOIN '.join(tables)}{where}"

    def joined(
        self, edge: QueryEdge, uri: str, those: str, at: int, tables: list[str], conditions: list[str]
    ) -> str:
        """Add the partners of a resource to the join, and return their URI column."""
        a, b, x = f"a{at}", f"b{at}", f"x{at}"
        if edge.by_path:
            tables.append(f"{those} {x}")
            conditions.append(self.made.between(f"{x}.uri", edge, uri))
            return f"{x}.uri"
        theirs = uri
        if edge.others.property is not None:
            tables.append(f"metadata_atoms {b}")
            conditions.append(self.made.atom(b, uri, edge.others.property, edge.others.kind))
            theirs = f"{b}.value"
        if edge.operator == "=" and edge.own.property is None:
            conditions.append(f"{theirs} IN (SELECT uri FROM {those})")
            return theirs
        if edge.operator == "=":
            tables.append(f"metadata_atoms {a}")
            conditions += (self.made.equal(edge.own, theirs, a), f"{a}.uri IN (SELECT uri FROM {those})")
            return f"{a}.uri"
        tables.append(f"{those} {x}")
        own = f"{x}.uri"
        if edge.own.property is not None:
            tables.append(f"metadata_atoms {a}")
            conditions.append(self.made.atom(a, own, edge.own.property, edge.own.kind))
            own = f"{a}.value"
        conditions.append(self.compared(edge.operator, own, theirs, a, b))
        return f"{x}.uri"

    def compared(self, operator: str, own: str, theirs: str, a: str, b: str) -> str:
        if operator in ("contains", "within"):
            texts = (own, theirs) if operator == "contains" else (theirs, own)
            return f"{POSITION_FUNCTIONS[self.made.dialect]}({', '.join(texts)}) > 0"
        if operator == "!=":
            return f"{own} <> {theirs}"
        return f"{a}.number {operator} {b}.number"


RowCounter = Callable[[Callable[[QueryStatement], str]], int]
"""Counts the rows of an SQL fragment, up to a limit."""


@dataclass(frozen=True, slots=True)
class SmallestSet:
    """Return the shortest list of URIs that contains all candidates of a variable; None if none is short."""

    size: float
    sql: Callable[[QueryStatement], str] | None = None

    def few(self, made: QueryStatement) -> str | None:
        return self.sql(made) if self.sql else None


def find_smallest_set(node: QueryNode, count: RowCounter) -> SmallestSet:
    """Count equal values and results of rules, unless there is only one candidate list."""
    lists: list[Callable[[QueryStatement], str]] = []
    if node.rule is not None:
        lists.append(lambda made, rule=node.rule: made.results(rule))  # type: ignore[misc]
    for asked in node.asked:
        if asked.operator is Operator.EQUAL and asked.property is None:
            return SmallestSet(1)  # by the key of the table
        if asked.operator is Operator.EQUAL:
            lists.append(lambda made, asked=asked: made.with_value(asked))  # type: ignore[misc]
    return min(
        (SmallestSet(count(each), each) for each in lists),
        key=lambda each: each.size,
        default=SmallestSet(math.inf),
    )


def choose_start(tree: QueryTree, sizes: Mapping[str, SmallestSet], of: str) -> str:
    """Choose the first variable: the one with the fewest candidates, otherwise one with tests."""

    def order(variable: str) -> tuple[float, bool, bool]:
        asked = tree[variable].asked or tree[variable].itself
        return sizes[variable].size, not asked, variable != of

    return min(tree, key=order)
