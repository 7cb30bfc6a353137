"""A repository beside providers, through any history: in the end it has what rules mean, and what belongs to that."""

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
from tidings.metadata.repository.synchronization import Behind, Synchronizer
from tidings.metadata.resources import Resource
from tidings.metadata.rules.rule_files import RuleFile
from tidings.metadata.rules.rule_parser import parse_rule
from tidings.metadata.rules.semantics import evaluate_rule
from tidings.store.database import sqlite_url
from tidings.store.store import Store, open_store

TURTLE = "text/turtle"
SEEDED = (Phase.explicit, Phase.reuse, Phase.generate)
"""A seed that fails is reported as it is: there is no smaller one."""
RULES = (
    "large: search Host h register h where h.size > 1",
    "whole: search Host h register h where h.parts?.size = 0",
    "infos: search Info i register i",
    "either: search Host h register h where h.info.size > 0 or h.near.size = 2",
    "disks: search Disk d register d",
    "parts: search Host h, Host p register p where h.parts? = p and h.size = 2",
    "large: search Host h register h where h.size < 1",
)


def written(resources: tuple[Resource, ...]) -> bytes:
    return document_graph(resources, SCHEMA).serialize(format="turtle").encode()


class World:
    """Two providers, of which one leads, and a repository."""

    def __init__(self, folder: Path, stack: ExitStack, chance: Random) -> None:
        self.folder, self.stack, self.chance = folder, stack, chance
        self.leader, self.follower = self.opened("leader"), self.opened("follower")
        self.follower.replication.follow("http://leader.example.org")
        self.repository = stack.enter_context(Repository(folder / "repository"))
        self.repository.store.repository.name("cache")
        Provider(self.leader).load_schema(schema_graph(SCHEMA).serialize(format="turtle").encode(), TURTLE)
        self.catch_up()
        self.local: set[str] = set()
        self.change_rules()
        self.sync(self.leader)

    def opened(self, name: str) -> Store:
        return self.stack.enter_context(open_store(sqlite_url(self.folder / f"{name}.db")))

    def catch_up(self) -> None:
        """The follower has all that the leader has."""
        entries = self.leader.metadata.log.read(self.follower.metadata.position(), 1_000)
        Provider(self.follower).apply(entries)

    def document(self) -> tuple[Resource, ...]:
        """Without references in it that lead to a wrong class: those are refused."""
        uri = self.chance.choice(DOCUMENTS)
        made = made_by(self.chance, uri)
        hosts = {each.uri for each in made if each.cls != "Disk"}
        infos = {each.uri for each in made if each.cls == "Info"}
        right = {"parts": hosts, "near": hosts, "info": infos}

        def kept(each: Resource) -> Resource:
            values = {
                name: tuple(
                    value
                    for value in found
                    if name == "size" or value.uri.partition("#")[0] != uri or value.uri in right[name]
                )
                for name, found in each.values.items()
            }
            return Resource(each.uri, each.cls, {name: found for name, found in values.items() if found})

        return tuple(kept(each) for each in made)

    def register(self) -> None:
        uri, made = self.chance.choice(DOCUMENTS), self.document()
        if made and self.chance.random() < 0.8:
            Provider(self.leader).register(made[0].uri.partition("#")[0], written(made), TURTLE)
        elif uri in dict(Provider(self.leader).documents()):
            Provider(self.leader).remove(uri)

    def change_rules(self) -> None:
        chosen = self.chance.sample(RULES, self.chance.randint(0, 4))
        self.rules = RuleFile("\n".join({line.partition(":")[0]: line for line in chosen}.values()))

    def change_local(self) -> None:
        made = self.document()
        if made and self.chance.random() < 0.5:
            uri = made[0].uri.partition("#")[0]
            self.repository.register_local(uri, written(made), TURTLE)
            self.local.add(uri)
        else:
            uri = self.chance.choice(DOCUMENTS)
            assert self.repository.remove_local(uri) == (uri in self.local)
            self.local.discard(uri)

    def restore(self) -> None:
        """The leader loses what it was told in between; the follower begins anew."""
        self.leader.close(), self.follower.close()
        now, kept = self.folder / "leader.db", self.folder / "kept.db"
        for suffix in ("-wal", "-shm"):
            now.with_name(f"leader.db{suffix}").unlink(missing_ok=True)
        shutil.copy(kept, now)
        self.leader = self.opened("leader")
        self.follower = self.opened(f"follower{self.chance.random()}")

    def keep(self) -> None:
        self.leader.close()
        shutil.copy(self.folder / "leader.db", self.folder / "kept.db")
        self.leader = self.opened("leader")

    def sync(self, first: Store) -> None:
        """Through one of the providers; then what it has is what it should have by that one's metadata."""
        links, batch = [DirectLink(first, "cache")], self.chance.choice((1, 2, 5, 1_000))
        Synchronizer(self.repository.store, links, self.rules, batch=batch).once()
        every = {
            each.uri: each for uri, _ in first.metadata.documents() for each in first.metadata.resources(uri)
        }
        trees = {name: parse_rule(text) for name, text in self.rules.texts.items()}
        members = {name: evaluate_rule(tree, every.values(), SCHEMA, trees) for name, tree in trees.items()}
        others = without(every, self.local)
        held = {each.uri: each for each in self.repository.cache.resources()}
        wanted = by_definition({uri for uris in members.values() for uri in uris}, others, SCHEMA)
        assert without(held, self.local) == wanted
        assert self.repository.store.repository.rules() == self.rules.texts
        for name, uris in members.items():
            found = {each.uri for each in self.repository.cache.members(name)}
            assert found - held.keys() == set() and found & others.keys() == uris & others.keys()

    def sync_through_any(self) -> None:
        if self.chance.random() < 0.6:
            return self.sync(self.leader)
        cursor = self.repository.store.repository.cursor()
        if cursor is None or cursor.position <= self.follower.metadata.position():
            return self.sync(self.follower)
        before = self.repository.cache.version()
        try:
            self.sync(self.follower)
        except Behind:
            assert self.repository.cache.version() == before
        else:
            raise AssertionError("it went back")


@share(10, phases=SEEDED)
@given(st.integers(0, 2**32))
def test_it_is_what_a_full_recomputation_gives(seed: int) -> None:
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
def test_a_provider_that_was_restored_counts(seed: int) -> None:
    """The leader is put back to what it was; it may have got further since than the repository ever was."""
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
