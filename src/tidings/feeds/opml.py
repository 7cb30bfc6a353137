"""OPML 2.0: the list of somebody's feeds, which feed readers import."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime
from email.utils import format_datetime

from tidings.feeds.xml_writing import add, root_of, written


def opml(title: str, made: datetime, feeds: Iterable[tuple[str, str]]) -> bytes:
    """The list of feeds, each with its title and its address."""
    root = root_of("opml", {}, version="2.0")
    head = add(root, "head")
    add(head, "title", title)
    add(head, "dateModified", format_datetime(made))
    body = add(root, "body")
    for name, address in feeds:
        add(body, "outline", type="rss", text=name, title=name, xmlUrl=address)
    return written(root)
