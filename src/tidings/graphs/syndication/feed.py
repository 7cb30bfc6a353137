"""A feed's description of itself, and the parts of its items that their graphs do not contain.

    <media:content url="..."/>                  media:content
    <category domain="http://example.org/t">    category@domain
    "_podcast": {...}                           _podcast

Omissions are counted by name, so that nothing is dropped silently. RSS 1.0 is RDF and keeps everything.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from datetime import datetime
from typing import Any, NamedTuple

from lxml import etree

from tidings.graphs.syndication.item_graph import ATOM, CONTENT, DC

_PERIODS = {"hourly": 60, "daily": 1_440, "weekly": 10_080, "monthly": 43_200, "yearly": 525_600}


_DIGITS = 15
"""Longer numbers are capped: no feed needs them, and Python refuses to parse thousands of digits."""

_DAYS = ("monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday")


class Feed(NamedTuple):
    """A feed's description of itself. `ttl` is in minutes; `hubs` and `self_link` are for WebSub.

    In `skip_hours` (UTC) and on `skip_days` (Monday is 0) it should not be polled. `left_out` names elements of its
    items that their graphs do not contain.
    """

    title: str | None = None
    link: str | None = None
    description: str | None = None
    language: str | None = None
    ttl: int | None = None
    hubs: tuple[str, ...] = ()
    self_link: str | None = None
    updated: datetime | None = None
    node: str | None = None
    skip_hours: frozenset[int] = frozenset()
    skip_days: frozenset[int] = frozenset()
    left_out: LeftOut = ()


def parse_hours(texts: Iterable[str]) -> frozenset[int]:
    """Parse hours of a day; 24 is midnight in old feeds."""
    numbers = (int(text) for text in texts if len(text) <= 2 and text.isascii() and text.isdecimal())
    return frozenset(hour % 24 for hour in numbers if hour <= 24)


def parse_days(texts: Iterable[str]) -> frozenset[int]:
    """Parse names of weekdays; Monday is 0."""
    return frozenset(_DAYS.index(text.lower()) for text in texts if text.lower() in _DAYS)


def update_interval(period: str | None, frequency: str | None) -> int | None:
    """Return the minutes between updates by the syndication module: `updateFrequency` times per `updatePeriod`."""
    length = _PERIODS.get((period or "").strip())
    times = whole_number(frequency or "")
    return None if length is None else max(1, length // max(1, 1 if times is None else times))


def whole_number(text: str) -> int | None:
    """Parse a whole number, capped at 15 digits; None for other texts."""
    digits = text.strip()
    if not digits.isdecimal():
        return None
    return int(digits) if len(digits) <= _DIGITS else int("9" * _DIGITS)


NAMES = 20
"""Maximum number of names per feed, the most frequent first; each has at most LONGEST characters."""
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
"""Names with the number of their occurrences in the items, the most frequent first."""


def omitted_from_rss(items: Iterable[etree._Element], core: str) -> LeftOut:
    """Count the omissions of RSS 2.0; `core` is the namespace of names without a prefix, usually empty."""
    return _of_elements(items, _RSS, core)


def omitted_from_atom(entries: Iterable[etree._Element]) -> LeftOut:
    return _of_elements(entries, _ATOM, "")


def omitted_from_json(items: Iterable[Mapping[str, Any]]) -> LeftOut:
    return _most(Counter(name[:LONGEST] for item in items for name in item if name not in _JSON))


def _of_elements(items: Iterable[etree._Element], read: frozenset[str], core: str) -> LeftOut:
    counts: Counter[str] = Counter()
    for child in (child for item in items for child in item.iterchildren("*")):
        tag = str(child.tag).removeprefix(f"{{{core}}}") if core else str(child.tag)
        if tag not in read:
            counts[_name(child)] += 1
        elif tag == f"{{{ATOM}}}link" and child.get("rel", "alternate") not in _RELATIONS:
            counts[f"link rel={child.get('rel')}"[:LONGEST]] += 1
        elif tag == f"{{{ATOM}}}content" and child.get("src"):
            counts["content@src"] += 1
        elif tag.rpartition("}")[2] == "category":
            counts.update(_SCHEMES[name] for name in _SCHEMES if child.get(name))
    return _most(counts)


def _name(element: etree._Element) -> str:
    local = etree.QName(element).localname
    return (f"{element.prefix}:{local}" if element.prefix else local)[:LONGEST]


def _most(counts: Counter[str]) -> LeftOut:
    return tuple(sorted(counts.items(), key=lambda item: (-item[1], item[0]))[:NAMES])


def show_omitted(omitted: LeftOut) -> str | None:
    """Format omissions: `media:content (12), category@domain (3)`; None if there are none."""
    return ", ".join(f"{name} ({count:,})" for name, count in omitted) or None
