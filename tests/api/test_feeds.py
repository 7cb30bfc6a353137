"""Feeds as readers get them: a real server, read by feedparser and httpx."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import feedparser
import httpx
import pytest
from lxml import etree

from tests.support.servers.feeds_server import served
from tests.support.stores.notified_store import Told
from tidings.feeds.outbound.formats import FORMATS
from tidings.feeds.outbound.personal_feeds import PAGE
from tidings.graphs.syndication.feed_parser import items_of
from tidings.model import Subscription
from tidings.store.encoding import MatchRow

NAMES = {"atom": "http://www.w3.org/2005/Atom", "fh": "http://purl.org/syndication/history/1.0"}


@pytest.fixture
def told(tmp_path: Path) -> Iterator[Told]:
    made = Told(tmp_path)
    yield made
    made.store.close()


@pytest.fixture
def web(told: Told, tmp_path: Path) -> Iterator[httpx.Client]:
    with served(told) as url, httpx.Client(base_url=url) as client:
        yield client


def root(web: httpx.Client) -> str:
    return str(web.base_url).rstrip("/")


def titles(answer: httpx.Response) -> list[str | None]:
    _, items = items_of(answer.content, answer.headers["content-type"])
    return [item.title for item in items]


def test_browsers_are_led_to_the_console(web: httpx.Client) -> None:
    browser = web.get("/", headers={"Accept": "text/html,application/xhtml+xml,*/*;q=0.8"})
    assert (browser.status_code, browser.headers["location"]) == (303, "/console")
    for accept in ("*/*", "text/plain"):
        plain = web.get("/", headers={"Accept": accept})
        assert plain.status_code == 200 and "/console" in plain.text and plain.headers["vary"] == "Accept"


@pytest.mark.parametrize("format", ["atom", "rss", "rdf"])
def test_a_feed_reader_follows_a_subscription(told: Told, web: httpx.Client, format: str) -> None:
    """feedparser fetches by itself here, with the headers that it has; it asks again with the tag it was given."""
    told.tell_events(1, 3)
    address = f"{root(web)}/feeds/{told.token}.{format}"
    first = feedparser.parse(address)
    assert (first.bozo, first.status) == (False, 200)
    assert [entry.title for entry in first.entries] == ["event 3", "event 2", "event 1"]
    again = feedparser.parse(address, etag=first.etag)
    assert (again.status, again.entries) == (304, [])
    told.tell_events(4, 4)
    more = feedparser.parse(address, etag=first.etag, modified=first.modified)
    assert [entry.title for entry in more.entries] == ["event 4", "event 3", "event 2", "event 1"]
    assert [entry.get("id") for entry in more.entries[1:]] == [entry.get("id") for entry in first.entries]


def test_json_feed(told: Told, web: httpx.Client) -> None:
    told.tell_events(1, 2)
    answer = web.get(f"/feeds/{told.token}.json")
    assert answer.headers["content-type"] == "application/feed+json; charset=utf-8"
    feed = answer.json()
    assert feed["version"] == "https://jsonfeed.org/version/1.1" and isinstance(feed["title"], str)
    assert [(isinstance(item["id"], str), item["title"]) for item in feed["items"]] == [
        (True, "event 2"),
        (True, "event 1"),
    ]
    assert all("content_html" in item or "content_text" in item for item in feed["items"])


@pytest.mark.parametrize("format", FORMATS)
def test_feed_without_a_suffix_is_negotiated(told: Told, web: httpx.Client, format: str) -> None:
    wanted = FORMATS[format].media_type
    answer = web.get(f"/feeds/{told.token}", headers={"Accept": f"{wanted}, */*;q=0.1"})
    assert answer.headers["content-type"].startswith(wanted)
    assert answer.headers["vary"] == "Accept"
    assert answer.content == web.get(f"/feeds/{told.token}.{format}").content


def test_feed_that_the_reader_has_answers_304(told: Told, web: httpx.Client) -> None:
    told.tell_events(1, 1)
    address = f"/feeds/{told.token}.atom"
    first = web.get(address)
    assert first.headers["cache-control"] == "private, no-cache"
    tag, modified = first.headers["etag"], first.headers["last-modified"]
    assert tag.startswith('"')
    for known in (tag, f'"other", {tag}', f"W/{tag}", "*"):
        answer = web.get(address, headers={"If-None-Match": known})
        assert (answer.status_code, answer.content, answer.headers["etag"]) == (304, b"", tag)
    assert (
        web.get(address, headers={"If-None-Match": '"other"', "If-Modified-Since": modified}).status_code
        == 200
    )
    assert web.get(address, headers={"If-Modified-Since": modified}).status_code == 304
    assert web.get(address, headers={"If-Modified-Since": "yesterday"}).status_code == 200
    no_year = "Wed, 18 Nov 99999999999999999999 01:00:00 GMT"
    assert web.get(address, headers={"If-Modified-Since": no_year}).status_code == 200


def test_feed_entry_in_the_same_second_changes_the_tag(told: Told, web: httpx.Client) -> None:
    """Dates of HTTP have whole seconds: a reader that has only the date must not be told that it has everything."""
    told.tell_events(1, 1)
    told.clock.go(0.3)
    address = f"/feeds/{told.token}.atom"
    modified = web.get(address).headers["last-modified"]
    told.clock.go(0.3)
    told.tell_events(2, 2)
    assert titles(web.get(address)) == ["event 2", "event 1"], "somebody else is given both in this second"
    told.clock.go(10)
    answer = web.get(address, headers={"If-Modified-Since": modified})
    assert answer.status_code == 200 and titles(answer) == ["event 2", "event 1"]
    assert web.get(address, headers={"If-Modified-Since": answer.headers["last-modified"]}).status_code == 304


def test_feed_with_a_deferred_entry_is_modified_on_release(told: Told, web: httpx.Client) -> None:
    """Its time is when it was found; a reader that came in between must see it all the same."""
    told.store.subscriptions.remove(["s-1"])
    told.store.subscriptions.add(Subscription("s-1", "cy", "predicates", "price < 200", within=600))
    told.tell_events(1, 1)
    address = f"/feeds/{told.token}.atom"
    told.clock.go(60)
    before = web.get(address)
    assert titles(before) == []
    told.clock.go(600)
    answer = web.get(address, headers={"If-Modified-Since": before.headers["last-modified"]})
    assert titles(answer) == ["event 1"]


def test_head(told: Told, web: httpx.Client) -> None:
    told.tell_events(1, 1)
    address = f"/feeds/{told.token}.rss"
    head, whole = web.head(address), web.get(address)
    assert (head.status_code, head.content) == (200, b"")
    for name in ("etag", "last-modified", "content-type", "content-length", "link"):
        assert head.headers[name] == whole.headers[name]


def test_a_feed_is_guarded(told: Told, web: httpx.Client) -> None:
    headers = web.get(f"/feeds/{told.token}.atom").headers
    assert headers["x-content-type-options"] == "nosniff"
    assert headers["referrer-policy"] == "no-referrer"
    assert "sandbox" in headers["content-security-policy"]
    assert "server" not in headers


UNKNOWN = ["/feeds/{}.atom", "/feeds/{}", "/feeds/{}/archive/1.atom", "/opml/{}"]
NEVER = "A" * 32


@pytest.mark.parametrize("path", UNKNOWN)
@pytest.mark.parametrize("token", [NEVER, "short", "%00" * 8, "s-1", "%ED%A0%80", "x" * 2_000])
def test_unknown_feed_addresses_get_the_same_response(
    told: Told, web: httpx.Client, path: str, token: str
) -> None:
    """The same answer for every token, and nothing in it of what was asked."""
    told.tell_events(1, 1)
    answer = web.get(path.format(token))
    assert answer.status_code == 404
    assert answer.content == web.get(UNKNOWN[0].format(NEVER)).content
    assert answer.headers["content-type"] == "application/problem+json"


@pytest.mark.parametrize("path", ["/feeds", "/feeds/", "/opml", "/opml/", "/docs", "/redoc", "/openapi.json"])
def test_there_is_no_list_of_feeds(told: Told, web: httpx.Client, path: str) -> None:
    told.tell_events(1, 1)
    assert web.get(path).status_code == 404
    assert told.token not in web.get("/v1/openapi.json").text + web.get("/").text


def test_only_what_there_is(told: Told, web: httpx.Client) -> None:
    told.tell_events(1, 1)
    for path in (
        ".html",
        ".atom/",
        "/archive/0.atom",
        "/archive/1.atom",
        "/archive/x",
        "/archive/99999999999999999999",
    ):
        assert web.get(f"/feeds/{told.token}{path}").status_code in (404, 307), path
    assert web.post(f"/feeds/{told.token}.atom").status_code == 405


def test_a_revoked_address_is_gone_and_the_new_one_has_the_same_entries(
    told: Told, web: httpx.Client
) -> None:
    told.tell_events(1, 2)
    old = told.token
    before = items_of(web.get(f"/feeds/{old}.atom").content, "application/atom+xml")[1]
    told.feeds.addresses.renew("cy", "s-1")
    assert told.token != old
    assert web.get(f"/feeds/{old}.atom").status_code == web.get(f"/feeds/{old}").status_code == 410
    after = items_of(web.get(f"/feeds/{told.token}.atom").content, "application/atom+xml")[1]
    assert [one.id for one in after] == [one.id for one in before]


def test_feed_of_a_deleted_subscription_is_gone_even_if_its_id_is_reused(
    told: Told, web: httpx.Client
) -> None:
    told.tell_events(1, 1)
    token = told.token
    told.store.subscriptions.remove(["s-1"])
    assert web.get(f"/feeds/{token}.atom").status_code == 410
    told.store.subscriptions.add(Subscription("s-1", "bo", "predicates", "price < 9"))
    told.tell(MatchRow("p-secret", "s-1", "bo"))
    assert web.get(f"/feeds/{token}.atom").status_code == 410


def test_feed_contains_only_entries_of_its_subscription(told: Told, web: httpx.Client) -> None:
    told.store.subscriptions.add(Subscription("s-2", "cy", "predicates", "price < 9"))
    told.tell_events(1, 1)
    told.tell(MatchRow("p-1", "s-2", "cy"), MatchRow("p-2", "s-2", "cy"), MatchRow("p-1", "s-9", "bo"))
    assert titles(web.get(f"/feeds/{told.token}.atom")) == ["event 1"]
    other = told.feeds.addresses.token("cy", "s-2")
    assert titles(web.get(f"/feeds/{other}.atom")) == ["Publication p-2", "event 1"]


def walk(web: httpx.Client, start: str, relation: str) -> Iterator[tuple[str, Any]]:
    """The documents from one on, by the links in them."""
    address: str | None = start
    while address:
        document = etree.fromstring(web.get(address).content)
        yield address, document
        found = document.xpath(f"//atom:link[@rel='{relation}']/@href", namespaces=NAMES)
        address = str(found[0]) if found else None


def ids(page: Any) -> list[str]:
    return [
        str(one) for one in page.xpath("//atom:entry/atom:id/text()|//item/guid/text()", namespaces=NAMES)
    ]


COUNTS = [0, 1, PAGE - 1, PAGE, 2 * PAGE - 1, 2 * PAGE, 2 * PAGE + 1, 5 * PAGE + 7]


@pytest.mark.parametrize("format", ["atom", "rss"])
@pytest.mark.parametrize("count", COUNTS)
def test_archives_have_each_entry_once(told: Told, web: httpx.Client, count: int, format: str) -> None:
    told.tell_events(1, count)
    start = f"{root(web)}/feeds/{told.token}.{format}"
    pages = list(walk(web, start, "prev-archive"))
    found = [id for _, page in pages for id in ids(page)]
    assert len(found) == len(set(found)) == count
    assert [bool(page.xpath("//fh:archive", namespaces=NAMES)) for _, page in pages] == [False] + [True] * (
        len(pages) - 1
    )
    assert len(ids(pages[0][1])) >= min(count, PAGE)
    for _, page in pages[1:]:
        assert page.xpath("//atom:link[@rel='current']/@href", namespaces=NAMES) == [start]
        assert len(ids(page)) == PAGE


def test_archives_have_each_entry_once_while_new_ones_come(told: Told, web: httpx.Client) -> None:
    told.tell_events(1, 4 * PAGE + 3)
    found: list[str] = []
    last = 4 * PAGE + 3
    for _, page in walk(web, f"/feeds/{told.token}.atom", "prev-archive"):
        found += ids(page)
        told.tell_events(last + 1, last + 60)
        last += 60
    assert len(found) == len(set(found)) == 4 * PAGE + 3


def test_an_archive_that_was_linked_does_not_change(told: Told, web: httpx.Client) -> None:
    told.tell_events(1, 3 * PAGE)
    linked = [address for address, _ in walk(web, f"{root(web)}/feeds/{told.token}.atom", "prev-archive")][1:]
    assert len(linked) == 2
    before = [web.get(address) for address in linked]
    assert all(answer.headers["cache-control"] == "private, max-age=86400" for answer in before)
    told.clock.go(100)
    told.tell_events(3 * PAGE + 1, 6 * PAGE)
    after = [web.get(address) for address in linked]
    assert [answer.content for answer in before] == [answer.content for answer in after]
    assert [answer.headers["etag"] for answer in before] == [answer.headers["etag"] for answer in after]
    told.feeds._tags.clear()  # rendered anew
    assert [web.get(address).content for address in linked] == [answer.content for answer in before]


def test_archives_lead_forwards_too(told: Told, web: httpx.Client) -> None:
    told.tell_events(1, 5 * PAGE)
    walked = list(walk(web, f"/feeds/{told.token}/archive/1.atom", "next-archive"))
    assert [len(ids(page)) for _, page in walked] == [PAGE] * 5
    assert len({id for _, page in walked for id in ids(page)}) == 5 * PAGE


def test_other_formats_lead_to_archives_in_their_own_way(told: Told, web: httpx.Client) -> None:
    told.tell_events(1, 2 * PAGE)
    answer = web.get(f"/feeds/{told.token}.json")
    older = answer.json()["next_url"]
    assert older == f"{root(web)}/feeds/{told.token}/archive/1.json"
    assert json.loads(web.get(older).content)["items"][-1]["title"] == "event 1"
    rdf = web.get(f"/feeds/{told.token}.rdf")
    assert rdf.links["prev-archive"]["url"] == f"{root(web)}/feeds/{told.token}/archive/1.rdf"
    assert rdf.links["hub"]["url"] == f"{root(web)}/hub"
    assert titles(web.get(rdf.links["prev-archive"]["url"]))[-1] == "event 1"


def test_the_list_of_all_feeds_is_for_readers_to_import(told: Told, web: httpx.Client) -> None:
    told.store.subscriptions.add(Subscription("s-2", "cy", "predicates", "title contains '<&'"))
    told.store.subscriptions.add(Subscription("s-3", "bo", "predicates", "price < 9"))
    token = told.feeds.addresses.token("cy")
    answer = web.get(f"/opml/{token}")
    outlines = etree.fromstring(answer.content).iter("outline")
    feeds = [(one.get("text"), one.get("type"), one.get("xmlUrl")) for one in outlines]
    assert [name for name, _, _ in feeds] == ["price < 200", "title contains '<&'"]
    assert all(web.get(str(address)).status_code == 200 for _, _, address in feeds)
    assert web.get(f"/opml/{token}", headers={"If-None-Match": answer.headers["etag"]}).status_code == 304
    assert web.get(f"/feeds/{token}.atom").status_code == web.get(f"/opml/{told.token}").status_code == 404
    told.feeds.addresses.renew("cy")
    assert web.get(f"/opml/{token}").status_code == 410
