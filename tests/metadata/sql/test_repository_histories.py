"""A repository's cache, whatever it is told: what it holds is what its members reach, recomputed from scratch."""

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
"""A rule that the repository does not have. It may be told of one that it just had."""
TURTLE = "text/turtle"


class Histories(RuleBasedStateMachine):
    """A provider is played: resources, members of rules, moves that are not told yet. The cache is real."""

    def __init__(self) -> None:
        super().__init__()
        self.folder = tempfile.TemporaryDirectory()
        self.store = open_store(sqlite_url(Path(self.folder.name) / "s.db"))
        self.cache = self.store.repository
        self.there: dict[str, Resource] = {}
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
        """Documents come, are other ones, and go; members of rules are what they like to be. Often that is told."""
        chance = Random(seed)
        for _ in range(5):
            uri = chance.choice(DOCUMENTS)
            made = made_by(chance, uri) if chance.random() < 0.8 else ()
            self.become(without(self.there, [uri]) | {each.uri: each for each in made}, chance)
            while self.cursor.is_settled and self.waiting and chance.random() < 0.8:
                self.changes(chance.randint(1, 9), False)
                self.what_is_held_is_what_members_reach()

    def become(self, there: dict[str, Resource], chance: Random) -> None:
        old, self.there = self.there, there
        for name in self.members:
            kept = {uri for uri in self.members[name] if uri in there}
            now = kept ^ {uri for uri in there if chance.random() < 0.1}
            for uri in sorted(self.members[name] | now):
                if uri not in self.members[name]:
                    self.tell(name, uri, "entered")
                elif uri not in now:
                    self.tell(name, uri, "left")
                elif by_definition([uri], old, SCHEMA) != by_definition([uri], there, SCHEMA):
                    self.tell(name, uri, "changed")
            self.members[name] = now

    def reached(self, uris: Iterable[str]) -> dict[str, Resource]:
        return by_definition(uris, self.there, SCHEMA)

    def tell(self, name: str, uri: str, kind: str) -> None:
        self.moves.append(Move(len(self.moves) + 1, name, uri, kind, ""))

    @property
    def cursor(self) -> Cursor:
        found = self.cache.cursor()
        assert found is not None
        return found

    @property
    def wanted(self) -> set[str]:
        return {uri for name, uris in self.members.items() if name != STRANGER for uri in uris}

    @property
    def waiting(self) -> list[Move]:
        return self.moves[self.cursor.sequence :]

    @precondition(lambda self: self.cursor.is_settled and self.waiting)
    @rule(most=st.integers(1, 5), twice=st.booleans())
    def changes(self, most: int, twice: bool) -> None:
        """Some of the moves, with resources as they are by now."""
        since, moves = self.cursor, self.waiting[:most]
        last = {(move.rule, move.uri): move.kind for move in moves}
        told = self.reached(uri for (_, uri), kind in last.items() if kind != "left")
        made = ChangeSet("p", 0, 1, moves[-1].sequence, tuple(moves), tuple(told.values()))
        assert self.cache.apply(self.file, SCHEMA, made, since) is not None
        if twice:
            assert self.cache.apply(self.file, SCHEMA, made, since) is None

    @precondition(lambda self: not self.cursor.is_settled)
    @rule()
    def after_a_gap(self) -> None:
        self.take_state()

    @rule()
    def take_state(self) -> None:
        every = tuple(self.reached(self.wanted).values())
        members = {name: tuple(uris) for name, uris in self.members.items() if name != STRANGER}
        state = RepositoryState("p", 0, 1, len(self.moves), members, every)
        before = self.cache.version()
        self.cache.replace(self.file, SCHEMA, dict.fromkeys(members, "text"), state, "")
        assert self.cache.version() > before

    @rule(name=st.sampled_from(RULES))
    def a_rule_goes_or_comes(self, name: str) -> None:
        """The repository drops a rule, or adds one; moves of the dropped one may still be told."""
        self.cache.unsettle()
        if self.members.pop(name, None) is None:
            self.members[name] = set()
        self.take_state()

    @rule(uri=st.sampled_from(DOCUMENTS), seed=SEEDS)
    def registers_locally(self, uri: str, seed: int) -> None:
        made = made_by(Random(seed), uri)
        self.cache.register_local(SCHEMA, Document(uri, made), TURTLE, b"")
        self.local[uri] = made

    @rule(uri=st.sampled_from(DOCUMENTS))
    def removes_locally(self, uri: str) -> None:
        assert self.cache.remove_local(uri) == (uri in self.local)
        self.local.pop(uri, None)

    @invariant()
    def what_is_held_is_what_members_reach(self) -> None:
        stored = {each.uri: each for each in self.cache.resources()}
        local = {each.uri: each for made in self.local.values() for each in made}
        members = {each.uri for name in self.cache.rules() for each in self.cache.members(name)}
        others = without(stored, self.local)
        assert {uri: each for uri, each in stored.items() if uri not in others} == local
        assert by_definition(members & others.keys(), others, SCHEMA) == others
        if self.cursor.is_settled and not self.waiting:
            told = without(self.there, self.local)
            assert others == by_definition(self.wanted, told, SCHEMA)


Histories.TestCase.settings = share(4, stateful_step_count=12)
TestHistories = Histories.TestCase
