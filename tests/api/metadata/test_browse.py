"""Looking around over HTTP: JSON for machines, pages for people, and whatever metadata says stays text."""

from __future__ import annotations

import re
from collections.abc import Iterator
from html.parser import HTMLParser
from pathlib import Path

import httpx
import pytest
from fastapi import APIRouter

from tests.support.servers.http_server import served
from tests.support.stores.browsable_metadata import DATA, DOC, HOST, INFO, OTHER, PREFIXES, TURTLE, fill
from tidings.api.authentication import TrustPolicy
from tidings.api.metadata.provider_routes import build_provider_api
from tidings.api.routes import join_routers
from tidings.console import metadata as metadata_pages
from tidings.console.router import static_router_for
from tidings.metadata.provider.provider import Provider
from tidings.metadata.rules.rule_parser import parse_rule
from tidings.service.authorization import Access
from tidings.store.database import sqlite_url
from tidings.store.store import Store, open_store


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    with open_store(sqlite_url(tmp_path / "s.db")) as opened:
        yield opened


def router_for(store: Store, trust: TrustPolicy) -> APIRouter:
    """The JSON endpoints, the pages, and what pages load."""
    router = APIRouter()
    parts = (
        build_provider_api(store, trust).router,
        metadata_pages.router_for(store, trust),
        static_router_for(),
    )
    join_routers(router, *parts)
    return router


@pytest.fixture
def client(store: Store) -> Iterator[httpx.Client]:
    fill(Provider(store))
    with served(router_for(store, TrustPolicy(None))) as address, httpx.Client(base_url=address) as client:
        yield client


class Reader(HTMLParser):
    """What a browser would see: links, all tags, and the text of `pre`."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.links: list[str] = []
        self.tags: set[str] = set()
        self.copied: list[str] = []
        self._open: list[str] = []
        self.feed(page)
        assert self._open == []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.add(tag)
        if tag not in ("meta", "link", "wbr"):
            self._open.append(tag)
        if tag == "pre":
            self.copied.append("")
        self.links += [value for name, value in attrs if name == "href" and value]

    def handle_endtag(self, tag: str) -> None:
        assert self._open.pop() == tag

    def handle_data(self, data: str) -> None:
        if "pre" in self._open:
            self.copied[-1] += data


def test_for_machines(client: httpx.Client) -> None:
    classes = client.get("/metadata/classes").json()["classes"]
    assert classes[1] == {"class": "Provider", "parents": ["Thing"], "resources": 3, "own": 0}
    first = client.get("/metadata/classes/Provider", params={"limit": 2}).json()
    assert [each["uri"] for each in first["instances"]] == [HOST, f"{OTHER}#both"]
    second = client.get("/metadata/classes/Provider", params={"limit": 2, "after": first["next"]}).json()
    assert (second["instances"], second["next"]) == ([{"uri": DATA, "class": "DataProvider"}], None)
    seen = client.get("/metadata/resource", params={"uri": INFO, "limit": 1}).json()
    assert (seen["uri"], seen["values"], len(seen["referrers"])) == (INFO, {"memory": [92]}, 1)
    rest = client.get("/metadata/resource", params={"uri": INFO, "after": seen["next"]}).json()
    assert [(each["uri"], each["reference"], each["leads"]) for each in rest["referrers"]] == [
        (DATA, "weak", False)
    ]


@pytest.mark.parametrize(
    ("address", "status", "told"),
    [
        ("/classes/Provder", 404, "did you mean 'Provider'?"),
        (f"/resource?uri={DOC}%23hots", 404, f"did you mean '{HOST}'?"),
        ("/resource", 400, "uri"),
        ("/resource?uri=", 400, "uri"),
        ("/classes/Provider?limit=0", 400, "limit"),
        ("/classes/Provider?limit=many", 400, "limit"),
        (f"/resource?uri={DOC}%23host&after=x", 422, "not a cursor of a page"),
    ],
)
def test_what_is_wrong_is_said(client: httpx.Client, address: str, status: int, told: str) -> None:
    answer = client.get(f"/metadata{address}")
    assert (answer.status_code, told in answer.json()["message"]) == (status, True)
    page = client.get("/browse" + address.replace("/classes/", "/class/"))
    assert (page.status_code, page.headers["content-type"]) == (status, "text/html; charset=utf-8")
    assert "/browse" in Reader(page.text).links


def test_from_page_to_page(client: httpx.Client) -> None:
    """Everything that is there is reached from the first page by links alone, and every page is one."""
    waiting, seen = ["/browse"], set[str]()
    while waiting:
        address = waiting.pop()
        if address in seen:
            continue
        seen.add(address)
        answer = client.get(address)
        assert (answer.status_code, "none" in address) in ((200, False), (404, True))
        if answer.headers["content-type"].startswith("text/html"):
            assert "script" not in answer.headers["content-security-policy"]
            found = Reader(answer.text)
            assert not found.tags & {"script", "style", "img", "b"}
            waiting += found.links
    resources = {str(httpx.URL(address).params["uri"]) for address in seen if "/resource" in address}
    assert resources == {HOST, INFO, DATA, f"{OTHER}#both", f"{DOC}#none"}
    assert {
        "/browse",
        "/console/static/console.css",
        "/browse/class/Both",
        "/browse/class/Information",
    } < seen


def test_long_lists_are_pages(client: httpx.Client) -> None:
    page = client.get("/browse/class/Provider?limit=2").text
    (following,) = [each for each in Reader(page).links if "after=" in each]
    rest = Reader(client.get(following).text).links
    assert [httpx.URL(each).params["uri"] for each in rest if "/resource" in each] == [DATA]
    assert "/browse/class/Provider" in rest


def test_metadata_values_are_shown_as_text(client: httpx.Client) -> None:
    page = client.get("/browse/resource", params={"uri": HOST}).text
    assert "&lt;b&gt;pirates&lt;/b&gt; &amp; co" in page and "<b>" not in page
    evil = client.get("/browse/resource", params={"uri": "x:<script>alert(1)</script>\"'"})
    assert evil.status_code == 404 and "<script>" not in evil.text


def test_suggested_rule_matches_the_shown_resources(client: httpx.Client, store: Store) -> None:
    for address, expected in (
        (f"/browse/resource?uri={DOC}%23host", {HOST}),
        ("/browse/class/DataProvider", {DATA, f"{OTHER}#both"}),
    ):
        rule, command = Reader(client.get(address).text).copied
        name, _, text = rule.partition(": ")
        assert parse_rule(text)
        assert {uri for _, uri in Provider(store).add_rules({name: text}, "ana")} == expected
        assert re.fullmatch(r"tidings provider pick \S+ --as NAME", command)


def test_without_a_schema_and_without_resources(store: Store) -> None:
    with served(router_for(store, TrustPolicy(None))) as address:
        assert httpx.get(f"{address}/metadata/classes").status_code == 409
        assert "no schema for metadata yet" in httpx.get(f"{address}/browse").text
        Provider(store).load_schema((PREFIXES + ":X a rdfs:Class .").encode(), TURTLE)
        assert "No resources." in httpx.get(f"{address}/browse/class/X").text


def test_with_a_token(store: Store) -> None:
    fill(Provider(store))
    with served(router_for(store, TrustPolicy("secret"))) as address:
        assert httpx.get(f"{address}/metadata/classes").status_code == 401
        page = httpx.get(f"{address}/browse")
        assert page.status_code == 401 and page.headers["www-authenticate"].startswith("Basic ")
        assert "Provider" not in page.text
        assert httpx.get(f"{address}/browse", auth=("anybody", "secret")).status_code == 200
        bearer = {"Authorization": "Bearer secret"}
        assert httpx.get(f"{address}/metadata/classes", headers=bearer).status_code == 200


def test_administrators_need_no_other_token(store: Store) -> None:
    fill(Provider(store))
    access = Access(store)
    root, ana = access.make("root", ["administer"]), access.make("phone", ["subscribe"], "ana")
    with served(router_for(store, TrustPolicy("secret", access=access))) as address:
        for given, status in ((root.secret, 200), (ana.secret, 403), ("tdg_other", 401), ("secret", 200)):
            assert httpx.get(f"{address}/browse", auth=("anybody", given)).status_code == status
            bearer = {"Authorization": f"Bearer {given}"}
            assert httpx.get(f"{address}/metadata/classes", headers=bearer).status_code == status
