"""Notifications of rules: resources that entered, changed in, or left their results.

They are written in the transaction that changes the results, so each move is reported once. Their ids are made from the
position of the log and the number of a change of rules.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Collection, Mapping, Sequence
from datetime import datetime
from itertools import chain
from typing import NamedTuple

from sqlalchemy import Connection, select

from tidings.metadata.filter.changes import (
    DocumentChanges,
    StrongReferences,
    TouchedResources,
    explain_change,
)
from tidings.metadata.filter.explanation import (
    MAX_REASONS,
    ExplanationContext,
    RuleTree,
    explain_match,
    explain_mismatch,
    request_facts,
)
from tidings.metadata.rules.atomic import JoinCondition
from tidings.metadata.schema.model import Schema
from tidings.metadata.sql import join_statements, resource_rows, rule_base
from tidings.metadata.sql.join_statements import keep_join_order
from tidings.metadata.sql.rule_filter import FilterOutcome, RuleResult
from tidings.metadata.sql.tables import (
    join_rules,
    metadata_atoms,
    metadata_resources,
    metadata_rules,
    rule_ends,
    run_asked,
)
from tidings.model import Reason
from tidings.store import bulk
from tidings.store.encoding import MatchRow
from tidings.store.notifications import batch_commit, sequences


class RuleMove(NamedTuple):
    """A change of a resource in the results of a rule, ordered by resource, then by rule."""

    uri: str
    rule: str
    kind: str


ReasonLookup = Callable[[Sequence[RuleMove]], Mapping[RuleMove, Sequence[Reason]]]
"""Returns the reasons of moves."""

NOTIFICATION_BATCH = 5_000
"""Number of moves explained and written in one step: a registration can have millions."""


def list_moves(outcome: FilterOutcome) -> list[RuleMove]:
    """List all moves in the order of notifications."""
    kinds = ("entered", "changed", "left")
    return sorted(RuleMove(uri, rule, kind) for kind in kinds for rule, uri in getattr(outcome, kind))


def notify_owners(
    connection: Connection, event: str, moves: Sequence[RuleMove], reasons: ReasonLookup, moment: datetime
) -> None:
    """Notify the owners of rules, deferred for those with a delay. `at` is unique for each call."""
    c = metadata_rules.c
    rows = bulk.select_among(connection, _OWNERS, c.name, sorted({move.rule for move in moves}))
    rules = {name: (owner, within) for name, owner, within in rows}
    delays = {(rule, owner): within for rule, (owner, within) in rules.items() if within is not None}
    numbers = sequences.lock_sequences(connection, {owner for owner, _ in rules.values()})
    previous = dict(numbers)
    for part in bulk.iter_chunks(moves, NOTIFICATION_BATCH):
        because = reasons(part)
        matches = {
            _id(event, move): MatchRow(
                move.uri, move.rule, rules[move.rule][0], because[move], kind=move.kind
            )
            for move in part
        }
        batch_commit.write_part(connection, matches, numbers, delays, moment)
    sequences.advance_sequences(connection, numbers, previous)


_OWNERS = select(metadata_rules.c.name, metadata_rules.c.owner, metadata_rules.c.within)


def _id(event: str, move: RuleMove) -> str:
    named = f"{event}:{len(move.uri)}:{move.uri}{move.rule}".encode()
    return "m-" + hashlib.blake2b(named, digest_size=10).hexdigest()


# Reasons for moves, loaded for all moves of a run at once.


EndRules = Mapping[RuleResult, Sequence[int]]

MAX_REFERENCE_DEPTH = 100
"""The maximal number of strong references to a change that is reported as a reason."""


class MoveExplainer:
    """Explanation of moves, some thousand at a time. `changes` are the changes of the metadata."""

    def __init__(
        self,
        connection: Connection,
        schema: Schema,
        ends: EndRules,
        changes: Collection[DocumentChanges] = (),
    ) -> None:
        self._connection, self._schema, self._ends = connection, schema, ends
        self._touched = TouchedResources.of(changes)
        self._context = ExplanationContext(schema)
        self._trees: dict[int, RuleTree] = {}
        for change in changes:
            existing = chain(change.new, (changed.after for changed in change.changed), change.unchanged)
            self._context.resources |= {resource.uri: resource for resource in existing}
            self._context.resources |= dict.fromkeys(resource.uri for resource in change.deleted)

    def reasons(self, moves: Sequence[RuleMove]) -> dict[RuleMove, list[Reason]]:
        """Return the reasons of each move."""
        changed = [move for move in moves if move.kind == "changed"]
        return self._explain_moves(
            [move for move in moves if move.kind != "changed"]
        ) | self._explain_changed(changed)

    def _explain_moves(self, moves: Sequence[RuleMove]) -> dict[RuleMove, list[Reason]]:
        ends = self._load_end_rules(moves)
        missing = {number for numbers in ends.values() for number in numbers} - self._trees.keys()
        self._trees |= load_trees(self._connection, missing)
        context, trees = self._context, self._trees
        requests = [(trees[number], move.uri) for move in moves for number in ends[move]]
        _load_requested_data(self._connection, context, trees, requests)
        reasons = {}
        for move in moves:
            trees_of_move = (trees[number] for number in ends[move])
            if move.kind == "entered":
                matches = (explain_match(tree, move.uri, context) for tree in trees_of_move)
                reasons[move] = next(filter(None, matches), [])
            else:
                mismatches = (explain_mismatch(tree, move.uri, context) for tree in trees_of_move)
                reasons[move] = list(dict.fromkeys(chain.from_iterable(mismatches)))[:MAX_REASONS]
        return reasons

    def _load_end_rules(self, moves: Sequence[RuleMove]) -> dict[RuleMove, list[int]]:
        """Return the end rules by which resources entered and left."""
        ends_by_move = {move: self._ends.get((move.rule, move.uri)) for move in moves}
        # The rule was replaced, and the new one does not have the results of the old one.
        names = sorted({move.rule for move, numbers in ends_by_move.items() if numbers is None})
        numbers: dict[str, list[int]] = {name: [] for name in names}
        for name, number in bulk.select_among(self._connection, _ENDS, rule_ends.c.name, names):
            numbers[name].append(number)
        return {
            move: sorted(numbers[move.rule] if ends is None else ends) for move, ends in ends_by_move.items()
        }

    def _explain_changed(self, moves: Sequence[RuleMove]) -> dict[RuleMove, list[Reason]]:
        uris = {move.uri for move in moves}
        strong = _load_strong_references(self._connection, self._schema, uris, self._touched)
        reasons = {uri: explain_change(uri, self._touched, strong) for uri in uris}
        return {move: reasons[move.uri] for move in moves}


_ENDS = select(rule_ends.c.name, rule_ends.c.rule)


def load_trees(connection: Connection, numbers: Collection[int]) -> dict[int, RuleTree]:
    """Load atomic rules with all their inputs, level by level."""
    inputs, pending = dict[int, tuple[int, int, int]](), set(numbers)
    leaves: set[int] = set()
    while pending:
        rows = bulk.select_among(connection, _JOINS, join_rules.c.rule, sorted(pending), numbers=True)
        level = {rule: (grp, left, right) for rule, grp, left, right in rows}
        inputs |= level
        leaves |= pending - level.keys()
        pending = {rule for _, *both in level.values() for rule in both} - inputs.keys() - leaves
    trees = {
        number: RuleTree(number, condition)
        for number, condition in rule_base.load_triggering_by_number(connection, sorted(leaves)).items()
    }
    numbers_of_groups = sorted({grp for grp, _, _ in inputs.values()})
    groups = rule_base.load_groups(connection, numbers_of_groups) if inputs else {}
    for number in sorted(inputs):  # inputs have smaller numbers than the rules that use them
        grp, left, right = inputs[number]
        condition = groups[grp]
        registered, other = (left, right) if condition.registers_left else (right, left)
        trees[number] = RuleTree(number, condition, trees[registered], trees[other], grp)
    return trees


_JOINS = select(join_rules.c.rule, join_rules.c.grp, join_rules.c.left_rule, join_rules.c.right_rule)


def _load_requested_data(
    connection: Connection,
    context: ExplanationContext,
    trees: Mapping[int, RuleTree],
    requests: Collection[tuple[RuleTree, str]],
) -> None:
    """Load requested data repeatedly, until nothing more is requested."""
    while True:
        for tree, uri in requests:
            request_facts(tree, uri, context)
        if not context.unknown_resources and not context.unknown_partners:
            return
        context.resources |= dict.fromkeys(context.unknown_resources)
        context.resources |= resource_rows.load_resources(connection, sorted(context.unknown_resources))
        if context.unknown_partners:
            _load_partners(connection, context, trees)
        context.unknown_resources, context.unknown_partners = set(), set()


def _load_partners(
    connection: Connection, context: ExplanationContext, trees: Mapping[int, RuleTree]
) -> None:
    """Load the join partners of requested results, with one statement for each group."""
    context.partners |= dict.fromkeys(context.unknown_partners)
    connection.execute(run_asked.delete())
    bulk.insert_rows(connection, run_asked, sorted(context.unknown_partners))
    groups = {trees[rule].group: trees[rule].condition for rule, _ in context.unknown_partners}
    with keep_join_order(connection):
        for grp, condition in sorted(groups.items()):
            assert isinstance(condition, JoinCondition)
            bound = {"grp": grp, **join_statements.join_parameters(condition)}
            statement = join_statements.build_partner_statement(condition, connection.dialect.name)
            for rule, uri, partner in connection.execute(statement, bound):
                context.partners[rule, uri] = partner


def _load_strong_references(
    connection: Connection, schema: Schema, uris: Collection[str], touched: TouchedResources
) -> StrongReferences:
    """Load the strong references of resources and their targets, including those whose targets were removed."""
    references: dict[str, list[tuple[str, str]]] = {}
    seen, pending = set(uris), set(uris)
    for _ in range(MAX_REFERENCE_DEPTH if uris else 0):
        rows = bulk.select_among(connection, _REFERENCES, metadata_atoms.c.uri, sorted(pending))
        pending = set()
        for uri, name, target, leads_to, cls in rows:
            if any(
                leads_to in schema.at_or_above(each) for each in (cls, touched.class_before(target)) if each
            ):
                references.setdefault(uri, []).append((name, target))
                pending.add(target)
        pending -= seen
        seen |= pending
        if not pending:
            break
    return references


_atoms = metadata_atoms.c
_REFERENCES = (
    select(_atoms.uri, _atoms.property, _atoms.value, _atoms.strong, metadata_resources.c["class"])
    .join_from(metadata_atoms, metadata_resources, metadata_resources.c.uri == _atoms.value, isouter=True)
    .where(_atoms.strong.is_not(None))
    .order_by(_atoms.uri, _atoms.property, _atoms.place)
)
