"""Four feed formats, read by an independent parser, and hostile content that becomes harmless."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import feedparser
import pytest
from hypothesis import given
from hypothesis import strategies as st
from lxml import etree

from tests.objects.test_notices import LABELS, NEW_TITLE
from tests.objects.test_propagation import MODEL
from tests.support.stores.notified_store import PUBLIC, NotifiedStore
from tidings.feeds.outbound.addresses import ALL_FEEDS
from tidings.feeds.outbound.formats import FORMATS, negotiate_format
from tidings.feeds.outbound.personal_feeds import feed_title
from tidings.feeds.outbound.sanitize import safe_link, sanitize_html, to_line
from tidings.graphs.rdf.rdf_decoder import decode
from tidings.graphs.syndication.feed_parser import items_of
from tidings.model import Publication, Reason, Subscription
from tidings.objects.notices import Notice, build_notices
from tidings.store.encoding import MatchRow

PAGE = """
@prefix rss: <http://purl.org/rss/1.0/> . @prefix dc: <http://purl.org/dc/elements/1.1/> .
@prefix content: <http://purl.org/rss/1.0/modules/content/> . @prefix dcterms: <http://purl.org/dc/terms/> .
<http://example.org/feed> a rss:channel ; rss:title "The channel" .
<http://example.org/page> a rss:item ; rss:title "Clocks & watches" ; rss:link "http://example.org/page?a=1&b=2" ;
  rss:description "<b>Old</b> clocks" ; content:encoded "<p>A <i>long</i> text</p>" ; dc:date "2026-04-30T10:00:00Z" ;
  dc:creator "Ana", "Bo" ; dc:subject "clocks" ; dcterms:isPartOf <http://example.org/feed> .
"""
TITLE = "http://purl.org/dc/elements/1.1/title"
BINDINGS = {
    "head": {"vars": ["page", "d"]},
    "results": {
        "bindings": [
            {
                "page": {"type": "uri", "value": "http://example.org/page"},
                "d": {"type": "literal", "value": "2026"},
            }
        ]
    },
}
PATTERN = Reason("(?page, dc:subject, ?s)", None, "")


@pytest.fixture
def notified_store(tmp_path: Path) -> Iterator[NotifiedStore]:
    opened = NotifiedStore(tmp_path)
    yield opened
    opened.store.close()


def render_feed(notified_store: NotifiedStore, format: str) -> bytes:
    opened = notified_store.feeds.open(notified_store.token)
    page = notified_store.feeds.page(opened, format)  # type: ignore[arg-type]
    assert page
    return notified_store.feeds.render(page)


def parse_feed(notified_store: NotifiedStore, format: str) -> Any:
    feed = feedparser.parse(render_feed(notified_store, format))
    assert not feed.bozo, feed.get("bozo_exception")
    return feed


def notify_page(notified_store: NotifiedStore, body: str = PAGE) -> None:
    notified_store.put(Publication("p-page", "text/turtle", body.encode()))
    notified_store.notify(MatchRow("p-page", "s-1", "cy", (PATTERN,), BINDINGS))


XML = ["atom", "rss", "rdf"]


@pytest.mark.parametrize("format", XML)
def test_render_item_graph_is_equivalent_entry(notified_store: NotifiedStore, format: str) -> None:
    notify_page(notified_store)
    feed = parse_feed(notified_store, format)
    assert feed.feed.title == "price < 200"
    [entry] = feed.entries
    assert entry.title == "Clocks & watches"
    assert entry.link == "http://example.org/page?a=1&b=2"
    assert entry.id.startswith("urn:uuid:") if format != "rdf" else True
    assert "Old clocks" in entry.summary
    assert entry.content[0].value.startswith("<p>A <i>long</i> text</p>")
    assert "(?page, dc:subject, ?s)" in entry.content[0].value
    assert "http://example.org/page</td>" in entry.content[0].value
    assert tuple(entry.updated_parsed or entry.published_parsed)[:4] == (2026, 4, 30, 10)
    assert entry.author.startswith("Ana") or "Ana" in str(entry.get("authors"))
    assert [tag.term for tag in entry.tags] == ["clocks"]


def test_render_versions_are_recognized_by_feedparser(notified_store: NotifiedStore) -> None:
    notify_page(notified_store)
    assert [parse_feed(notified_store, format).version for format in XML] == ["atom10", "rss20", "rss10"]


def test_render_json_feed_has_required_fields(notified_store: NotifiedStore) -> None:
    notify_page(notified_store)
    feed = json.loads(render_feed(notified_store, "json"))
    assert feed["version"] == "https://jsonfeed.org/version/1.1"
    assert feed["title"] and feed["feed_url"] == f"{PUBLIC}/feeds/{notified_store.token}.json"
    assert feed["hubs"] == [{"type": "WebSub", "url": f"{PUBLIC}/hub"}]
    [item] = feed["items"]
    assert item["id"].startswith("urn:uuid:") and item["url"] == "http://example.org/page?a=1&b=2"
    assert item["content_html"].startswith("<p>A <i>long</i> text</p>")
    assert (
        item["date_modified"] == "2026-04-30T10:00:00Z" and item["date_published"] == "2026-05-01T12:00:00Z"
    )
    assert item["authors"] == [{"name": "Ana"}, {"name": "Bo"}] and item["tags"] == ["clocks"]
    assert item["_tidings"]["because"] == [{"predicate": PATTERN.predicate, "value": None, "at": ""}]
    assert item["_tidings"]["bindings"] == BINDINGS
    _, items = items_of(render_feed(notified_store, "json"), "application/feed+json")
    assert [one.title for one in items] == ["Clocks & watches"]


def test_render_rss_1_items_without_link_get_distinct_links(notified_store: NotifiedStore) -> None:
    """An item must have a link.

    Readers that ignore its name (gofeed, rss-parser) identify an item by its link, and would show only the first of
    those with the same link.
    """
    for name in ("p-1", "p-2"):
        notified_store.put(Publication(name, "application/json", b'{"price": 5}'))
        notified_store.notify(MatchRow(name, "s-1", "cy", (Reason("price < 200", 5, "/price"),)))
    first, second = parse_feed(notified_store, "rdf").entries
    assert first.link == f"{PUBLIC}/feeds/{notified_store.token}.rdf#{first.id}"
    assert second.link == f"{PUBLIC}/feeds/{notified_store.token}.rdf#{second.id}" and first.id != second.id


def test_render_rss_1_is_rdf_graph(notified_store: NotifiedStore) -> None:
    """The feed is a graph that can be published again."""
    notify_page(notified_store)
    body = render_feed(notified_store, "rdf")
    properties = {
        (edge.property.text, edge.object.text) for edge in decode(body, "application/rdf+xml").edges
    }
    assert ("http://purl.org/rss/1.0/title", "Clocks & watches") in properties
    assert ("http://www.iana.org/assignments/relation/hub", f"{PUBLIC}/hub") in properties
    feed, items = items_of(body, "application/rdf+xml")
    assert feed.title == "price < 200"
    assert [(one.title, one.link) for one in items] == [
        ("Clocks & watches", "http://example.org/page?a=1&b=2")
    ]


@pytest.mark.parametrize("format", XML)
def test_render_output_is_readable_by_own_parser(notified_store: NotifiedStore, format: str) -> None:
    notified_store.notify_of_events(1, 3)
    _, items = items_of(render_feed(notified_store, format), FORMATS[format].media_type)
    assert [one.title for one in items] == ["event 3", "event 2", "event 1"]
    assert len({one.id for one in items}) == 3


def test_render_atom_has_reasons_and_bindings(notified_store: NotifiedStore) -> None:
    notified_store.notify_of_events(1, 1)
    notify_page(notified_store)
    root = etree.fromstring(render_feed(notified_store, "atom"))
    space = {"t": "urn:x-tidings:feed", "a": "http://www.w3.org/2005/Atom"}
    reasons = root.xpath("//t:because", namespaces=space)
    assert [(one.text, one.get("value"), one.get("at")) for one in reasons] == [
        (PATTERN.predicate, "null", ""),
        ("price < 200", "180", "/price"),
    ]
    assert json.loads(root.xpath("string(//t:bindings)", namespaces=space)) == BINDINGS
    assert len(root.xpath("a:id|a:title|a:updated|a:author|a:link[@rel='self']", namespaces=space)) == 5


def test_render_title_is_that_of_bound_node(notified_store: NotifiedStore) -> None:
    titles = ("other", "Another"), ("page", "Clocks & watches")
    notify_page(
        notified_store,
        "\n".join(f'<http://example.org/{name}> <{TITLE}> "{title}" .' for name, title in titles),
    )
    assert parse_feed(notified_store, "atom").entries[0].title == "Clocks & watches"


def test_render_event_without_title_uses_reasons(notified_store: NotifiedStore) -> None:
    notified_store.publish({"price": 180, "seller": {"city": "Oslo <b>"}}, ids=["p-1"])
    notified_store.notify(MatchRow("p-1", "s-1", "cy", (Reason("price < 200", 180, "/price"),)))
    [entry] = parse_feed(notified_store, "atom").entries
    assert entry.title == "price 180 < 200"
    assert entry.summary == "price 180 < 200"
    assert "<th>seller.city</th><td>Oslo &lt;b&gt;</td>" in entry.content[0].value


def test_render_document_has_title_and_text(notified_store: NotifiedStore) -> None:
    notified_store.put(
        Publication("p-1", "application/xml", b"<post><name>Chairs</name><url>http://x.example/</url></post>")
    )
    notified_store.notify(MatchRow("p-1", "s-1", "cy"))
    [entry] = parse_feed(notified_store, "rss").entries
    assert (entry.title, entry.link) == ("Chairs", "http://x.example/")
    assert "&lt;post&gt;&lt;name&gt;Chairs" in entry.content[0].value


def test_render_publication_outside_journal_is_entry(notified_store: NotifiedStore) -> None:
    notified_store.notify(MatchRow("line 7 of a file", "s-1", "cy"))
    assert parse_feed(notified_store, "atom").entries[0].title == "Publication line 7 of a file"


def test_render_future_date_is_replaced_by_notification_time(notified_store: NotifiedStore) -> None:
    notified_store.publish({"title": "later", "date": "2999-01-01"}, ids=["p-1"])
    notified_store.notify(MatchRow("p-1", "s-1", "cy"))
    assert parse_feed(notified_store, "atom").entries[0].updated == "2026-05-01T12:00:00Z"


def test_feed_title_of_pattern_omits_prefixes(notified_store: NotifiedStore) -> None:
    text = "PREFIX ex: <http://e.example/>\nprefix : <urn:x>SELECT * WHERE (?x, ex:p, <urn:y>) AND ?x <= ex:C"
    notified_store.store.subscriptions.add(Subscription("s-2", "cy", "gql", text))
    titles = [feed_title(one) for one, _ in notified_store.feeds.list_with_tokens("cy")]
    assert titles == ["price < 200", "SELECT * WHERE (?x, ex:p, ‹urn:y›) AND ?x <= ex:C"]


@pytest.mark.parametrize("format", [*XML, "json"])
def test_render_feed_without_entries_is_valid(notified_store: NotifiedStore, format: str) -> None:
    feed, items = items_of(render_feed(notified_store, format), FORMATS[format].media_type)
    assert (feed.title, items) == ("price < 200", ())


HOSTILE = '<script>alert(1)</script><img src=x onerror=alert(2)><a href="javascript:alert(3)">go</a> text'


ODD = "a\x00b\ud800c\x1f\ufffe]]>&lt;script&gt;alert(4)&lt;/script&gt;"
HOSTILE_PAGE = {
    TITLE: HOSTILE,
    "http://purl.org/rss/1.0/modules/content/encoded": HOSTILE + "<form><iframe src='//x'>",
}


@pytest.mark.parametrize("format", [*XML, "json"])
def test_render_bidirectional_title_is_isolated(notified_store: NotifiedStore, format: str) -> None:
    notified_store.publish({"title": "\u202ereverse \u2067" + "x" * 300, "summary": "a"}, ids=["p-1"])
    notified_store.notify(MatchRow("p-1", "s-1", "cy", ()))
    [(title, _, _)] = read_entries(render_feed(notified_store, format), format)
    assert title.startswith("\u202ereverse") and title.endswith("…\u2069\u202c")


@pytest.mark.parametrize("format", [*XML, "json"])
def test_render_hostile_content_has_no_active_content(notified_store: NotifiedStore, format: str) -> None:
    storable = ODD.replace("\ud800", "")  # a lone surrogate is rejected in publications, but not in reasons
    notified_store.publish(
        {
            "title": HOSTILE + storable,
            "summary": HOSTILE + storable,
            "url": "javascript:alert(5)",
            "x": "y" * 400_000,
        },
        {"title": "\x08", "summary": "z" * 300_000, "url": "http://[", "deep": HOSTILE},
        {"title": "too large to be read", "x": "y" * 3_000_000},
        ids=["p-1", "p-2", "p-3"],
    )
    triples = (f"<javascript:alert(6)> <{name}> {json.dumps(text)} ." for name, text in HOSTILE_PAGE.items())
    notified_store.put(Publication("p-4", "text/turtle", "\n".join(triples).encode()))
    reasons = (Reason("x contains 'y'", "y" * 3_000_000 + "\udfff", "/x"), Reason(HOSTILE + ODD, None, ""))
    notified_store.notify(*(MatchRow(f"p-{n}", "s-1", "cy", reasons) for n in (1, 2, 3, 4)))
    body = render_feed(notified_store, format)
    assert len(body) < 200_000
    assert len(items_of(body, FORMATS[format].media_type)[1]) == 4
    entries = read_entries(body, format)
    assert entries[0][0].startswith("go text") and entries[2][0].startswith("x 'yyy")
    for title, shown, address in entries:
        assert find_active_content(title) == find_active_content(shown) == []
        assert address is None or address.startswith((PUBLIC, "urn:uuid:"))
        assert not {"\x00", "\ud800", "\x1f"} & {*title, *shown}
    assert "text" in shown and "alert(6)" not in shown


@pytest.mark.parametrize("format", [*XML, "json"])
def test_render_hostile_names_have_no_active_content(notified_store: NotifiedStore, format: str) -> None:
    """Publishers choose the ids of publications, subscribers their names and subscription ids."""
    notified_store.store.subscriptions.add(Subscription(HOSTILE, f"bo{HOSTILE}", "predicates", "price < 200"))
    notified_store.notify(MatchRow(HOSTILE, HOSTILE, f"bo{HOSTILE}", ()))
    token = notified_store.feeds.addresses.token(f"bo{HOSTILE}", HOSTILE)
    assert token
    page = notified_store.feeds.page(notified_store.feeds.open(token), format)  # type: ignore[arg-type]
    assert page
    body = notified_store.feeds.render(page)
    [(title, shown, _)] = read_entries(body, format)
    feed = json.loads(body) if format == "json" else feedparser.parse(body, sanitize_html=False).feed
    described = feed["description"] if format == "json" else feed.subtitle
    assert title.startswith("Publication ") and described.startswith("Notifications of bo")
    assert [*map(find_active_content, (title, shown, described, feed["title"]))] == [[], [], [], []]


def test_opml_hostile_name_has_no_active_content(notified_store: NotifiedStore) -> None:
    notified_store.store.subscriptions.add(Subscription(HOSTILE, f"bo{HOSTILE}", "predicates", "price < 200"))
    notified_store.store.subscriptions.add(
        Subscription("s-3", f"bo{HOSTILE}", "predicates", f"title = {HOSTILE!r}")
    )
    token = notified_store.feeds.addresses.token(f"bo{HOSTILE}", ALL_FEEDS)
    assert token
    root = etree.fromstring(notified_store.feeds.opml(token))  # type: ignore[arg-type]
    titles = [root.findtext("head/title"), *(one.get("text") for one in root.iter("outline"))]
    assert len(titles) == 3 and [*map(find_active_content, titles)] == [[], [], []]  # type: ignore[arg-type]


def read_entries(body: bytes, format: str) -> list[tuple[str, str, str | None]]:
    """Return title, content and address of each entry, in order of arrival."""
    if format == "json":
        items = json.loads(body)["items"]
        entries = [
            (item["title"], item.get("summary", "") + item.get("content_html", ""), item.get("url"))
            for item in items
        ]
    else:
        raw = feedparser.parse(body, sanitize_html=False)
        assert not raw.bozo
        entries = [(one.title, one.summary + one.content[0].value, one.get("link")) for one in raw.entries]
    return entries[::-1]


def find_active_content(text: str) -> list[str]:
    """Return what a browser would run, send or load if it treated the text as HTML."""
    root = etree.fromstring(f"<div>{text}</div>", etree.HTMLParser())
    active = [
        str(one.tag)
        for one in root.iter("script", "style", "iframe", "form", "object", "embed", "base", "meta")
    ]
    for one in root.iter():
        for name, value in one.attrib.items():
            if (
                name.startswith("on")
                or name == "style"
                or value.strip().lower().startswith(("javascript:", "data:"))
            ):
                active.append(f"{name}={value}")
    return active


def test_find_active_content_finds_script_handler_and_javascript_link() -> None:
    assert find_active_content(HOSTILE) == ["script", "onerror=alert(2)", "href=javascript:alert(3)"]


@given(st.text() | st.text(alphabet="<>&;/!scriptb'\" =#x3C\x00\ud800"))
def test_sanitize_output_has_no_tag_and_is_valid_xml(text: str) -> None:
    """`lxml` rejects characters that XML cannot contain."""
    element = etree.Element("x")
    for sanitized in (to_line(text), sanitize_html(text), safe_link("http://e.example/" + text) or ""):
        element.text = sanitized
        assert "<script" not in sanitized.lower()
    assert not re.search("<[A-Za-z/!?]", to_line(text))


@pytest.mark.parametrize(
    ("accept", "suffix"),
    [
        (None, "atom"),
        ("*/*", "atom"),
        ("text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8", "atom"),
        ("application/rss+xml", "rss"),
        ("application/rss+xml;q=0.5, application/feed+json", "json"),
        ("application/json", "json"),
        ("application/rdf+xml;q=0.9, application/rss+xml;q=0.1", "rdf"),
        ("application/rss+xml;q=0, application/rdf+xml;q=nonsense", "atom"),
    ],
)
def test_negotiate_format_follows_accept_header(accept: str | None, suffix: str) -> None:
    assert negotiate_format(accept).suffix == suffix


def notify_object_changes(notified_store: NotifiedStore, *given: Notice) -> str:
    notified_store.store.object_notifications.add("university", given)
    [(listed, token)] = notified_store.feeds.list_with_tokens("Student:S3")
    assert (listed.id, feed_title(listed)) == ("university", "Changes in university") and token
    return token


@pytest.mark.parametrize("format", [*XML, "json"])
def test_render_object_change_is_entry_with_values_and_reasons(
    notified_store: NotifiedStore, format: str
) -> None:
    """A publication with the same name as the object is something else."""
    notified_store.put(Publication("LearningMaterial:Script2", "application/json", b'{"title": "not this"}'))
    token = notify_object_changes(notified_store, *build_notices("university", MODEL, NEW_TITLE, LABELS))
    page = notified_store.feeds.page(notified_store.feeds.open(token), format)  # type: ignore[arg-type]
    [(title, shown, _)] = read_entries(notified_store.feeds.render(page), format)  # type: ignore[arg-type]
    assert title == "Second edition updated (title)"
    assert "<td>title</td><td>Script2</td><td>Second edition</td>" in shown
    assert "<li>Second edition -usedIn-&gt; Data structures &lt;-attends- you</li>" in shown


@pytest.mark.parametrize("format", [*XML, "json"])
def test_render_object_with_hostile_label_has_no_active_content(
    notified_store: NotifiedStore, format: str
) -> None:
    changed = {
        "object": "Course:1",
        "label": HOSTILE + ODD,
        "attributes": [HOSTILE],
        "limits": [HOSTILE + ODD],
    }
    changed |= {"before": {HOSTILE: HOSTILE, ODD: [ODD]}}
    notice = Notice("o-1", "Student:S3", "Course:1", "deleted", ((HOSTILE + ODD, "Course:1"),), changed)
    token = notify_object_changes(notified_store, notice)
    page = notified_store.feeds.page(notified_store.feeds.open(token), format)  # type: ignore[arg-type]
    [(title, shown, _)] = read_entries(notified_store.feeds.render(page), format)  # type: ignore[arg-type]
    assert find_active_content(title) == find_active_content(shown) == [] and "deleted" in title
