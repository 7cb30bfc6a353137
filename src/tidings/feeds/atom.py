"""Atom 1.0 (RFC 4287), with paged archives (RFC 5005)."""

from __future__ import annotations

import json

from lxml import etree

from tidings.feeds.entries import Entry
from tidings.feeds.feed import AUTHOR, Feed, rfc3339
from tidings.feeds.xml_writing import HISTORY, TIDINGS, add, named, root_of, written
from tidings.publications.feeds_entry import ATOM


def atom(feed: Feed) -> bytes:
    root = root_of(named(ATOM, "feed"), {None: ATOM, "fh": HISTORY, "tidings": TIDINGS})
    add(root, _tag("id"), feed.id)
    add(root, _tag("title"), feed.title)
    add(root, _tag("subtitle"), feed.description)
    add(root, _tag("updated"), rfc3339(feed.updated))
    add(add(root, _tag("author")), _tag("name"), AUTHOR)
    add(root, _tag("generator"), AUTHOR)
    for relation, address in feed.links.related():
        add(root, _tag("link"), rel=relation, href=address)
    if feed.archive:
        add(root, named(HISTORY, "archive"))
    for entry in feed.entries:
        _entry(root, entry)
    return written(root)


def _entry(root: etree._Element, entry: Entry) -> None:
    made = add(root, _tag("entry"))
    add(made, _tag("id"), entry.id)
    add(made, _tag("title"), entry.title)
    add(made, _tag("published"), rfc3339(entry.published))
    add(made, _tag("updated"), rfc3339(entry.updated))
    if entry.link:
        add(made, _tag("link"), rel="alternate", href=entry.link)
    for name in entry.creators:
        add(add(made, _tag("author")), _tag("name"), name)
    for name in entry.subjects:
        add(made, _tag("category"), term=name)
    add(made, _tag("summary"), entry.summary)
    add(made, _tag("content"), entry.content, type="html")
    add_facts(made, entry)


def add_facts(made: etree._Element, entry: Entry) -> None:
    """The reasons and bindings for programs; values as JSON writes them."""
    for reason in entry.facts["because"]:
        value = json.dumps(reason["value"], ensure_ascii=False)
        add(made, named(TIDINGS, "because"), reason["predicate"], at=reason["at"], value=value)
    if entry.facts["bindings"] is not None:
        add(made, named(TIDINGS, "bindings"), json.dumps(entry.facts["bindings"], ensure_ascii=False))


def _tag(name: str) -> str:
    return named(ATOM, name)
