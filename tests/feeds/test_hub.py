"""The hub and a subscriber of it on loopback: challenge, signed pushes, leases, failures. The clock is the test's."""

from __future__ import annotations

import hmac
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from random import Random
from threading import Event
from urllib.parse import parse_qs, urlsplit

import httpx
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.feeds.serving import served
from tests.feeds.site import Request, Response, Site, a_site
from tests.feeds.told import PUBLIC, Told
from tidings.errors import InputError
from tidings.feeds.hub import Hub
from tidings.feeds.hub_loop import AT_ONCE, HubLoop
from tidings.feeds.hub_rules import Caller, HubBusy, Rules
from tidings.feeds.network import Network
from tidings.feeds.personal import PersonalFeeds
from tidings.feeds.tokens import Addresses
from tidings.publications.feeds import items_of

RULES = Rules(inside=True)
ALL_TRIES = len(RULES.retries) + 1


@pytest.fixture
def told(tmp_path: Path) -> Iterator[Told]:
    made = Told(tmp_path)
    yield made
    made.store.close()


@pytest.fixture
def loop(told: Told) -> Iterator[HubLoop]:
    made = HubLoop(Hub(told.feeds, RULES, chance=Random(7)))
    yield made
    made.close()


def echo(request: Request) -> Response:
    """A subscriber that wants what it asked for, and takes what comes."""
    asked = query(request)
    return Response(200, asked.get("hub.challenge", "").encode())


def query(request: Request) -> dict[str, str]:
    return {name: values[0] for name, values in parse_qs(urlsplit(request.path).query).items()}


def form(told: Told, site: Site, path: str = "/call", **more: str) -> dict[str, str]:
    said = {
        "mode": "subscribe",
        "topic": f"{PUBLIC}/feeds/{told.token}.atom",
        "callback": site.url(path),
    } | more
    return {f"hub.{name}": value for name, value in said.items()}


def subscribe(told: Told, loop: HubLoop, site: Site, path: str = "/call", **more: str) -> None:
    """Subscribe a callback that agrees."""
    site.pages[urlsplit(path).path] = echo
    loop.hub.ask(form(told, site, path, **more))
    loop.step()
    assert loop.hub.store.subscriptions()


def pushes(site: Site, path: str = "/call") -> list[Request]:
    return [one for one in site.requests if one.method == "POST" and urlsplit(one.path).path == path]


def titles(push: Request) -> list[str | None]:
    return [item.title for item in items_of(push.body, push.headers["content-type"])[1]]


def test_a_callback_is_asked_whether_it_wants_that(told: Told, loop: HubLoop, site: Site) -> None:
    subscribe(told, loop, site, "/call?mine=1&b=%20", lease_seconds="3600")
    [asked] = site.requests
    said = query(asked)
    assert asked.method == "GET" and (said["mine"], said["b"]) == ("1", " ")
    assert said["hub.mode"] == "subscribe" and said["hub.lease_seconds"] == "3600"
    assert said["hub.topic"] == f"{PUBLIC}/feeds/{told.token}.atom"
    assert len(said["hub.challenge"]) >= 32
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


def test_new_entries_are_pushed_and_signed(told: Told, loop: HubLoop, site: Site) -> None:
    told.tell_events(1, 2)
    subscribe(told, loop, site, secret="a secret & more")
    loop.step()
    assert pushes(site) == []
    told.tell_events(3, 4)
    loop.step()
    [push] = pushes(site)
    assert titles(push) == ["event 4", "event 3"]
    assert push.headers["content-type"] == "application/atom+xml; charset=utf-8"
    signature = hmac.new(b"a secret & more", push.body, "sha256").hexdigest()
    assert push.headers["x-hub-signature"] == f"sha256={signature}"
    links = f'<{PUBLIC}/hub>; rel="hub", <{PUBLIC}/feeds/{told.token}.atom>; rel="self"'
    assert push.headers["link"] == links
    loop.step()
    assert len(pushes(site)) == 1
    told.tell_events(5, 5)
    loop.step()
    assert titles(pushes(site)[1]) == ["event 5"]


@pytest.mark.parametrize("format", ["rss", "rdf", "json"])
def test_each_format_is_a_topic_of_its_own(told: Told, loop: HubLoop, site: Site, format: str) -> None:
    subscribe(told, loop, site, topic=f"{PUBLIC}/feeds/{told.token}.{format}")
    told.tell_events(1, 1)
    loop.step()
    [push] = pushes(site)
    assert titles(push) == ["event 1"] and "x-hub-signature" not in push.headers


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


def test_a_failed_push_is_tried_again_and_takes_what_came_meanwhile_with_the_next(
    told: Told, loop: HubLoop, site: Site
) -> None:
    subscribe(told, loop, site)
    site.pages["/call"] = Response(500)
    told.tell_events(1, 1)
    loop.step()
    told.tell_events(2, 3)
    loop.step()
    assert len(pushes(site)) == 1
    site.pages["/call"] = Response(204)
    told.clock.go(RULES.retries[0] * 1.1)
    loop.step()
    loop.step()
    assert [titles(push) for push in pushes(site)] == [["event 1"], ["event 1"], ["event 3", "event 2"]]


@pytest.mark.parametrize(
    "answer", [Response(500), Response(302, headers={"location": "/other"}), Response(404)]
)
def test_a_push_that_fails_and_fails_is_given_up(
    told: Told, loop: HubLoop, site: Site, answer: Response
) -> None:
    subscribe(told, loop, site)
    site.pages["/call"] = answer
    told.tell_events(1, 1)
    loop.step()
    waits = list(RULES.retries)
    for wait in waits:
        told.clock.go(wait * 0.99)
        loop.step()
        before = len(pushes(site))
        told.clock.go(wait * 0.11)
        loop.step()
        assert len(pushes(site)) == before + 1
    assert len(pushes(site)) == ALL_TRIES
    [dead] = loop.hub.store.deliveries(loop.hub.store.subscriptions()[0].address)
    assert (dead.state, dead.first, dead.last, dead.attempts) == ("dead", 1, 1, ALL_TRIES)
    assert f"status {answer.status}" in str(dead.problem)
    site.pages["/call"] = Response(200)
    told.tell_events(2, 2)
    loop.step()
    assert titles(pushes(site)[-1]) == ["event 2"], "what was given up stops nothing"


def test_a_callback_that_is_gone_is_forgotten(told: Told, loop: HubLoop, site: Site) -> None:
    subscribe(told, loop, site)
    site.pages["/call"] = Response(410)
    told.tell_events(1, 1)
    loop.step()
    assert loop.hub.store.subscriptions() == []
    told.clock.go(100_000)
    told.tell_events(2, 2)
    loop.step()
    assert len(pushes(site)) == 1


def test_a_callback_that_does_not_answer_is_a_failure(told: Told, loop: HubLoop) -> None:
    with a_site() as site:
        subscribe(told, loop, site)
    [made] = loop.hub.store.subscriptions()
    told.tell_events(1, 1)
    loop.step()
    [failed] = loop.hub.store.deliveries(made.address)
    assert (failed.state, failed.attempts) == ("waiting", 1)
    assert loop.hub.store.subscriptions() == [made]


def test_a_revoked_address_ends_what_was_subscribed_with_it(told: Told, loop: HubLoop, site: Site) -> None:
    subscribe(told, loop, site)
    loop.hub.ask(form(told, site, "/other"))
    told.feeds.addresses.renew("cy", "s-1")
    told.tell_events(1, 1)
    while loop.step():
        pass
    assert pushes(site) == [] and loop.hub.store.subscriptions() == []
    assert sorted(denials(site)) == ["/call", "/other"] and len(site.requests) == 3


def test_a_withdrawn_subscription_is_told_of_no_more(told: Told, loop: HubLoop, site: Site) -> None:
    subscribe(told, loop, site)
    told.tell_events(1, 1)
    told.store.subscriptions.remove(["s-1"])
    while loop.step():
        pass
    assert pushes(site) == [] and loop.hub.store.subscriptions() == []
    assert denials(site) == ["/call"]


def denials(site: Site) -> list[str]:
    """Who was told that it is not told any more."""
    return [urlsplit(one.path).path for one in site.requests if query(one).get("hub.mode") == "denied"]


def test_a_callback_is_told_that_its_feed_has_ended_though_there_is_nothing_new(
    told: Told, loop: HubLoop, site: Site
) -> None:
    subscribe(told, loop, site, "/call?mine=1")
    topic = f"{PUBLIC}/feeds/{told.token}.atom"
    told.feeds.addresses.renew("cy", "s-1")
    while loop.step():
        pass
    said = query(site.requests[-1])
    assert (site.requests[-1].method, said["mine"], said["hub.mode"]) == ("GET", "1", "denied")
    assert (said["hub.topic"], said["hub.reason"]) == (topic, "the feed is not there any more")
    assert "hub.challenge" not in said
    loop.step()
    assert len(site.requests) == 2, "once"


@pytest.mark.parametrize("answer", [Response(200), Response(404), Response(410)])
def test_what_a_callback_says_to_a_denial_does_not_matter(
    told: Told, loop: HubLoop, site: Site, answer: Response
) -> None:
    subscribe(told, loop, site)
    site.pages["/call"] = answer
    told.feeds.addresses.renew("cy", "s-1")
    while loop.step():
        told.clock.go(1_000)
    assert denials(site) == ["/call"]


def test_a_denial_that_nobody_hears_is_said_again_and_given_up(told: Told, loop: HubLoop, site: Site) -> None:
    subscribe(told, loop, site)
    site.pages["/call"] = Response(503)
    told.feeds.addresses.renew("cy", "s-1")
    while loop.step():
        told.clock.go(1_000)
    assert denials(site) == ["/call"] * (len(RULES.questions) + 1)


def test_without_the_key_of_addresses_nobody_is_denied(told: Told, loop: HubLoop, site: Site) -> None:
    """Nobody knows what the topic was called."""
    subscribe(told, loop, site)
    told.store.subscriptions.remove(["s-1"])
    other = PersonalFeeds(told.store, Addresses(told.store, bytes(32)), told.feeds.places)
    lost = HubLoop(Hub(other, RULES))
    while lost.step():
        pass
    lost.close()
    assert (
        denials(site) == [] and told.store.hub.subscriptions() == [] and told.store.hub.take_intents(9) == []
    )


def test_one_that_is_too_many_by_the_time_it_is_verified_is_denied(told: Told, site: Site) -> None:
    loop = HubLoop(Hub(told.feeds, Rules(inside=True, per_feed=1)))
    site.pages |= {"/0": echo, "/1": echo}
    loop.hub.ask(form(told, site, "/0"))
    loop.hub.ask(form(told, site, "/1"))
    for intent in loop.hub.store.take_intents(9):
        loop.hub.verify(intent)
    while loop.step():
        pass
    assert [one.callback for one in loop.hub.store.subscriptions()] == [site.url("/0")]
    assert (
        denials(site) == ["/1"] and query(site.requests[-1])["hub.reason"] == "the feed has as many as it may"
    )
    loop.hub.ask(form(told, site, "/0"))
    loop.step()
    assert query(site.requests[-1])["hub.mode"] == "subscribe", "one that renews is no more"
    loop.close()


@pytest.mark.parametrize("status", [429, 503])
@pytest.mark.parametrize(
    ("said", "seconds"),
    [
        ("3600", 3_600),
        ("1", RULES.retries[0]),
        ("999999", RULES.patience),
        ("Fri, 01 May 2026 13:00:00 GMT", 3_600),
        ("soon", RULES.retries[0]),
    ],
)
def test_a_callback_that_is_busy_says_when_to_come_again(
    told: Told, loop: HubLoop, site: Site, status: int, said: str, seconds: int
) -> None:
    subscribe(told, loop, site, lease_seconds="2592000")
    site.pages["/call"] = Response(status, headers={"Retry-After": said})
    told.tell_events(1, 1)
    loop.step()
    told.clock.go(seconds * 0.99)
    loop.step()
    assert len(pushes(site)) == 1
    site.pages["/call"] = Response(204)
    told.clock.go(seconds * 0.11)
    loop.step()
    assert len(pushes(site)) == 2 and loop.hub.store.deliveries(address(told)) == []


def test_retry_after_means_nothing_with_another_status(told: Told, loop: HubLoop, site: Site) -> None:
    subscribe(told, loop, site)
    site.pages["/call"] = Response(500, headers={"Retry-After": "3600"})
    told.tell_events(1, 1)
    loop.step()
    told.clock.go(RULES.retries[0] * 1.1)
    loop.step()
    assert len(pushes(site)) == 2


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


def test_one_that_hangs_does_not_delay_another(told: Told, loop: HubLoop, site: Site) -> None:
    """While one does not answer, another is told twice."""
    released = Event()
    with a_site("127.0.0.2") as slow, loop:
        for each in (slow, site):
            each.pages["/call"] = echo
            loop.hub.ask(form(told, each))
        eventually(lambda: len(loop.hub.store.subscriptions()) == 2)
        slow.pages["/call"] = lambda _: Response(200 if released.wait(60) else 500)
        for n in (1, 2):
            told.tell_events(n, n)
            site.wait_for(n + 1)
        slow.wait_for(2)
        waiting = [
            one for one in loop.hub.store.deliveries(address(told)) if one.callback == slow.url("/call")
        ]
        released.set()
    assert [(one.first, one.problem) for one in waiting] == [(1, None)]
    assert [titles(push) for push in pushes(site)] == [["event 1"], ["event 2"]]


def address(told: Told) -> str:
    found = told.store.personal_feeds.address("cy", "s-1")
    assert found
    return found.hash


def eventually(so: Callable[[], bool]) -> None:
    """Wait for what another thread is about to do; the test's own limit of time ends a wait in vain."""
    pause = Event()
    while not so():
        pause.wait(0.01)


def test_those_who_share_a_feed_are_all_told(told: Told, loop: HubLoop, site: Site) -> None:
    paths = [f"/{n}" for n in range(2 * AT_ONCE + 1)]
    for path in paths:
        subscribe(told, loop, site, path)
    told.tell_events(1, 1)
    while loop.step():
        pass
    assert [len(pushes(site, path)) for path in paths] == [1] * len(paths)


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
        with pytest.raises(InputError, match="no topic of this hub"):
            loop.hub.ask(form(told, site, topic=f"{PUBLIC}/feeds/{told.token}{ending}"))


@settings(max_examples=40, suppress_health_check=[HealthCheck.function_scoped_fixture])
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


def test_one_that_ends_the_hub_each_time_is_given_up(told: Told, loop: HubLoop, site: Site) -> None:
    """Taken again and again without a word of how it went."""
    subscribe(told, loop, site)
    told.tell_events(1, 1)
    loop.hub.distribute(10)
    loop.hub.ask(form(told, site, "/other"))
    for _ in range(ALL_TRIES):
        assert len(loop.hub.store.take_deliveries(9)) == 1
        loop.hub.store.take_intents(9)
        told.clock.go(121)
    loop.step()
    assert [one.state for one in loop.hub.store.deliveries(address(told))] == ["dead"]
    assert pushes(site) == [] and loop.hub.store.take_intents(9) == []
    assert len(site.requests) == 1


def test_callbacks_inside_are_refused_unless_allowed(told: Told, site: Site) -> None:
    hub = Hub(told.feeds)
    with pytest.raises(InputError, match="a callback in a private network"):
        hub.ask(form(told, site))


def test_a_name_that_leads_inside_later_is_not_called(told: Told, site: Site) -> None:
    """DNS rebinding: public when it was asked for, loopback when it is called."""
    answers = iter([["93.184.216.34"], ["127.0.0.1"], ["127.0.0.1"], ["127.0.0.1"]])
    network = Network(resolve=lambda host, port: next(answers))
    loop = HubLoop(Hub(told.feeds, Rules(), Caller(network)))
    loop.hub.ask(form(told, site, callback=f"http://rebind.example:{site.port}/call"))
    site.pages["/call"] = echo
    loop.step()
    loop.close()
    assert site.requests == [] and loop.hub.store.subscriptions() == []


def test_only_so_many_wait_and_only_so_many_follow_a_feed(told: Told, site: Site) -> None:
    loop = HubLoop(Hub(told.feeds, Rules(inside=True, waiting=2, per_feed=2)))
    site.pages |= {f"/{n}": echo for n in range(5)}
    for n in (0, 1, 1):
        loop.hub.ask(form(told, site, f"/{n}"))
    with pytest.raises(HubBusy, match="too many wait"):
        loop.hub.ask(form(told, site, "/2"))
    loop.step()
    with pytest.raises(HubBusy, match="as many subscribers as it may"):
        loop.hub.ask(form(told, site, "/3"))
    loop.hub.ask(form(told, site, "/0", mode="unsubscribe"))
    loop.step()
    loop.hub.ask(form(told, site, "/3"))
    loop.close()


def test_over_http_from_the_question_to_the_push(told: Told, tmp_path: Path, site: Site) -> None:
    """A reader finds the hub in the feed, asks it over HTTP, and is told by the hub's own thread."""
    site.pages["/call"] = echo
    with served(told, tmp_path, RULES) as url, httpx.Client(base_url=url) as web:
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
    with served(told, tmp_path) as url, httpx.Client(base_url=url) as web:
        refused = web.post("/hub", data={"hub.mode": "subscribe"})
        assert refused.status_code == 400 and "no topic of this hub" in refused.text
        assert web.post("/hub", data={"hub.mode": "x" * 30_000}).status_code == 413
        assert web.post("/hub", json={}).status_code == 415
        assert web.post("/hub", data={str(n): "x" for n in range(60)}).status_code == 400
        topic = f"{url}/feeds/{told.token}.atom"
        inside = {"hub.mode": "subscribe", "hub.topic": topic, "hub.callback": site.url("/call")}
        assert "private network" in web.post("/hub", data=inside).text
        assert web.get("/hub").status_code == 405
