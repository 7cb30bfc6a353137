"""WebSub as a subscriber: a hub on loopback that verifies and pushes, and the endpoints of Tidings on a real server."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from socket import create_connection
from threading import Event

import httpx
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.feeds.conftest import Clock
from tests.support.servers.feeds_server import served as served_feeds
from tests.support.servers.http_server import served
from tests.support.servers.rpc_router import router_for
from tests.support.servers.site import Response, Site, a_site, rss
from tests.support.servers.websub_hub import Hub
from tests.support.stores.notified_store import NotifiedStore
from tidings.feeds.hub.hub import HubPolicy
from tidings.feeds.inbound import websub
from tidings.feeds.inbound.poller import Poller
from tidings.feeds.outbound.addresses import create_feed_urls
from tidings.feeds.sql.polled_feeds import PolledFeed
from tidings.graphs.syndication.feed_parser import items_of
from tidings.operations.http_client import HttpResponse
from tidings.service.tidings import Tidings
from tidings.store.encoding import format_instant


@pytest.fixture
def tidings(tmp_path: Path) -> Iterator[Tidings]:
    with Tidings(tmp_path) as opened:
        yield opened


@pytest.fixture
def site() -> Iterator[Site]:
    with a_site() as opened:
        yield opened


@pytest.fixture
def clock() -> Clock:
    clock = Clock()
    clock.now = datetime.now(UTC)
    return clock


@pytest.fixture
def url(tidings: Tidings, clock: Clock) -> Iterator[str]:
    """The address of the endpoints. Their clock stands still, so that only the test polls."""
    start = clock.now
    with served(router_for(tidings, create_feed_urls("http://127.0.0.1:1"), clock=lambda: start)) as address:
        yield address


@pytest.fixture
def poller(tidings: Tidings, url: str, clock: Clock) -> Iterator[Poller]:
    with Poller(tidings.store, public_url=url, clock=clock) as opened:
        yield opened


def with_hub(site: Site, hub: Hub, *titles: str) -> bytes:
    links = f'<atom:link rel="hub" href="{hub.at(site)}"/><atom:link rel="self" href="{site.url()}"/>'
    body = rss(*titles, more=links)
    site.pages["/rss.xml"] = Response(200, body)
    return body


def feed(tidings: Tidings) -> PolledFeed:
    [polled] = tidings.store.polled_feeds.load()
    return polled


def published_count(tidings: Tidings) -> int:
    return tidings.store.journal.head()


def test_hub_subscription_is_verified_and_pushed(
    tidings: Tidings, poller: Poller, site: Site, clock: Clock
) -> None:
    hub = Hub()
    with_hub(site, hub, "a")
    polled = poller.add(site.url())
    assert hub.verified == [(200, "prove it")]
    assert (hub.subscriptions[0]["hub.mode"], hub.subscriptions[0]["hub.topic"]) == ("subscribe", site.url())
    assert polled.feed == feed(tidings) and feed(tidings).push == "verified"
    assert hub.push(rss("a", "b")) == 202
    assert published_count(tidings) == 2, "a was known already"
    assert hub.push(rss("edited", "b")) == 202
    assert published_count(tidings) == 3
    assert len(site.requests) == 2, "nothing was polled: one request for the feed, one to the hub"


@pytest.mark.parametrize("method", ["sha1", "sha256", "sha384", "sha512"])
def test_push_accepts_every_signature_method(
    tidings: Tidings, poller: Poller, site: Site, method: str
) -> None:
    hub = Hub()
    with_hub(site, hub, "a")
    poller.add(site.url())
    hub.push(rss("a", "b"), method)
    assert published_count(tidings) == 2


def test_push_without_valid_signature_is_discarded(tidings: Tidings, poller: Poller, site: Site) -> None:
    hub = Hub()
    with_hub(site, hub, "a")
    poller.add(site.url())
    assert hub.push(rss("a", "forged"), secret="guessed") == 202, "a guess discloses nothing"
    assert hub.push(rss("a", "forged"), "md5") == 202
    callback = hub.subscriptions[-1]["hub.callback"]
    assert httpx.post(callback, content=rss("a", "forged"), trust_env=False).status_code == 202
    assert published_count(tidings) == 1


def test_push_invalid_content_is_problem_of_feed(tidings: Tidings, poller: Poller, site: Site) -> None:
    hub = Hub()
    with_hub(site, hub, "a")
    poller.add(site.url())
    hub.push(b"<rss><channel>")
    assert (feed(tidings).problem or "").startswith("not well-formed XML")
    hub.push(rss("a", "b"))
    assert (feed(tidings).problem, published_count(tidings)) == (None, 2)


def test_verification_of_unknown_request_answers_404(tidings: Tidings, poller: Poller, site: Site) -> None:
    hub = Hub()
    with_hub(site, hub, "a")
    poller.add(site.url())
    callback = hub.subscriptions[-1]["hub.callback"]
    base = callback.rpartition("/")[0]
    for word in ("guess", "x" * 32, "é" * 32):
        assert hub.verify(f"{base}/{word}", site.url())[0] == 404
    assert hub.verify(f"{base}/%00", site.url())[0] == 400
    assert hub.verify(callback, "http://example.org/other")[0] == 404
    assert hub.verify(callback, site.url(), mode="unsubscribe")[0] == 404
    assert feed(tidings).push == "verified"
    assert httpx.post(f"{base}/guess", content=b"x", trust_env=False).status_code == 410


def test_pushed_feed_is_polled_less_often_and_lease_is_renewed(
    tidings: Tidings, poller: Poller, site: Site, clock: Clock
) -> None:
    hub = Hub(lease=20 * 3_600)
    with_hub(site, hub, "a")
    poller.add(site.url())
    clock.move(hours=1, minutes=10)
    assert len(list(poller.poll_due())) == 1, "the first poll did not know the hub"
    assert datetime.fromisoformat(feed(tidings).next_poll or "") >= clock.now + timedelta(hours=6)
    secret, callback = (hub.subscriptions[0][name] for name in ("hub.secret", "hub.callback"))
    while len(hub.subscriptions) == 1:
        clock.move(hours=1)
        list(poller.poll_due())
    assert clock.now < datetime.now(UTC) + timedelta(hours=20), "before the lease ended"
    assert (hub.subscriptions[1]["hub.secret"], hub.subscriptions[1]["hub.callback"]) == (secret, callback)
    assert feed(tidings).push == "verified"


def test_hub_rejecting_subscription_leaves_feed_polled(
    tidings: Tidings, poller: Poller, site: Site, clock: Clock
) -> None:
    hub = Hub(status=500)
    with_hub(site, hub, "a")
    assert poller.add(site.url()).problem is None
    assert "the hub rejects the request" in (feed(tidings).problem or "")
    with_hub(site, hub, "a", "b")
    clock.move(hours=2)
    list(poller.poll_due())
    assert (published_count(tidings), len(hub.subscriptions)) == (2, 2)
    hub.status = 202
    clock.move(hours=2)
    list(poller.poll_due())
    assert (feed(tidings).push, feed(tidings).problem) == ("verified", None)


def test_hub_denying_subscription_gets_no_further_requests(
    tidings: Tidings, poller: Poller, site: Site, clock: Clock
) -> None:
    hub = Hub()
    with_hub(site, hub, "a")
    poller.add(site.url())
    assert hub.verify(hub.subscriptions[0]["hub.callback"], site.url(), "denied")[0] == 200
    assert feed(tidings).push == "denied"
    clock.move(hours=7)
    [polled] = poller.poll_due()
    assert polled.problem is None and len(hub.subscriptions) == 1
    assert hub.push(rss("a", "b")) == 410


def test_feed_with_changed_hub_is_pushed_by_new_hub(
    tidings: Tidings, poller: Poller, site: Site, clock: Clock
) -> None:
    first, second = Hub(), Hub()
    with_hub(site, first, "a")
    poller.add(site.url())
    link = f'<atom:link rel="hub" href="{second.at(site, "/other")}"/><atom:link rel="self" href="{site.url()}"/>'
    site.pages["/rss.xml"] = Response(200, rss("a", more=link))
    clock.move(hours=2)
    list(poller.poll_due())
    assert (len(first.subscriptions), len(second.subscriptions)) == (1, 1)
    assert first.push(rss("a", "b")) == 410, "the old callback is unknown now"
    assert second.push(rss("a", "b")) == 202 and published_count(tidings) == 2


def test_push_to_removed_feed_answers_410(tidings: Tidings, poller: Poller, site: Site) -> None:
    hub = Hub()
    with_hub(site, hub, "a")
    poller.add(site.url())
    tidings.store.polled_feeds.remove(site.url())
    assert hub.push(rss("a", "b")) == 410
    assert published_count(tidings) == 1


def test_hub_at_private_address_gets_no_request(tidings: Tidings, poller: Poller, site: Site) -> None:
    hub = Hub()
    with a_site("127.0.0.3") as other:
        link = f'<atom:link rel="hub" href="{hub.at(other)}"/>'
        site.pages["/rss.xml"] = Response(200, rss("a", more=link))
        poller.add(site.url())
    assert hub.subscriptions == []
    assert "private network" in (feed(tidings).problem or "")


@pytest.mark.parametrize("address", ["http://[", "urn:x", "", "file:///etc/passwd", "http://a b"])
def test_hub_with_invalid_address_is_problem_of_feed(
    tidings: Tidings, poller: Poller, site: Site, address: str
) -> None:
    links = f'<atom:link rel="hub" href="{address}"/><atom:link rel="self" href="{address}"/>'
    site.pages["/rss.xml"] = Response(200, rss("a", more=links), {"Link": f"<{address}>; rel=self"})
    assert poller.add(site.url()).problem is None
    assert published_count(tidings) == 1
    assert not address or "not a web address" in (feed(tidings).problem or "")


def test_hub_without_public_url_gets_no_request(tidings: Tidings, site: Site, clock: Clock) -> None:
    hub = Hub()
    with_hub(site, hub, "a")
    with Poller(tidings.store, clock=clock) as poller:
        poller.add(site.url())
    assert (hub.subscriptions, feed(tidings).push) == ([], None)


def test_service_follows_feed_of_another_service_through_its_hub(
    tmp_path: Path, tidings: Tidings, poller: Poller
) -> None:
    """The hub of one service and the subscriber of another, over HTTP."""
    (tmp_path / "other").mkdir()
    source = NotifiedStore(tmp_path / "other")
    source.notify_of_events(1, 2)
    with source.store, served_feeds(source, HubPolicy(inside=True)) as url:
        poller.add(f"{url}/feeds/{source.token}.atom")
        assert published_count(tidings) == 2
        assert eventually(lambda: feed(tidings).push == "verified")
        source.notify_of_events(3, 3)
        assert eventually(lambda: published_count(tidings) == 3)
        source.store.subscriptions.remove(["s-1"])
        assert eventually(lambda: feed(tidings).push == "denied"), (
            "the first service reports that its feed has ended"
        )
    [last] = tidings.store.journal.read(2)
    assert b"event 3" in last.body


def eventually(holds: Callable[[], bool]) -> bool:
    """Whether a condition that another thread brings about holds within a minute."""
    return any(holds() or Event().wait(0.05) for _ in range(1_200))


@pytest.mark.parametrize(
    ("header", "hub", "topic"),
    [
        (
            '<https://hub.example/>; rel="hub", </feed>; rel=self',
            "https://hub.example/",
            "http://a.example/feed",
        ),
        ("</hub>; title=x; rel='hub'", None, None),
        ("</hub>;rel=HUB", "http://a.example/hub", "http://a.example/x"),
        ('<https://one/>; rel="self hub", <https://two/>; rel=hub', "https://one/", "https://one/"),
        ("", None, None),
        ("<>; rel=", None, None),
    ],
)
def test_find_hub_reads_link_headers(header: str, hub: str | None, topic: str | None) -> None:
    facts, _ = items_of(rss("a"), "")
    answer = HttpResponse(200, "http://a.example/x", None, {"link": header}, b"")
    link = websub.find_hub(answer, facts)
    assert link == (websub.HubLink(hub, topic or "") if hub else None)


@given(st.binary(max_size=50), st.text(max_size=20), st.text(max_size=60))
def test_is_signature_valid_rejects_any_other_signature(body: bytes, secret: str, signature: str) -> None:
    assert not websub.is_signature_valid(secret, signature, body)
    assert not websub.is_signature_valid(None, signature, body)
    assert not websub.is_signature_valid(secret, None, body)


@pytest.mark.parametrize(
    ("lease", "days"), [("864000", 8), ("", 8), ("x", 8), ("1", 1 / 360), ("9" * 30, 292), ("²", 8)]
)
def test_verify_callback_schedules_renewal_before_lease_ends(lease: str, days: float) -> None:
    noon = datetime(2026, 5, 1, 12, tzinfo=UTC)
    pending = PolledFeed(1, "http://a/", format_instant(noon), push="asked", topic="http://a/")
    parameters = {
        "hub.mode": "subscribe",
        "hub.topic": "http://a/",
        "hub.challenge": "c",
        "hub.lease_seconds": lease,
    }
    verified = websub.verify_callback(pending, parameters, noon)
    assert verified is not None
    renewed = datetime.fromisoformat(str(verified[0]["lease"]))
    assert abs((renewed - noon) / timedelta(days=1) - days) < 0.01


def test_poll_after_clock_was_set_back_subscribes_to_hub_again(
    tidings: Tidings, poller: Poller, site: Site, clock: Clock
) -> None:
    hub = Hub()
    with_hub(site, hub, "a")
    poller.add(site.url())
    assert len(hub.subscriptions) == 1 and feed(tidings).lease is not None
    clock.now -= timedelta(days=1)
    assert len(list(poller.poll_due())) == 1
    assert len(hub.subscriptions) == 2 and feed(tidings).push == "verified"


def test_push_to_unknown_callback_answers_410_before_body_arrives(url: str) -> None:
    """The body is announced and never sent: a server that waited for it would not answer."""
    host, port = url.removeprefix("http://").split(":")
    with create_connection((host, int(port)), timeout=20) as connection:
        head = f"POST /websub/{'a' * 32} HTTP/1.1\r\nHost: {host}\r\nContent-Length: 16000000\r\n\r\n"
        connection.sendall(head.encode())
        assert connection.recv(100).startswith(b"HTTP/1.1 410 ")
