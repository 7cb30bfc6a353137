"""Why resources entered the results of rules, changed inside them and left: loaded for all of a run at once."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from itertools import chain

from sqlalchemy import Connection, select, text

from tidings.metadata.atomic import Meeting
from tidings.metadata.changes import Changes
from tidings.metadata.explaining import MOST, Tree, World, look, why, why_not
from tidings.metadata.explaining_changes import Strong, Touched, why_changed
from tidings.metadata.schema import Schema
from tidings.model import Reason
from tidings.store import atom_rows, bulk, rule_base, rule_joins
from tidings.store.planning import as_written
from tidings.store.rule_filter import Pair
from tidings.store.rule_notifications import Move
from tidings.store.rule_tables import (
    join_rules,
    metadata_atoms,
    metadata_resources,
    rule_ends,
    run_asked,
)

Ends = Mapping[Pair, Sequence[int]]

FAR = 100
"""Changes that are further away than so many strong references are not told as reasons."""


class Explaining:
    """Finds the reasons of moves, some thousand at a time. `changes` are what is different in the metadata."""

    def __init__(
        self, connection: Connection, schema: Schema, ends: Ends, changes: Collection[Changes] = ()
    ) -> None:
        self._connection, self._schema, self._ends = connection, schema, ends
        self._touched = Touched.of(changes)
        self._world = World(schema)
        self._trees: dict[int, Tree] = {}
        for each in changes:
            there = chain(each.new, (one.after for one in each.changed), each.unchanged)
            self._world.resources |= {resource.uri: resource for resource in there}
            self._world.resources |= dict.fromkeys(resource.uri for resource in each.deleted)

    def reasons(self, moves: Sequence[Move]) -> dict[Move, list[Reason]]:
        """The reasons of each move."""
        changed = [move for move in moves if move.kind == "changed"]
        return self._of_moves([move for move in moves if move.kind != "changed"]) | self._of_changed(changed)

    def _of_moves(self, moves: Sequence[Move]) -> dict[Move, list[Reason]]:
        ends = self._ends_of(moves)
        missing = {number for numbers in ends.values() for number in numbers} - self._trees.keys()
        self._trees |= load_trees(self._connection, missing)
        world, trees = self._world, self._trees
        _complete(
            self._connection, world, trees, [(trees[n], move.uri) for move in moves for n in ends[move]]
        )
        found = {}
        for move in moves:
            explain = why if move.kind == "entered" else why_not
            told = (explain(trees[number], move.uri, world) for number in ends[move])
            found[move] = next(filter(None, told), []) if explain is why else _all(told)
        return found

    def _ends_of(self, moves: Sequence[Move]) -> dict[Move, list[int]]:
        """The atomic rules by which resources entered and left."""
        known = {move: self._ends.get((move.rule, move.uri)) for move in moves}
        # A rule that was replaced: the one it is now does not have what the one before had.
        names = sorted({move.rule for move, numbers in known.items() if numbers is None})
        numbers: dict[str, list[int]] = {name: [] for name in names}
        for name, number in bulk.select_among(self._connection, _ENDS, rule_ends.c.name, names):
            numbers[name].append(number)
        return {move: sorted(numbers[move.rule] if ends is None else ends) for move, ends in known.items()}

    def _of_changed(self, moves: Sequence[Move]) -> dict[Move, list[Reason]]:
        uris = {move.uri for move in moves}
        strong = _strong(self._connection, self._schema, uris, self._touched)
        reasons = {uri: why_changed(uri, self._touched, strong) for uri in uris}
        return {move: reasons[move.uri] for move in moves}


_ENDS = select(rule_ends.c.name, rule_ends.c.rule)


def _all(told: Iterable[list[Reason]]) -> list[Reason]:
    return list(dict.fromkeys(chain.from_iterable(told)))[:MOST]


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
            bound = {"grp": grp, **rule_joins.parameters(meeting)}
            statement = text(rule_joins.met(meeting, connection.dialect.name))
            for rule, uri, met in connection.execute(statement, bound):
                world.met[rule, uri] = met


def _grp(of: tuple[int, object]) -> int:
    return of[0]


def _strong(connection: Connection, schema: Schema, uris: Collection[str], touched: Touched) -> Strong:
    """The strong references of resources and of what they lead to, with those that led to something until now."""
    found: dict[str, list[tuple[str, str]]] = {}
    seen, waiting = set(uris), set(uris)
    for _ in range(FAR if uris else 0):
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
