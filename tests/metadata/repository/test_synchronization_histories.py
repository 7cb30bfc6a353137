"""Random histories of a repository and two providers: its contents equal the definition."""

from __future__ import annotations

import shutil
import tempfile
from contextlib import ExitStack
from pathlib import Path
from random import Random

from hypothesis import Phase, given
from hypothesis import strategies as st

from tests.support.oracles.repository_contents import SCHEMA, by_definition, made_by, without
from tests.support.strategies.effort import share
from tests.support.strategies.metadata import DOCUMENTS, document_graph, schema_graph
from tidings.metadata.provider.provider import Provider
from tidings.metadata.repository.links import DirectLink
from tidings.metadata.repository.repository import Repository
from tidings.metadata.repository.synchronization import ProviderBehind, Synchronizer
from tidings.metadata.resources import Resource
from tidings.metadata.rules.rule_files import RuleFile
from tidings.metadata.rules.rule_parser import parse_rule
from tidings.metadata.rules.semantics import evaluate_rule
from tidings.store.database import sqlite_url
from tidings.store.store import Store, open_store

TURTLE = "text/turtle"
SEEDED = (Phase.explicit, Phase.reuse, Phase.generate)
"""A failing seed is reported as it is, because seeds cannot be shrunk."""
RULES = (
    "large: search Host h register h where h.size > 1",
    "whole: search Host h register h where h.parts?.size = 0",
    "infos: search Info i register i",
    "either: search Host h register h where h.info.size > 0 or h.near.size = 2",
    "disks: search Disk d register d",
    "parts: search Host h, Host p register p where h.parts? = p and h.size = 2",
    "large: search Host h register h where h.size < 1",
)


def serialize(resources: tuple[Resource, ...]) -> bytes:
    return document_graph(resources, SCHEMA).serialize(format="turtle").encode()


class World:
    """Two providers, of which one follows the other, and a repository."""

    def __init__(self, folder: Path, stack: ExitStack, chance: Random) -> None:
        self.folder, self.stack, self.chance = folder, stack, chance
        self.leader, self.follower = self.open_named("leader"), self.open_named("follower")
        self.follower.replication.follow("http://leader.example.org")
        self.repository = stack.enter_context(Repository(folder / "repository"))
        self.repository.store.repository.name("cache")
        Provider(self.leader).load_schema(schema_graph(SCHEMA).serialize(format="turtle").encode(), TURTLE)
        self.catch_up()
        self.local: set[str] = set()
        self.change_rules()
        self.sync(self.leader)

    def open_named(self, name: str) -> Store:
        return self.stack.enter_context(open_store(sqlite_url(self.folder / f"{name}.db")))

    def catch_up(self) -> None:
        """Apply all entries of the leader at the follower."""
        entries = self.leader.metadata.log.read(self.follower.metadata.position(), 1_000)
        Provider(self.follower).apply(entries)

    def document(self) -> tuple[Resource, ...]:
        """Generate a document without references to a wrong class, which would be rejected."""
        uri = self.chance.choice(DOCUMENTS)
        resources = made_by(self.chance, uri)
        hosts = {each.uri for each in resources if each.cls != "Disk"}
        infos = {each.uri for each in resources if each.cls == "Info"}
        allowed = {"parts": hosts, "near": hosts, "info": infos}

        def keep_allowed(each: Resource) -> Resource:
            property_values = {
                name: tuple(
                    value
                    for value in values
                    if name == "size" or value.uri.partition("#")[0] != uri or value.uri in allowed[name]
                )
                for name, values in each.values.items()
            }
            return Resource(
                each.uri, each.cls, {name: values for name, values in property_values.items() if values}
            )

        return tuple(keep_allowed(each) for each in resources)

    def register(self) -> None:
        uri, resources = self.chance.choice(DOCUMENTS), self.document()
        if resources and self.chance.random() < 0.8:
            Provider(self.leader).register(resources[0].uri.partition("#")[0], serialize(resources), TURTLE)
        elif uri in dict(Provider(self.leader).documents()):
            Provider(self.leader).remove(uri)

    def change_rules(self) -> None:
        chosen = self.chance.sample(RULES, self.chance.randint(0, 4))
        self.rules = RuleFile("\n".join({line.partition(":")[0]: line for line in chosen}.values()))

    def change_local(self) -> None:
        resources = self.document()
        if resources and self.chance.random() < 0.5:
            uri = resources[0].uri.partition("#")[0]
            self.repository.register_local(uri, serialize(resources), TURTLE)
            self.local.add(uri)
        else:
            uri = self.chance.choice(DOCUMENTS)
            assert self.repository.remove_local(uri) == (uri in self.local)
            self.local.discard(uri)

    def restore(self) -> None:
        """Restore the leader from its backup; the follower starts anew."""
        self.leader.close(), self.follower.close()
        current, backup = self.folder / "leader.db", self.folder / "kept.db"
        for suffix in ("-wal", "-shm"):
            current.with_name(f"leader.db{suffix}").unlink(missing_ok=True)
        shutil.copy(backup, current)
        self.leader = self.open_named("leader")
        self.follower = self.open_named(f"follower{self.chance.random()}")

    def keep(self) -> None:
        self.leader.close()
        shutil.copy(self.folder / "leader.db", self.folder / "kept.db")
        self.leader = self.open_named("leader")

    def sync(self, first: Store) -> None:
        """Synchronize with one provider, and compare the result with the definition."""
        links, batch = [DirectLink(first, "cache")], self.chance.choice((1, 2, 5, 1_000))
        Synchronizer(self.repository.store, links, self.rules, batch=batch).catch_up_once()
        every = {
            each.uri: each for uri, _ in first.metadata.documents() for each in first.metadata.resources(uri)
        }
        trees = {name: parse_rule(text) for name, text in self.rules.texts.items()}
        members = {name: evaluate_rule(tree, every.values(), SCHEMA, trees) for name, tree in trees.items()}
        remote = without(every, self.local)
        actual = {each.uri: each for each in self.repository.cache.resources()}
        expected = by_definition({uri for uris in members.values() for uri in uris}, remote, SCHEMA)
        assert without(actual, self.local) == expected
        assert self.repository.store.repository.rules() == self.rules.texts
        for name, uris in members.items():
            actual_members = {each.uri for each in self.repository.cache.members(name)}
            assert (
                actual_members - actual.keys() == set()
                and actual_members & remote.keys() == uris & remote.keys()
            )

    def sync_through_any(self) -> None:
        if self.chance.random() < 0.6:
            return self.sync(self.leader)
        cursor = self.repository.store.repository.cursor()
        if cursor is None or cursor.position <= self.follower.metadata.position():
            return self.sync(self.follower)
        before = self.repository.cache.version()
        try:
            self.sync(self.follower)
        except ProviderBehind:
            assert self.repository.cache.version() == before
        else:
            raise AssertionError("the repository went back")


@share(10, phases=SEEDED)
@given(st.integers(0, 2**32))
def test_sync_random_history_equals_recomputation(seed: int) -> None:
    chance = Random(seed)
    with tempfile.TemporaryDirectory() as folder, ExitStack() as stack:
        world = World(Path(folder), stack, chance)
        steps = [world.register] * 6 + [world.sync_through_any] * 4
        steps += [world.change_rules, world.change_local, world.catch_up]
        for _ in range(40):
            chance.choice(steps)()
        world.sync(world.leader)


@share(10, phases=SEEDED)
@given(st.integers(0, 2**32))
def test_sync_restored_provider_replaces_contents(seed: int) -> None:
    """The leader is restored from a backup, and may get beyond the repository's position again."""
    chance = Random(seed)
    with tempfile.TemporaryDirectory() as folder, ExitStack() as stack:
        world = World(Path(folder), stack, chance)
        for _ in range(3):
            for _ in range(chance.randint(0, 3)):
                world.register()
            world.sync(world.leader)
            world.keep()
            for _ in range(chance.randint(0, 4)):
                world.register()
            world.sync(world.leader)
            world.restore()
            for _ in range(chance.randint(0, 6)):
                world.register()
            world.sync(world.leader)
