"""Saved results of paused rules, with their strong closure.

When a rule is resumed, its subscriber is notified of the difference to its current results. The log could give the
changes in between only while it is not trimmed, and would report resources that changed back.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable, Mapping
from typing import NamedTuple

from sqlalchemy import Connection, delete, select

from tidings.metadata.filter.changes import DocumentChanges, compare_versions
from tidings.metadata.resources import Resource, resource_from_json, resource_to_json, strong_references
from tidings.metadata.schema.model import Schema
from tidings.metadata.sql import resource_rows
from tidings.metadata.sql.resource_rows import load_strong_closure
from tidings.metadata.sql.rule_filter import FilterOutcome, RuleResult
from tidings.metadata.sql.tables import PAUSED_TABLES, paused_resources, paused_results
from tidings.store import bulk

ResourcesByUri = Mapping[str, Resource]


class ChangesSincePause(NamedTuple):
    """Changes of a rule's results while it was paused, and of the resources they consist of."""

    outcome: FilterOutcome
    changes: DocumentChanges


def save_paused_results(connection: Connection, rule: str, uris: Collection[str]) -> None:
    """Save the results of a rule with their current resources."""
    bulk.insert_rows(connection, paused_results, [(rule, uri) for uri in sorted(uris)])
    said = [
        (rule, each.uri, json.dumps(resource_to_json(each))) for each in load_strong_closure(connection, uris)
    ]
    bulk.insert_rows(connection, paused_resources, said)


def delete_paused_results(connection: Connection, rule: str) -> None:
    for table in PAUSED_TABLES:
        connection.execute(delete(table).where(table.c.rule == rule))


def changes_since_pause(
    connection: Connection, schema: Schema, rule: str, has: Collection[RuleResult]
) -> ChangesSincePause:
    """Compare the saved results of a rule with its current results."""
    told = select(paused_results.c.uri).where(paused_results.c.rule == rule)
    had = {(rule, uri) for uri in connection.execute(told).scalars()}
    both = had.intersection(has)
    said = select(paused_resources.c.uri, paused_resources.c.said).where(paused_resources.c.rule == rule)
    before = {uri: resource_from_json(json.loads(text)) for uri, text in connection.execute(said)}
    now = {each.uri: each for each in load_strong_closure(connection, [uri for _, uri in both])}
    now |= resource_rows.load_resources(connection, before.keys() - now.keys())
    changes = compare_versions(before.values(), now.values())
    touched = [*changes.new, *changes.deleted, *(each.after for each in changes.changed)]
    reached = _reaching({each.uri for each in touched}, (before, now), schema)
    changed = frozenset(pair for pair in both if pair[1] in reached)
    outcome = FilterOutcome(frozenset(has).difference(had), changed, frozenset(had.difference(has)))
    return ChangesSincePause(outcome, _told(changes, before, now, schema))


def _reaching(touched: set[str], states: Iterable[ResourcesByUri], schema: Schema) -> set[str]:
    """Return touched resources with all that strongly refer to them in one of the states."""
    referring: dict[str, set[str]] = {}
    for state in states:
        for uri, target in _references(state.values(), state, schema):
            referring.setdefault(target, set()).add(uri)
    found, waiting = set(touched), list(touched)
    while waiting:
        more = referring.get(waiting.pop(), set()) - found
        found |= more
        waiting += more
    return found


def _told(
    changes: DocumentChanges, before: ResourcesByUri, now: ResourcesByUri, schema: Schema
) -> DocumentChanges:
    """Return the changes to report as reasons.

    A resource that is referred to only since then may have existed before. It is reported as new only if an unchanged
    resource referred to it.
    """
    as_they_were = [each for uri, each in before.items() if now.get(uri) == each]
    found = {target for _, target in _references(as_they_were, now, schema)}
    new = tuple(each for each in changes.new if each.uri in found)
    return DocumentChanges(new, changes.changed, changes.deleted, changes.unchanged)


def _references(
    given: Iterable[Resource], there: ResourcesByUri, schema: Schema
) -> Iterable[tuple[str, str]]:
    """Yield the strong references of resources to existing ones."""
    for each in given:
        for target, cls in strong_references(each, schema):
            if target in there and cls in schema.at_or_above(there[target].cls):
                yield each.uri, target
