"""Two providers on real servers: one keeps the log, the other follows it."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from tests.metadata.replication.nodes import PAGE, Asked, Node, everything, host, uri
from tests.support.servers.site import Response, a_site
from tidings.api.metadata import provider_routes
from tidings.errors import InputError
from tidings.metadata.provider.provider import Provider
from tidings.metadata.replication.log_follower import Circle, Diverged, LogFollower, check_not_own_address
from tidings.metadata.replication.peer import HOPS_HEADER, Peer, Unreachable
from tidings.metadata.replication.routing import open_log
from tidings.operations.http_client import build_user_agent
from tidings.store.store import Store

LARGE = "search CycleProvider c register c where c.serverInformation.memory > 64"


def equal(one: Node, two: Node) -> bool:
    with one.store() as first, two.store() as second:
        return everything(first) == everything(second)


def test_what_is_registered_at_the_leader_is_at_the_follower(one: Node, two: Node) -> None:
    with one.runs() as leader, two.runs(one.url) as follower:
        leader.load_schema()
        for number in range(2 * PAGE):
            leader.put(number, 92)
        leader.delete(0)
        follower.reaches(leader.status()["position"])
        assert follower.documents() == leader.documents() == [uri(n) for n in range(1, 2 * PAGE)]
        assert follower.status()["leader"] == one.url
    assert equal(one, two)


def test_what_is_registered_at_the_follower_is_there_when_it_is_answered(one: Node, two: Node) -> None:
    with one.runs() as leader, two.runs(one.url) as follower:
        assert follower.load_schema().json()["applied"]
        answer = follower.put(1, 92).json()
        assert (answer["position"], answer["changes"]["new"], answer["applied"]) == (2, 2, True)
        assert follower.documents() == leader.documents() == [uri(1)]
        assert follower.delete(1).json()["changes"]["deleted"] == 2
        assert follower.documents() == leader.documents() == []
        gone = follower.delete(1)
        assert (gone.status_code, gone.json()["error"], leader.status()["head"]) == (404, "Absent", 3)
    assert equal(one, two)


def test_rules_are_of_one_provider(one: Node, two: Node) -> None:
    with one.runs() as leader, two.runs(one.url) as follower:
        follower.load_schema()
        rules = follower.client.put("/metadata/repositories/passau/rules", json={"large": LARGE})
        assert rules.status_code == 200
        answer = follower.put(1, 92).json()
        assert "moves" not in answer
        # Rules need kernels: where those are still compiled, the answer is 202 before the entry is applied.
        follower.reaches(answer["position"])
        told = follower.client.get("/metadata/repositories/passau/changes").json()
        assert [(move["rule"], move["kind"]) for move in told["moves"]] == [("large", "entered")]
        assert leader.status()["rules"] == 0


def test_what_is_refused_at_the_leader_is_refused_at_the_follower(one: Node, two: Node) -> None:
    with one.runs() as leader, two.runs(one.url) as follower:
        follower.load_schema()
        answer = follower.client.put(
            "/metadata/documents",
            params={"uri": uri(1)},
            content=b"<#x> a <#Nothing> .",
            headers={"Content-Type": "text/turtle"},
        )
        assert answer.status_code == 422 and "not a class of the schema" in answer.json()["message"]
        assert leader.status()["position"] == 1


def test_a_follower_that_was_away_catches_up(one: Node, two: Node) -> None:
    with one.runs() as leader:
        leader.load_schema()
        with two.runs(one.url) as follower:
            follower.reaches(1)
        for number in range(3 * PAGE):
            leader.put(number, 92)
        with two.runs() as follower:  # whom it follows is remembered
            follower.reaches(1 + 3 * PAGE)
    assert equal(one, two)


def test_a_leader_that_was_away_is_followed_again(one: Node, two: Node) -> None:
    with one.runs() as leader:
        leader.load_schema()
    with two.runs(one.url) as follower:
        answer = follower.put(1, 92)
        assert answer.status_code == 503 and "is `tidings serve` running there?" in answer.json()["message"]
        with one.runs() as leader:
            leader.put(1, 92)
            follower.reaches(2)
            assert follower.put(2, 92).json()["applied"]
        assert follower.documents() == [uri(1), uri(2)]
    assert equal(one, two)


def test_whoever_follows_a_follower(one: Node, two: Node, tmp_path: Path) -> None:
    three = Node(tmp_path / "three")
    with one.runs(), two.runs(one.url) as second, three.runs(two.url) as third:
        third.load_schema()
        assert third.put(1, 92).json()["applied"]
        assert second.documents() == third.documents() == [uri(1)]
    assert equal(one, three)


def test_providers_that_follow_each_other_in_a_circle(one: Node, two: Node) -> None:
    with one.runs(two.url) as first, two.runs(one.url):
        answer = first.load_schema()
        assert answer.status_code == 508 and "forwarded too often" in answer.json()["message"]


def test_whoever_closes_a_circle_finds_it(one: Node, two: Node, tmp_path: Path) -> None:
    three = Node(tmp_path / "three")
    with one.runs(two.url) as first, two.runs(three.url):
        with three.runs(one.url) as third:
            circle = said(third, "in a cycle")
            assert f"{one.url} -> {two.url} -> {three.url}" in circle and "tidings provider lead" in circle
        with three.store() as store:  # it may have followed for a moment, before the circle was closed
            store.replication.follow(None)
        with three.runs() as third:
            assert third.load_schema().status_code == 200
            first.reaches(1)
            assert first.status()["problem"] is None


def test_a_provider_does_not_follow_itself(one: Node) -> None:
    with one.runs(one.url) as first:
        assert one.url in said(first, "cannot follow itself")


def test_an_own_address_that_makes_no_sense_is_nobodys() -> None:
    with Peer("http://127.0.0.1:1") as peer:
        check_not_own_address(peer, ["http://example.org:99999"])
        with pytest.raises(Circle):
            check_not_own_address(peer, ["http://example.org:99999", "http://localhost:1/"])


def said(asked: Asked, what: str) -> str:
    """What keeps a provider from following, as soon as it is this; before, the other one may not run yet."""
    while what not in (problem := asked.status()["problem"] or ""):
        pass
    return str(problem)


def test_many_register_at_once_with_both(one: Node, two: Node) -> None:
    with one.runs() as leader, two.runs(one.url) as follower:
        follower.load_schema()
        with ThreadPoolExecutor(6) as pool:
            asked = [pool.submit((leader, follower)[n % 2].put, n, 92) for n in range(18)]
            answers = [each.result().json() for each in asked]
        assert sorted(answer["position"] for answer in answers) == list(range(2, 20))
        follower.reaches(19)
        assert follower.documents() == leader.documents() == sorted(uri(n) for n in range(18))
    assert equal(one, two)


@pytest.mark.parametrize("hops", ["000" + "9" * 5_000, "5", "-1", "x", "²"])
def test_how_often_something_was_handed_on_is_a_small_number(one: Node, two: Node, hops: str) -> None:
    with one.runs(), two.runs(one.url) as second:
        asked = {HOPS_HEADER: hops.encode()}
        answer = second.client.delete("/metadata/documents", params={"uri": uri(1)}, headers=asked)
        assert answer.status_code == 508


def test_a_page_that_comes_twice_changes_nothing(one: Node, two: Node) -> None:
    with one.runs() as leader, two.store() as store, Peer(one.url) as peer:
        leader.load_schema()
        leader.put(1, 92)
        page = peer.page(0, 10, 0)
        provider = Provider(store)
        provider.apply(page.entries)
        before = everything(store)
        provider.apply(page.entries)
        assert everything(store) == before


def test_nothing_is_registered_by_itself_at_a_follower(one: Node, two: Node) -> None:
    with one.runs() as leader, two.runs(one.url) as follower, two.store() as store:
        leader.load_schema()
        follower.reaches(1)
        with pytest.raises(InputError, match="follows another one"):
            Provider(store).register(uri(1), host(92), "application/rdf+xml")


def follower_of(store: Store, node: Node) -> LogFollower:
    provider = Provider(store)
    log = open_log(store, provider, node.url, None)
    assert log is not None
    return LogFollower(store, provider, log, PAGE)


def test_a_provider_with_something_else_in_its_log_cannot_follow(one: Node, two: Node) -> None:
    with one.runs() as leader, two.store() as store:
        leader.load_schema()
        leader.put(1, 92)
        with two.runs() as other:
            other.load_schema()
            other.put(2, 92)
        with pytest.raises(Diverged, match=r"2: register http://example.org/1.rdf there"):
            follower_of(store, one).step()
        assert store.replication.leader() is None
        with two.runs(one.url) as follower:
            while not (problem := follower.status()["problem"]):
                pass
            assert "differs from the one to follow" in problem and follower.documents() == [uri(2)]


def test_what_is_in_the_log_and_not_applied_here_yet(
    one: Node, two: Node, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The follower cannot follow, here because its log is another one, but its leader is there."""
    monkeypatch.setattr(provider_routes, "LONGEST_WAIT", 0.2)
    with two.runs() as other:
        other.load_schema()
        other.put(2, 92)
    with one.runs() as leader, two.runs(one.url) as follower:
        leader.load_schema()
        leader.put(1, 92)
        answer = follower.put(3, 92)
        assert (answer.status_code, answer.json()["applied"], answer.json()["position"]) == (202, False, 3)
        assert leader.documents() == [uri(1), uri(3)] and follower.documents() == [uri(2)]


def test_a_leader_that_was_set_up_anew_is_not_followed(one: Node, two: Node, tmp_path: Path) -> None:
    anew = Node(tmp_path / "anew", one.port)
    with two.store() as store:
        with one.runs() as leader:
            leader.load_schema()
            leader.put(1, 92)
            follower = follower_of(store, one)
            follower.catch_up()
        with anew.runs() as leader:
            with pytest.raises(Diverged, match="up to 0 there"):
                follower.step()
            leader.load_schema()
            leader.put(2, 92)
            leader.put(3, 92)
            with pytest.raises(Diverged, match=r"register http://example.org/2.rdf there"):
                follower.step()
        assert [each for each, _ in store.metadata.documents()] == [uri(1)]


def test_a_follower_that_leads_when_the_leader_is_gone(one: Node, two: Node, tmp_path: Path) -> None:
    three = Node(tmp_path / "three")
    with one.runs() as leader, two.runs(one.url) as second, three.runs(one.url) as third:
        leader.load_schema()
        leader.put(1, 92)
        second.reaches(2)
        third.reaches(2)
    with two.store() as store:
        store.replication.follow(None)
    with two.runs() as second, three.runs(two.url) as third:
        assert second.put(2, 92).json()["position"] == 3
        third.reaches(3)
    assert equal(two, three)


def test_a_token_that_providers_share(one: Node, two: Node, monkeypatch: pytest.MonkeyPatch) -> None:
    with one.runs(token="secret"):
        with Peer(one.url) as peer, pytest.raises(Unreachable, match="TIDINGS_RPC_TOKEN"):
            peer.status()
        monkeypatch.setenv("TIDINGS_RPC_TOKEN", "secret")
        with two.runs(one.url) as follower:
            assert follower.load_schema().json()["applied"]


@pytest.mark.parametrize(
    "url",
    ["", "example.org", "ftp://example.org", "http://", "http://a:b@example.org", "http://x:y", "http://x?y"],
)
def test_what_is_no_address_of_a_provider(url: str) -> None:
    with pytest.raises(InputError, match="address of a provider"):
        Peer(url)


def test_peer_sends_its_user_agent_and_token() -> None:
    with a_site() as site, Peer(site.url(""), "secret") as peer:
        site.pages["/metadata/status"] = Response(200, b'{"provider": "m-1"}')
        assert peer.status() == {"provider": "m-1"}
        [request] = site.requests
    assert request.headers["user-agent"] == build_user_agent("metadata provider")
    assert request.headers["authorization"] == "Bearer secret"
