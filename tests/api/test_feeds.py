"""Feeds over HTTP: a real server, read by feedparser and httpx."""

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
from tests.support.stores.notified_store import NotifiedStore
from tidings.feeds.outbound.formats import FORMATS
from tidings.feeds.outbound.personal_feeds import PAGE
from tidings.graphs.syndication.feed_parser import items_of
from tidings.model import Subscription
from tidings.store.encoding import MatchRow

NAMES = {"atom": "http://www.w3.org/2005/Atom", "fh": "http://purl.org/syndication/history/1.0"}


@pytest.fixture
def source(tmp_path: Path) -> Iterator[NotifiedStore]:
    source = NotifiedStore(tmp_path)
    yield source
    source.store.close()


@pytest.fixture
def web(source: NotifiedStore, tmp_path: Path) -> Iterator[httpx.Client]:
    with served(source) as url, httpx.Client(base_url=url) as client:
        yield client


def root(web: httpx.Client) -> str:
    return str(web.base_url).rstrip("/")


def titles(answer: httpx.Response) -> list[str | None]:
    _, items = items_of(answer.content, answer.headers["content-type"])
    return [item.title for item in items]


def test_root_redirects_browsers_to_console(web: httpx.Client) -> None:
    browser = web.get("/", headers={"Accept": "text/html,application/xhtml+xml,*/*;q=0.8"})
    assert (browser.status_code, browser.headers["location"]) == (303, "/console")
    for accept in ("*/*", "text/plain"):
        plain = web.get("/", headers={"Accept": accept})
        assert plain.status_code == 200 and "/console" in plain.text and plain.headers["vary"] == "Accept"


@pytest.mark.parametrize("format", ["atom", "rss", "rdf"])
def test_feed_is_read_conditionally_by_feedparser(
    source: NotifiedStore, web: httpx.Client, format: str
) -> None:
    """feedparser sends its own request headers, and the second time the ETag of the first answer."""
    source.notify_of_events(1, 3)
    address = f"{root(web)}/feeds/{source.token}.{format}"
    first = feedparser.parse(address)
    assert (first.bozo, first.status) == (False, 200)
    assert [entry.title for entry in first.entries] == ["event 3", "event 2", "event 1"]
    again = feedparser.parse(address, etag=first.etag)
    assert (again.status, again.entries) == (304, [])
    source.notify_of_events(4, 4)
    more = feedparser.parse(address, etag=first.etag, modified=first.modified)
    assert [entry.title for entry in more.entries] == ["event 4", "event 3", "event 2", "event 1"]
    assert [entry.get("id") for entry in more.entries[1:]] == [entry.get("id") for entry in first.entries]


def test_json_feed_has_required_members(source: NotifiedStore, web: httpx.Client) -> None:
    source.notify_of_events(1, 2)
    answer = web.get(f"/feeds/{source.token}.json")
    assert answer.headers["content-type"] == "application/feed+json; charset=utf-8"
    feed = answer.json()
    assert feed["version"] == "https://jsonfeed.org/version/1.1" and isinstance(feed["title"], str)
    assert [(isinstance(item["id"], str), item["title"]) for item in feed["items"]] == [
        (True, "event 2"),
        (True, "event 1"),
    ]
    assert all("content_html" in item or "content_text" in item for item in feed["items"])


@pytest.mark.parametrize("format", FORMATS)
def test_feed_without_suffix_is_negotiated(source: NotifiedStore, web: httpx.Client, format: str) -> None:
    media_type = FORMATS[format].media_type
    answer = web.get(f"/feeds/{source.token}", headers={"Accept": f"{media_type}, */*;q=0.1"})
    assert answer.headers["content-type"].startswith(media_type)
    assert answer.headers["vary"] == "Accept"
    assert answer.content == web.get(f"/feeds/{source.token}.{format}").content


def test_feed_unchanged_answers_304(source: NotifiedStore, web: httpx.Client) -> None:
    source.notify_of_events(1, 1)
    address = f"/feeds/{source.token}.atom"
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


def test_feed_entry_in_same_second_changes_etag_and_date(source: NotifiedStore, web: httpx.Client) -> None:
    """HTTP dates have whole seconds: a reader that has only the date must not get 304 for a newer entry."""
    source.notify_of_events(1, 1)
    source.clock.go(0.3)
    address = f"/feeds/{source.token}.atom"
    modified = web.get(address).headers["last-modified"]
    source.clock.go(0.3)
    source.notify_of_events(2, 2)
    assert titles(web.get(address)) == ["event 2", "event 1"], "another reader gets both in this second"
    source.clock.go(10)
    answer = web.get(address, headers={"If-Modified-Since": modified})
    assert answer.status_code == 200 and titles(answer) == ["event 2", "event 1"]
    assert web.get(address, headers={"If-Modified-Since": answer.headers["last-modified"]}).status_code == 304


def test_feed_deferred_entry_changes_date_on_release(source: NotifiedStore, web: httpx.Client) -> None:
    """Its time is the time of the match; a reader that polled in between must still see it."""
    source.store.subscriptions.remove(["s-1"])
    source.store.subscriptions.add(Subscription("s-1", "cy", "predicates", "price < 200", within=600))
    source.notify_of_events(1, 1)
    address = f"/feeds/{source.token}.atom"
    source.clock.go(60)
    before = web.get(address)
    assert titles(before) == []
    source.clock.go(600)
    answer = web.get(address, headers={"If-Modified-Since": before.headers["last-modified"]})
    assert titles(answer) == ["event 1"]


def test_feed_head_has_headers_of_get(source: NotifiedStore, web: httpx.Client) -> None:
    source.notify_of_events(1, 1)
    address = f"/feeds/{source.token}.rss"
    head, whole = web.head(address), web.get(address)
    assert (head.status_code, head.content) == (200, b"")
    for name in ("etag", "last-modified", "content-type", "content-length", "link"):
        assert head.headers[name] == whole.headers[name]


def test_feed_response_has_security_headers(source: NotifiedStore, web: httpx.Client) -> None:
    headers = web.get(f"/feeds/{source.token}.atom").headers
    assert headers["x-content-type-options"] == "nosniff"
    assert headers["referrer-policy"] == "no-referrer"
    assert "sandbox" in headers["content-security-policy"]
    assert "server" not in headers


UNKNOWN = ["/feeds/{}.atom", "/feeds/{}", "/feeds/{}/archive/1.atom", "/opml/{}"]
NEVER = "A" * 32


@pytest.mark.parametrize("path", UNKNOWN)
@pytest.mark.parametrize("token", [NEVER, "short", "%00" * 8, "s-1", "%ED%A0%80", "x" * 2_000])
def test_feed_unknown_addresses_get_identical_response(
    source: NotifiedStore, web: httpx.Client, path: str, token: str
) -> None:
    """The answer is the same for every token, and contains nothing of the request."""
    source.notify_of_events(1, 1)
    answer = web.get(path.format(token))
    assert answer.status_code == 404
    assert answer.content == web.get(UNKNOWN[0].format(NEVER)).content
    assert answer.headers["content-type"] == "application/problem+json"


@pytest.mark.parametrize("path", ["/feeds", "/feeds/", "/opml", "/opml/", "/docs", "/redoc", "/openapi.json"])
def test_feeds_cannot_be_listed(source: NotifiedStore, web: httpx.Client, path: str) -> None:
    source.notify_of_events(1, 1)
    assert web.get(path).status_code == 404
    assert source.token not in web.get("/v1/openapi.json").text + web.get("/").text


def test_feed_unknown_suffix_archive_or_method_is_rejected(source: NotifiedStore, web: httpx.Client) -> None:
    source.notify_of_events(1, 1)
    for path in (
        ".html",
        ".atom/",
        "/archive/0.atom",
        "/archive/1.atom",
        "/archive/x",
        "/archive/99999999999999999999",
    ):
        assert web.get(f"/feeds/{source.token}{path}").status_code in (404, 307), path
    assert web.post(f"/feeds/{source.token}.atom").status_code == 405


def test_feed_renewed_address_keeps_entries_and_old_one_answers_410(
    source: NotifiedStore, web: httpx.Client
) -> None:
    source.notify_of_events(1, 2)
    old = source.token
    before = items_of(web.get(f"/feeds/{old}.atom").content, "application/atom+xml")[1]
    source.feeds.addresses.renew("cy", "s-1")
    assert source.token != old
    assert web.get(f"/feeds/{old}.atom").status_code == web.get(f"/feeds/{old}").status_code == 410
    after = items_of(web.get(f"/feeds/{source.token}.atom").content, "application/atom+xml")[1]
    assert [one.id for one in after] == [one.id for one in before]


def test_feed_of_deleted_subscription_answers_410_even_if_id_is_reused(
    source: NotifiedStore, web: httpx.Client
) -> None:
    source.notify_of_events(1, 1)
    token = source.token
    source.store.subscriptions.remove(["s-1"])
    assert web.get(f"/feeds/{token}.atom").status_code == 410
    source.store.subscriptions.add(Subscription("s-1", "bo", "predicates", "price < 9"))
    source.notify(MatchRow("p-secret", "s-1", "bo"))
    assert web.get(f"/feeds/{token}.atom").status_code == 410


def test_feed_contains_only_entries_of_its_subscription(source: NotifiedStore, web: httpx.Client) -> None:
    source.store.subscriptions.add(Subscription("s-2", "cy", "predicates", "price < 9"))
    source.notify_of_events(1, 1)
    source.notify(MatchRow("p-1", "s-2", "cy"), MatchRow("p-2", "s-2", "cy"), MatchRow("p-1", "s-9", "bo"))
    assert titles(web.get(f"/feeds/{source.token}.atom")) == ["event 1"]
    other = source.feeds.addresses.token("cy", "s-2")
    assert titles(web.get(f"/feeds/{other}.atom")) == ["Publication p-2", "event 1"]


def walk(web: httpx.Client, start: str, relation: str) -> Iterator[tuple[str, Any]]:
    """Follow the links of a relation from a document, and yield each address and document."""
    address: str | None = start
    while address:
        document = etree.fromstring(web.get(address).content)
        yield address, document
        links = document.xpath(f"//atom:link[@rel='{relation}']/@href", namespaces=NAMES)
        address = str(links[0]) if links else None


def ids(page: Any) -> list[str]:
    return [
        str(one) for one in page.xpath("//atom:entry/atom:id/text()|//item/guid/text()", namespaces=NAMES)
    ]


COUNTS = [0, 1, PAGE - 1, PAGE, 2 * PAGE - 1, 2 * PAGE, 2 * PAGE + 1, 5 * PAGE + 7]


@pytest.mark.parametrize("format", ["atom", "rss"])
@pytest.mark.parametrize("count", COUNTS)
def test_archives_have_each_entry_once(
    source: NotifiedStore, web: httpx.Client, count: int, format: str
) -> None:
    source.notify_of_events(1, count)
    start = f"{root(web)}/feeds/{source.token}.{format}"
    pages = list(walk(web, start, "prev-archive"))
    entry_ids = [id for _, page in pages for id in ids(page)]
    assert len(entry_ids) == len(set(entry_ids)) == count
    assert [bool(page.xpath("//fh:archive", namespaces=NAMES)) for _, page in pages] == [False] + [True] * (
        len(pages) - 1
    )
    assert len(ids(pages[0][1])) >= min(count, PAGE)
    for _, page in pages[1:]:
        assert page.xpath("//atom:link[@rel='current']/@href", namespaces=NAMES) == [start]
        assert len(ids(page)) == PAGE


def test_archives_have_each_entry_once_while_entries_arrive(source: NotifiedStore, web: httpx.Client) -> None:
    source.notify_of_events(1, 4 * PAGE + 3)
    entry_ids: list[str] = []
    last = 4 * PAGE + 3
    for _, page in walk(web, f"/feeds/{source.token}.atom", "prev-archive"):
        entry_ids += ids(page)
        source.notify_of_events(last + 1, last + 60)
        last += 60
    assert len(entry_ids) == len(set(entry_ids)) == 4 * PAGE + 3


def test_archive_is_immutable_once_linked(source: NotifiedStore, web: httpx.Client) -> None:
    source.notify_of_events(1, 3 * PAGE)
    linked = [address for address, _ in walk(web, f"{root(web)}/feeds/{source.token}.atom", "prev-archive")][
        1:
    ]
    assert len(linked) == 2
    before = [web.get(address) for address in linked]
    assert all(answer.headers["cache-control"] == "private, max-age=86400" for answer in before)
    source.clock.go(100)
    source.notify_of_events(3 * PAGE + 1, 6 * PAGE)
    after = [web.get(address) for address in linked]
    assert [answer.content for answer in before] == [answer.content for answer in after]
    assert [answer.headers["etag"] for answer in before] == [answer.headers["etag"] for answer in after]
    source.feeds._tags.clear()  # rendered anew
    assert [web.get(address).content for address in linked] == [answer.content for answer in before]


def test_archives_link_forwards(source: NotifiedStore, web: httpx.Client) -> None:
    source.notify_of_events(1, 5 * PAGE)
    walked = list(walk(web, f"/feeds/{source.token}/archive/1.atom", "next-archive"))
    assert [len(ids(page)) for _, page in walked] == [PAGE] * 5
    assert len({id for _, page in walked for id in ids(page)}) == 5 * PAGE


def test_json_and_rdf_feeds_link_to_archives_and_hub(source: NotifiedStore, web: httpx.Client) -> None:
    source.notify_of_events(1, 2 * PAGE)
    answer = web.get(f"/feeds/{source.token}.json")
    older = answer.json()["next_url"]
    assert older == f"{root(web)}/feeds/{source.token}/archive/1.json"
    assert json.loads(web.get(older).content)["items"][-1]["title"] == "event 1"
    rdf = web.get(f"/feeds/{source.token}.rdf")
    assert rdf.links["prev-archive"]["url"] == f"{root(web)}/feeds/{source.token}/archive/1.rdf"
    assert rdf.links["hub"]["url"] == f"{root(web)}/hub"
    assert titles(web.get(rdf.links["prev-archive"]["url"]))[-1] == "event 1"


def test_opml_lists_feeds_of_subscriber(source: NotifiedStore, web: httpx.Client) -> None:
    source.store.subscriptions.add(Subscription("s-2", "cy", "predicates", "title contains '<&'"))
    source.store.subscriptions.add(Subscription("s-3", "bo", "predicates", "price < 9"))
    token = source.feeds.addresses.token("cy")
    answer = web.get(f"/opml/{token}")
    outlines = etree.fromstring(answer.content).iter("outline")
    feeds = [(one.get("text"), one.get("type"), one.get("xmlUrl")) for one in outlines]
    assert [name for name, _, _ in feeds] == ["price < 200", "title contains '<&'"]
    assert all(web.get(str(address)).status_code == 200 for _, _, address in feeds)
    assert web.get(f"/opml/{token}", headers={"If-None-Match": answer.headers["etag"]}).status_code == 304
    assert web.get(f"/feeds/{token}.atom").status_code == web.get(f"/opml/{source.token}").status_code == 404
    source.feeds.addresses.renew("cy")
    assert web.get(f"/opml/{token}").status_code == 410
