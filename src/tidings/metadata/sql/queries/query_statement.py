"""A query without `or` as one statement: sets of resources, each made from those before it.

It begins at the variable of which there are fewest, and goes from there along the tree to what is asked for. What hangs
beside the way is asked for of the resources on the way only, and takes away those that have no partner:

    search CycleProvider c where c.serverPort = 80 and c.serverInformation.memory > 64

    q0   resources with the port 80
    q1   what their serverInformation leads to, with a memory above 64
    q2   those of q0 whose serverInformation is one of q1

Pairs are never made, unless both of a pair are shown: `c.a < d.b` holds for some d if it holds for the greatest b, and
`c.a != d.b` if it holds for the least b or for the greatest. Only `contains` between two variables looks at each of the
texts; and where two variables are compared more than once, or by paths, pairs are looked at, but not kept. Each set is
made once, on both databases; nesting queries instead would end at the hundredth bracket in SQLite.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from itertools import pairwise

from tidings.errors import TooLarge
from tidings.metadata.rules.tree import Operator
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
"""How many tables the last join may have: SQLite takes 64."""


@dataclass(frozen=True, slots=True)
class StatementBuilder:
    """A tree on its way to a statement."""

    tree: QueryTree
    fewest: Mapping[str, SmallestSet]
    made: QueryStatement

    def first(self, node: QueryNode) -> str:
        """All resources that a variable may stand for by itself."""
        return self.among(node, self.fewest[node.variable].few(self.made))

    def partners(self, edge: QueryEdge, node: QueryNode, others: str) -> str:
        """All resources that a variable may stand for and that stand so to one of a set."""
        if edge.by_value:
            return self.among(node, self.made.led_to(edge, others))
        return self.among(
            node, self.fewest[node.variable].few(self.made), self.made.meets("r.uri", edge, others)
        )

    def among(self, node: QueryNode, uris: str | None, *more: str) -> str:
        """SQLite looks up the tables of a CROSS JOIN in this order, so that it begins with these few."""
        asked = [*self.made.of_itself(node, "r.uri", uris is None), *more]
        tables = "metadata_resources r"
        if uris is not None:
            tables = f"(SELECT DISTINCT f.uri FROM ({uris}) f) d CROSS JOIN metadata_resources r"
            asked.insert(0, "r.uri = d.uri")
        return self.made.set(f"SELECT r.uri FROM {tables} WHERE {' AND '.join(asked)}")

    def beside(self, variable: str, those: str, besides: Iterable[str]) -> str:
        """Those of a set for which there is something in all branches, but in those that lead to `besides`."""
        for edge in self.tree[variable].edges:
            if edge.other not in besides:
                candidates = self.partners(edge.turned(variable), self.tree[edge.other], those)
                partners = self.beside(edge.other, candidates, (variable,))
                those = self.made.set(
                    f"SELECT x.uri FROM {those} x WHERE {self.made.meets('x.uri', edge, partners)}"
                )
        return those

    def along(self, start: str, end: str) -> str:
        """All that the last variable of a way may stand for."""
        ways = path_between(self.tree, start, end)
        those = self.beside(start, self.first(self.tree[start]), ways[1:2])
        for at, (before, variable) in enumerate(pairwise(ways), 1):
            candidates = self.partners(self.edge(variable, before), self.tree[variable], those)
            those = self.beside(variable, candidates, (before, *ways[at + 1 : at + 2]))
        return those

    def edge(self, variable: str, other: str) -> QueryEdge:
        return next(edge for edge in self.tree[variable].edges if edge.other == other)

    def bindings(self, shown: tuple[str, ...], those: str) -> str:
        """What the shown variables may stand for together; the first of them may stand for those of a set."""
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
        """Put what stands so to a resource into the join; what its URI is."""
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
"""Counts what a piece of SQL gives, up to a bound."""


@dataclass(frozen=True, slots=True)
class SmallestSet:
    """The shortest list of URIs that all a variable stands for is in; None if none is known to be short."""

    size: float
    sql: Callable[[QueryStatement], str] | None = None

    def few(self, made: QueryStatement) -> str | None:
        return self.sql(made) if self.sql else None


def find_smallest_set(node: QueryNode, count: RowCounter) -> SmallestSet:
    """Equal values and results of rules are counted; one alternative alone need not be."""
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
    """The variable to begin with: that of which there are fewest, else one that something is asked of."""

    def order(variable: str) -> tuple[float, bool, bool]:
        asked = tree[variable].asked or tree[variable].itself
        return sizes[variable].size, not asked, variable != of

    return min(tree, key=order)
