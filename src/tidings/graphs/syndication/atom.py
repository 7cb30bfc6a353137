"""Atom 1.0 (RFC 4287)."""

from __future__ import annotations

import html
from collections.abc import Iterator

from lxml import etree

from tidings.graphs.syndication.feed import Feed, omitted_from_atom
from tidings.graphs.syndication.item_graph import ATOM, Entry, instant, resolved
from tidings.graphs.syndication.markup import XHTML, inner_html, plain_text

_XML = "{http://www.w3.org/XML/1998/namespace}"
_LANGUAGE, _BASE = f"{_XML}lang", f"{_XML}base"


class Atom:
    """Reader of an Atom feed or of a single entry document."""

    def __init__(self, root: etree._Element, url: str | None) -> None:
        self._root, self._url = root, url

    def feed(self) -> Feed:
        here, base = self._root, base_of(self._root, self._url)
        return Feed(
            title=_title(here),
            link=linked(here, "alternate", base),
            description=_text(here, "subtitle"),
            language=here.get(_LANGUAGE),
            hubs=tuple(links(here, "hub", base)),
            self_link=linked(here, "self", base),
            updated=instant(_text(here, "updated") or ""),
            left_out=omitted_from_atom(self._elements()),
        )

    def entries(self) -> Iterator[Entry]:
        return map(self._entry, self._elements())

    def _elements(self) -> Iterator[etree._Element]:
        own = etree.QName(self._root).localname == "entry"
        return iter([self._root]) if own else self._root.iterfind(_tag("entry"))

    def _entry(self, entry: etree._Element) -> Entry:
        base = base_of(entry, self._url)
        return Entry(
            id=_text(entry, "id"),
            link=linked(entry, "alternate", base),
            title=_title(entry),
            description=_text(entry, "summary"),
            content=_content(entry),
            published=_text(entry, "published"),
            updated=_text(entry, "updated"),
            language=entry.get(_LANGUAGE),
            creators=_authors(entry) or _source_authors(entry) or _authors(self._root),
            subjects=tuple(dict.fromkeys(_categories(entry))),
            enclosures=tuple(links(entry, "enclosure", base)),
        )


def base_of(element: etree._Element, url: str | None) -> str | None:
    """Return the base of an element's links: `xml:base` from the outside in, starting at the feed's own address.

    lxml's `element.base` does not include that address, so a relative `xml:base` would be applied twice.
    """
    for holder in reversed([element, *element.iterancestors()]):
        url = resolved(url, holder.get(_BASE)) or url
    return url


def linked(element: etree._Element, relation: str, base: str | None) -> str | None:
    """Return the first link with this relation."""
    return next(links(element, relation, base), None)


def links(element: etree._Element, relation: str, base: str | None) -> Iterator[str]:
    """Yield the addresses of links with this relation, HTML pages first."""
    elements = [link for link in element.iterfind(_tag("link")) if link.get("rel", "alternate") == relation]
    for link in sorted(elements, key=lambda link: link.get("type", "text/html") != "text/html"):
        address = resolved(resolved(base, link.get(_BASE)) or base, link.get("href"))
        if address:
            yield address


def _tag(name: str) -> str:
    return f"{{{ATOM}}}{name}"


def _text(element: etree._Element, name: str) -> str | None:
    """Return a text construct unchanged: text, HTML, or the content of XHTML's div as HTML."""
    child = element.find(_tag(name))
    if child is None:
        return None
    return _markup(child).strip() or None


def _markup(child: etree._Element) -> str:
    divided = child.find(f"{XHTML}div") if child.get("type") == "xhtml" else None
    if divided is not None:
        return inner_html(divided)
    return inner_html(child) if len(child) else child.text or ""


def _title(element: etree._Element) -> str | None:
    """Return the title as plain text: subscriptions look for `Tom & Jerry`, not for `Tom &amp; Jerry`."""
    child = element.find(_tag("title"))
    text = _text(element, "title")
    return plain_text(text) if text and child is not None and child.get("type", "text") != "text" else text


def _content(entry: etree._Element) -> str | None:
    """Return the content as HTML; None for one that is elsewhere (`src`) or not text."""
    child = entry.find(_tag("content"))
    kind = "text" if child is None else child.get("type", "text")
    if child is None or child.get("src") or kind not in ("text", "html", "xhtml", "text/html", "text/plain"):
        return None
    text = _markup(child).strip()
    return (html.escape(text, quote=False) if kind in ("text", "text/plain") else text) or None


def _authors(element: etree._Element | None) -> tuple[str, ...]:
    if element is None:
        return ()
    named = (_text(author, "name") or _text(author, "email") for author in element.iterfind(_tag("author")))
    return tuple(name for name in named if name)


def _source_authors(entry: etree._Element) -> tuple[str, ...]:
    return _authors(entry.find(_tag("source")))


def _categories(entry: etree._Element) -> Iterator[str]:
    for category in entry.iterfind(_tag("category")):
        term = (category.get("term") or category.get("label") or "").strip()
        if term:
            yield term
