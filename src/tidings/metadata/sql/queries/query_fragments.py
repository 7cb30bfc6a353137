"""SQL fragments of query statements: sets of resources, and conditions between a resource and a set."""

from __future__ import annotations

from dataclasses import dataclass, field

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
    VariableComparison,
)
from tidings.metadata.sql.tables import INDEXED_LENGTH

MAX_INLINE_CLASSES = 20
"""How many classes are written inline."""

_SQL = {"=": "=", "!=": "<>", "<": "<", "<=": "<=", ">": ">", ">=": ">="}
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
            return f"{uri} {_SQL[asked.operator.value]} {self.parameter(asked.constant.text)}"
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
