"""SQL that evaluates all join rules of a group together (section 3.3.3 of paper 001).

A join rule registers resources of one side, `x`, that have a partner on the other, `y`. For equality, evaluation goes
through the partner: from x to y by their values, from both to the rules whose results they are, and from that pair of
rules to the join rule. The other order, from a rule to all join rules with it as an input, would read 100,000 rows
where 100,000 rules test `c.serverInformation.memory = INT`. For other comparisons nearly everything is a partner, so
that order is used.

In a group with several predicates, the first one finds partners, and the others are checked for each pair.

SQLite evaluates the tables of a CROSS JOIN in the written order.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import lru_cache

from sqlalchemy import Connection, Table, TextClause, text

from tidings.metadata.resources import SUBJECT
from tidings.metadata.rules.atomic import JoinCondition, JoinSide
from tidings.metadata.rules.normal_form import JoinPredicate, is_path
from tidings.metadata.rules.syntax import Operator
from tidings.metadata.sql.resource_rows import REFERENCE_KIND
from tidings.metadata.sql.tables import INDEXED_LENGTH
from tidings.values import Kind

POSITION_FUNCTIONS = {"sqlite": "instr", "postgresql": "strpos"}
"""Functions for the position of a text in another. Both find the empty text everywhere, as Python does."""

# Not EXISTS: PostgreSQL would turn that into a join, and may search resources by the rule alone.
_NEW = "(SELECT 1 FROM rule_results old WHERE old.uri = {uri} AND old.rule = j.rule) IS NULL"
_MOVED = "m.level = :level AND m.grp = :grp AND m.is_left = {is_left} AND m.{how} = 1"
_JOINS = "j.grp = :grp AND j.level = :level"
_STILL = "(SELECT 1 FROM rule_results n WHERE n.uri = m.uri AND n.rule = m.rule) IS NOT NULL"


@dataclass(frozen=True, slots=True)
class SqlOperand:
    """One side of a comparison in SQL: the tables and conditions that lead to it, its text, kind and number."""

    tables: tuple[str, ...]
    conditions: tuple[str, ...]
    text: str
    kind: str
    number: str


@lru_cache(maxsize=10_000)
def build_join_statements(condition: JoinCondition, dialect: str) -> tuple[TextClause, ...]:
    """Build the statements that find the added and then the removed results of a group."""
    join = _choose_strategy(condition, dialect)
    selects = (join.select_added(True), join.select_added(False), join.removed_by_x(), *join.removed_by_y())
    insert = "INSERT INTO run_delta (rule, uri, level, went)"
    return tuple(text(f"{insert} {select} ON CONFLICT DO NOTHING") for select in selects)


@lru_cache(maxsize=10_000)
def build_partner_statement(condition: JoinCondition, dialect: str) -> TextClause:
    """Build the statement that finds the partners of results in `run_asked`."""
    partner = _choose_strategy(condition, dialect).first_partner("q.uri")
    results = "run_asked q CROSS JOIN join_rules j WHERE j.rule = q.rule AND j.grp = :grp"
    return text(f"SELECT q.rule, q.uri, {partner} FROM {results}")


def _choose_strategy(condition: JoinCondition, dialect: str) -> _Join:
    """Choose the strategy: paths have no index, so their pairs are compared as for inequalities."""
    has_path = is_path(condition.left.property) or is_path(condition.right.property)
    by_value = condition.operator is Operator.EQUAL and not has_path
    return (_EqualityJoin if by_value else _Join)(condition, dialect)


def join_parameters(condition: JoinCondition) -> dict[str, str | None]:
    """Return the properties of x and y, `p` and `q`, and of further comparisons; None is the resource itself."""
    x, y = condition.sides
    parameters = _steps("p", _property(x)) | _steps("q", _property(y))
    for index, predicate in enumerate(condition.also):
        parameters |= _steps(f"left{index}", predicate.left) | _steps(f"right{index}", predicate.right)
    return parameters


def _steps(name: str, property: str | None) -> dict[str, str | None]:
    """Return the parameters of a property by name; steps of a path are numbered."""
    if property is None or not is_path(property):
        return {name: property}
    return {f"{name}_{at}": step for at, step in enumerate(property.split("."))}


def _property(side: JoinSide) -> str | None:
    return None if side.property == SUBJECT else side.property


def _select(columns: str, tables: tuple[str, ...], conditions: tuple[str, ...]) -> str:
    return f"SELECT {columns} FROM {' CROSS JOIN '.join(tables)} WHERE {' AND '.join(conditions)}"


def _starts(text: str) -> str:
    return f"substr({text}, 1, {INDEXED_LENGTH})"


class _Join:
    """Joins by inequality, order, containment or paths, and the common part of all joins.

    `x_rule` and `y_rule` are the columns of `join_rules` with the inputs of x and y.
    """

    def __init__(self, condition: JoinCondition, dialect: str) -> None:
        self.condition, self.dialect = condition, dialect
        self.p, self.q = map(_property, condition.sides)
        self.x_is_left = int(condition.registers_left)
        names = ("left_rule", "right_rule")
        self.x_rule, self.y_rule = names if condition.registers_left else names[::-1]

    def select_added(self, by_x: bool) -> str:
        """Select new results that are found from a moved x, or from a moved y."""
        if by_x:
            inputs = (f"j.{self.x_rule} = m.rule", _JOINS, "j.rule >= :first", _NEW.format(uri="m.uri"))
            conditions = (self.select_moved(True, "comes"), *inputs, f"{self.holds('m.uri')} IS NOT NULL")
            return _select("j.rule, m.uri, j.level, 0", ("run_moved m", "join_rules j"), conditions)
        x, y = self.operands("i.uri", "m.uri")
        joined = (
            f"j.{self.y_rule} = m.rule",
            _JOINS,
            "j.rule >= :first",
            f"i.rule = j.{self.x_rule}",
            _STILL,
        )
        join_conditions = (
            self.select_moved(False, "comes"),
            *y.conditions,
            *joined,
            *x.conditions,
            self.compare(x, y),
        )
        tables = ("run_moved m", *y.tables, "join_rules j", "rule_results i", *x.tables)
        new = (_NEW.format(uri="i.uri"), *self.also("i.uri", "m.uri"))
        return _select("j.rule, i.uri, j.level, 0", tables, (*join_conditions, *new))

    def removed_by_x(self) -> str:
        """Select stored results of x whose input x was in, or is in with another value now."""
        tables = ("run_moved m", "rule_results r", "join_rules j")
        inputs = ("r.uri = m.uri", "j.rule = r.rule", _JOINS, f"j.{self.x_rule} = m.rule")
        conditions = (self.select_moved(True, "goes"), *inputs, f"{self.holds('m.uri')} IS NULL")
        return _select("j.rule, m.uri, j.level, 1", tables, conditions)

    def removed_by_y(self) -> tuple[str, ...]:
        """Select stored results that had y as a partner."""
        inputs = (f"j.{self.y_rule} = m.rule", _JOINS, "r.rule = j.rule", f"{self.holds('r.uri')} IS NULL")
        tables = ("run_moved m", "join_rules j", "rule_results r")
        return (_select("j.rule, r.uri, j.level, 1", tables, (self.select_moved(False, "goes"), *inputs)),)

    def holds(self, x: str) -> str:
        """Return a subquery with a row if x is in the input and has a partner."""
        own, other = self.operands(x, "o.uri")
        tables = ("rule_results i", *own.tables, "rule_results o", *other.tables)
        inputs = (f"i.uri = {x}", f"i.rule = j.{self.x_rule}", f"o.rule = j.{self.y_rule}")
        conditions = (*inputs, *own.conditions, *other.conditions, self.compare(own, other))
        return f"({_select('1', tables, (*conditions, *self.also(x, 'o.uri')))} LIMIT 1)"

    def first_partner(self, x: str) -> str:
        """Return a subquery for one of the partners of x, the same in every database."""
        own, other = self.operands(x, "o.uri")
        tables = (*own.tables, "rule_results o", *other.tables)
        conditions = (
            f"o.rule = j.{self.y_rule}",
            *own.conditions,
            *other.conditions,
            self.compare(own, other),
        )
        return _first(_select("o.uri", tables, (*conditions, *self.also(x, "o.uri"))))

    def operands(self, x: str, y: str) -> tuple[SqlOperand, SqlOperand]:
        return self.operand("a", x, self.p, ":p"), self.operand("b", y, self.q, ":q")

    def operand(
        self, alias: str, uri: str, property: str | None, parameter: str, table: str = "metadata_atoms"
    ) -> SqlOperand:
        """Return the compared value of the resource `uri`."""
        names = () if property is None else tuple(_steps(parameter, property))
        return build_operand(alias, uri, names, table)

    def compare(self, x: SqlOperand, y: SqlOperand) -> str:
        left, right = (x, y) if self.condition.registers_left else (y, x)
        return comparison_condition(left, self.condition.operator, right, self.dialect)

    def select_moved(self, is_x: bool, how: str) -> str:
        return _MOVED.format(is_left=self.x_is_left if is_x else 1 - self.x_is_left, how=how)

    def also(self, x: str, y: str) -> tuple[str, ...]:
        """Return further conditions between two resources, one subquery each: every `?` is an independent choice."""
        left, right = (x, y) if self.condition.registers_left else (y, x)
        return tuple(
            self._further_condition(at, each, left, right) for at, each in enumerate(self.condition.also)
        )

    def _further_condition(self, index: int, predicate: JoinPredicate, left: str, right: str) -> str:
        left_operand = self.operand("k", left, predicate.left, f":left{index}")
        right_operand = self.operand("l", right, predicate.right, f":right{index}")
        first, second = (right_operand, left_operand) if predicate.swapped else (left_operand, right_operand)
        return exists_condition(first, predicate.operator, second, self.dialect)


class _EqualityJoin(_Join):
    """Equality joins: x and y have an equal value, one is the value of the other, or both are the same."""

    def select_added(self, by_x: bool) -> str:
        tables, conditions, partner = self.partner("m.uri", by_x)
        x, y = ("m.uri", partner) if by_x else (partner, "m.uri")
        registered, rules = ("m.uri", ("m.rule", "o.rule")) if by_x else ("o.uri", ("o.rule", "m.rule"))
        inputs = (f"o.uri = {partner}", *self.inputs(*rules), _JOINS, "j.rule >= :first", _STILL)
        conditions = (self.select_moved(by_x, "comes"), *conditions, *inputs, _NEW.format(uri=registered))
        tables = ("run_moved m", *tables, "rule_results o", "join_rules j")
        return _select(f"j.rule, {registered}, j.level, 0", tables, (*conditions, *self.also(x, y)))

    def inputs(self, x: str, y: str) -> tuple[str, ...]:
        """Select the join rule by both inputs at once.

        PostgreSQL would use the input estimated to be more selective, and read all 100,000 join rules of one that
        is not. So each condition contains both inputs.
        """
        return f"j.{self.x_rule} = {x} + 0 * {y}", f"j.{self.y_rule} = {y} + 0 * {x}"

    def removed_by_y(self) -> tuple[str, ...]:
        """Select stored results that had y as a partner. If x's own value had changed, x would be affected itself.

        If y has lost another value than the one by which it is found, it is found by its current values.
        """
        tables = ("metadata_atoms",) if self.q is None else ("metadata_atoms", "run_gone")
        return tuple(map(self._removed_by_y, tables))

    def _removed_by_y(self, table: str) -> str:
        tables, conditions, x = self.partner("m.uri", False, table)
        inputs = (f"r.uri = {x}", "j.rule = r.rule", _JOINS, f"j.{self.y_rule} = m.rule")
        conditions = (
            self.select_moved(False, "goes"),
            *conditions,
            *inputs,
            f"{self.holds('r.uri')} IS NULL",
        )
        tables = ("run_moved m", *tables, "rule_results r", "join_rules j")
        return _select("j.rule, r.uri, j.level, 1", tables, conditions)

    def holds(self, x: str) -> str:
        tables, conditions, y = self.partner(x, True)
        inputs = (f"i.uri = {x}", f"i.rule = j.{self.x_rule}", f"o.uri = {y}", f"o.rule = j.{self.y_rule}")
        conditions = (*inputs, *conditions, *self.also(x, y))
        return f"({_select('1', ('rule_results i', *tables, 'rule_results o'), conditions)} LIMIT 1)"

    def first_partner(self, x: str) -> str:
        tables, conditions, y = self.partner(x, True)
        inputs = (f"o.uri = {y}", f"o.rule = j.{self.y_rule}", *self.also(x, "o.uri"))
        return _first(_select("o.uri", (*tables, "rule_results o"), (*conditions, *inputs)))

    def partner(
        self, uri: str, from_x: bool, table: str = "metadata_atoms"
    ) -> tuple[tuple[str, ...], tuple[str, ...], str]:
        """Return the tables, the conditions and the URI column that lead from a resource to its partners."""
        here, there = (":p", ":q") if from_x else (":q", ":p")
        own, others = (self.p, self.q) if from_x else (self.q, self.p)
        start = self.operand("a", uri, own, here, table)
        if others is None:
            is_reference = (f"{start.kind} = {REFERENCE_KIND}",) if start.tables else ()
            return start.tables, (*start.conditions, *is_reference), start.text
        equal = (f"{_starts('b.value')} = {_starts(start.text)}", f"b.value = {start.text}")
        conditions = (*start.conditions, f"b.property = {there}", *equal, f"b.kind = {start.kind}")
        return (*start.tables, "metadata_atoms b"), conditions, "b.uri"


def _first(uris: str) -> str:
    return f"({uris} ORDER BY o.uri LIMIT 1)"


def build_operand(alias: str, uri: str, steps: Sequence[str], table: str = "metadata_atoms") -> SqlOperand:
    """Return the value of a property or a path of the resource `uri`; without steps, the resource itself."""
    if not steps:
        return SqlOperand((), (), uri, str(REFERENCE_KIND), "NULL")
    tables, conditions = list[str](), list[str]()
    for index, step in enumerate(steps[:-1]):
        step_alias = f"{alias}{index}"
        tables.append(f"metadata_atoms {step_alias}")
        conditions += (
            f"{step_alias}.uri = {uri}",
            f"{step_alias}.property = {step}",
            f"{step_alias}.kind = {REFERENCE_KIND}",
        )
        uri = f"{step_alias}.value"
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


# Statements run in their written order: the filter joins few rows with their partners by indexes, and other orders are
# slow. SQLite evaluates CROSS JOINs as written. PostgreSQL has no statistics of tables that were just filled, and
# guesses: it joined 2,000 new rows with 100,000 rules by nested scans. So join reordering is turned off.

PLANNER_SETTINGS = {
    "join_collapse_limit": "1",
    "enable_hashjoin": "off",
    "enable_mergejoin": "off",
    "enable_material": "off",
    "jit": "off",  # disabled plans count as very expensive, and expensive plans would be compiled
}


@contextmanager
def keep_join_order(connection: Connection) -> Iterator[None]:
    """Prevent the planner from reordering joins. After an error, the transaction ends, and with it the setting."""
    if connection.dialect.name == "sqlite":
        yield
        return
    previous = dict(zip(PLANNER_SETTINGS, connection.execute(_CURRENT).one(), strict=True))
    connection.execute(_SET, PLANNER_SETTINGS)
    yield
    connection.execute(_SET, previous)


# All at once: each statement is a round trip to the server.
_CURRENT = text("SELECT " + ", ".join(f"current_setting('{name}')" for name in PLANNER_SETTINGS))
_SET = text("SELECT " + ", ".join(f"set_config('{name}', :{name}, true)" for name in PLANNER_SETTINGS))


def analyze_table(connection: Connection, table: Table) -> None:
    """Make PostgreSQL collect statistics after a bulk insert; by itself, it does so a minute later.

    Until then it chooses an index by its first column, even if all rows have the same value there.
    """
    if connection.dialect.name == "postgresql":
        connection.execute(text(f"ANALYZE {table.name}"))
