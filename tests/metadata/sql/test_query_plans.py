"""Query plans of join rules: from an input by its partner to one join rule, not to all."""

from __future__ import annotations

import pytest
from sqlalchemy import Connection, text

from tidings.metadata.resources import Resource
from tidings.metadata.rules.atomic import JoinCondition, JoinRule, JoinSide, TriggeringRule
from tidings.metadata.rules.syntax import Operator
from tidings.metadata.schema.model import Class, Property, Schema
from tidings.metadata.sql import join_statements, rule_filter
from tidings.metadata.sql.join_statements import keep_join_order
from tidings.metadata.sql.rule_base import ANALYZE_THRESHOLD, NamedRule
from tidings.store.store import Store
from tidings.values import Kind

NAME = "Server"
SCHEMA = Schema(
    {NAME: Class(NAME, "http://example.org/Server")},
    {name: (Property(name, f"http://example.org/{name}", NAME, Kind.NUMBER),) for name in ("memory", "cpu")},
)
FAST = TriggeringRule(NAME, "cpu", Operator.EQUAL, 600)
SAME = JoinCondition(JoinSide(NAME), Operator.EQUAL, JoinSide(NAME), True)


def rule(number: int, swapped: bool) -> NamedRule:
    """Build a rule that shares one input with the others, as its left or its right one."""
    own = TriggeringRule(NAME, "memory", Operator.EQUAL, number)
    ends = (JoinRule(SAME, FAST, own) if swapped else JoinRule(SAME, own, FAST),)
    return NamedRule(f"r{number}", "ana", "search ...", ends)


def plans(connection: Connection, dialect: str) -> list[str]:
    """Return the plans of the statements for new results, with tables as in a run."""
    resources = {f"s{n}": Resource(f"s{n}", NAME, {"cpu": (600,)}) for n in range(50)}
    rule_filter.run_filter(connection, SCHEMA, resources, [(uri, 1) for uri in resources])
    bound = {"level": 1, "grp": 1, "first": 0, "p": None, "q": None}
    explain = "EXPLAIN QUERY PLAN " if dialect == "sqlite" else "EXPLAIN "
    with keep_join_order(connection):
        return [
            "\n".join(str(row[-1]) for row in connection.execute(text(f"{explain}{statement}"), bound))
            for statement in join_statements.build_join_statements(SAME, dialect)[:2]
        ]


@pytest.mark.parametrize("swapped", [False, True])
def test_join_statement_finds_rule_by_both_inputs(store: Store, swapped: bool) -> None:
    """Found by only one input, it would be one of all join rules."""
    rules = [rule(number, swapped) for number in range(ANALYZE_THRESHOLD)]
    store.database.transact(lambda connection: rule_filter.add_rules(connection, SCHEMA, rules))
    dialect = store.database.engine.dialect.name
    for plan in store.database.transact(lambda connection: plans(connection, dialect)):
        lookup = next(line for line in plan.splitlines() if "left_rule" in line)
        assert "right_rule" in lookup, plan
