"""Which feeds a page names. People copy the address of the page; the feed's stands in the page.

Nothing is done with them but to show them: which one is meant, the person who has typed the address knows.
"""

from __future__ import annotations

import html
import re

from tidings.iris import resolve_iri
from tidings.publications.rdf_media_types import ATOM, JSON_FEED, RDF_XML, RSS
from tidings.web.network import is_web_address

FEEDS = (ATOM, RSS, JSON_FEED, RDF_XML)
LOOKED_AT, MOST = 200_000, 3
"""Bytes in which the names are looked for, and how many are shown."""

_LINK = re.compile(r"<link\b([^<>]{1,2000})>", re.IGNORECASE)
_ATTRIBUTE = re.compile(r"([a-z]{1,20})\s?=\s?(?:\"([^\"]*)\"|'([^']*)'|([^\s\"'>]+))", re.IGNORECASE)


def feeds_named_in(page: bytes, url: str) -> list[str]:
    """The addresses of the first feeds that a page names."""
    found = [_address(tag, url) for tag in _LINK.findall(page[:LOOKED_AT].decode(errors="replace"))]
    return list(dict.fromkeys(each for each in found if each))[:MOST]


def _address(tag: str, url: str) -> str | None:
    said = {name.lower(): html.unescape(a or b or c) for name, a, b, c in _ATTRIBUTE.findall(tag)}
    is_feed = "alternate" in said.get("rel", "").lower().split() and said.get("type", "").lower() in FEEDS
    if not is_feed or not said.get("href", "").strip():
        return None
    address = resolve_iri(url, said["href"].strip())
    return address if is_web_address(address) else None
