"""Providers that start with a snapshot, because the log does not reach back far enough."""

from __future__ import annotations

import json

import pytest

from tests.metadata.replication.nodes import PAGE, Asked, Node, everything, uri
from tests.metadata.replication.test_log_follower import LARGE, equal, follower_of
from tidings.metadata.provider.provider import Provider
from tidings.metadata.replication.log_follower import Diverged
from tidings.metadata.replication.peer import Peer, Unreachable

RULES = "/metadata/repositories/passau/rules"


def filled(leader: Asked, documents: int) -> int:
    """Documents at the leader, and the position after them."""
    leader.load_schema()
    for number in range(documents):
        leader.put(number, 92)
    return 1 + documents


def test_a_new_follower_when_the_log_is_trimmed(one: Node, two: Node) -> None:
    with one.runs() as leader, one.store() as store:
        position = filled(leader, 3)
        store.metadata.log.trim(position)
        with two.runs(one.url) as follower:
            follower.reaches(position)  # or the snapshot would be of the document below
            assert follower.put(3, 92).json()["applied"]
            assert follower.documents() == leader.documents()
            assert follower.status()["first"] == position + 1
    assert equal(one, two)


def test_a_follower_that_is_too_far_behind_keeps_its_rules(one: Node, two: Node) -> None:
    with one.runs() as leader, one.store() as store:
        position = filled(leader, 3)
        with two.runs(one.url) as follower:
            follower.reaches(position)
            follower.client.put(RULES, json={"large": LARGE})
        leader.put(0, 32)
        leader.delete(1)
        leader.put(3, 92)
        store.metadata.log.trim(leader.status()["head"])
        with two.runs() as follower:
            assert follower.put(2, 93).json()["applied"]
            told = follower.client.get("/metadata/repositories/passau/changes").json()
            left = {uri(number) + "#host" for number in (2, 3)}
            assert {move["uri"] for move in told["moves"] if move["kind"] == "left"} == {
                uri(0) + "#host",
                uri(1) + "#host",
            }
            state = follower.client.get("/metadata/repositories/passau/state").json()
            assert set(state["members"]["large"]) == left
    assert equal(one, two)


def test_a_new_follower_of_a_long_log(one: Node, two: Node) -> None:
    """A snapshot is less work than all that led to it."""
    with one.runs() as leader, two.store() as store:
        filled(leader, 2 * PAGE)
        step = follower_of(store, one).step()
        assert (step.restored, store.metadata.log.first()) == (True, 2 + 2 * PAGE)
        assert store.replication.leader() == one.url
    assert equal(one, two)


def test_whoever_follows_one_that_began_with_a_snapshot(one: Node, two: Node, tmp_path) -> None:
    three = Node(tmp_path / "three")
    with one.runs() as leader, two.runs(one.url) as second, three.runs(two.url) as third:
        filled(leader, 2 * PAGE)
        assert second.put(100, 92).json()["applied"] and third.put(101, 92).json()["applied"]
    assert equal(one, three)


def test_metadata_of_its_own_is_not_replaced(one: Node, two: Node) -> None:
    with one.runs() as leader, one.store() as store:
        store.metadata.log.trim(filled(leader, 3))
        with two.runs() as other:
            filled(other, 1)
        with two.store() as mine:
            before = everything(mine)
            with pytest.raises(Diverged, match="a log that begins later there, position 2 here"):
                follower_of(mine, one).step()
            assert everything(mine) == before


def test_a_snapshot_is_lines(one: Node) -> None:
    with one.runs() as leader:
        assert leader.client.get("/metadata/snapshot").status_code == 409
        filled(leader, 2)
        answer = leader.client.get("/metadata/snapshot")
        first, *documents = map(json.loads, answer.text.splitlines())
        assert (first["position"], first["documents"]) == (3, 2)
        assert [each["document"] for each in documents] == [uri(0), uri(1)]


def test_a_snapshot_that_is_cut_short_changes_nothing(one: Node, two: Node) -> None:
    with one.runs() as leader, two.store() as store, Peer(one.url) as peer:
        filled(leader, 2)
        with peer.snapshot() as lines, pytest.raises(Unreachable):
            Provider(store).restore(_cut(peer, lines))
        assert store.metadata.position() == 0 and store.metadata.schema() is None


def _cut(peer: Peer, lines):
    """The connection ends after the first line."""
    yield next(lines)
    peer.end()
    raise Unreachable("the provider does not respond")
