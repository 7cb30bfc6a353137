"""Providers that start with a snapshot, because the log does not reach back far enough."""

from __future__ import annotations

import json

import pytest

from tests.metadata.replication.nodes import PAGE, Node, RunningProvider, replicated_state, uri
from tests.metadata.replication.test_log_follower import LARGE, follower_of, have_equal_state
from tidings.metadata.provider.provider import Provider
from tidings.metadata.replication.log_follower import LogsDiverged
from tidings.metadata.replication.peer import Peer, Unreachable

RULES = "/metadata/repositories/passau/rules"


def fill_leader(leader: RunningProvider, documents: int) -> int:
    """Register documents at the leader, and return the position after them."""
    leader.load_schema()
    for number in range(documents):
        leader.put(number, 92)
    return 1 + documents


def test_new_follower_of_trimmed_log_starts_with_snapshot(first_node: Node, second_node: Node) -> None:
    with first_node.run() as leader, first_node.store() as store:
        position = fill_leader(leader, 3)
        store.metadata.log.trim(position)
        with second_node.run(first_node.url) as follower:
            follower.wait_for(position)  # otherwise the snapshot might include the document below
            assert follower.put(3, 92).json()["applied"]
            assert follower.documents() == leader.documents()
            assert follower.status()["first"] == position + 1
    assert have_equal_state(first_node, second_node)


def test_follower_too_far_behind_restores_snapshot_and_keeps_rules(
    first_node: Node, second_node: Node
) -> None:
    with first_node.run() as leader, first_node.store() as store:
        position = fill_leader(leader, 3)
        with second_node.run(first_node.url) as follower:
            follower.wait_for(position)
            follower.client.put(RULES, json={"large": LARGE})
        leader.put(0, 32)
        leader.delete(1)
        leader.put(3, 92)
        store.metadata.log.trim(leader.status()["head"])
        with second_node.run() as follower:
            assert follower.put(2, 93).json()["applied"]
            changes = follower.client.get("/metadata/repositories/passau/changes").json()
            remaining = {uri(number) + "#host" for number in (2, 3)}
            assert {move["uri"] for move in changes["moves"] if move["kind"] == "left"} == {
                uri(0) + "#host",
                uri(1) + "#host",
            }
            state = follower.client.get("/metadata/repositories/passau/state").json()
            assert set(state["members"]["large"]) == remaining
    assert have_equal_state(first_node, second_node)


def test_new_follower_of_long_log_starts_with_snapshot(first_node: Node, second_node: Node) -> None:
    """A snapshot is less work than all entries that led to it."""
    with first_node.run() as leader, second_node.store() as store:
        fill_leader(leader, 2 * PAGE)
        step = follower_of(store, first_node).step()
        assert (step.restored, store.metadata.log.first()) == (True, 2 + 2 * PAGE)
        assert store.replication.leader() == first_node.url
    assert have_equal_state(first_node, second_node)


def test_follower_of_restored_follower_gets_all_documents(
    first_node: Node, second_node: Node, tmp_path
) -> None:
    third_node = Node(tmp_path / "three")
    with (
        first_node.run() as leader,
        second_node.run(first_node.url) as second,
        third_node.run(second_node.url) as third,
    ):
        fill_leader(leader, 2 * PAGE)
        assert second.put(100, 92).json()["applied"] and third.put(101, 92).json()["applied"]
    assert have_equal_state(first_node, third_node)


def test_follower_with_own_metadata_rejects_snapshot(first_node: Node, second_node: Node) -> None:
    with first_node.run() as leader, first_node.store() as store:
        store.metadata.log.trim(fill_leader(leader, 3))
        with second_node.run() as other:
            fill_leader(other, 1)
        with second_node.store() as own_store:
            before = replicated_state(own_store)
            with pytest.raises(LogsDiverged, match="a log that begins later there, position 2 here"):
                follower_of(own_store, first_node).step()
            assert replicated_state(own_store) == before


def test_snapshot_is_json_lines(first_node: Node) -> None:
    with first_node.run() as leader:
        assert leader.client.get("/metadata/snapshot").status_code == 409
        fill_leader(leader, 2)
        answer = leader.client.get("/metadata/snapshot")
        first, *documents = map(json.loads, answer.text.splitlines())
        assert (first["position"], first["documents"]) == (3, 2)
        assert [each["document"] for each in documents] == [uri(0), uri(1)]


def test_restore_truncated_snapshot_changes_nothing(first_node: Node, second_node: Node) -> None:
    with first_node.run() as leader, second_node.store() as store, Peer(first_node.url) as peer:
        fill_leader(leader, 2)
        with peer.snapshot() as lines, pytest.raises(Unreachable):
            Provider(store).restore(_cut_after_first_line(peer, lines))
        assert store.metadata.position() == 0 and store.metadata.schema() is None


def _cut_after_first_line(peer: Peer, lines):
    """Yield the first line and end the connection."""
    yield next(lines)
    peer.end()
    raise Unreachable("the provider does not respond")
