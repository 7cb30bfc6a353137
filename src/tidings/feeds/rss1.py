"""RSS 1.0, which is RDF: what the paper's clients read (section 6).

Links to other pages are properties in the namespace that IANA gave relations, because RDF/XML has no place for Atom's.
"""

from __future__ import annotations

import json

from lxml import etree

from tidings.feeds.entries import Entry
from tidings.feeds.feed import Feed, rfc3339
from tidings.feeds.harmless import escaped
from tidings.feeds.xml_writing import TIDINGS, add, named, root_of, written
from tidings.graphs import RDF
from tidings.model import Reason
from tidings.publications.feeds_entry import CONTENT, DC, DCTERMS, RSS1
from tidings.reasons import show_reason

RELATIONS = "http://www.iana.org/assignments/relation/"
_ABOUT, _RESOURCE = named(RDF, "about"), named(RDF, "resource")


_SPACES = {
    None: RSS1,
    "rdf": RDF,
    "content": CONTENT,
    "dc": DC,
    "dcterms": DCTERMS,
    "rel": RELATIONS,
    "tidings": TIDINGS,
}


def rss1(feed: Feed) -> bytes:
    root = root_of(named(RDF, "RDF"), _SPACES)
    channel = add(root, _tag("channel"), **{_ABOUT: feed.links.self})
    add(channel, _tag("title"), feed.title)
    add(channel, _tag("link"), feed.links.home)
    add(channel, _tag("description"), feed.description)
    add(channel, named(DC, "date"), rfc3339(feed.updated))
    add(channel, named(DC, "identifier"), feed.id)
    for relation, address in feed.links.related():
        add(channel, named(RELATIONS, relation), **{_RESOURCE: address})
    order = add(add(channel, _tag("items")), named(RDF, "Seq"))
    for entry in feed.entries:
        add(order, named(RDF, "li"), **{_RESOURCE: entry.id})
    for entry in feed.entries:
        _item(root, feed, entry)
    return written(root)


def _item(root: etree._Element, feed: Feed, entry: Entry) -> None:
    """Two notifications may be about one page, so the page's address cannot be the item's name. An item has to have a
    link: one that has none leads to its place in the feed, in an archive, too, for there are readers that know an item
    by its link alone.
    """
    item = add(root, _tag("item"), **{_ABOUT: entry.id})
    add(item, _tag("title"), entry.title)
    add(item, _tag("link"), entry.link or f"{feed.links.current}#{entry.id}")
    add(item, _tag("description"), escaped(entry.summary))
    add(item, named(CONTENT, "encoded"), entry.content)
    add(item, named(DC, "date"), rfc3339(entry.published))
    add(item, named(DCTERMS, "modified"), rfc3339(entry.updated))
    for name in entry.creators:
        add(item, named(DC, "creator"), name)
    for name in entry.subjects:
        add(item, named(DC, "subject"), name)
    for reason in entry.facts["because"]:
        add(item, named(TIDINGS, "because"), show_reason(Reason(**reason)))
    if entry.facts["bindings"] is not None:
        add(item, named(TIDINGS, "bindings"), json.dumps(entry.facts["bindings"], ensure_ascii=False))


def _tag(name: str) -> str:
    return named(RSS1, name)
