"""A follower killed with `kill -9` between or within pages loses nothing and repeats nothing."""

from __future__ import annotations

import subprocess
from pathlib import Path
from random import Random

from tests.metadata.replication.nodes import Node, replicated_state
from tests.metadata.replication.test_log_follower import LARGE
from tests.support.processes.forked import Forked
from tidings.metadata.provider.provider import Provider
from tidings.store.store import Store

HERE = Path(__file__).parent
ENTRIES, KILLS = 16, 3


def read_sequence(store: Store) -> list[tuple[int, str, str]]:
    return [(each.sequence, each.publication, each.kind) for each in store.notifications.read("ana")]


def test_follower_killed_repeatedly_equals_uninterrupted_one(
    first_node: Node, second_node: Node, tmp_path: Path
) -> None:
    steady, chance = Node(tmp_path / "steady"), Random(7)
    with first_node.run() as leader, second_node.store() as store, steady.store() as other:
        leader.load_schema()
        page = store_page(first_node)
        for each in (store, other):
            provider = Provider(each)
            provider.apply(page)
            provider.add_rules({"large": LARGE}, "ana")
        for number in range(ENTRIES):
            leader.put(number % 5, chance.choice([32, 92]))
        position = leader.status()["position"]
        for _ in range(KILLS):
            follow_until(second_node, first_node.url, steps=chance.randint(1, 3))
        assert store.metadata.position() < position
        follow_until(second_node, first_node.url, steps=position - store.metadata.position())
        for entry in store_page(first_node)[1:]:
            Provider(other).apply([entry])
        assert replicated_state(store) == replicated_state(other)
        assert read_sequence(store) == read_sequence(other) and read_sequence(store)


def store_page(node: Node) -> list:
    with node.store() as store:
        return store.metadata.log.read(0)


def follow_until(node: Node, leader: str, steps: int) -> None:
    """Follow the leader until a number of entries was applied, and kill the process."""
    command = [str(HERE / "follower_program.py"), node.store_url, leader]
    with Forked(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        for _ in range(steps):
            assert process.stdout.readline(), "it ended by itself"
        process.kill()
