"""Feeds with basic authentication: where credentials are sent, and where they are not shown."""

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
def private_site(site: Site) -> Site:
    """A site whose feed only Ann may read."""
    expected = "Basic " + b64encode(b"ann:se:cret/@").decode()

    def answer(request: Request) -> Response:
        authorized = request.headers.get("authorization") == expected
        return Response(200, rss("a")) if authorized else Response(401)

    site.pages["/rss.xml"] = answer
    return site


def url_with_login(site: Site, login: str = "ann:se:cret%2F%40") -> str:
    return site.url().replace("//", f"//{login}@")


@pytest.fixture
def public(store: Store, clock: Clock) -> Iterator[Poller]:
    """A poller for which one address of loopback is the public web."""
    network = EgressPolicy(is_inside=lambda address: address != PUBLIC)
    with Poller(store, clock=clock, network=network, chance=Random(7)) as opened:
        yield opened


@pytest.mark.parametrize(
    ("url", "expected"),
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
def test_split_login_separates_credentials_from_url(url: str, expected: tuple[str, str | None]) -> None:
    assert split_login(url) == expected


def test_split_login_name_with_colon_is_rejected() -> None:
    with pytest.raises(InputError, match="a name with a colon"):
        split_login("https://a%3Ab:secret@example.org/")


@pytest.mark.parametrize(
    "url",
    ["http://example.org/", "https://example.org:444/", "https://other.example/", "https://www.example.org/"],
)
def test_origin_differs_by_scheme_host_or_port(url: str) -> None:
    """A login is sent only to the origin that it was entered for."""
    assert origin_of(url) != origin_of("https://example.org/feed")
    assert origin_of("https://EXAMPLE.org:443/moved") == origin_of("https://example.org/feed")


def test_poll_feed_with_password_succeeds_and_hides_it(
    poller: Poller, private_site: Site, store: Store, clock: Clock, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    polled = poller.add(url_with_login(private_site))
    clock.move(hours=2)
    [again] = poller.poll_due()
    [feed] = store.polled_feeds.load()
    assert polled.counts and polled.counts.new == 1 and again.problem is None
    assert polled.url == feed.url == private_site.url()
    texts = [repr(polled), repr(feed), caplog.text, *(str(one.body) for one in store.journal.read(0))]
    assert not any("cret" in text for text in texts)


def test_add_feed_without_password_fails_with_hint(poller: Poller, private_site: Site) -> None:
    for url in (private_site.url(), url_with_login(private_site, "ann:wrong")):
        with pytest.raises(FetchProblem, match="status 401; if it needs a name") as caught:
            poller.add(url)
        assert "wrong" not in str(caught.value)


def test_add_feed_again_changes_or_keeps_password(poller: Poller, private_site: Site, store: Store) -> None:
    poller.add(url_with_login(private_site))
    assert poller.add(private_site.url()).problem is None
    assert poller.add(url_with_login(private_site, "ann:wrong")).problem is not None
    assert poller.add(url_with_login(private_site)).problem is None
    assert len(store.polled_feeds.load()) == 1


@pytest.mark.parametrize("status", [301, 302])
def test_poll_redirect_to_other_origin_omits_password(
    poller: Poller, private_site: Site, store: Store, status: int
) -> None:
    """The same host at another port is another origin, too.

    After a permanent redirect, the password is deleted.
    """
    with a_site() as other:
        other.pages["/rss.xml"] = Response(200, rss("a"))
        private_site.pages["/rss.xml"] = Response(status, headers={"Location": other.url()})
        poller.add(url_with_login(private_site))
        assert "authorization" in private_site.requests[0].headers
        assert "authorization" not in other.requests[0].headers
    [feed] = store.polled_feeds.load()
    assert (feed.login is None) == (status == 301)


def test_poll_redirect_within_origin_keeps_password(poller: Poller, private_site: Site, store: Store) -> None:
    private_site.pages["/here"] = private_site.pages["/rss.xml"]
    private_site.pages["/rss.xml"] = Response(301, headers={"Location": "/here"})
    assert poller.add(url_with_login(private_site)).problem is None
    [feed] = store.polled_feeds.load()
    assert (feed.url, feed.login) == (private_site.url("/here"), "ann:se:cret/@")


def test_add_feed_password_over_unencrypted_public_http_is_rejected(public: Poller, store: Store) -> None:
    with a_site(PUBLIC) as open_site:
        with pytest.raises(InputError, match="the password would be sent unencrypted") as caught:
            public.add(url_with_login(open_site))
        assert open_site.requests == [] and "cret" not in str(caught.value)
    assert store.polled_feeds.load() == ()
