"""Why resources entered the results of rules, changed inside them and left: loaded for all of a run at once."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from itertools import chain

from sqlalchemy import Connection, select, text

from tidings.metadata.atomic import Meeting
from tidings.metadata.changes import Changes
from tidings.metadata.explaining import Tree, World, look, why, why_not
from tidings.metadata.explaining_changes import Strong, Touched, why_changed
from tidings.metadata.schema import Schema
from tidings.model import Reason
from tidings.store import atom_rows, bulk, rule_base, rule_joins
from tidings.store.planning import as_written
from tidings.store.rule_filter import Outcome, Pair
from tidings.store.rule_notifications import Move
from tidings.store.rule_tables import (
    join_rules,
    metadata_atoms,
    metadata_resources,
    rule_ends,
    run_asked,
)

FAR = 100
"""Changes that are further away than so many strong references are not told as reasons."""


def explain(
    connection: Connection, schema: Schema, outcome: Outcome, changes: Collection[Changes] = ()
) -> dict[Move, list[Reason]]:
    """The reasons of all moves. `changes` are what is different in the metadata."""
    return _explain_moves(connection, schema, outcome, changes) | _explain_changed(
        connection, schema, outcome, changes
    )


def _explain_moves(
    connection: Connection, schema: Schema, outcome: Outcome, changes: Iterable[Changes]
) -> dict[Move, list[Reason]]:
    ends = _ends(connection, outcome)
    trees = load_trees(connection, {number for numbers in ends.values() for number in numbers})
    world = World(schema)
    for each in changes:
        there = chain(each.new, (one.after for one in each.changed), each.unchanged)
        world.resources |= {resource.uri: resource for resource in there}
        world.resources |= dict.fromkeys(resource.uri for resource in each.deleted)
    asked = [(trees[number], uri) for (_, uri), numbers in ends.items() for number in numbers]
    _complete(connection, world, trees, asked)
    found = {}
    for name, uri in outcome.entered:
        proofs = (why(trees[number], uri, world) for number in ends[name, uri])
        found[Move(uri, name, "entered")] = next((each for each in proofs if each), [])
    for name, uri in outcome.left:
        told = (reason for number in ends[name, uri] for reason in why_not(trees[number], uri, world))
        found[Move(uri, name, "left")] = list(dict.fromkeys(told))
    return found


def _ends(connection: Connection, outcome: Outcome) -> dict[Pair, list[int]]:
    """The atomic rules by which resources entered and left."""
    known = outcome.ends
    found = {pair: sorted(known[pair]) for pair in (*outcome.entered, *outcome.left) if pair in known}
    # A rule that was replaced: the one it is now does not have what the one before had.
    others = [pair for pair in outcome.left if pair not in known]
    numbers: dict[str, list[int]] = {}
    names = sorted({name for name, _ in others})
    for name, number in bulk.select_among(connection, select(*rule_ends.c), rule_ends.c.name, names):
        numbers.setdefault(name, []).append(number)
    return found | {pair: sorted(numbers[pair[0]]) for pair in others}


def load_trees(connection: Connection, numbers: Collection[int]) -> dict[int, Tree]:
    """Atomic rules with all their inputs, level by level."""
    inputs, waiting = dict[int, tuple[int, int, int]](), set(numbers)
    leaves: set[int] = set()
    while waiting:
        rows = bulk.select_numbered(connection, _JOINS, join_rules.c.rule, sorted(waiting))
        level = {rule: (grp, left, right) for rule, grp, left, right in rows}
        inputs |= level
        leaves |= waiting - level.keys()
        waiting = {rule for _, *both in level.values() for rule in both} - inputs.keys() - leaves
    trees = {
        number: Tree(number, asks)
        for number, asks in rule_base.load_triggering_of(connection, sorted(leaves)).items()
    }
    groups = (
        rule_base.load_groups(connection, sorted({grp for grp, _, _ in inputs.values()})) if inputs else {}
    )
    for number in sorted(inputs):  # inputs have smaller numbers than what they are inputs of
        grp, left, right = inputs[number]
        meeting = groups[grp]
        kept, other = (left, right) if meeting.registers_left else (right, left)
        trees[number] = Tree(number, meeting, trees[kept], trees[other], grp)
    return trees


_JOINS = select(join_rules.c.rule, join_rules.c.grp, join_rules.c.left_rule, join_rules.c.right_rule)


def _complete(
    connection: Connection, world: World, trees: Mapping[int, Tree], asked: Collection[tuple[Tree, str]]
) -> None:
    """Load what is needed, as often as that shows that more is."""
    while True:
        for tree, uri in asked:
            look(tree, uri, world)
        if not world.unknown and not world.unmet:
            return
        found = atom_rows.load(connection, sorted(world.unknown))
        for uri in world.unknown:
            world.resources[uri] = found[uri].resource if uri in found else None
        if world.unmet:
            _meet(connection, world, trees)
        world.unknown, world.unmet = set(), set()


def _meet(connection: Connection, world: World, trees: Mapping[int, Tree]) -> None:
    """What those meet that are asked for; joins that ask the same are asked together."""
    world.met |= dict.fromkeys(world.unmet)
    connection.execute(run_asked.delete())
    bulk.insert_rows(connection, run_asked, sorted(world.unmet))
    with as_written(connection):
        for grp, meeting in sorted(
            {(trees[rule].group, trees[rule].asks) for rule, _ in world.unmet}, key=_grp
        ):
            assert isinstance(meeting, Meeting)
            p, q = rule_joins.properties(meeting)
            statement = text(rule_joins.met(meeting, connection.dialect.name))
            for rule, uri, met in connection.execute(statement, {"grp": grp, "p": p, "q": q}):
                world.met[rule, uri] = met


def _grp(of: tuple[int, object]) -> int:
    return of[0]


def _explain_changed(
    connection: Connection, schema: Schema, outcome: Outcome, changes: Iterable[Changes]
) -> dict[Move, list[Reason]]:
    if not outcome.changed:
        return {}
    touched = Touched.of(changes)
    uris = {uri for _, uri in outcome.changed}
    strong = _strong(connection, schema, uris, touched)
    reasons = {uri: why_changed(uri, touched, strong) for uri in uris}
    return {Move(uri, name, "changed"): reasons[uri] for name, uri in outcome.changed}


def _strong(connection: Connection, schema: Schema, uris: Collection[str], touched: Touched) -> Strong:
    """The strong references of resources and of what they lead to, with those that led to something until now."""
    found: dict[str, list[tuple[str, str]]] = {}
    seen, waiting = set(uris), set(uris)
    for _ in range(FAR):
        rows = bulk.select_among(connection, _REFERENCES, metadata_atoms.c.uri, sorted(waiting))
        waiting = set()
        for uri, name, target, leads_to, cls in rows:
            if any(leads_to in schema.at_or_above(each) for each in (cls, touched.was(target)) if each):
                found.setdefault(uri, []).append((name, target))
                waiting.add(target)
        waiting -= seen
        seen |= waiting
        if not waiting:
            break
    return found


_atoms = metadata_atoms.c
_REFERENCES = (
    select(_atoms.uri, _atoms.property, _atoms.value, _atoms.strong, metadata_resources.c["class"])
    .join_from(metadata_atoms, metadata_resources, metadata_resources.c.uri == _atoms.value, isouter=True)
    .where(_atoms.strong.is_not(None))
    .order_by(_atoms.uri, _atoms.property, _atoms.place)
)
