"""SQL that evaluates all join rules of a group together (section 3.3.3 of paper 001).

A join rule registers resources of one side, `x`, that have a partner on the other, `y`. For equality, evaluation goes
through the partner: from x to y by their values, from both to the rules whose results they are, and from that pair of
rules to the join rule. The other order, from a rule to all join rules with it as an input, would read 100,000 rows
where 100,000 rules say `c.serverInformation.memory = INT`. For other comparisons nearly everything is a partner, so
that order is used.

In a group with several predicates, the first one finds partners, and the others are checked for each pair.

SQLite evaluates the tables of a CROSS JOIN in the written order.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import lru_cache

from sqlalchemy import Connection, Table, text

from tidings.metadata.resources import SUBJECT
from tidings.metadata.rules.atomic import JoinCondition, JoinPredicate, JoinSide, is_path
from tidings.metadata.rules.syntax import Operator
from tidings.metadata.sql.resource_rows import REFERENCE_KIND
from tidings.metadata.sql.tables import INDEXED_LENGTH
from tidings.values import Kind

POSITION_FUNCTIONS = {"sqlite": "instr", "postgresql": "strpos"}
"""Functions for the position of a text in another. Both find the empty text everywhere, as Python does."""

_CAME = "INSERT INTO run_delta (rule, uri, level, went)"
# Not EXISTS: PostgreSQL would turn that into a join, and may search resources by the rule alone.
_NEW = "(SELECT 1 FROM rule_results old WHERE old.uri = {uri} AND old.rule = j.rule) IS NULL"
_MOVED = "m.level = :level AND m.grp = :grp AND m.is_left = {is_left} AND m.{how} = 1"
_JOINS = "j.grp = :grp AND j.level = :level"
_STILL = "(SELECT 1 FROM rule_results n WHERE n.uri = m.uri AND n.rule = m.rule) IS NOT NULL"


@dataclass(frozen=True, slots=True)
class JoinStatements:
    """Statements that find added and removed results of a group. Properties are bound by `join_parameters`."""

    came: tuple[str, ...]
    went: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class SqlOperand:
    """One side of a comparison in SQL: the tables and conditions that lead to it, its text, kind and number."""

    tables: tuple[str, ...]
    conditions: tuple[str, ...]
    text: str
    kind: str
    number: str


@lru_cache(maxsize=10_000)
def build_join_statements(condition: JoinCondition, dialect: str) -> JoinStatements:
    """Build the statements of a group."""
    made = _group(condition, dialect)
    return JoinStatements(made.came(), made.went())


@lru_cache(maxsize=10_000)
def build_partner_statement(condition: JoinCondition, dialect: str) -> str:
    """Build the statement that finds the partners of results in `run_asked`."""
    asked = "run_asked q CROSS JOIN join_rules j WHERE j.rule = q.rule AND j.grp = :grp"
    return f"SELECT q.rule, q.uri, {_group(condition, dialect).met('q.uri')} FROM {asked}"


def _group(condition: JoinCondition, dialect: str) -> _Group:
    """Choose the strategy: paths have no index, so their pairs are compared as for inequalities."""
    plain = not is_path(condition.left.property) and not is_path(condition.right.property)
    is_found = plain and condition.operator is Operator.EQUAL
    return _Equal(condition, dialect) if is_found else _Other(condition, dialect)


def join_parameters(condition: JoinCondition) -> dict[str, str | None]:
    """Return the properties of x and y, `p` and `q`, and of further comparisons; None is the resource itself."""
    x, y = _sides(condition)
    found = _steps("p", _property(x)) | _steps("q", _property(y))
    for at, each in enumerate(condition.also):
        found |= _steps(f"left{at}", each.left) | _steps(f"right{at}", each.right)
    return found


def _steps(name: str, property: str | None) -> dict[str, str | None]:
    """Return the parameters of a property by name; steps of a path are numbered."""
    if property is None or not is_path(property):
        return {name: property}
    return {f"{name}_{at}": step for at, step in enumerate(property.split("."))}


def _sides(condition: JoinCondition) -> tuple[JoinSide, JoinSide]:
    return (
        (condition.left, condition.right) if condition.registers_left else (condition.right, condition.left)
    )


def _property(side: JoinSide) -> str | None:
    return None if side.property == SUBJECT else side.property


def _select(what: str, tables: tuple[str, ...], conditions: tuple[str, ...]) -> str:
    return f"SELECT {what} FROM {' CROSS JOIN '.join(tables)} WHERE {' AND '.join(conditions)}"


def _starts(text: str) -> str:
    return f"substr({text}, 1, {INDEXED_LENGTH})"


class _Group(ABC):
    """The common part of both strategies: which column of `join_rules` is the input of x, and which of y."""

    def __init__(self, condition: JoinCondition, dialect: str) -> None:
        self.condition, self.dialect = condition, dialect
        self.p, self.q = map(_property, _sides(condition))
        self.x_is_left = int(condition.registers_left)
        names = ("left_rule", "right_rule")
        self.x_rule, self.y_rule = names if condition.registers_left else names[::-1]

    def came(self) -> tuple[str, ...]:
        return tuple(
            f"{_CAME} {found} ON CONFLICT DO NOTHING" for found in (self.came_by_x(), self.came_by_y())
        )

    def went(self) -> tuple[str, ...]:
        return tuple(
            f"{_CAME} {found} ON CONFLICT DO NOTHING" for found in (self.went_by_x(), *self.went_by_y())
        )

    def moved(self, is_x: bool, how: str) -> str:
        return _MOVED.format(is_left=self.x_is_left if is_x else 1 - self.x_is_left, how=how)

    def went_by_x(self) -> str:
        """Select stored results of x whose input x was in, or is in with another value now."""
        tables = ("run_moved m", "rule_results r", "join_rules j")
        found = ("r.uri = m.uri", "j.rule = r.rule", _JOINS, f"j.{self.x_rule} = m.rule")
        return _select(
            "j.rule, m.uri, j.level, 1",
            tables,
            (self.moved(True, "goes"), *found, f"{self.holds('m.uri')} IS NULL"),
        )

    def operand(self, alias: str, uri: str, property: str | None, parameter: str, table: str) -> SqlOperand:
        """Return the compared value of the resource `uri`."""
        names = () if property is None else tuple(_steps(parameter, property))
        return build_operand(alias, uri, names, table)

    def also(self, x: str, y: str) -> tuple[str, ...]:
        """Return further conditions between two resources, one subquery each: every `?` is an independent choice."""
        left, right = (x, y) if self.condition.registers_left else (y, x)
        return tuple(self._also(at, each, left, right) for at, each in enumerate(self.condition.also))

    def _also(self, at: int, asked: JoinPredicate, left: str, right: str) -> str:
        one = self.operand("k", left, asked.left, f":left{at}", "metadata_atoms")
        other = self.operand("l", right, asked.right, f":right{at}", "metadata_atoms")
        first, second = (other, one) if asked.swapped else (one, other)
        return exists_condition(first, asked.operator, second, self.dialect)

    @abstractmethod
    def came_by_x(self) -> str: ...

    @abstractmethod
    def came_by_y(self) -> str: ...

    @abstractmethod
    def went_by_y(self) -> tuple[str, ...]: ...

    @abstractmethod
    def holds(self, x: str) -> str: ...

    @abstractmethod
    def met(self, x: str) -> str: ...


class _Equal(_Group):
    """Equality joins: x and y have an equal value, one is the value of the other, or both are the same."""

    def came_by_x(self) -> str:
        tables, conditions, y = self.partner("m.uri", True)
        found = (f"o.uri = {y}", *self.inputs("m.rule", "o.rule"), _JOINS)
        return _select(
            "j.rule, m.uri, j.level, 0",
            ("run_moved m", *tables, "rule_results o", "join_rules j"),
            (
                self.moved(True, "comes"),
                *conditions,
                *found,
                "j.rule >= :first",
                _STILL,
                _NEW.format(uri="m.uri"),
                *self.also("m.uri", y),
            ),
        )

    def came_by_y(self) -> str:
        tables, conditions, x = self.partner("m.uri", False)
        found = (f"i.uri = {x}", *self.inputs("i.rule", "m.rule"), _JOINS)
        return _select(
            "j.rule, i.uri, j.level, 0",
            ("run_moved m", *tables, "rule_results i", "join_rules j"),
            (
                self.moved(False, "comes"),
                *conditions,
                *found,
                "j.rule >= :first",
                _STILL,
                _NEW.format(uri="i.uri"),
                *self.also(x, "m.uri"),
            ),
        )

    def inputs(self, x: str, y: str) -> tuple[str, ...]:
        """Select the join rule by both inputs at once.

        PostgreSQL would use the input that seems more selective, and read all 100,000 join rules of one that is not. So
        each condition contains both inputs.
        """
        return f"j.{self.x_rule} = {x} + 0 * {y}", f"j.{self.y_rule} = {y} + 0 * {x}"

    def went_by_y(self) -> tuple[str, ...]:
        """Select stored results that had y as a partner. If x's own value had changed, x would be affected itself.

        If y has lost another value than the one by which it is found, it is found by its current values.
        """
        return tuple(
            self._went_by_y(table) for table in ("metadata_atoms", "run_gone")[: 1 + (self.q is not None)]
        )

    def _went_by_y(self, table: str) -> str:
        tables, conditions, x = self.partner("m.uri", False, table)
        found = (f"r.uri = {x}", "j.rule = r.rule", _JOINS, f"j.{self.y_rule} = m.rule")
        return _select(
            "j.rule, r.uri, j.level, 1",
            ("run_moved m", *tables, "rule_results r", "join_rules j"),
            (self.moved(False, "goes"), *conditions, *found, f"{self.holds('r.uri')} IS NULL"),
        )

    def holds(self, x: str) -> str:
        tables, conditions, y = self.partner(x, True)
        inputs = (f"i.uri = {x}", f"i.rule = j.{self.x_rule}", f"o.uri = {y}", f"o.rule = j.{self.y_rule}")
        asked = (*inputs, *conditions, *self.also(x, y))
        return f"({_select('1', ('rule_results i', *tables, 'rule_results o'), asked)} LIMIT 1)"

    def met(self, x: str) -> str:
        tables, conditions, y = self.partner(x, True)
        found = (*conditions, f"o.uri = {y}", f"o.rule = j.{self.y_rule}", *self.also(x, "o.uri"))
        return _first(_select("o.uri", (*tables, "rule_results o"), found))

    def partner(
        self, uri: str, from_x: bool, table: str = "metadata_atoms"
    ) -> tuple[tuple[str, ...], tuple[str, ...], str]:
        """Return the tables, the conditions and the URI column that lead from a resource to its partners."""
        here, there = (":p", ":q") if from_x else (":q", ":p")
        own, others = (self.p, self.q) if from_x else (self.q, self.p)
        start = self.operand("a", uri, own, here, table)
        if others is None:
            return start.tables, (*start.conditions, *_is_reference(start)), start.text
        met = (
            f"b.property = {there}",
            f"{_starts('b.value')} = {_starts(start.text)}",
            f"b.value = {start.text}",
        )
        tables = (*start.tables, "metadata_atoms b")
        return tables, (*start.conditions, *met, f"b.kind = {start.kind}"), "b.uri"


def _first(found: str) -> str:
    """Select one of several, the same in every database."""
    return f"({found} ORDER BY o.uri LIMIT 1)"


def _is_reference(operand: SqlOperand) -> tuple[str, ...]:
    return (f"{operand.kind} = {REFERENCE_KIND}",) if operand.tables else ()


class _Other(_Group):
    """Other joins: inequality, order, or containment."""

    def came_by_x(self) -> str:
        found = (f"j.{self.x_rule} = m.rule", _JOINS, "j.rule >= :first", _NEW.format(uri="m.uri"))
        return _select(
            "j.rule, m.uri, j.level, 0",
            ("run_moved m", "join_rules j"),
            (self.moved(True, "comes"), *found, f"{self.holds('m.uri')} IS NOT NULL"),
        )

    def came_by_y(self) -> str:
        x, y = self.operands("i.uri", "m.uri")
        found = (f"j.{self.y_rule} = m.rule", _JOINS, "j.rule >= :first", f"i.rule = j.{self.x_rule}", _STILL)
        return _select(
            "j.rule, i.uri, j.level, 0",
            ("run_moved m", *y.tables, "join_rules j", "rule_results i", *x.tables),
            (
                self.moved(False, "comes"),
                *(*y.conditions, *found, *x.conditions),
                self.meets(x, y),
                _NEW.format(uri="i.uri"),
                *self.also("i.uri", "m.uri"),
            ),
        )

    def went_by_y(self) -> tuple[str, ...]:
        found = (f"j.{self.y_rule} = m.rule", _JOINS, "r.rule = j.rule", f"{self.holds('r.uri')} IS NULL")
        tables = ("run_moved m", "join_rules j", "rule_results r")
        return (_select("j.rule, r.uri, j.level, 1", tables, (self.moved(False, "goes"), *found)),)

    def holds(self, x: str) -> str:
        own, other = self.operands(x, "o.uri")
        tables = ("rule_results i", *own.tables, "rule_results o", *other.tables)
        inputs = (f"i.uri = {x}", f"i.rule = j.{self.x_rule}", f"o.rule = j.{self.y_rule}")
        asked = (*inputs, *own.conditions, *other.conditions, self.meets(own, other), *self.also(x, "o.uri"))
        return f"({_select('1', tables, asked)} LIMIT 1)"

    def met(self, x: str) -> str:
        own, other = self.operands(x, "o.uri")
        tables = (*own.tables, "rule_results o", *other.tables)
        found = (f"o.rule = j.{self.y_rule}", *own.conditions, *other.conditions, self.meets(own, other))
        return _first(_select("o.uri", tables, (*found, *self.also(x, "o.uri"))))

    def operands(self, x: str, y: str) -> tuple[SqlOperand, SqlOperand]:
        return (
            self.operand("a", x, self.p, ":p", "metadata_atoms"),
            self.operand("b", y, self.q, ":q", "metadata_atoms"),
        )

    def meets(self, x: SqlOperand, y: SqlOperand) -> str:
        left, right = (x, y) if self.condition.registers_left else (y, x)
        return comparison_condition(left, self.condition.operator, right, self.dialect)


def build_operand(alias: str, uri: str, steps: Sequence[str], table: str = "metadata_atoms") -> SqlOperand:
    """Return the value of a property or a path of the resource `uri`; without steps, the resource itself."""
    if not steps:
        return SqlOperand((), (), uri, str(REFERENCE_KIND), "NULL")
    tables, conditions = list[str](), list[str]()
    for at, step in enumerate(steps[:-1]):
        before = f"{alias}{at}"
        tables.append(f"metadata_atoms {before}")
        conditions += (
            f"{before}.uri = {uri}",
            f"{before}.property = {step}",
            f"{before}.kind = {REFERENCE_KIND}",
        )
        uri = f"{before}.value"
    tables.append(f"{table} {alias}")
    conditions += (f"{alias}.uri = {uri}", f"{alias}.property = {steps[-1]}")
    return SqlOperand(tuple(tables), tuple(conditions), f"{alias}.value", f"{alias}.kind", f"{alias}.number")


def exists_condition(left: SqlOperand, operator: Operator, right: SqlOperand, dialect: str) -> str:
    """Return the condition that a comparison holds for some value of each side."""
    holds = comparison_condition(left, operator, right, dialect)
    tables = (*left.tables, *right.tables)
    if not tables:
        return holds
    return f"({_select('1', tables, (*left.conditions, *right.conditions, holds))} LIMIT 1) IS NOT NULL"


def comparison_condition(left: SqlOperand, operator: Operator, right: SqlOperand, dialect: str) -> str:
    """Return the condition of a comparison of two values. Values of different kinds never match, not even by `!=`."""
    if operator is Operator.CONTAINS:
        texts = f"{left.kind} = {int(Kind.STRING)} AND {right.kind} = {int(Kind.STRING)}"
        return f"{texts} AND {POSITION_FUNCTIONS[dialect]}({left.text}, {right.text}) > 0"
    same_kind = f"{left.kind} = {right.kind}"
    if operator in (Operator.EQUAL, Operator.UNEQUAL):
        sign = "=" if operator is Operator.EQUAL else "<>"
        return f"{left.text} {sign} {right.text} AND {same_kind}"
    return f"{left.number} {operator.value} {right.number} AND {same_kind}"


PLANNER_SETTINGS = {
    "join_collapse_limit": "1",
    "enable_hashjoin": "off",
    "enable_mergejoin": "off",
    "enable_material": "off",
    "jit": "off",  # what is switched off counts as very expensive, and what is expensive is compiled
}


@contextmanager
def keep_join_order(connection: Connection) -> Iterator[None]:
    """Prevent the planner from reordering joins. After an error, the transaction ends, and with it the setting."""
    if connection.dialect.name == "sqlite":
        yield
        return
    before = dict(zip(PLANNER_SETTINGS, connection.execute(_CURRENT).one(), strict=True))
    connection.execute(_SET, PLANNER_SETTINGS)
    yield
    connection.execute(_SET, before)


# All at once: each statement is a round trip to the server.
_CURRENT = text("SELECT " + ", ".join(f"current_setting('{name}')" for name in PLANNER_SETTINGS))
_SET = text("SELECT " + ", ".join(f"set_config('{name}', :{name}, true)" for name in PLANNER_SETTINGS))


def analyze_table(connection: Connection, table: Table) -> None:
    """Make PostgreSQL collect statistics after a bulk insert; by itself, it does so a minute later.

    Until then it chooses an index by its first column, even if all rows have the same value there.
    """
    if connection.dialect.name == "postgresql":
        connection.execute(text(f"ANALYZE {table.name}"))
