"""RSS 2.0, and 0.91 to 0.94 which are parts of it, with the modules that many feeds use: dc, content, atom, sy."""

from __future__ import annotations

from collections.abc import Iterator

from lxml import etree

from tidings.graphs.feed_formats.atom import base_of, linked, links
from tidings.graphs.feed_formats.entry import ATOM, CONTENT, DC, Entry, resolved
from tidings.graphs.feed_formats.feed import FeedFacts, days, hours, minutes, whole_number
from tidings.graphs.feed_formats.html import inner_html
from tidings.graphs.feed_formats.omissions import omitted_from_rss

SY = "http://purl.org/rss/1.0/modules/syndication/"


class Rss:
    """Reads an RSS feed; names without a prefix are in the namespace of its root, which is none if all is well."""

    def __init__(self, root: etree._Element, url: str | None) -> None:
        self._url = url
        self._core = etree.QName(root).namespace or ""
        channel = root.find(self._tag("channel"))
        self._channel = root if channel is None else channel
        self._root = root

    def facts(self) -> FeedFacts:
        here, base = self._channel, base_of(self._channel, self._url)
        return FeedFacts(
            title=self._text(here, "title"),
            link=resolved(base, self._text(here, "link")) or linked(here, "alternate", base),
            description=self._text(here, "description"),
            language=self._text(here, "language") or text_of(here, DC, "language"),
            ttl=self._ttl(),
            hubs=tuple(links(here, "hub", base)),
            self_link=linked(here, "self", base),
            updated=self._text(here, "lastBuildDate")
            or self._text(here, "pubDate")
            or text_of(here, DC, "date"),
            skip_hours=hours(self._inside("skipHours", "hour")),
            skip_days=days(self._inside("skipDays", "day")),
            left_out=omitted_from_rss(self._root.iter(self._tag("item")), self._core),
        )

    def _inside(self, outer: str, inner: str) -> tuple[str, ...]:
        """The texts of the elements `inner` in the channel's first `outer`."""
        found = self._channel.find(self._tag(outer))
        return () if found is None else self._texts(found, inner)

    def entries(self) -> Iterator[Entry]:
        for item in self._root.iter(self._tag("item")):
            yield self._entry(item)

    def _entry(self, item: etree._Element) -> Entry:
        guid = item.find(self._tag("guid"))
        id = None if guid is None else (guid.text or "").strip() or None
        permanent = id if guid is not None and guid.get("isPermaLink", "true").strip() != "false" else None
        base = base_of(item, self._url)
        link = resolved(base, self._text(item, "link")) or linked(item, "alternate", base)
        return Entry(
            id=id,
            link=link or (resolved(base, permanent) if permanent and "/" in permanent else None),
            title=self._text(item, "title") or text_of(item, DC, "title"),
            description=self._text(item, "description") or text_of(item, DC, "description"),
            content=text_of(item, CONTENT, "encoded"),
            published=self._text(item, "pubDate") or text_of(item, DC, "date"),
            updated=text_of(item, ATOM, "updated"),
            creators=texts_of(item, DC, "creator") or self._texts(item, "author"),
            subjects=tuple(dict.fromkeys(self._texts(item, "category") + texts_of(item, DC, "subject"))),
            enclosures=tuple(
                found
                for each in item.iterfind(self._tag("enclosure"))
                if (found := resolved(base, each.get("url")))
            ),
        )

    def _ttl(self) -> int | None:
        ttl = whole_number(self._text(self._channel, "ttl") or "")
        if ttl is not None:
            return ttl
        period, often = (
            text_of(self._channel, SY, "updatePeriod"),
            text_of(self._channel, SY, "updateFrequency"),
        )
        return minutes(period, often)

    def _tag(self, name: str) -> str:
        return f"{{{self._core}}}{name}" if self._core else name

    def _text(self, element: etree._Element, name: str) -> str | None:
        return next(iter(self._texts(element, name)), None)

    def _texts(self, element: etree._Element, name: str) -> tuple[str, ...]:
        return texts_of(element, self._core, name)


def text_of(element: etree._Element, namespace: str, name: str) -> str | None:
    return next(iter(texts_of(element, namespace, name)), None)


def texts_of(element: etree._Element, namespace: str, name: str) -> tuple[str, ...]:
    """The texts of the children of this name; markup that somebody forgot to escape is kept as markup."""
    tag = f"{{{namespace}}}{name}" if namespace else name
    found = (inner_html(child) if len(child) else child.text or "" for child in element.iterfind(tag))
    return tuple(text.strip() for text in found if text.strip())
