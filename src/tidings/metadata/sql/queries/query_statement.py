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
"""Maximum number of classes that are written inline."""

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

    def list_classes(self, classes: tuple[str, ...]) -> str:
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
        tables = ", ".join(f"q{n} AS MATERIALIZED ({each})" for n, each in enumerate(self.sets))
        return f"WITH {tables} {select}"

    def own_tests(self, node: QueryNode, uri: str, by_class: bool) -> list[str]:
        """Return the tests of a variable on its own.

        Unless resources are found by their class, SQLite is prevented from using that index: it would scan all classes
        for each URI.
        """
        column = "r.class" if by_class else "r.class || ''"
        conditions = [f"{column} IN ({self.list_classes(node.classes)})"]
        if node.rule is not None:
            conditions.append(f"{uri} IN ({self.results(node.rule)})")
        conditions += [self.constant(each, uri) for each in node.tests]
        return conditions + [self.between(uri, each, uri) for each in node.self_comparisons]

    def results(self, rule: str) -> str:
        return self.members.format(rule=self.parameter(rule))

    def constant(self, test: ConstantTest, uri: str) -> str:
        if test.property is None:
            return f"{uri} {test.operator.value} {self.parameter(test.constant.text)}"
        text, number = ("", self.parameter(test.constant.number))
        if test.operator.value not in _BOUNDS:
            text, number = self.parameter(test.constant.text), ""
        constant = SqlOperand((), (), text, str(int(test.constant.kind)), number)
        holds = comparison_condition(_ATOM, test.operator, constant, self.dialect)
        return (
            f"EXISTS (SELECT 1 FROM metadata_atoms a WHERE {self.atom('a', uri, test.property)} AND {holds})"
        )

    def with_value(self, test: ConstantTest) -> str:
        """Select the URIs of resources with a value.

        With `value = 'x'` next to it, SQLite would substitute 'x' in the indexed expression, and not find the index.
        """
        value = test.constant
        is_value = f"{indexed_prefix('a.value')} = {self.parameter(value.text[:INDEXED_LENGTH])}"
        if len(value.text) >= INDEXED_LENGTH:
            is_value += f" AND a.value || '' = {self.parameter(value.text)}"
        property = self.parameter(test.property)
        return (
            f"SELECT a.uri FROM metadata_atoms a WHERE a.property = {property} AND {is_value}"
            f" AND a.kind = {int(value.kind)}"
        )

    def atom(self, alias: str, uri: str, property: str, kind: int | None = None) -> str:
        condition = f"{alias}.uri = {uri} AND {alias}.property = {self.parameter(property)}"
        return condition if kind is None else f"{condition} AND {alias}.kind = {int(kind)}"

    def between(self, uri: str, comparison: VariableComparison, other: str) -> str:
        """Return the condition of a comparison of two resources."""
        own, others = self.operand("k", uri, comparison.own), self.operand("l", other, comparison.others)
        if comparison.operator == "within":
            return exists_condition(others, Operator.CONTAINS, own, self.dialect)
        return exists_condition(own, Operator(comparison.operator), others, self.dialect)

    def operand(self, alias: str, uri: str, side: ComparedProperty) -> SqlOperand:
        steps = () if side.property is None else side.property.split(".")
        return build_operand(alias, uri, [self.parameter(step) for step in steps])

    def values(self, side: ComparedProperty, resource_set: str) -> str:
        """Select the distinct compared values of the resources of a set."""
        if side.property is None:
            return f"SELECT y.uri AS value FROM {resource_set} y"
        atom_condition = self.atom("b", "y.uri", side.property, side.kind)
        return f"SELECT DISTINCT b.value FROM {resource_set} y CROSS JOIN metadata_atoms b WHERE {atom_condition}"

    def select_partners(self, edge: QueryEdge, others: str) -> str:
        """Select the URIs of resources that share a value with one of a set, for edges with `=`."""
        if edge.also:
            return self.select_partners_by_pairs(edge, others)
        values = self.values(edge.others, others)
        if edge.own.property is None:
            return f"SELECT w.value AS uri FROM ({values}) w"
        return f"SELECT a.uri FROM ({values}) w CROSS JOIN metadata_atoms a WHERE {self.equal(edge.own, 'w.value')}"

    def select_partners_by_pairs(self, edge: QueryEdge, others: str) -> str:
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

    def has_partner(self, uri: str, edge: QueryEdge, others: str) -> str:
        """Return the condition that a comparison with some resource of a set holds."""
        if edge.by_value:
            return f"{uri} IN ({self.select_partners(edge, others)})"
        if edge.also or edge.by_path:
            all_hold = " AND ".join(self.between(uri, each, "y.uri") for each in (edge, *edge.also))
            return f"EXISTS (SELECT 1 FROM {others} y WHERE {all_hold})"
        if edge.own.property is None:
            return self.differs_from_some(uri, edge, others)
        own = self.atom("a", uri, edge.own.property, edge.own.kind)
        return f"EXISTS (SELECT 1 FROM metadata_atoms a WHERE {own} AND {self.value_matches(edge, others)})"

    def value_matches(self, edge: QueryEdge, others: str) -> str:
        if edge.operator == "!=":
            return self.differs_from_some("a.value", edge, others)
        if edge.operator in ("contains", "within"):
            texts = ("a.value", "w.value") if edge.operator == "contains" else ("w.value", "a.value")
            contains = f"{POSITION_FUNCTIONS[self.dialect]}({', '.join(texts)}) > 0"
            return f"EXISTS (SELECT 1 FROM ({self.values(edge.others, others)}) w WHERE {contains})"
        assert edge.others.property is not None, "resources have no order"
        bound = f"{_BOUNDS[edge.operator]}(b.number)"
        atom_condition = self.atom("b", "y.uri", edge.others.property, edge.others.kind)
        bound_query = f"SELECT {bound} FROM {others} y CROSS JOIN metadata_atoms b WHERE {atom_condition}"
        return f"a.number {edge.operator} ({bound_query})"

    def differs_from_some(self, text: str, edge: QueryEdge, others: str) -> str:
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
    smallest: Mapping[str, SmallestSet]
    statement: QueryStatement

    def build_first_set(self, node: QueryNode) -> str:
        """Build the set of candidates of a variable, by its own tests."""
        return self.build_candidates(node, self.smallest[node.variable].get_sql(self.statement))

    def build_partner_set(self, edge: QueryEdge, node: QueryNode, others: str) -> str:
        """Build the set of candidates of a variable that are partners of a resource of a set."""
        if edge.by_value:
            return self.build_candidates(node, self.statement.select_partners(edge, others))
        return self.build_candidates(
            node,
            self.smallest[node.variable].get_sql(self.statement),
            self.statement.has_partner("r.uri", edge, others),
        )

    def build_candidates(self, node: QueryNode, uris: str | None, *further: str) -> str:
        """Build a set of candidates. The URIs come first: SQLite evaluates CROSS JOINs in the written order."""
        conditions = [*self.statement.own_tests(node, "r.uri", uris is None), *further]
        tables = "metadata_resources r"
        if uris is not None:
            tables = f"(SELECT DISTINCT f.uri FROM ({uris}) f) d CROSS JOIN metadata_resources r"
            conditions.insert(0, "r.uri = d.uri")
        return self.statement.set(f"SELECT r.uri FROM {tables} WHERE {' AND '.join(conditions)}")

    def filter_branches(self, variable: str, resource_set: str, excluded: Iterable[str]) -> str:
        """Reduce a set to resources with partners in all branches, except for those that lead to `excluded`."""
        for edge in self.tree[variable].edges:
            if edge.other not in excluded:
                candidates = self.build_partner_set(
                    edge.reversed(variable), self.tree[edge.other], resource_set
                )
                partners = self.filter_branches(edge.other, candidates, (variable,))
                resource_set = self.statement.set(
                    f"SELECT x.uri FROM {resource_set} x WHERE {self.statement.has_partner('x.uri', edge, partners)}"
                )
        return resource_set

    def build_path(self, start: str, end: str) -> str:
        """Build the set of the last variable of a path."""
        path = path_between(self.tree, start, end)
        resource_set = self.filter_branches(start, self.build_first_set(self.tree[start]), path[1:2])
        for index, (previous, variable) in enumerate(pairwise(path), 1):
            candidates = self.build_partner_set(
                self.edge(variable, previous), self.tree[variable], resource_set
            )
            resource_set = self.filter_branches(
                variable, candidates, (previous, *path[index + 1 : index + 2])
            )
        return resource_set

    def edge(self, variable: str, other: str) -> QueryEdge:
        return next(edge for edge in self.tree[variable].edges if edge.other == other)

    def bindings(self, selected: tuple[str, ...], resource_set: str) -> str:
        """Join the selected variables; the first ranges over a set."""
        parents = spanning_order(self.tree, selected[0], selected[1:])
        uris, sets = {selected[0]: "x0.uri"}, {selected[0]: resource_set}
        tables, conditions = [f"{resource_set} x0"], list[str]()
        for index, (variable, other) in enumerate(parents.items(), 1):
            edge = self.edge(variable, other)
            excluded = {other, *(child for child, parent in parents.items() if parent == variable)}
            candidates = self.build_partner_set(edge, self.tree[variable], sets[other])
            sets[variable] = self.filter_branches(variable, candidates, excluded)
            uris[variable] = self.add_partners(edge, uris[other], sets[variable], index, tables, conditions)
            conditions += [self.statement.between(uris[variable], each, uris[other]) for each in edge.also]
        if len(tables) > MAX_TABLES:
            accepted = f"at most {MAX_TABLES} tables between the selected variables"
            raise TooLarge(
                "the query has too many joins", received=f"{len(tables)} tables", accepted=accepted
            )
        chosen = ", ".join(uris[variable] for variable in selected)
        where = f" WHERE {' AND '.join(conditions)}" if conditions else ""
        return f"SELECT DISTINCT {chosen} FROM {' CROSS JOIN '.join(tables)}{where}"

    def add_partners(
        self,
        edge: QueryEdge,
        uri: str,
        resource_set: str,
        index: int,
        tables: list[str],
        conditions: list[str],
    ) -> str:
        """Add the partners of a resource to the join, and return their URI column."""
        own_atoms, other_atoms, alias = f"a{index}", f"b{index}", f"x{index}"
        if edge.by_path:
            tables.append(f"{resource_set} {alias}")
            conditions.append(self.statement.between(f"{alias}.uri", edge, uri))
            return f"{alias}.uri"
        other_value = uri
        if edge.others.property is not None:
            tables.append(f"metadata_atoms {other_atoms}")
            conditions.append(self.statement.atom(other_atoms, uri, edge.others.property, edge.others.kind))
            other_value = f"{other_atoms}.value"
        if edge.operator == "=" and edge.own.property is None:
            conditions.append(f"{other_value} IN (SELECT uri FROM {resource_set})")
            return other_value
        if edge.operator == "=":
            tables.append(f"metadata_atoms {own_atoms}")
            conditions += (
                self.statement.equal(edge.own, other_value, own_atoms),
                f"{own_atoms}.uri IN (SELECT uri FROM {resource_set})",
            )
            return f"{own_atoms}.uri"
        tables.append(f"{resource_set} {alias}")
        own = f"{alias}.uri"
        if edge.own.property is not None:
            tables.append(f"metadata_atoms {own_atoms}")
            conditions.append(self.statement.atom(own_atoms, own, edge.own.property, edge.own.kind))
            own = f"{own_atoms}.value"
        conditions.append(self.build_comparison(edge.operator, own, other_value, own_atoms, other_atoms))
        return f"{alias}.uri"

    def build_comparison(
        self, operator: str, own: str, other_value: str, own_atoms: str, other_atoms: str
    ) -> str:
        if operator in ("contains", "within"):
            texts = (own, other_value) if operator == "contains" else (other_value, own)
            return f"{POSITION_FUNCTIONS[self.statement.dialect]}({', '.join(texts)}) > 0"
        if operator == "!=":
            return f"{own} <> {other_value}"
        return f"{own_atoms}.number {operator} {other_atoms}.number"


RowCounter = Callable[[Callable[[QueryStatement], str]], int]
"""Counts the rows of an SQL fragment, up to a limit."""


@dataclass(frozen=True, slots=True)
class SmallestSet:
    """Shortest list of URIs that contains all candidates of a variable; without SQL if no list is short."""

    size: float
    sql: Callable[[QueryStatement], str] | None = None

    def get_sql(self, statement: QueryStatement) -> str | None:
        return self.sql(statement) if self.sql else None


def find_smallest_set(node: QueryNode, count: RowCounter) -> SmallestSet:
    """Count equal values and results of rules, unless there is only one candidate list."""
    lists: list[Callable[[QueryStatement], str]] = []
    if node.rule is not None:
        lists.append(lambda statement, rule=node.rule: statement.results(rule))  # type: ignore[misc]
    for test in node.tests:
        if test.operator is Operator.EQUAL and test.property is None:
            return SmallestSet(1)  # by the key of the table
        if test.operator is Operator.EQUAL:
            lists.append(lambda statement, test=test: statement.with_value(test))  # type: ignore[misc]
    return min(
        (SmallestSet(count(candidate), candidate) for candidate in lists),
        key=lambda candidate: candidate.size,
        default=SmallestSet(math.inf),
    )


def choose_start(tree: QueryTree, sizes: Mapping[str, SmallestSet], registered: str) -> str:
    """Choose the first variable: the one with the fewest candidates, otherwise one with tests."""

    def order(variable: str) -> tuple[float, bool, bool]:
        has_tests = tree[variable].tests or tree[variable].self_comparisons
        return sizes[variable].size, not has_tests, variable != registered

    return min(tree, key=order)
