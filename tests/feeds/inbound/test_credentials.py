"""Feeds that want a name and a password: who is sent them, and where they do not stand."""

from __future__ import annotations

import logging
from base64 import b64encode
from collections.abc import Iterator
from random import Random

import pytest

from tests.feeds.conftest import Clock
from tests.support.servers.site import Request, Response, Site, a_site, rss
from tidings.errors import InputError
from tidings.feeds.inbound.feed_client import split_login
from tidings.feeds.inbound.poller import Poller
from tidings.operations.egress_policy import EgressPolicy, FetchProblem
from tidings.operations.http_client import origin_of
from tidings.store.store import Store

PUBLIC = "127.0.0.2"


@pytest.fixture
def members(site: Site) -> Site:
    """A site whose feed is for Ann only."""
    wanted = "Basic " + b64encode(b"ann:se:cret/@").decode()

    def answer(request: Request) -> Response:
        known = request.headers.get("authorization") == wanted
        return Response(200, rss("a")) if known else Response(401)

    site.pages["/rss.xml"] = answer
    return site


def typed(site: Site, login: str = "ann:se:cret%2F%40") -> str:
    return site.url().replace("//", f"//{login}@")


@pytest.fixture
def public(store: Store, clock: Clock) -> Iterator[Poller]:
    """A poller for which one address of loopback is the public web."""
    network = EgressPolicy(is_inside=lambda address: address != PUBLIC)
    with Poller(store, clock=clock, network=network, chance=Random(7)) as made:
        yield made


@pytest.mark.parametrize(
    ("url", "found"),
    [
        ("https://example.org/feed?a=1", ("https://example.org/feed?a=1", None)),
        ("https://ann:x@example.org:8/feed", ("https://example.org:8/feed", "ann:x")),
        ("https://ann@example.org/", ("https://example.org/", "ann:")),
        ("https://ann:a:b@example.org/", ("https://example.org/", "ann:a:b")),
        ("https://ann:%C3%A9@example.org/", ("https://example.org/", "ann:é")),
        ("https://example.org/@ann", ("https://example.org/@ann", None)),
        ("http://[", ("http://[", None)),
        ("", ("", None)),
    ],
)
def test_names_and_passwords_are_taken_out_of_addresses(url: str, found: tuple[str, str | None]) -> None:
    assert split_login(url) == found


def test_a_name_that_no_server_could_read() -> None:
    with pytest.raises(InputError, match="a name with a colon"):
        split_login("https://a%3Ab:secret@example.org/")


@pytest.mark.parametrize(
    "there",
    ["http://example.org/", "https://example.org:444/", "https://other.example/", "https://www.example.org/"],
)
def test_origin_differs_by_scheme_host_or_port(there: str) -> None:
    """A login is sent to the origin for which it was typed only."""
    assert origin_of(there) != origin_of("https://example.org/feed")
    assert origin_of("https://EXAMPLE.org:443/moved") == origin_of("https://example.org/feed")


def test_a_feed_with_a_password_is_read_and_polled(
    poller: Poller, members: Site, store: Store, clock: Clock, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    polled = poller.add(typed(members))
    clock.move(hours=2)
    [again] = poller.poll_due()
    [feed] = store.polled_feeds.load()
    assert polled.counts and polled.counts.new == 1 and again.problem is None
    assert polled.url == feed.url == members.url()
    said = [repr(polled), repr(feed), caplog.text, *(str(one.body) for one in store.journal.read(0))]
    assert not any("cret" in text for text in said)


def test_without_it_the_hint_says_how(poller: Poller, members: Site) -> None:
    for url in (members.url(), typed(members, "ann:wrong")):
        with pytest.raises(FetchProblem, match="status 401; if it needs a name") as caught:
            poller.add(url)
        assert "wrong" not in str(caught.value)


def test_adding_it_again_changes_the_password_or_leaves_it(
    poller: Poller, members: Site, store: Store
) -> None:
    poller.add(typed(members))
    assert poller.add(members.url()).problem is None
    assert poller.add(typed(members, "ann:wrong")).problem is not None
    assert poller.add(typed(members)).problem is None
    assert len(store.polled_feeds.load()) == 1


@pytest.mark.parametrize("status", [301, 302])
def test_another_origin_is_not_told_the_password(
    poller: Poller, members: Site, store: Store, status: int
) -> None:
    """The same host at another port is another origin, too. Once the feed has moved there, it is forgotten."""
    with a_site() as other:
        other.pages["/rss.xml"] = Response(200, rss("a"))
        members.pages["/rss.xml"] = Response(status, headers={"Location": other.url()})
        poller.add(typed(members))
        assert "authorization" in members.requests[0].headers
        assert "authorization" not in other.requests[0].headers
    [feed] = store.polled_feeds.load()
    assert (feed.login is None) == (status == 301)


def test_a_redirect_within_the_origin_is(poller: Poller, members: Site, store: Store) -> None:
    members.pages["/here"] = members.pages["/rss.xml"]
    members.pages["/rss.xml"] = Response(301, headers={"Location": "/here"})
    assert poller.add(typed(members)).problem is None
    [feed] = store.polled_feeds.load()
    assert (feed.url, feed.login) == (members.url("/here"), "ann:se:cret/@")


def test_a_password_is_not_sent_where_everybody_can_read_it(public: Poller, store: Store) -> None:
    with a_site(PUBLIC) as open_site:
        with pytest.raises(InputError, match="the password would be sent unencrypted") as caught:
            public.add(typed(open_site))
        assert open_site.requests == [] and "cret" not in str(caught.value)
    assert store.polled_feeds.load() == ()
