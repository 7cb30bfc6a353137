"""Two providers on real servers: one has the log, the other follows it."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from tests.metadata.replication.nodes import PAGE, Node, RunningProvider, host, replicated_state, uri
from tests.support.servers.site import Response, a_site
from tidings.api.metadata import provider_routes
from tidings.errors import InputError
from tidings.metadata.provider.provider import Provider
from tidings.metadata.replication.log_follower import (
    LogFollower,
    LogsDiverged,
    ReplicationCycle,
    check_not_own_address,
)
from tidings.metadata.replication.peer import HOPS_HEADER, Peer, Unreachable
from tidings.metadata.replication.routing import open_log
from tidings.operations.http_client import build_user_agent
from tidings.store.store import Store

LARGE = "search CycleProvider c register c where c.serverInformation.memory > 64"


def have_equal_state(first_node: Node, second_node: Node) -> bool:
    with first_node.store() as first, second_node.store() as second:
        return replicated_state(first) == replicated_state(second)


def test_follower_applies_registrations_of_leader(first_node: Node, second_node: Node) -> None:
    with first_node.run() as leader, second_node.run(first_node.url) as follower:
        leader.load_schema()
        for number in range(2 * PAGE):
            leader.put(number, 92)
        leader.delete(0)
        follower.wait_for(leader.status()["position"])
        assert follower.documents() == leader.documents() == [uri(n) for n in range(1, 2 * PAGE)]
        assert follower.status()["leader"] == first_node.url
    assert have_equal_state(first_node, second_node)


def test_follower_forwards_registration_and_applies_it_before_answer(
    first_node: Node, second_node: Node
) -> None:
    with first_node.run() as leader, second_node.run(first_node.url) as follower:
        assert follower.load_schema().json()["applied"]
        answer = follower.put(1, 92).json()
        assert (answer["position"], answer["changes"]["new"], answer["applied"]) == (2, 2, True)
        assert follower.documents() == leader.documents() == [uri(1)]
        assert follower.delete(1).json()["changes"]["deleted"] == 2
        assert follower.documents() == leader.documents() == []
        missing = follower.delete(1)
        assert (missing.status_code, missing.json()["error"], leader.status()["head"]) == (404, "NotFound", 3)
    assert have_equal_state(first_node, second_node)


def test_follower_rules_are_local(first_node: Node, second_node: Node) -> None:
    with first_node.run() as leader, second_node.run(first_node.url) as follower:
        follower.load_schema()
        rules = follower.client.put("/metadata/repositories/passau/rules", json={"large": LARGE})
        assert rules.status_code == 200
        answer = follower.put(1, 92).json()
        assert "moves" not in answer
        # Rules need kernels: where those are still compiled, the answer is 202 before the entry is applied.
        follower.wait_for(answer["position"])
        changes = follower.client.get("/metadata/repositories/passau/changes").json()
        assert [(move["rule"], move["kind"]) for move in changes["moves"]] == [("large", "entered")]
        assert leader.status()["rules"] == 0


def test_follower_rejects_same_documents_as_leader(first_node: Node, second_node: Node) -> None:
    with first_node.run() as leader, second_node.run(first_node.url) as follower:
        follower.load_schema()
        answer = follower.client.put(
            "/metadata/documents",
            params={"uri": uri(1)},
            content=b"<#x> a <#Nothing> .",
            headers={"Content-Type": "text/turtle"},
        )
        assert answer.status_code == 422 and "not a class of the schema" in answer.json()["message"]
        assert leader.status()["position"] == 1


def test_follower_restarted_catches_up(first_node: Node, second_node: Node) -> None:
    with first_node.run() as leader:
        leader.load_schema()
        with second_node.run(first_node.url) as follower:
            follower.wait_for(1)
        for number in range(3 * PAGE):
            leader.put(number, 92)
        with second_node.run() as follower:  # its leader is stored
            follower.wait_for(1 + 3 * PAGE)
    assert have_equal_state(first_node, second_node)


def test_follower_continues_after_leader_restart(first_node: Node, second_node: Node) -> None:
    with first_node.run() as leader:
        leader.load_schema()
    with second_node.run(first_node.url) as follower:
        answer = follower.put(1, 92)
        assert answer.status_code == 503 and "is `tidings serve` running there?" in answer.json()["message"]
        with first_node.run() as leader:
            leader.put(1, 92)
            follower.wait_for(2)
            assert follower.put(2, 92).json()["applied"]
        assert follower.documents() == [uri(1), uri(2)]
    assert have_equal_state(first_node, second_node)


def test_follower_of_follower_gets_all_entries(first_node: Node, second_node: Node, tmp_path: Path) -> None:
    third_node = Node(tmp_path / "three")
    with (
        first_node.run(),
        second_node.run(first_node.url) as second,
        third_node.run(second_node.url) as third,
    ):
        third.load_schema()
        assert third.put(1, 92).json()["applied"]
        assert second.documents() == third.documents() == [uri(1)]
    assert have_equal_state(first_node, third_node)


def test_follower_cycle_of_two_rejects_forwarding(first_node: Node, second_node: Node) -> None:
    with first_node.run(second_node.url) as first, second_node.run(first_node.url):
        answer = first.load_schema()
        assert answer.status_code == 508 and "forwarded too often" in answer.json()["message"]


def test_follower_that_closes_cycle_reports_it(first_node: Node, second_node: Node, tmp_path: Path) -> None:
    third_node = Node(tmp_path / "three")
    with first_node.run(second_node.url) as first, second_node.run(third_node.url):
        with third_node.run(first_node.url) as third:
            cycle = wait_for_problem(third, "in a cycle")
            assert (
                f"{first_node.url} -> {second_node.url} -> {third_node.url}" in cycle
                and "tidings provider lead" in cycle
            )
        with third_node.store() as store:  # it may have followed for a moment, before the cycle was closed
            store.replication.follow(None)
        with third_node.run() as third:
            assert third.load_schema().status_code == 200
            first.wait_for(1)
            assert first.status()["problem"] is None


def test_follower_of_itself_is_rejected(first_node: Node) -> None:
    with first_node.run(first_node.url) as first:
        assert first_node.url in wait_for_problem(first, "cannot follow itself")


def test_check_not_own_address_ignores_invalid_addresses() -> None:
    with Peer("http://127.0.0.1:1") as peer:
        check_not_own_address(peer, ["http://example.org:99999"])
        with pytest.raises(ReplicationCycle):
            check_not_own_address(peer, ["http://example.org:99999", "http://localhost:1/"])


def wait_for_problem(provider: RunningProvider, text: str) -> str:
    """Wait until the problem of a provider contains a text, and return it."""
    while text not in (problem := provider.status()["problem"] or ""):
        pass
    return str(problem)


def test_follower_concurrent_registrations_at_both_are_ordered(first_node: Node, second_node: Node) -> None:
    with first_node.run() as leader, second_node.run(first_node.url) as follower:
        follower.load_schema()
        with ThreadPoolExecutor(6) as pool:
            requests = [pool.submit((leader, follower)[n % 2].put, n, 92) for n in range(18)]
            answers = [each.result().json() for each in requests]
        assert sorted(answer["position"] for answer in answers) == list(range(2, 20))
        follower.wait_for(19)
        assert follower.documents() == leader.documents() == sorted(uri(n) for n in range(18))
    assert have_equal_state(first_node, second_node)


@pytest.mark.parametrize("hops", ["000" + "9" * 5_000, "5", "-1", "x", "²"])
def test_follower_invalid_hop_count_is_rejected(first_node: Node, second_node: Node, hops: str) -> None:
    with first_node.run(), second_node.run(first_node.url) as second:
        headers = {HOPS_HEADER: hops.encode()}
        answer = second.client.delete("/metadata/documents", params={"uri": uri(1)}, headers=headers)
        assert answer.status_code == 508


def test_apply_repeated_page_changes_nothing(first_node: Node, second_node: Node) -> None:
    with first_node.run() as leader, second_node.store() as store, Peer(first_node.url) as peer:
        leader.load_schema()
        leader.put(1, 92)
        page = peer.page(0, 10, 0)
        provider = Provider(store)
        provider.apply(page.entries)
        before = replicated_state(store)
        provider.apply(page.entries)
        assert replicated_state(store) == before


def test_register_directly_at_follower_is_rejected(first_node: Node, second_node: Node) -> None:
    with (
        first_node.run() as leader,
        second_node.run(first_node.url) as follower,
        second_node.store() as store,
    ):
        leader.load_schema()
        follower.wait_for(1)
        with pytest.raises(InputError, match="follows another one"):
            Provider(store).register(uri(1), host(92), "application/rdf+xml")


def follower_of(store: Store, node: Node) -> LogFollower:
    provider = Provider(store)
    log = open_log(store, provider, node.url, None)
    assert log is not None
    return LogFollower(store, provider, log, PAGE)


def test_follower_with_diverged_log_is_rejected(first_node: Node, second_node: Node) -> None:
    with first_node.run() as leader, second_node.store() as store:
        leader.load_schema()
        leader.put(1, 92)
        with second_node.run() as other:
            other.load_schema()
            other.put(2, 92)
        with pytest.raises(LogsDiverged, match=r"2: register http://example.org/1.rdf there"):
            follower_of(store, first_node).step()
        assert store.replication.leader() is None
        with second_node.run(first_node.url) as follower:
            while not (problem := follower.status()["problem"]):
                pass
            assert "differs from the one to follow" in problem and follower.documents() == [uri(2)]


def test_follower_answers_202_if_entry_is_not_applied_yet(
    first_node: Node, second_node: Node, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The follower cannot follow because its log differs, but its leader responds."""
    monkeypatch.setattr(provider_routes, "LONGEST_WAIT", 0.2)
    with second_node.run() as other:
        other.load_schema()
        other.put(2, 92)
    with first_node.run() as leader, second_node.run(first_node.url) as follower:
        leader.load_schema()
        leader.put(1, 92)
        answer = follower.put(3, 92)
        assert (answer.status_code, answer.json()["applied"], answer.json()["position"]) == (202, False, 3)
        assert leader.documents() == [uri(1), uri(3)] and follower.documents() == [uri(2)]


def test_follower_detects_leader_with_new_log(first_node: Node, second_node: Node, tmp_path: Path) -> None:
    new_node = Node(tmp_path / "anew", first_node.port)
    with second_node.store() as store:
        with first_node.run() as leader:
            leader.load_schema()
            leader.put(1, 92)
            follower = follower_of(store, first_node)
            follower.catch_up()
        with new_node.run() as leader:
            with pytest.raises(LogsDiverged, match="up to 0 there"):
                follower.step()
            leader.load_schema()
            leader.put(2, 92)
            leader.put(3, 92)
            with pytest.raises(LogsDiverged, match=r"register http://example.org/2.rdf there"):
                follower.step()
        assert [each for each, _ in store.metadata.documents()] == [uri(1)]


def test_follower_promoted_to_leader_continues_log(
    first_node: Node, second_node: Node, tmp_path: Path
) -> None:
    third_node = Node(tmp_path / "three")
    with (
        first_node.run() as leader,
        second_node.run(first_node.url) as second,
        third_node.run(first_node.url) as third,
    ):
        leader.load_schema()
        leader.put(1, 92)
        second.wait_for(2)
        third.wait_for(2)
    with second_node.store() as store:
        store.replication.follow(None)
    with second_node.run() as second, third_node.run(second_node.url) as third:
        assert second.put(2, 92).json()["position"] == 3
        third.wait_for(3)
    assert have_equal_state(second_node, third_node)


def test_follower_needs_shared_token(
    first_node: Node, second_node: Node, monkeypatch: pytest.MonkeyPatch
) -> None:
    with first_node.run(token="secret"):
        with Peer(first_node.url) as peer, pytest.raises(Unreachable, match="TIDINGS_RPC_TOKEN"):
            peer.status()
        monkeypatch.setenv("TIDINGS_RPC_TOKEN", "secret")
        with second_node.run(first_node.url) as follower:
            assert follower.load_schema().json()["applied"]


@pytest.mark.parametrize(
    "url",
    ["", "example.org", "ftp://example.org", "http://", "http://a:b@example.org", "http://x:y", "http://x?y"],
)
def test_peer_invalid_address_is_rejected(url: str) -> None:
    with pytest.raises(InputError, match="address of a provider"):
        Peer(url)


def test_peer_sends_its_user_agent_and_token() -> None:
    with a_site() as site, Peer(site.url(""), "secret") as peer:
        site.pages["/metadata/status"] = Response(200, b'{"provider": "m-1"}')
        assert peer.status() == {"provider": "m-1"}
        [request] = site.requests
    assert request.headers["user-agent"] == build_user_agent("metadata provider")
    assert request.headers["authorization"] == "Bearer secret"
