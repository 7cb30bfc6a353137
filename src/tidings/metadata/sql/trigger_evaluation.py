"""Evaluation of new triggering rules over stored resources, with one statement for each kind of comparison.

For changed resources, the trigger index finds the rules instead.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass
from typing import TYPE_CHECKING

from sqlalchemy import Connection, select, text

from tidings.metadata.resources import Resource, document_uri_of
from tidings.metadata.rules.syntax import Operator
from tidings.metadata.sql import log_rows, resource_rows, rule_base
from tidings.metadata.sql.join_statements import SqlOperand, comparison_condition
from tidings.metadata.sql.tables import APPLIED_COUNTER, INDEXED_LENGTH, atomic_rules, rule_results
from tidings.store import bulk, counters

if TYPE_CHECKING:
    from tidings.metadata.filter.trigger_index import TriggerIndex  # loads kernels, which readers do not need

_CLASS = "c.superclass = t.class"
_CONSTANT = SqlOperand((), (), "t.value", "t.kind", "t.number")
_VALUE = SqlOperand((), (), "a.value", "a.kind", "a.number")


def evaluate_triggering(connection: Connection, first: int) -> None:
    """Store the results of the triggering rules from the number `first` on."""
    for statement in _statements(connection.dialect.name):
        connection.execute(text(statement), {"first": first})


def _statements(dialect: str) -> list[str]:
    by_value = [_select_by_value(operator, dialect) for operator in Operator]
    return [_all_of_a_class(), _select_by_uri("="), _select_by_uri("<>"), *by_value]


def _build_insert(tables: str, uri: str, conditions: str) -> str:
    return (
        f"INSERT INTO rule_results (uri, rule) SELECT DISTINCT {uri}, t.rule FROM atomic_rules t CROSS JOIN {tables}"
        f" WHERE t.rule >= :first AND t.level = 0 AND {conditions}"
    )


def _all_of_a_class() -> str:
    tables = "metadata_classes c CROSS JOIN metadata_resources a"
    return _build_insert(tables, "a.uri", f"t.compares IS NULL AND {_CLASS} AND a.class = c.class")


def _select_by_uri(operator: str) -> str:
    """`c = <doc.rdf#host>`"""
    spelled = "=" if operator == "=" else "!="
    tables = "metadata_resources a CROSS JOIN metadata_classes c"
    condition = f"t.property IS NULL AND t.compares = '{spelled}' AND a.uri {operator} t.value"
    return _build_insert(tables, "a.uri", f"{condition} AND c.class = a.class AND {_CLASS}")


def _select_by_value(operator: Operator, dialect: str) -> str:
    tables = "metadata_atoms a CROSS JOIN metadata_classes c"
    condition = f"t.compares = '{operator.value}' AND a.property = t.property"
    if operator is Operator.EQUAL:
        condition += f" AND substr(a.value, 1, {INDEXED_LENGTH}) = substr(t.value, 1, {INDEXED_LENGTH})"
    holds = comparison_condition(_VALUE, operator, _CONSTANT, dialect)
    return _build_insert(tables, "a.uri", f"{condition} AND {holds} AND c.class = a.class AND {_CLASS}")


# Results that were computed elsewhere, for example by Spark, before the rules are added. Documents may have changed
# since: the log lists them. Their resources are evaluated again in the transaction that adds the rules.


RESULT_BATCH = 50_000
"""Maximum number of results in memory."""

TriggerMatch = tuple[str, int]
"""The URI of a resource, and the index of a rule among the evaluated ones."""


@dataclass(frozen=True, slots=True)
class TriggerResults:
    """Results of rules, by keys, among the resources that were stored at a position or later.

    `pairs` can be iterated repeatedly; `evaluate` evaluates the same rules on other resources.
    """

    position: int
    keys: Sequence[str]
    pairs: Iterable[TriggerMatch]
    evaluate: Callable[[Collection[Resource]], Iterable[TriggerMatch]]


def is_current(connection: Connection, evaluated: TriggerResults, new: Set[str]) -> bool:
    """Whether results cover the rules that are new now, and the log has all changes since."""
    return log_rows.first_position(connection) <= evaluated.position + 1 and not new - frozenset(
        evaluated.keys
    )


def insert_trigger_results(
    connection: Connection, evaluated: TriggerResults, numbers: Mapping[str, int]
) -> None:
    """Store the results of new rules, whose numbers are given by key."""
    applied = counters.current(connection, APPLIED_COUNTER)
    changed = log_rows.changed_document_uris(connection, evaluated.position, applied)
    documents = resource_rows.load_documents(connection, changed).values()
    changed_resources = [resource for resources in documents for resource in resources]
    rule_numbers = [numbers.get(key) for key in evaluated.keys]
    for matches in (
        _pairs_of_unchanged(evaluated.pairs, changed),
        evaluated.evaluate(changed_resources) if changed_resources else (),
    ):
        rows = ((uri, number) for uri, index in matches if (number := rule_numbers[index]) is not None)
        for piece in bulk.iter_chunks(rows, RESULT_BATCH):
            bulk.insert_rows(connection, rule_results, piece)


def _pairs_of_unchanged(pairs: Iterable[TriggerMatch], changed: Collection[str]) -> Iterator[TriggerMatch]:
    return (pair for pair in pairs if document_uri_of(pair[0]) not in changed) if changed else iter(pairs)


# For changed resources, the index finds the triggering rules.


def find_satisfied_triggers(
    connection: Connection, triggers: TriggerIndex, resources: Collection[Resource]
) -> list[tuple[str, int]]:
    """Find the triggering rules that resources satisfy, after updating the index with added and removed rules."""
    _catch_up(connection, triggers)
    matches = list(triggers.find_satisfied(resources))
    numbers = {number for _, number in matches}
    existing = bulk.select_among(connection, _EXISTING, atomic_rules.c.rule, sorted(numbers), numbers=True)
    removed = numbers.difference(row.rule for row in existing)
    if not removed:
        return matches
    triggers.remove(removed)
    return [(uri, number) for uri, number in matches if number not in removed]


def _catch_up(connection: Connection, triggers: TriggerIndex) -> None:
    """Add new rules to the index. The counter shows cheaply whether there are any."""
    upto = counters.current(connection, rule_base.ATOMIC_RULE_COUNTER)
    if upto > triggers.read_upto:
        triggers.add(rule_base.load_triggering(connection, triggers.last))
        triggers.read_upto = upto


_EXISTING = select(atomic_rules.c.rule)
