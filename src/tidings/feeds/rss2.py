"""RSS 2.0, with the links of Atom and RFC 5005."""

from __future__ import annotations

from email.utils import format_datetime

from lxml import etree

from tidings.feeds.atom import add_facts
from tidings.feeds.entries import Entry
from tidings.feeds.feed import AUTHOR, Feed
from tidings.feeds.harmless import escaped
from tidings.feeds.xml_writing import HISTORY, TIDINGS, add, named, root_of, written
from tidings.publications.feeds_entry import ATOM, CONTENT, DC


def rss2(feed: Feed) -> bytes:
    spaces: dict[str | None, str] = {
        "atom": ATOM,
        "content": CONTENT,
        "dc": DC,
        "fh": HISTORY,
        "tidings": TIDINGS,
    }
    root = root_of("rss", spaces, version="2.0")
    channel = add(root, "channel")
    add(channel, "title", feed.title)
    add(channel, "link", feed.links.home)
    add(channel, "description", feed.description)
    add(channel, "lastBuildDate", format_datetime(feed.updated))
    add(channel, "generator", AUTHOR)
    for relation, address in feed.links.related():
        add(channel, named(ATOM, "link"), rel=relation, href=address)
    if feed.archive:
        add(channel, named(HISTORY, "archive"))
    for entry in feed.entries:
        _item(channel, entry)
    return written(root)


def _item(channel: etree._Element, entry: Entry) -> None:
    item = add(channel, "item")
    add(item, "title", entry.title)
    if entry.link:
        add(item, "link", entry.link)
    add(item, "guid", entry.id, isPermaLink="false")
    add(item, "pubDate", format_datetime(entry.updated))
    for name in entry.creators:
        add(item, named(DC, "creator"), name)
    for name in entry.subjects:
        add(item, "category", name)
    add(item, "description", escaped(entry.summary))
    add(item, named(CONTENT, "encoded"), entry.content)
    add_facts(item, entry)
