"""The hub and a subscriber on loopback: verification, leases and rejected requests."""

from __future__ import annotations

import hmac
from contextlib import suppress
from pathlib import Path
from urllib.parse import urlsplit

import httpx
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.feeds.hub.callbacks import RULES, HubLoop, echo, eventually, form, pushes, query, subscribe, titles
from tests.support.processes.leaving_client import left_halfway
from tests.support.servers.feeds_server import served
from tests.support.servers.site import Response, Site
from tests.support.stores.notified_store import PUBLIC, NotifiedStore
from tidings.api.feeds import hub_router_for
from tidings.api.request_body import FORM
from tidings.errors import InputError
from tidings.feeds.hub.hub import CALLBACK_LIMITS, Hub, HubBusy, HubPolicy
from tidings.operations.egress_policy import EgressPolicy
from tidings.operations.http_client import HttpClient, build_user_agent


def test_hub_request_of_client_that_disconnects_answers_400(notified_store: NotifiedStore) -> None:
    assert left_halfway(hub_router_for(Hub(notified_store.feeds)), "/hub", FORM) == 400


def test_hub_verification_sends_challenge_and_lease_to_callback(
    notified_store: NotifiedStore, loop: HubLoop, site: Site
) -> None:
    subscribe(notified_store, loop, site, "/call?mine=1&b=%20", lease_seconds="3600")
    [request] = site.requests
    parameters = query(request)
    assert request.method == "GET" and (parameters["mine"], parameters["b"]) == ("1", " ")
    assert parameters["hub.mode"] == "subscribe" and parameters["hub.lease_seconds"] == "3600"
    assert parameters["hub.topic"] == f"{PUBLIC}/feeds/{notified_store.token}.atom"
    assert len(parameters["hub.challenge"]) >= 32
    assert request.headers["user-agent"] == build_user_agent("WebSub hub")
    [subscription] = loop.hub.store.subscriptions()
    assert subscription.lease_end == "2026-05-01T13:00:00.000000Z"


@pytest.mark.parametrize(
    "answer",
    [
        Response(200, b"something else"),
        Response(404),
        Response(200),
        Response(302, headers={"location": "/other"}),
    ],
)
def test_hub_callback_that_does_not_confirm_gets_no_push(
    notified_store: NotifiedStore, loop: HubLoop, site: Site, answer: Response
) -> None:
    site.pages["/call"], site.pages["/other"] = answer, echo
    loop.hub.ask(form(notified_store, site))
    for _ in range(5):
        loop.step()
        notified_store.clock.go(10_000)
    assert loop.hub.store.subscriptions() == []
    notified_store.notify_of_events(1, 1)
    loop.step()
    assert pushes(site) == [] and all(urlsplit(one.path).path == "/call" for one in site.requests)


def test_hub_verification_of_unavailable_callback_is_retried(
    notified_store: NotifiedStore, loop: HubLoop, site: Site
) -> None:
    site.pages["/call"] = Response(503)
    loop.hub.ask(form(notified_store, site))
    loop.step()
    loop.step()
    assert len(site.requests) == 1
    site.pages["/call"] = echo
    notified_store.clock.go(RULES.questions[0])
    loop.step()
    assert len(loop.hub.store.subscriptions()) == 1


def test_hub_lease_expires_unless_renewed(notified_store: NotifiedStore, loop: HubLoop, site: Site) -> None:
    subscribe(notified_store, loop, site, lease_seconds="600")
    notified_store.clock.go(500)
    subscribe(notified_store, loop, site, lease_seconds="600", secret="new")
    notified_store.clock.go(500)
    notified_store.notify_of_events(1, 1)
    loop.step()
    [push] = pushes(site)
    assert push.headers["x-hub-signature"] == f"sha256={hmac.new(b'new', push.body, 'sha256').hexdigest()}"
    notified_store.clock.go(101)
    notified_store.notify_of_events(2, 2)
    loop.step()
    assert len(pushes(site)) == 1
    assert loop.hub.store.subscriptions() == []


@pytest.mark.parametrize(
    ("requested", "granted"),
    [("", RULES.lease), ("0", RULES.lease), ("1", RULES.shortest), ("999999999999", RULES.longest)],
)
def test_hub_grants_lease_within_its_limits(
    notified_store: NotifiedStore, loop: HubLoop, site: Site, requested: str, granted: int
) -> None:
    subscribe(notified_store, loop, site, lease_seconds=requested)
    assert query(site.requests[0])["hub.lease_seconds"] == str(granted)


def test_hub_unsubscribe_needs_confirmation_of_callback(
    notified_store: NotifiedStore, loop: HubLoop, site: Site
) -> None:
    subscribe(notified_store, loop, site)
    site.pages["/call"] = Response(404)
    loop.hub.ask(form(notified_store, site, mode="unsubscribe"))
    loop.step()
    assert len(loop.hub.store.subscriptions()) == 1, "a third party sent the request"
    site.pages["/call"] = echo
    loop.hub.ask(form(notified_store, site, mode="unsubscribe"))
    loop.step()
    assert query(site.requests[-1])["hub.mode"] == "unsubscribe"
    assert loop.hub.store.subscriptions() == []
    notified_store.notify_of_events(1, 1)
    loop.step()
    assert pushes(site) == []


@pytest.mark.parametrize("status", [429, 503])
def test_hub_verification_limits_retry_after_of_callback(
    notified_store: NotifiedStore, loop: HubLoop, site: Site, status: int
) -> None:
    """Otherwise a client could occupy all waiting places for a day."""
    site.pages["/call"] = Response(status, headers={"Retry-After": "86400"})
    loop.hub.ask(form(notified_store, site))
    loop.step()
    notified_store.clock.go(RULES.questions[0])
    loop.step()
    assert len(site.requests) == 1
    site.pages["/call"] = echo
    notified_store.clock.go(RULES.questions[-1])
    loop.step()
    assert len(site.requests) == 2 and len(loop.hub.store.subscriptions()) == 1


INVALID = {
    "mode": ["", "publish", "denied"],
    "topic": [
        "",
        PUBLIC,
        f"{PUBLIC}/feeds/{'A' * 32}.atom",
        "http://elsewhere.example/feed",
        f"{PUBLIC}/feeds/x.atom",
    ],
    "callback": [
        "",
        "ftp://x.example/",
        "nonsense",
        "http://x.example/#part",
        "http://u:p@x.example/",
        "http://x/" + "y" * 1_000,
        'http://127.0.0.1:1-"]>&[::',
        "http://x.example/é",
    ],
    "lease_seconds": ["-1", "soon", "1.5"],
    "secret": ["x" * 200, "a\x00b"],
}


@pytest.mark.parametrize(
    ("name", "value"), [(name, each) for name, values in INVALID.items() for each in values]
)
def test_hub_invalid_request_is_rejected(
    notified_store: NotifiedStore, loop: HubLoop, site: Site, name: str, value: str
) -> None:
    with pytest.raises(InputError):
        loop.hub.ask(form(notified_store, site, **{name: value}))
    assert loop.step() == 0 and site.requests == []


def test_hub_topic_without_feed_format_is_rejected(
    notified_store: NotifiedStore, loop: HubLoop, site: Site
) -> None:
    for ending in ("", ".html", "/archive/1.atom", ".atom?x=1"):
        with pytest.raises(InputError, match="not a topic of this hub"):
            loop.hub.ask(form(notified_store, site, topic=f"{PUBLIC}/feeds/{notified_store.token}{ending}"))


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    st.dictionaries(st.sampled_from(["mode", "topic", "callback", "secret", "lease_seconds"]), st.text()),
    st.text(alphabet="[]:/@?#%.x1é \x00\ud800"),
)
def test_hub_arbitrary_request_is_accepted_or_rejected_without_log(
    notified_store: NotifiedStore,
    loop: HubLoop,
    site: Site,
    caplog: pytest.LogCaptureFixture,
    more: dict[str, str],
    tail: str,
) -> None:
    """Unexpected errors would be in the log."""
    for parameters in (more, {"callback": "http://127.0.0.1" + tail}, {"callback": site.url() + tail}):
        with suppress(InputError):
            loop.hub.ask(form(notified_store, site, **parameters))
    while loop.step():
        notified_store.clock.go(1_000_000)
    assert not caplog.records


def test_hub_private_callback_is_rejected_by_default(notified_store: NotifiedStore, site: Site) -> None:
    hub = Hub(notified_store.feeds)
    with pytest.raises(InputError, match="the callback is in a private network"):
        hub.ask(form(notified_store, site))


def test_hub_callback_that_resolves_to_private_address_later_is_not_called(
    notified_store: NotifiedStore, site: Site
) -> None:
    """DNS rebinding: the name is public at the request, and loopback at verification."""
    answers = iter([["93.184.216.34"], ["127.0.0.1"], ["127.0.0.1"], ["127.0.0.1"]])
    network = EgressPolicy(resolve=lambda host, port: next(answers))
    loop = HubLoop(Hub(notified_store.feeds, HubPolicy(), HttpClient(CALLBACK_LIMITS, network)))
    loop.hub.ask(form(notified_store, site, callback=f"http://rebind.example:{site.port}/call"))
    site.pages["/call"] = echo
    loop.step()
    loop.close()
    assert site.requests == [] and loop.hub.store.subscriptions() == []


def test_hub_limits_waiting_requests_and_subscribers_per_feed(
    notified_store: NotifiedStore, site: Site
) -> None:
    loop = HubLoop(Hub(notified_store.feeds, HubPolicy(inside=True, waiting=2, per_feed=2)))
    site.pages |= {f"/{n}": echo for n in range(5)}
    for n in (0, 1, 1):
        loop.hub.ask(form(notified_store, site, f"/{n}"))
    with pytest.raises(HubBusy, match="too many requests wait for verification"):
        loop.hub.ask(form(notified_store, site, "/2"))
    loop.step()
    with pytest.raises(HubBusy, match="too many subscribers of this feed"):
        loop.hub.ask(form(notified_store, site, "/3"))
    loop.hub.ask(form(notified_store, site, "/0", mode="unsubscribe"))
    loop.step()
    loop.hub.ask(form(notified_store, site, "/3"))
    loop.close()


def test_hub_over_http_from_request_to_push(
    notified_store: NotifiedStore, tmp_path: Path, site: Site
) -> None:
    """A reader finds the hub in the feed, subscribes over HTTP, and gets a push from the hub's thread."""
    site.pages["/call"] = echo
    with served(notified_store, RULES) as url, httpx.Client(base_url=url) as web:
        links = web.get(f"/feeds/{notified_store.token}.rss").links
        request = {
            "hub.mode": "subscribe",
            "hub.callback": site.url("/call"),
            "hub.topic": links["self"]["url"],
        }
        assert web.post(links["hub"]["url"], data=request).status_code == 202
        site.wait_for(1)
        eventually(lambda: bool(notified_store.store.hub.subscriptions()))
        notified_store.notify_of_events(1, 1)
        site.wait_for(2)
    assert [titles(push) for push in pushes(site)] == [["event 1"]]


def test_hub_over_http_invalid_requests_are_rejected(
    notified_store: NotifiedStore, tmp_path: Path, site: Site
) -> None:
    with served(notified_store) as url, httpx.Client(base_url=url) as web:
        response = web.post("/hub", data={"hub.mode": "subscribe"})
        assert response.status_code == 400 and "not a topic of this hub" in response.text
        assert web.post("/hub", data={"hub.mode": "x" * 30_000}).status_code == 413
        assert web.post("/hub", json={}).status_code == 415
        assert web.post("/hub", data={str(n): "x" for n in range(60)}).status_code == 400
        topic = f"{url}/feeds/{notified_store.token}.atom"
        private = {"hub.mode": "subscribe", "hub.topic": topic, "hub.callback": site.url("/call")}
        assert "private network" in web.post("/hub", data=private).text
        assert web.get("/hub").status_code == 405
