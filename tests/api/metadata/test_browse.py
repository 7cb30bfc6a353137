"""Metadata over HTTP: JSON for programs, HTML pages for people, and values that are escaped."""

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
    """Build the JSON endpoints, the pages, and the static files that the pages load."""
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
    """Parser that collects what a browser shows: links, all tags, and the text of `pre`."""

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


def test_browse_json_lists_classes_instances_and_referrers(client: httpx.Client) -> None:
    classes = client.get("/metadata/classes").json()["classes"]
    assert classes[1] == {"class": "Provider", "parents": ["Thing"], "resources": 3, "own": 0}
    first = client.get("/metadata/classes/Provider", params={"limit": 2}).json()
    assert [each["uri"] for each in first["instances"]] == [HOST, f"{OTHER}#both"]
    second = client.get("/metadata/classes/Provider", params={"limit": 2, "after": first["next"]}).json()
    assert (second["instances"], second["next"]) == ([{"uri": DATA, "class": "DataProvider"}], None)
    first_page = client.get("/metadata/resource", params={"uri": INFO, "limit": 1}).json()
    assert (first_page["uri"], first_page["values"], len(first_page["referrers"])) == (
        INFO,
        {"memory": [92]},
        1,
    )
    second_page = client.get("/metadata/resource", params={"uri": INFO, "after": first_page["next"]}).json()
    assert [(each["uri"], each["reference"], each["leads"]) for each in second_page["referrers"]] == [
        (DATA, "weak", False)
    ]


@pytest.mark.parametrize(
    ("address", "status", "message"),
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
def test_browse_invalid_request_is_rejected_as_json_and_page(
    client: httpx.Client, address: str, status: int, message: str
) -> None:
    answer = client.get(f"/metadata{address}")
    assert (answer.status_code, message in answer.json()["message"]) == (status, True)
    page = client.get("/browse" + address.replace("/classes/", "/class/"))
    assert (page.status_code, page.headers["content-type"]) == (status, "text/html; charset=utf-8")
    assert "/browse" in Reader(page.text).links


def test_browse_pages_link_to_every_resource(client: httpx.Client) -> None:
    """All pages and resources are reachable by links from the first page, and each page is well-formed."""
    pending, visited = ["/browse"], set[str]()
    while pending:
        address = pending.pop()
        if address in visited:
            continue
        visited.add(address)
        answer = client.get(address)
        assert (answer.status_code, "none" in address) in ((200, False), (404, True))
        if answer.headers["content-type"].startswith("text/html"):
            assert "script" not in answer.headers["content-security-policy"]
            page = Reader(answer.text)
            assert not page.tags & {"script", "style", "img", "b"}
            pending += page.links
    resources = {str(httpx.URL(address).params["uri"]) for address in visited if "/resource" in address}
    assert resources == {HOST, INFO, DATA, f"{OTHER}#both", f"{DOC}#none"}
    assert {
        "/browse",
        "/console/static/console.css",
        "/browse/class/Both",
        "/browse/class/Information",
    } < visited


def test_browse_long_list_is_paginated(client: httpx.Client) -> None:
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


def test_browse_suggested_rule_matches_shown_resources(client: httpx.Client, store: Store) -> None:
    for address, expected in (
        (f"/browse/resource?uri={DOC}%23host", {HOST}),
        ("/browse/class/DataProvider", {DATA, f"{OTHER}#both"}),
    ):
        rule, command = Reader(client.get(address).text).copied
        name, _, text = rule.partition(": ")
        assert parse_rule(text)
        assert {uri for _, uri in Provider(store).add_rules({name: text}, "ana")} == expected
        assert re.fullmatch(r"tidings provider pick \S+ --as NAME", command)


def test_browse_without_schema_or_resources_states_so(store: Store) -> None:
    with served(router_for(store, TrustPolicy(None))) as address:
        assert httpx.get(f"{address}/metadata/classes").status_code == 409
        assert "no schema for metadata yet" in httpx.get(f"{address}/browse").text
        Provider(store).load_schema((PREFIXES + ":X a rdfs:Class .").encode(), TURTLE)
        assert "No resources." in httpx.get(f"{address}/browse/class/X").text


def test_browse_with_service_token_requires_it(store: Store) -> None:
    fill(Provider(store))
    with served(router_for(store, TrustPolicy("secret"))) as address:
        assert httpx.get(f"{address}/metadata/classes").status_code == 401
        page = httpx.get(f"{address}/browse")
        assert page.status_code == 401 and page.headers["www-authenticate"].startswith("Basic ")
        assert "Provider" not in page.text
        assert httpx.get(f"{address}/browse", auth=("anybody", "secret")).status_code == 200
        bearer = {"Authorization": "Bearer secret"}
        assert httpx.get(f"{address}/metadata/classes", headers=bearer).status_code == 200


def test_browse_administrator_token_is_accepted(store: Store) -> None:
    fill(Provider(store))
    access = Access(store)
    root, ana = access.make("root", ["administer"]), access.make("phone", ["subscribe"], "ana")
    with served(router_for(store, TrustPolicy("secret", access=access))) as address:
        for secret, status in ((root.secret, 200), (ana.secret, 403), ("tdg_other", 401), ("secret", 200)):
            assert httpx.get(f"{address}/browse", auth=("anybody", secret)).status_code == status
            bearer = {"Authorization": f"Bearer {secret}"}
            assert httpx.get(f"{address}/metadata/classes", headers=bearer).status_code == status
