"""Random histories of a repository's cache, compared with a recomputation from scratch."""

from __future__ import annotations

import tempfile
from collections.abc import Iterable
from pathlib import Path
from random import Random

from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from tests.support.oracles.repository_contents import SCHEMA, by_definition, made_by, without
from tests.support.strategies.effort import share
from tests.support.strategies.metadata import DOCUMENTS, schema_graph
from tidings.metadata.change_sets import ChangeSet, Cursor, Move, RepositoryState
from tidings.metadata.documents import Document
from tidings.metadata.resources import Resource
from tidings.metadata.sql.metadata_reader import SchemaFile
from tidings.store.database import sqlite_url
from tidings.store.store import open_store

SEEDS = st.integers(0, 2**32)
RULES = ("one", "two", "three")
STRANGER = "stranger"
"""A rule that the repository does not have. Moves of a rule just removed may still arrive."""
TURTLE = "text/turtle"


class Histories(RuleBasedStateMachine):
    """A simulated provider with resources, members and unsent moves, and a real cache."""

    def __init__(self) -> None:
        super().__init__()
        self.folder = tempfile.TemporaryDirectory()
        self.store = open_store(sqlite_url(Path(self.folder.name) / "s.db"))
        self.cache = self.store.repository
        self.resources: dict[str, Resource] = {}
        self.members: dict[str, set[str]] = {name: set() for name in (*RULES, STRANGER)}
        self.moves: list[Move] = []
        self.local: dict[str, tuple[Resource, ...]] = {}
        self.cache.name("cache")
        body = schema_graph(SCHEMA).serialize(format="turtle").encode()
        self.file = SchemaFile(TURTLE, body)
        self.take_state()

    def teardown(self) -> None:
        self.store.close()
        self.folder.cleanup()

    @rule(seed=SEEDS)
    def registers(self, seed: int) -> None:
        """Documents arrive, change and go, and members of rules change at random.

        The changes are often sent to the cache.
        """
        chance = Random(seed)
        for _ in range(5):
            uri = chance.choice(DOCUMENTS)
            document = made_by(chance, uri) if chance.random() < 0.8 else ()
            self.change_to(without(self.resources, [uri]) | {each.uri: each for each in document}, chance)
            while self.cursor.is_settled and self.unsent_moves and chance.random() < 0.8:
                self.changes(chance.randint(1, 9), False)
                self.cache_has_what_members_reach()

    def change_to(self, resources: dict[str, Resource], chance: Random) -> None:
        old, self.resources = self.resources, resources
        for name in self.members:
            kept = {uri for uri in self.members[name] if uri in resources}
            now = kept ^ {uri for uri in resources if chance.random() < 0.1}
            for uri in sorted(self.members[name] | now):
                if uri not in self.members[name]:
                    self.record_move(name, uri, "entered")
                elif uri not in now:
                    self.record_move(name, uri, "left")
                elif by_definition([uri], old, SCHEMA) != by_definition([uri], resources, SCHEMA):
                    self.record_move(name, uri, "changed")
            self.members[name] = now

    def reached(self, uris: Iterable[str]) -> dict[str, Resource]:
        return by_definition(uris, self.resources, SCHEMA)

    def record_move(self, name: str, uri: str, kind: str) -> None:
        self.moves.append(Move(len(self.moves) + 1, name, uri, kind, ""))

    @property
    def cursor(self) -> Cursor:
        cursor = self.cache.cursor()
        assert cursor is not None
        return cursor

    @property
    def expected_members(self) -> set[str]:
        return {uri for name, uris in self.members.items() if name != STRANGER for uri in uris}

    @property
    def unsent_moves(self) -> list[Move]:
        return self.moves[self.cursor.sequence :]

    @precondition(lambda self: self.cursor.is_settled and self.unsent_moves)
    @rule(most=st.integers(1, 5), twice=st.booleans())
    def changes(self, most: int, twice: bool) -> None:
        """Send some of the moves, with resources in their present state."""
        since, moves = self.cursor, self.unsent_moves[:most]
        last = {(move.rule, move.uri): move.kind for move in moves}
        resources = self.reached(uri for (_, uri), kind in last.items() if kind != "left")
        change_set = ChangeSet("p", 0, 1, moves[-1].sequence, tuple(moves), tuple(resources.values()))
        assert self.cache.apply(self.file, SCHEMA, change_set, since) is not None
        if twice:
            assert self.cache.apply(self.file, SCHEMA, change_set, since) is None

    @precondition(lambda self: not self.cursor.is_settled)
    @rule()
    def after_a_gap(self) -> None:
        self.take_state()

    @rule()
    def take_state(self) -> None:
        every = tuple(self.reached(self.expected_members).values())
        members = {name: tuple(uris) for name, uris in self.members.items() if name != STRANGER}
        state = RepositoryState("p", 0, 1, len(self.moves), members, every)
        before = self.cache.version()
        self.cache.replace(self.file, SCHEMA, dict.fromkeys(members, "text"), state, "")
        assert self.cache.version() > before

    @rule(name=st.sampled_from(RULES))
    def remove_or_add_rule(self, name: str) -> None:
        """The repository removes a rule or adds one; moves of a removed one may still arrive."""
        self.cache.unsettle()
        if self.members.pop(name, None) is None:
            self.members[name] = set()
        self.take_state()

    @rule(uri=st.sampled_from(DOCUMENTS), seed=SEEDS)
    def registers_locally(self, uri: str, seed: int) -> None:
        document = made_by(Random(seed), uri)
        self.cache.register_local(SCHEMA, Document(uri, document), TURTLE, b"")
        self.local[uri] = document

    @rule(uri=st.sampled_from(DOCUMENTS))
    def removes_locally(self, uri: str) -> None:
        assert self.cache.remove_local(uri) == (uri in self.local)
        self.local.pop(uri, None)

    @invariant()
    def cache_has_what_members_reach(self) -> None:
        stored = {each.uri: each for each in self.cache.resources()}
        local = {each.uri: each for document in self.local.values() for each in document}
        members = {each.uri for name in self.cache.rules() for each in self.cache.members(name)}
        remote = without(stored, self.local)
        assert {uri: each for uri, each in stored.items() if uri not in remote} == local
        assert by_definition(members & remote.keys(), remote, SCHEMA) == remote
        if self.cursor.is_settled and not self.unsent_moves:
            provided = without(self.resources, self.local)
            assert remote == by_definition(self.expected_members, provided, SCHEMA)


Histories.TestCase.settings = share(4, stateful_step_count=12)
TestHistories = Histories.TestCase
