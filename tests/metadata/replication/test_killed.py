"""A follower that is killed with `kill -9` between and in the middle of pages loses nothing, and does nothing twice."""

from __future__ import annotations

import subprocess
from pathlib import Path
from random import Random

from tests.metadata.replication.nodes import Node, everything
from tests.metadata.replication.test_log_follower import LARGE
from tests.support.processes.forked import Forked
from tidings.metadata.provider.provider import Provider
from tidings.store.store import Store

HERE = Path(__file__).parent
ENTRIES, KILLS = 16, 3


def told(store: Store) -> list[tuple[int, str, str]]:
    return [(each.sequence, each.publication, each.kind) for each in store.notifications.read("ana")]


def test_a_follower_that_is_killed_again_and_again(one: Node, two: Node, tmp_path: Path) -> None:
    steady, chance = Node(tmp_path / "steady"), Random(7)
    with one.runs() as leader, two.store() as store, steady.store() as other:
        leader.load_schema()
        page = store_page(one)
        for each in (store, other):
            provider = Provider(each)
            provider.apply(page)
            provider.add_rules({"large": LARGE}, "ana")
        for number in range(ENTRIES):
            leader.put(number % 5, chance.choice([32, 92]))
        position = leader.status()["position"]
        for _ in range(KILLS):
            follow_until(two, one.url, steps=chance.randint(1, 3))
        assert store.metadata.position() < position
        follow_until(two, one.url, steps=position - store.metadata.position())
        for entry in store_page(one)[1:]:
            Provider(other).apply([entry])
        assert everything(store) == everything(other)
        assert told(store) == told(other) and told(store)


def store_page(node: Node) -> list:
    with node.store() as store:
        return store.metadata.log.read(0)


def follow_until(node: Node, leader: str, steps: int) -> None:
    """Follow, until so many entries were applied, and die."""
    command = [str(HERE / "follow_aloud.py"), node.store_url, leader]
    with Forked(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        for _ in range(steps):
            assert process.stdout.readline(), "it ended by itself"
        process.kill()
