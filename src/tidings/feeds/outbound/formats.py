"""Feed formats: a writer for each, and content negotiation between them.

Atom 1.0 (RFC 4287), RSS 1.0, RSS 2.0 and JSON Feed 1.1, with paged archives (RFC 5005), and OPML for lists of feeds.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime
from email.utils import format_datetime
from typing import Any

from lxml import etree

from tidings.core.text import escape_html
from tidings.feeds.outbound.entries import Entry
from tidings.feeds.outbound.feed import (
    AUTHOR,
    HISTORY,
    TIDINGS,
    Feed,
    add_element,
    create_root,
    qualified_name,
    rfc3339,
    serialize,
)
from tidings.graphs.model import RDF
from tidings.graphs.rdf import media_types
from tidings.graphs.syndication.item_graph import ATOM, CONTENT, DC, DCTERMS, RSS1
from tidings.model import Reason
from tidings.notification_text import format_reason


def render_atom(feed: Feed) -> bytes:
    root = create_root(qualified_name(ATOM, "feed"), {None: ATOM, "fh": HISTORY, "tidings": TIDINGS})
    add_element(root, _atom_tag("id"), feed.id)
    add_element(root, _atom_tag("title"), feed.title)
    add_element(root, _atom_tag("subtitle"), feed.description)
    add_element(root, _atom_tag("updated"), rfc3339(feed.updated))
    add_element(add_element(root, _atom_tag("author")), _atom_tag("name"), AUTHOR)
    add_element(root, _atom_tag("generator"), AUTHOR)
    for relation, address in feed.links.related():
        add_element(root, _atom_tag("link"), rel=relation, href=address)
    if feed.archive:
        add_element(root, qualified_name(HISTORY, "archive"))
    for entry in feed.entries:
        _atom_entry(root, entry)
    return serialize(root)


def _atom_entry(root: etree._Element, entry: Entry) -> None:
    made = add_element(root, _atom_tag("entry"))
    add_element(made, _atom_tag("id"), entry.id)
    add_element(made, _atom_tag("title"), entry.title)
    add_element(made, _atom_tag("published"), rfc3339(entry.published))
    add_element(made, _atom_tag("updated"), rfc3339(entry.updated))
    if entry.link:
        add_element(made, _atom_tag("link"), rel="alternate", href=entry.link)
    for name in entry.creators:
        add_element(add_element(made, _atom_tag("author")), _atom_tag("name"), name)
    for name in entry.subjects:
        add_element(made, _atom_tag("category"), term=name)
    add_element(made, _atom_tag("summary"), entry.summary)
    add_element(made, _atom_tag("content"), entry.content, type="html")
    add_facts(made, entry)


def add_facts(made: etree._Element, entry: Entry) -> None:
    """Add reasons and bindings for programs, with values in JSON."""
    for reason in entry.facts["because"]:
        value = json.dumps(reason["value"], ensure_ascii=False)
        add_element(
            made, qualified_name(TIDINGS, "because"), reason["predicate"], at=reason["at"], value=value
        )
    if entry.facts["bindings"] is not None:
        add_element(
            made, qualified_name(TIDINGS, "bindings"), json.dumps(entry.facts["bindings"], ensure_ascii=False)
        )


def _atom_tag(name: str) -> str:
    return qualified_name(ATOM, name)


JSON_FEED_VERSION = "https://jsonfeed.org/version/1.1"


def render_json_feed(feed: Feed) -> bytes:
    links = feed.links
    made: dict[str, Any] = {
        "version": JSON_FEED_VERSION,
        "title": feed.title,
        "home_page_url": links.home,
        "feed_url": links.self,
        "description": feed.description,
        "authors": [{"name": AUTHOR}],
        "hubs": [{"type": "WebSub", "url": links.hub}],
    }
    made |= {"next_url": links.prev_archive} if links.prev_archive else {}
    made["items"] = [_json_item(entry) for entry in feed.entries]
    return json.dumps(made, ensure_ascii=False, indent=1).encode()


def _json_item(entry: Entry) -> dict[str, Any]:
    made = {
        "id": entry.id,
        "url": entry.link,
        "title": entry.title,
        "summary": entry.summary,
        "content_html": entry.content,
        "date_published": rfc3339(entry.published),
        "date_modified": rfc3339(entry.updated),
        "authors": [{"name": name} for name in entry.creators],
        "tags": list(entry.subjects),
        "_tidings": entry.facts,
    }
    return {name: value for name, value in made.items() if value}


RELATIONS = "http://www.iana.org/assignments/relation/"
"""IANA's namespace of link relations: properties of RSS 1.0, which cannot contain Atom's link elements."""
_ABOUT, _RESOURCE = qualified_name(RDF, "about"), qualified_name(RDF, "resource")


_SPACES = {
    None: RSS1,
    "rdf": RDF,
    "content": CONTENT,
    "dc": DC,
    "dcterms": DCTERMS,
    "rel": RELATIONS,
    "tidings": TIDINGS,
}


def render_rss1(feed: Feed) -> bytes:
    """Render RSS 1.0, which is RDF; the clients of the paper read it (section 6)."""
    root = create_root(qualified_name(RDF, "RDF"), _SPACES)
    channel = add_element(root, _rss1_tag("channel"), **{_ABOUT: feed.links.self})
    add_element(channel, _rss1_tag("title"), feed.title)
    add_element(channel, _rss1_tag("link"), feed.links.home)
    add_element(channel, _rss1_tag("description"), feed.description)
    add_element(channel, qualified_name(DC, "date"), rfc3339(feed.updated))
    add_element(channel, qualified_name(DC, "identifier"), feed.id)
    for relation, address in feed.links.related():
        add_element(channel, qualified_name(RELATIONS, relation), **{_RESOURCE: address})
    order = add_element(add_element(channel, _rss1_tag("items")), qualified_name(RDF, "Seq"))
    for entry in feed.entries:
        add_element(order, qualified_name(RDF, "li"), **{_RESOURCE: entry.id})
    for entry in feed.entries:
        _rss1_item(root, feed, entry)
    return serialize(root)


def _rss1_item(root: etree._Element, feed: Feed, entry: Entry) -> None:
    """Add an item, identified by the id of its entry: two notifications may be about one page.

    RSS 1.0 requires a link, and some readers identify items by it. An entry without one links to its place in the
    current feed, also in an archive.
    """
    item = add_element(root, _rss1_tag("item"), **{_ABOUT: entry.id})
    add_element(item, _rss1_tag("title"), entry.title)
    add_element(item, _rss1_tag("link"), entry.link or f"{feed.links.current}#{entry.id}")
    add_element(item, _rss1_tag("description"), escape_html(entry.summary))
    add_element(item, qualified_name(CONTENT, "encoded"), entry.content)
    add_element(item, qualified_name(DC, "date"), rfc3339(entry.published))
    add_element(item, qualified_name(DCTERMS, "modified"), rfc3339(entry.updated))
    for name in entry.creators:
        add_element(item, qualified_name(DC, "creator"), name)
    for name in entry.subjects:
        add_element(item, qualified_name(DC, "subject"), name)
    for reason in entry.facts["because"]:
        add_element(item, qualified_name(TIDINGS, "because"), format_reason(Reason(**reason)))
    if entry.facts["bindings"] is not None:
        add_element(
            item, qualified_name(TIDINGS, "bindings"), json.dumps(entry.facts["bindings"], ensure_ascii=False)
        )


def _rss1_tag(name: str) -> str:
    return qualified_name(RSS1, name)


def render_rss2(feed: Feed) -> bytes:
    spaces: dict[str | None, str] = {
        "atom": ATOM,
        "content": CONTENT,
        "dc": DC,
        "fh": HISTORY,
        "tidings": TIDINGS,
    }
    root = create_root("rss", spaces, version="2.0")
    channel = add_element(root, "channel")
    add_element(channel, "title", feed.title)
    add_element(channel, "link", feed.links.home)
    add_element(channel, "description", feed.description)
    add_element(channel, "lastBuildDate", format_datetime(feed.updated))
    add_element(channel, "generator", AUTHOR)
    for relation, address in feed.links.related():
        add_element(channel, qualified_name(ATOM, "link"), rel=relation, href=address)
    if feed.archive:
        add_element(channel, qualified_name(HISTORY, "archive"))
    for entry in feed.entries:
        _rss2_item(channel, entry)
    return serialize(root)


def _rss2_item(channel: etree._Element, entry: Entry) -> None:
    item = add_element(channel, "item")
    add_element(item, "title", entry.title)
    if entry.link:
        add_element(item, "link", entry.link)
    add_element(item, "guid", entry.id, isPermaLink="false")
    add_element(item, "pubDate", format_datetime(entry.updated))
    for name in entry.creators:
        add_element(item, qualified_name(DC, "creator"), name)
    for name in entry.subjects:
        add_element(item, "category", name)
    add_element(item, "description", escape_html(entry.summary))
    add_element(item, qualified_name(CONTENT, "encoded"), entry.content)
    add_facts(item, entry)


def render_opml(title: str, made: datetime, feeds: Iterable[tuple[str, str]]) -> bytes:
    """Render OPML 2.0, a list of titles and URLs of feeds that feed readers import."""
    root = create_root("opml", {}, version="2.0")
    head = add_element(root, "head")
    add_element(head, "title", title)
    add_element(head, "dateModified", format_datetime(made))
    body = add_element(root, "body")
    for name, address in feeds:
        add_element(body, "outline", type="rss", text=name, title=name, xmlUrl=address)
    return serialize(root)


@dataclass(frozen=True, slots=True)
class Format:
    """A feed format: suffix of its URLs, media type, and further media types that select it."""

    suffix: str
    media_type: str
    render: Callable[[Feed], bytes]
    also: tuple[str, ...] = ()

    @property
    def content_type(self) -> str:
        return f"{self.media_type}; charset=utf-8"


FORMATS: Mapping[str, Format] = {
    format.suffix: format
    for format in (
        Format("atom", media_types.ATOM, render_atom, ("application/xml", "text/xml")),
        Format("rss", media_types.RSS, render_rss2),
        Format("rdf", media_types.RDF_XML, render_rss1),
        Format("json", media_types.JSON_FEED, render_json_feed, ("application/json",)),
    )
}
DEFAULT = FORMATS["atom"]


def negotiate_format(accept: str | None) -> Format:
    """Return the format that an Accept header prefers; Atom if it names none, which is better than an error."""
    preferences = [_parse_preference(part) for part in (accept or "").split(",")[:50]]
    for media_type, quality in sorted(preferences, key=lambda preference: -preference[1]):
        format = _find_format(media_type) if quality > 0 else None
        if format:
            return format
    return DEFAULT


def _parse_preference(part: str) -> tuple[str, float]:
    media_type, *parameters = (word.strip().lower() for word in part.split(";"))
    quality = next((word[2:] for word in parameters if word.startswith("q=")), "1")
    try:
        return media_type, float(quality)
    except ValueError:
        return media_type, 0.0


def _find_format(media_type: str) -> Format | None:
    return next(
        (format for format in FORMATS.values() if media_type in (format.media_type, *format.also)), None
    )
