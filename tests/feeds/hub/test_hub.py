"""The hub and a subscriber of it on loopback: challenge, leases, what is refused. The clock is the test's."""

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
from tests.support.stores.notified_store import PUBLIC, Told
from tidings.api.feeds import hub_router_for
from tidings.api.request_body import FORM
from tidings.errors import InputError
from tidings.feeds.hub.hub import CALLBACK_LIMITS, Hub, HubBusy, HubPolicy
from tidings.operations.egress_policy import EgressPolicy
from tidings.operations.http_client import HttpClient, build_user_agent


def test_a_client_that_goes_in_the_middle(told: Told) -> None:
    assert left_halfway(hub_router_for(Hub(told.feeds)), "/hub", FORM) == 400


def test_a_callback_is_asked_whether_it_wants_that(told: Told, loop: HubLoop, site: Site) -> None:
    subscribe(told, loop, site, "/call?mine=1&b=%20", lease_seconds="3600")
    [asked] = site.requests
    said = query(asked)
    assert asked.method == "GET" and (said["mine"], said["b"]) == ("1", " ")
    assert said["hub.mode"] == "subscribe" and said["hub.lease_seconds"] == "3600"
    assert said["hub.topic"] == f"{PUBLIC}/feeds/{told.token}.atom"
    assert len(said["hub.challenge"]) >= 32
    assert asked.headers["user-agent"] == build_user_agent("WebSub hub")
    [made] = loop.hub.store.subscriptions()
    assert made.lease_end == "2026-05-01T13:00:00.000000Z"


@pytest.mark.parametrize(
    "answer",
    [
        Response(200, b"something else"),
        Response(404),
        Response(200),
        Response(302, headers={"location": "/other"}),
    ],
)
def test_a_callback_that_did_not_ask_is_left_alone(
    told: Told, loop: HubLoop, site: Site, answer: Response
) -> None:
    site.pages["/call"], site.pages["/other"] = answer, echo
    loop.hub.ask(form(told, site))
    for _ in range(5):
        loop.step()
        told.clock.go(10_000)
    assert loop.hub.store.subscriptions() == []
    told.tell_events(1, 1)
    loop.step()
    assert pushes(site) == [] and all(urlsplit(one.path).path == "/call" for one in site.requests)


def test_a_callback_that_cannot_be_asked_now_is_asked_again(told: Told, loop: HubLoop, site: Site) -> None:
    site.pages["/call"] = Response(503)
    loop.hub.ask(form(told, site))
    loop.step()
    loop.step()
    assert len(site.requests) == 1
    site.pages["/call"] = echo
    told.clock.go(RULES.questions[0])
    loop.step()
    assert len(loop.hub.store.subscriptions()) == 1


def test_a_lease_ends_and_can_be_renewed(told: Told, loop: HubLoop, site: Site) -> None:
    subscribe(told, loop, site, lease_seconds="600")
    told.clock.go(500)
    subscribe(told, loop, site, lease_seconds="600", secret="new")
    told.clock.go(500)
    told.tell_events(1, 1)
    loop.step()
    [push] = pushes(site)
    assert push.headers["x-hub-signature"] == f"sha256={hmac.new(b'new', push.body, 'sha256').hexdigest()}"
    told.clock.go(101)
    told.tell_events(2, 2)
    loop.step()
    assert len(pushes(site)) == 1
    assert loop.hub.store.subscriptions() == []


@pytest.mark.parametrize(
    ("asked", "given"),
    [("", RULES.lease), ("0", RULES.lease), ("1", RULES.shortest), ("999999999999", RULES.longest)],
)
def test_a_lease_is_what_the_hub_grants(
    told: Told, loop: HubLoop, site: Site, asked: str, given: int
) -> None:
    subscribe(told, loop, site, lease_seconds=asked)
    assert query(site.requests[0])["hub.lease_seconds"] == str(given)


def test_unsubscribing_is_asked_for_and_confirmed(told: Told, loop: HubLoop, site: Site) -> None:
    subscribe(told, loop, site)
    site.pages["/call"] = Response(404)
    loop.hub.ask(form(told, site, mode="unsubscribe"))
    loop.step()
    assert len(loop.hub.store.subscriptions()) == 1, "somebody else asked in its name"
    site.pages["/call"] = echo
    loop.hub.ask(form(told, site, mode="unsubscribe"))
    loop.step()
    assert query(site.requests[-1])["hub.mode"] == "unsubscribe"
    assert loop.hub.store.subscriptions() == []
    told.tell_events(1, 1)
    loop.step()
    assert pushes(site) == []


@pytest.mark.parametrize("status", [429, 503])
def test_a_busy_callback_keeps_its_place_among_those_that_wait_no_longer_than_others(
    told: Told, loop: HubLoop, site: Site, status: int
) -> None:
    """Otherwise a stranger could fill all places for a day."""
    site.pages["/call"] = Response(status, headers={"Retry-After": "86400"})
    loop.hub.ask(form(told, site))
    loop.step()
    told.clock.go(RULES.questions[0])
    loop.step()
    assert len(site.requests) == 1
    site.pages["/call"] = echo
    told.clock.go(RULES.questions[-1])
    loop.step()
    assert len(site.requests) == 2 and len(loop.hub.store.subscriptions()) == 1


REFUSED = {
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
    ("name", "value"), [(name, each) for name, values in REFUSED.items() for each in values]
)
def test_what_cannot_be_is_refused(told: Told, loop: HubLoop, site: Site, name: str, value: str) -> None:
    with pytest.raises(InputError):
        loop.hub.ask(form(told, site, **{name: value}))
    assert loop.step() == 0 and site.requests == []


def test_a_topic_without_its_format_or_in_another_is_none(told: Told, loop: HubLoop, site: Site) -> None:
    for ending in ("", ".html", "/archive/1.atom", ".atom?x=1"):
        with pytest.raises(InputError, match="not a topic of this hub"):
            loop.hub.ask(form(told, site, topic=f"{PUBLIC}/feeds/{told.token}{ending}"))


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    st.dictionaries(st.sampled_from(["mode", "topic", "callback", "secret", "lease_seconds"]), st.text()),
    st.text(alphabet="[]:/@?#%.x1é \x00\ud800"),
)
def test_whatever_is_asked_is_taken_or_refused(
    told: Told, loop: HubLoop, site: Site, caplog: pytest.LogCaptureFixture, more: dict[str, str], tail: str
) -> None:
    """What the hub did not expect would be in the log."""
    for said in (more, {"callback": "http://127.0.0.1" + tail}, {"callback": site.url() + tail}):
        with suppress(InputError):
            loop.hub.ask(form(told, site, **said))
    while loop.step():
        told.clock.go(1_000_000)
    assert not caplog.records


def test_callbacks_inside_are_refused_unless_allowed(told: Told, site: Site) -> None:
    hub = Hub(told.feeds)
    with pytest.raises(InputError, match="the callback is in a private network"):
        hub.ask(form(told, site))


def test_a_name_that_leads_inside_later_is_not_called(told: Told, site: Site) -> None:
    """DNS rebinding: public when it was asked for, loopback when it is called."""
    answers = iter([["93.184.216.34"], ["127.0.0.1"], ["127.0.0.1"], ["127.0.0.1"]])
    network = EgressPolicy(resolve=lambda host, port: next(answers))
    loop = HubLoop(Hub(told.feeds, HubPolicy(), HttpClient(CALLBACK_LIMITS, network)))
    loop.hub.ask(form(told, site, callback=f"http://rebind.example:{site.port}/call"))
    site.pages["/call"] = echo
    loop.step()
    loop.close()
    assert site.requests == [] and loop.hub.store.subscriptions() == []


def test_only_so_many_wait_and_only_so_many_follow_a_feed(told: Told, site: Site) -> None:
    loop = HubLoop(Hub(told.feeds, HubPolicy(inside=True, waiting=2, per_feed=2)))
    site.pages |= {f"/{n}": echo for n in range(5)}
    for n in (0, 1, 1):
        loop.hub.ask(form(told, site, f"/{n}"))
    with pytest.raises(HubBusy, match="too many requests wait for verification"):
        loop.hub.ask(form(told, site, "/2"))
    loop.step()
    with pytest.raises(HubBusy, match="too many subscribers of this feed"):
        loop.hub.ask(form(told, site, "/3"))
    loop.hub.ask(form(told, site, "/0", mode="unsubscribe"))
    loop.step()
    loop.hub.ask(form(told, site, "/3"))
    loop.close()


def test_over_http_from_the_question_to_the_push(told: Told, tmp_path: Path, site: Site) -> None:
    """A reader finds the hub in the feed, asks it over HTTP, and is told by the hub's own thread."""
    site.pages["/call"] = echo
    with served(told, RULES) as url, httpx.Client(base_url=url) as web:
        links = web.get(f"/feeds/{told.token}.rss").links
        asked = {
            "hub.mode": "subscribe",
            "hub.callback": site.url("/call"),
            "hub.topic": links["self"]["url"],
        }
        assert web.post(links["hub"]["url"], data=asked).status_code == 202
        site.wait_for(1)
        eventually(lambda: bool(told.store.hub.subscriptions()))
        told.tell_events(1, 1)
        site.wait_for(2)
    assert [titles(push) for push in pushes(site)] == [["event 1"]]


def test_over_http_what_is_refused(told: Told, tmp_path: Path, site: Site) -> None:
    with served(told) as url, httpx.Client(base_url=url) as web:
        refused = web.post("/hub", data={"hub.mode": "subscribe"})
        assert refused.status_code == 400 and "not a topic of this hub" in refused.text
        assert web.post("/hub", data={"hub.mode": "x" * 30_000}).status_code == 413
        assert web.post("/hub", json={}).status_code == 415
        assert web.post("/hub", data={str(n): "x" for n in range(60)}).status_code == 400
        topic = f"{url}/feeds/{told.token}.atom"
        inside = {"hub.mode": "subscribe", "hub.topic": topic, "hub.callback": site.url("/call")}
        assert "private network" in web.post("/hub", data=inside).text
        assert web.get("/hub").status_code == 405
