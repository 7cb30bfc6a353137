"""What of a feed's items does not become part of their graphs, by name: so that nothing is left out silently.

    <media:content url="..."/>                  media:content
    <category domain="http://example.org/t">    category@domain
    "_podcast": {...}                           _podcast

RSS 1.0 is RDF and keeps everything.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from typing import Any

from lxml import etree

from tidings.graphs.feed_formats.entry import ATOM, CONTENT, DC

NAMES = 20
"""So many names are kept of a feed, the most frequent ones; each at most LONGEST characters long."""
LONGEST = 60

_RSS = frozenset(
    {
        *("guid", "link", "title", "description", "pubDate", "author", "category", "enclosure"),
        *(f"{{{DC}}}{name}" for name in ("title", "description", "creator", "date", "subject")),
        *(f"{{{CONTENT}}}encoded", f"{{{ATOM}}}link", f"{{{ATOM}}}updated"),
    }
)
_ATOM = frozenset(
    f"{{{ATOM}}}{name}"
    for name in (
        "id",
        "title",
        "summary",
        "content",
        "published",
        "updated",
        "author",
        "category",
        "link",
        "source",
    )
)
_JSON = frozenset(
    {
        *(
            "id",
            "url",
            "external_url",
            "title",
            "summary",
            "content_text",
            "content_html",
            "language",
            "tags",
        ),
        *("date_published", "date_modified", "author", "authors", "attachments"),
    }
)
_RELATIONS = ("alternate", "enclosure")
_SCHEMES = {"domain": "category@domain", "scheme": "category@scheme"}

LeftOut = tuple[tuple[str, int], ...]
"""Names, and how often each stands in the items; the most frequent first."""


def omitted_from_rss(items: Iterable[etree._Element], core: str) -> LeftOut:
    """Of RSS 2.0; `core` is the namespace of names without a prefix, which is none in most feeds."""
    return _of_elements(items, _RSS, core)


def omitted_from_atom(entries: Iterable[etree._Element]) -> LeftOut:
    return _of_elements(entries, _ATOM, "")


def omitted_from_json(items: Iterable[Mapping[str, Any]]) -> LeftOut:
    return _most(Counter(name[:LONGEST] for item in items for name in item if name not in _JSON))


def _of_elements(items: Iterable[etree._Element], read: frozenset[str], core: str) -> LeftOut:
    found: Counter[str] = Counter()
    for child in (child for item in items for child in item.iterchildren("*")):
        tag = str(child.tag).removeprefix(f"{{{core}}}") if core else str(child.tag)
        if tag not in read:
            found[_name(child)] += 1
        elif tag == f"{{{ATOM}}}link" and child.get("rel", "alternate") not in _RELATIONS:
            found[f"link rel={child.get('rel')}"[:LONGEST]] += 1
        elif tag == f"{{{ATOM}}}content" and child.get("src"):
            found["content@src"] += 1
        elif tag.rpartition("}")[2] == "category":
            found.update(_SCHEMES[name] for name in _SCHEMES if child.get(name))
    return _most(found)


def _name(element: etree._Element) -> str:
    local = etree.QName(element).localname
    return (f"{element.prefix}:{local}" if element.prefix else local)[:LONGEST]


def _most(found: Counter[str]) -> LeftOut:
    return tuple(sorted(found.items(), key=lambda item: (-item[1], item[0]))[:NAMES])


def show_omitted(found: LeftOut) -> str | None:
    """As people read it: `media:content (12), category@domain (3)`; nothing if nothing was left out."""
    return ", ".join(f"{name} ({count:,})" for name, count in found) or None
