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
from dataclasses import dataclass, field
from itertools import pairwise

from tidings.errors import TooLarge
from tidings.metadata.rules.syntax import Operator
from tidings.metadata.sql.join_statements import (
    POSITION_FUNCTIONS,
    SqlOperand,
    build_operand,
    comparison_condition,
    exists_condition,
)
from tidings.metadata.sql.queries.query_tree import (
    ComparedProperty,
    ConstantTest,
    QueryEdge,
    QueryNode,
    QueryTree,
    VariableComparison,
    path_between,
    spanning_order,
)
from tidings.metadata.sql.tables import INDEXED_LENGTH

MAX_INLINE_CLASSES = 20
"""How many classes are written inline."""

_BOUNDS = {"<": "max", "<=": "max", ">": "min", ">=": "min"}


@dataclass(slots=True)
class QueryStatement:
    """Named sets (common table expressions) and their parameters."""

    dialect: str
    members: str
    """SQL for the URIs of a rule's results, with `{rule}` for its name."""

    classes: dict[tuple[str, ...], str] = field(default_factory=dict)
    sets: list[str] = field(default_factory=list)
    parameters: dict[str, object] = field(default_factory=dict)

    def parameter(self, value: object) -> str:
        name = f"p{len(self.parameters)}"
        self.parameters[name] = value
        return f":{name}"

    def among(self, classes: tuple[str, ...]) -> str:
        """Return a condition on the class. Many classes become a set, since parameters are limited."""
        if len(classes) <= MAX_INLINE_CLASSES:
            return ", ".join(self.parameter(each) for each in classes)
        if classes not in self.classes:
            rows = ", ".join(f"({self.parameter(each)})" for each in classes)
            self.classes[classes] = self.set(f"VALUES {rows}")
        return f"SELECT column1 FROM {self.classes[classes]}"

    def set(self, select: str) -> str:
        self.sets.append(select)
        return f"q{len(self.sets) - 1}"

    def text(self, select: str) -> str:
        made = ", ".join(f"q{n} AS MATERIALIZED ({each})" for n, each in enumerate(self.sets))
        return f"WITH {made} {select}"

    def of_itself(self, node: QueryNode, uri: str, by_class: bool) -> list[str]:
        """Return the tests of a variable on its own.

        Unless resources are found by their class, SQLite is prevented from using that index: it would scan all classes
        for each URI.
        """
        column = "r.class" if by_class else "r.class || ''"
        found = [f"{column} IN ({self.among(node.classes)})"]
        if node.rule is not None:
            found.append(f"{uri} IN ({self.results(node.rule)})")
        found += [self.constant(each, uri) for each in node.asked]
        return found + [self.between(uri, each, uri) for each in node.itself]

    def results(self, rule: str) -> str:
        return self.members.format(rule=self.parameter(rule))

    def constant(self, asked: ConstantTest, uri: str) -> str:
        if asked.property is None:
            return f"{uri} {asked.operator.value} {self.parameter(asked.constant.text)}"
        text, number = ("", self.parameter(asked.constant.number))
        if asked.operator.value not in _BOUNDS:
            text, number = self.parameter(asked.constant.text), ""
        constant = SqlOperand((), (), text, str(int(asked.constant.kind)), number)
        holds = comparison_condition(_ATOM, asked.operator, constant, self.dialect)
        return (
            f"EXISTS (SELECT 1 FROM metadata_atoms a WHERE {self.atom('a', uri, asked.property)} AND {holds})"
        )

    def with_value(self, asked: ConstantTest) -> str:
        """Select the URIs of resources with a value.

        With `value = 'x'` next to it, SQLite would substitute 'x' in the indexed expression, and not find the index.
        """
        value = asked.constant
        is_value = f"{indexed_prefix('a.value')} = {self.parameter(value.text[:INDEXED_LENGTH])}"
        if len(value.text) >= INDEXED_LENGTH:
            is_value += f" AND a.value || '' = {self.parameter(value.text)}"
        property = self.parameter(asked.property)
        return (
            f"SELECT a.uri FROM metadata_atoms a WHERE a.property = {property} AND {is_value}"
            f" AND a.kind = {int(value.kind)}"
        )

    def atom(self, alias: str, uri: str, property: str, kind: int | None = None) -> str:
        found = f"{alias}.uri = {uri} AND {alias}.property = {self.parameter(property)}"
        return found if kind is None else f"{found} AND {alias}.kind = {int(kind)}"

    def between(self, uri: str, stands: VariableComparison, other: str) -> str:
        """Return the condition of a comparison of two resources."""
        own, others = self.operand("k", uri, stands.own), self.operand("l", other, stands.others)
        if stands.operator == "within":
            return exists_condition(others, Operator.CONTAINS, own, self.dialect)
        return exists_condition(own, Operator(stands.operator), others, self.dialect)

    def operand(self, alias: str, uri: str, side: ComparedProperty) -> SqlOperand:
        steps = () if side.property is None else side.property.split(".")
        return build_operand(alias, uri, [self.parameter(step) for step in steps])

    def values(self, side: ComparedProperty, those: str) -> str:
        """Select the distinct compared values of the resources of a set."""
        if side.property is None:
            return f"SELECT y.uri AS value FROM {those} y"
        of_those = self.atom("b", "y.uri", side.property, side.kind)
        return f"SELECT DISTINCT b.value FROM {those} y CROSS JOIN metadata_atoms b WHERE {of_those}"

    def led_to(self, edge: QueryEdge, others: str) -> str:
        """Select the URIs of resources that share a value with one of a set, for edges with `=`."""
        if edge.also:
            return self.led_to_by_pairs(edge, others)
        values = self.values(edge.others, others)
        if edge.own.property is None:
            return f"SELECT w.value AS uri FROM ({values}) w"
        return f"SELECT a.uri FROM ({values}) w CROSS JOIN metadata_atoms a WHERE {self.equal(edge.own, 'w.value')}"

    def led_to_by_pairs(self, edge: QueryEdge, others: str) -> str:
        """Select such URIs with further predicates, which need the resource of each value."""
        tables, conditions, uri = [f"{others} y"], list[str](), "y.uri"
        if edge.others.property is not None:
            tables.append("metadata_atoms b")
            conditions.append(self.atom("b", "y.uri", edge.others.property, edge.others.kind))
            uri = "b.value"
        if edge.own.property is not None:
            tables.append("metadata_atoms a")
            conditions.append(self.equal(edge.own, uri))
            uri = "a.uri"
        conditions += [self.between(uri, each, "y.uri") for each in edge.also]
        return f"SELECT {uri} AS uri FROM {' CROSS JOIN '.join(tables)} WHERE {' AND '.join(conditions)}"

    def equal(self, side: ComparedProperty, value: str, alias: str = "a") -> str:
        """Return the condition that an atom has a property and a value, in a form that uses the index."""
        assert side.kind is not None, "there is no index for paths"
        return (
            f"{alias}.property = {self.parameter(side.property)}"
            f" AND {indexed_prefix(f'{alias}.value')} = {indexed_prefix(value)}"
            f" AND {alias}.value = {value} AND {alias}.kind = {int(side.kind)}"
        )

    def meets(self, uri: str, edge: QueryEdge, others: str) -> str:
        """Return the condition that a comparison with some resource of a set holds."""
        if edge.by_value:
            return f"{uri} IN ({self.led_to(edge, others)})"
        if edge.also or edge.by_path:
            every = " AND ".join(self.between(uri, each, "y.uri") for each in (edge, *edge.also))
            return f"EXISTS (SELECT 1 FROM {others} y WHERE {every})"
        if edge.own.property is None:
            return self.other_than(uri, edge, others)
        own = self.atom("a", uri, edge.own.property, edge.own.kind)
        return f"EXISTS (SELECT 1 FROM metadata_atoms a WHERE {own} AND {self.stands(edge, others)})"

    def stands(self, edge: QueryEdge, others: str) -> str:
        if edge.operator == "!=":
            return self.other_than("a.value", edge, others)
        if edge.operator in ("contains", "within"):
            texts = ("a.value", "w.value") if edge.operator == "contains" else ("w.value", "a.value")
            has = f"{POSITION_FUNCTIONS[self.dialect]}({', '.join(texts)}) > 0"
            return f"EXISTS (SELECT 1 FROM ({self.values(edge.others, others)}) w WHERE {has})"
        assert edge.others.property is not None, "resources have no order"
        bound = f"{_BOUNDS[edge.operator]}(b.number)"
        of_those = self.atom("b", "y.uri", edge.others.property, edge.others.kind)
        every = f"SELECT {bound} FROM {others} y CROSS JOIN metadata_atoms b WHERE {of_those}"
        return f"a.number {edge.operator} ({every})"

    def other_than(self, text: str, edge: QueryEdge, others: str) -> str:
        bounds = (
            f"(SELECT {each}(w.value) FROM ({self.values(edge.others, others)}) w)" for each in ("min", "max")
        )
        return "(" + " OR ".join(f"{text} <> {bound}" for bound in bounds) + ")"


_ATOM = SqlOperand((), (), "a.value", "a.kind", "a.number")


def indexed_prefix(text: str) -> str:
    return f"substr({text}, 1, {INDEXED_LENGTH})"


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
