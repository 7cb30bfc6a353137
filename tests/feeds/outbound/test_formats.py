"""Four formats of the same feed, read by a reader that is not ours, and hostile content that comes out harmless."""

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
from tests.support.stores.notified_store import PUBLIC, Told
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
def told(tmp_path: Path) -> Iterator[Told]:
    made = Told(tmp_path)
    yield made
    made.store.close()


def rendered(told: Told, format: str) -> bytes:
    opened = told.feeds.open(told.token)
    page = told.feeds.page(opened, format)  # type: ignore[arg-type]
    assert page
    return told.feeds.render(page)


def parsed(told: Told, format: str) -> Any:
    found = feedparser.parse(rendered(told, format))
    assert not found.bozo, found.get("bozo_exception")
    return found


def tell_page(told: Told, body: str = PAGE) -> None:
    told.put(Publication("p-page", "text/turtle", body.encode()))
    told.tell(MatchRow("p-page", "s-1", "cy", (PATTERN,), BINDINGS))


XML = ["atom", "rss", "rdf"]


@pytest.mark.parametrize("format", XML)
def test_a_graph_of_an_item_is_an_entry_like_it(told: Told, format: str) -> None:
    tell_page(told)
    found = parsed(told, format)
    assert found.feed.title == "price < 200"
    [entry] = found.entries
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


def test_versions_are_what_readers_know(told: Told) -> None:
    tell_page(told)
    assert [parsed(told, format).version for format in XML] == ["atom10", "rss20", "rss10"]


def test_json_feed_has_what_it_must(told: Told) -> None:
    tell_page(told)
    feed = json.loads(rendered(told, "json"))
    assert feed["version"] == "https://jsonfeed.org/version/1.1"
    assert feed["title"] and feed["feed_url"] == f"{PUBLIC}/feeds/{told.token}.json"
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
    _, items = items_of(rendered(told, "json"), "application/feed+json")
    assert [one.title for one in items] == ["Clocks & watches"]


def test_items_of_rss_1_without_a_link_are_told_apart(told: Told) -> None:
    """An item has to have one. Readers that do not look at its name, gofeed and rss-parser say, know an item by its
    link, and would show the first of those that have the same.
    """
    for name in ("p-1", "p-2"):
        told.put(Publication(name, "application/json", b'{"price": 5}'))
        told.tell(MatchRow(name, "s-1", "cy", (Reason("price < 200", 5, "/price"),)))
    first, second = parsed(told, "rdf").entries
    assert first.link == f"{PUBLIC}/feeds/{told.token}.rdf#{first.id}"
    assert second.link == f"{PUBLIC}/feeds/{told.token}.rdf#{second.id}" and first.id != second.id


def test_rss_1_is_rdf(told: Told) -> None:
    """What the paper's clients read is a graph: it can be published again."""
    tell_page(told)
    body = rendered(told, "rdf")
    said = {(edge.property.text, edge.object.text) for edge in decode(body, "application/rdf+xml").edges}
    assert ("http://purl.org/rss/1.0/title", "Clocks & watches") in said
    assert ("http://www.iana.org/assignments/relation/hub", f"{PUBLIC}/hub") in said
    feed, items = items_of(body, "application/rdf+xml")
    assert feed.title == "price < 200"
    assert [(one.title, one.link) for one in items] == [
        ("Clocks & watches", "http://example.org/page?a=1&b=2")
    ]


@pytest.mark.parametrize("format", XML)
def test_what_we_write_we_read(told: Told, format: str) -> None:
    told.tell_events(1, 3)
    _, items = items_of(rendered(told, format), FORMATS[format].media_type)
    assert [one.title for one in items] == ["event 3", "event 2", "event 1"]
    assert len({one.id for one in items}) == 3


def test_atom_carries_reasons_and_bindings_for_programs(told: Told) -> None:
    told.tell_events(1, 1)
    tell_page(told)
    root = etree.fromstring(rendered(told, "atom"))
    space = {"t": "urn:x-tidings:feed", "a": "http://www.w3.org/2005/Atom"}
    reasons = root.xpath("//t:because", namespaces=space)
    assert [(one.text, one.get("value"), one.get("at")) for one in reasons] == [
        (PATTERN.predicate, "null", ""),
        ("price < 200", "180", "/price"),
    ]
    assert json.loads(root.xpath("string(//t:bindings)", namespaces=space)) == BINDINGS
    assert len(root.xpath("a:id|a:title|a:updated|a:author|a:link[@rel='self']", namespaces=space)) == 5


def test_the_node_that_was_asked_for_gives_the_title(told: Told) -> None:
    titles = ("other", "Another"), ("page", "Clocks & watches")
    tell_page(told, "\n".join(f'<http://example.org/{name}> <{TITLE}> "{title}" .' for name, title in titles))
    assert parsed(told, "atom").entries[0].title == "Clocks & watches"


def test_an_event_without_a_title_is_titled_by_its_reasons(told: Told) -> None:
    told.publish({"price": 180, "seller": {"city": "Oslo <b>"}}, ids=["p-1"])
    told.tell(MatchRow("p-1", "s-1", "cy", (Reason("price < 200", 180, "/price"),)))
    [entry] = parsed(told, "atom").entries
    assert entry.title == "price 180 < 200"
    assert entry.summary == "price 180 < 200"
    assert "<th>seller.city</th><td>Oslo &lt;b&gt;</td>" in entry.content[0].value


def test_a_document_has_a_title_and_its_text(told: Told) -> None:
    told.put(
        Publication("p-1", "application/xml", b"<post><name>Chairs</name><url>http://x.example/</url></post>")
    )
    told.tell(MatchRow("p-1", "s-1", "cy"))
    [entry] = parsed(told, "rss").entries
    assert (entry.title, entry.link) == ("Chairs", "http://x.example/")
    assert "&lt;post&gt;&lt;name&gt;Chairs" in entry.content[0].value


def test_what_is_not_in_the_journal_is_told_all_the_same(told: Told) -> None:
    told.tell(MatchRow("line 7 of a file", "s-1", "cy"))
    assert parsed(told, "atom").entries[0].title == "Publication line 7 of a file"


def test_a_date_to_come_does_not_stay_on_top(told: Told) -> None:
    told.publish({"title": "later", "date": "2999-01-01"}, ids=["p-1"])
    told.tell(MatchRow("p-1", "s-1", "cy"))
    assert parsed(told, "atom").entries[0].updated == "2026-05-01T12:00:00Z"


def test_a_pattern_is_titled_without_its_prefixes(told: Told) -> None:
    text = "PREFIX ex: <http://e.example/>\nprefix : <urn:x>SELECT * WHERE (?x, ex:p, <urn:y>) AND ?x <= ex:C"
    told.store.subscriptions.add(Subscription("s-2", "cy", "gql", text))
    titles = [feed_title(one) for one, _ in told.feeds.listed("cy")]
    assert titles == ["price < 200", "SELECT * WHERE (?x, ex:p, ‹urn:y›) AND ?x <= ex:C"]


@pytest.mark.parametrize("format", [*XML, "json"])
def test_an_empty_feed_is_a_feed(told: Told, format: str) -> None:
    feed, items = items_of(rendered(told, format), FORMATS[format].media_type)
    assert (feed.title, items) == ("price < 200", ())


HOSTILE = '<script>alert(1)</script><img src=x onerror=alert(2)><a href="javascript:alert(3)">go</a> text'


ODD = "a\x00b\ud800c\x1f\ufffe]]>&lt;script&gt;alert(4)&lt;/script&gt;"
HOSTILE_PAGE = {
    TITLE: HOSTILE,
    "http://purl.org/rss/1.0/modules/content/encoded": HOSTILE + "<form><iframe src='//x'>",
}


@pytest.mark.parametrize("format", [*XML, "json"])
def test_a_title_that_is_turned_turns_nothing_beside_it(told: Told, format: str) -> None:
    told.publish({"title": "\u202ereverse \u2067" + "x" * 300, "summary": "a"}, ids=["p-1"])
    told.tell(MatchRow("p-1", "s-1", "cy", ()))
    [(title, _, _)] = leaving(rendered(told, format), format)
    assert title.startswith("\u202ereverse") and title.endswith("…\u2069\u202c")


@pytest.mark.parametrize("format", [*XML, "json"])
def test_hostile_content_comes_out_harmless(told: Told, format: str) -> None:
    whole = ODD.replace("\ud800", "")  # half a pair is refused in what is published, but not in what is told
    told.publish(
        {
            "title": HOSTILE + whole,
            "summary": HOSTILE + whole,
            "url": "javascript:alert(5)",
            "x": "y" * 400_000,
        },
        {"title": "\x08", "summary": "z" * 300_000, "url": "http://[", "deep": HOSTILE},
        {"title": "too large to be read", "x": "y" * 3_000_000},
        ids=["p-1", "p-2", "p-3"],
    )
    said = (f"<javascript:alert(6)> <{name}> {json.dumps(text)} ." for name, text in HOSTILE_PAGE.items())
    told.put(Publication("p-4", "text/turtle", "\n".join(said).encode()))
    reasons = (Reason("x contains 'y'", "y" * 3_000_000 + "\udfff", "/x"), Reason(HOSTILE + ODD, None, ""))
    told.tell(*(MatchRow(f"p-{n}", "s-1", "cy", reasons) for n in (1, 2, 3, 4)))
    body = rendered(told, format)
    assert len(body) < 200_000
    assert len(items_of(body, FORMATS[format].media_type)[1]) == 4
    entries = leaving(body, format)
    assert entries[0][0].startswith("go text") and entries[2][0].startswith("x 'yyy")
    for title, shown, address in entries:
        assert dangers(title) == dangers(shown) == []
        assert address is None or address.startswith((PUBLIC, "urn:uuid:"))
        assert not {"\x00", "\ud800", "\x1f"} & {*title, *shown}
    assert "text" in shown and "alert(6)" not in shown


@pytest.mark.parametrize("format", [*XML, "json"])
def test_names_with_markup_come_out_harmless(told: Told, format: str) -> None:
    """Publishers choose ids of publications, subscribers their names and the ids of subscriptions."""
    told.store.subscriptions.add(Subscription(HOSTILE, f"bo{HOSTILE}", "predicates", "price < 200"))
    told.tell(MatchRow(HOSTILE, HOSTILE, f"bo{HOSTILE}", ()))
    token = told.feeds.addresses.token(f"bo{HOSTILE}", HOSTILE)
    assert token
    page = told.feeds.page(told.feeds.open(token), format)  # type: ignore[arg-type]
    assert page
    body = told.feeds.render(page)
    [(title, shown, _)] = leaving(body, format)
    whole = json.loads(body) if format == "json" else feedparser.parse(body, sanitize_html=False).feed
    described = whole["description"] if format == "json" else whole.subtitle
    assert title.startswith("Publication ") and described.startswith("Notifications of bo")
    assert [*map(dangers, (title, shown, described, whole["title"]))] == [[], [], [], []]


def test_list_of_feeds_of_a_name_with_markup_is_harmless(told: Told) -> None:
    told.store.subscriptions.add(Subscription(HOSTILE, f"bo{HOSTILE}", "predicates", "price < 200"))
    told.store.subscriptions.add(Subscription("s-3", f"bo{HOSTILE}", "predicates", f"title = {HOSTILE!r}"))
    token = told.feeds.addresses.token(f"bo{HOSTILE}", ALL_FEEDS)
    assert token
    root = etree.fromstring(told.feeds.opml(token))  # type: ignore[arg-type]
    said = [root.findtext("head/title"), *(one.get("text") for one in root.iter("outline"))]
    assert len(said) == 3 and [*map(dangers, said)] == [[], [], []]  # type: ignore[arg-type]


def leaving(body: bytes, format: str) -> list[tuple[str, str, str | None]]:
    """Title, content and address of each entry, the last that came last."""
    if format == "json":
        items = json.loads(body)["items"]
        found = [
            (item["title"], item.get("summary", "") + item.get("content_html", ""), item.get("url"))
            for item in items
        ]
    else:
        raw = feedparser.parse(body, sanitize_html=False)
        assert not raw.bozo
        found = [(one.title, one.summary + one.content[0].value, one.get("link")) for one in raw.entries]
    return found[::-1]


def dangers(text: str) -> list[str]:
    """What a browser would run, send or load a page from, if it took a text for HTML."""
    root = etree.fromstring(f"<div>{text}</div>", etree.HTMLParser())
    found = [
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
                found.append(f"{name}={value}")
    return found


def test_the_look_for_dangers_finds_some() -> None:
    assert dangers(HOSTILE) == ["script", "onerror=alert(2)", "href=javascript:alert(3)"]


@given(st.text() | st.text(alphabet="<>&;/!scriptb'\" =#x3C\x00\ud800"))
def test_no_line_has_a_tag_and_all_is_xml(text: str) -> None:
    """`lxml` refuses what XML cannot hold."""
    element = etree.Element("x")
    for made in (to_line(text), sanitize_html(text), safe_link("http://e.example/" + text) or ""):
        element.text = made
        assert "<script" not in made.lower()
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
def test_the_format_that_is_asked_for(accept: str | None, suffix: str) -> None:
    assert negotiate_format(accept).suffix == suffix


def object_feed(told: Told, *given: Notice) -> str:
    told.store.object_notifications.tell("university", given)
    [(listed, token)] = told.feeds.listed("Student:S3")
    assert (listed.id, feed_title(listed)) == ("university", "Changes in university") and token
    return token


@pytest.mark.parametrize("format", [*XML, "json"])
def test_what_changed_of_an_object_is_an_entry(told: Told, format: str) -> None:
    """Its values before and after and the reasons; a publication of the same name is another thing."""
    told.put(Publication("LearningMaterial:Script2", "application/json", b'{"title": "not this"}'))
    token = object_feed(told, *build_notices("university", MODEL, NEW_TITLE, LABELS))
    page = told.feeds.page(told.feeds.open(token), format)  # type: ignore[arg-type]
    [(title, shown, _)] = leaving(told.feeds.render(page), format)  # type: ignore[arg-type]
    assert title == "Second edition updated (title)"
    assert "<td>title</td><td>Script2</td><td>Second edition</td>" in shown
    assert "<li>Second edition -usedIn-&gt; Data structures &lt;-attends- you</li>" in shown


@pytest.mark.parametrize("format", [*XML, "json"])
def test_an_object_that_is_called_like_a_script_comes_out_harmless(told: Told, format: str) -> None:
    changed = {
        "object": "Course:1",
        "label": HOSTILE + ODD,
        "attributes": [HOSTILE],
        "limits": [HOSTILE + ODD],
    }
    changed |= {"before": {HOSTILE: HOSTILE, ODD: [ODD]}}
    made = Notice("o-1", "Student:S3", "Course:1", "deleted", ((HOSTILE + ODD, "Course:1"),), changed)
    token = object_feed(told, made)
    page = told.feeds.page(told.feeds.open(token), format)  # type: ignore[arg-type]
    [(title, shown, _)] = leaving(told.feeds.render(page), format)  # type: ignore[arg-type]
    assert dangers(title) == dangers(shown) == [] and "deleted" in title
