"""Triggering rules over what is stored: those that are new, all at once, one statement for each kind of comparison.

For resources that change, the common index finds them.
"""

from __future__ import annotations

from sqlalchemy import Connection, text

from tidings.languages.rules_tree import Compares
from tidings.store.rule_joins import Operand, condition
from tidings.store.rule_tables import INDEXED

_CLASS = "c.above = t.class"
_CONSTANT = Operand((), (), "t.value", "t.kind", "t.number")
_VALUE = Operand((), (), "a.value", "a.kind", "a.number")


def evaluate(connection: Connection, first: int) -> None:
    """Materialise the results of the triggering rules from the number `first` on."""
    for statement in _statements(connection.dialect.name):
        connection.execute(text(statement), {"first": first})


def _statements(dialect: str) -> list[str]:
    asked = [_over_atoms(compares, dialect) for compares in Compares]
    return [_all_of_a_class(), _itself("="), _itself("<>"), *asked]


def _insert(tables: str, uri: str, conditions: str) -> str:
    return (
        f"INSERT INTO rule_results (uri, rule) SELECT DISTINCT {uri}, t.rule FROM atomic_rules t CROSS JOIN {tables}"
        f" WHERE t.rule >= :first AND t.level = 0 AND {conditions}"
    )


def _all_of_a_class() -> str:
    tables = "metadata_classes c CROSS JOIN metadata_resources a"
    return _insert(tables, "a.uri", f"t.compares IS NULL AND {_CLASS} AND a.class = c.class")


def _itself(operator: str) -> str:
    """`c = <doc.rdf#host>`"""
    spelled = "=" if operator == "=" else "!="
    tables = "metadata_resources a CROSS JOIN metadata_classes c"
    asked = f"t.property IS NULL AND t.compares = '{spelled}' AND a.uri {operator} t.value"
    return _insert(tables, "a.uri", f"{asked} AND c.class = a.class AND {_CLASS}")


def _over_atoms(compares: Compares, dialect: str) -> str:
    tables = "metadata_atoms a CROSS JOIN metadata_classes c"
    asked = f"t.compares = '{compares.value}' AND a.property = t.property"
    if compares is Compares.EQUAL:
        asked += f" AND substr(a.value, 1, {INDEXED}) = substr(t.value, 1, {INDEXED})"
    holds = condition(_VALUE, compares, _CONSTANT, dialect)
    return _insert(tables, "a.uri", f"{asked} AND {holds} AND c.class = a.class AND {_CLASS}")
