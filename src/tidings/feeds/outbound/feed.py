"""A feed as it is handed to the formats: what it says of itself, where its other pages are, and its entries."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime

from lxml import etree

from tidings.feeds.outbound.entries import Entry
from tidings.feeds.outbound.sanitize import replace_invalid_characters

AUTHOR = "Tidings"


@dataclass(frozen=True, slots=True)
class Links:
    """Where a page of a feed is, and where the others are (RFC 5005); `hub` is WebSub's."""

    self: str
    current: str
    hub: str
    home: str
    prev_archive: str | None = None
    next_archive: str | None = None

    def related(self) -> Iterator[tuple[str, str]]:
        """The relations that formats and the Link header name, with their addresses."""
        yield "self", self.self
        yield "hub", self.hub
        if self.current != self.self:
            yield "current", self.current
        if self.prev_archive:
            yield "prev-archive", self.prev_archive
        if self.next_archive:
            yield "next-archive", self.next_archive


@dataclass(frozen=True, slots=True)
class Feed:
    """A page of a feed, entries newest first. An archive is one that will not change any more."""

    id: str
    title: str
    description: str
    updated: datetime
    links: Links
    entries: tuple[Entry, ...]
    archive: bool = False


def rfc3339(moment: datetime) -> str:
    """The way Atom, JSON Feed and RDF write instants."""
    return moment.astimezone(UTC).isoformat(timespec="seconds").replace("+00:00", "Z")


# XML as feeds are written: elements with texts, through lxml, so that nothing is ever put together from strings.


HISTORY = "http://purl.org/syndication/history/1.0"
TIDINGS = "urn:x-tidings:feed"
"""The namespace of what only Tidings says: reasons and bindings."""


def qualified_name(namespace: str, name: str) -> str:
    return f"{{{namespace}}}{name}"


def create_root(tag: str, namespaces: Mapping[str | None, str], **attributes: str) -> etree._Element:
    """The root of a document; the prefix None is that of names without one."""
    made = etree.Element(tag, nsmap=namespaces)  # type: ignore[arg-type]
    for name, value in attributes.items():
        made.set(name, value)
    return made


def add_element(
    parent: etree._Element, tag: str, text: str | None = None, /, **attributes: str
) -> etree._Element:
    """A new last child; attributes of a namespace are set by the caller."""
    made = etree.SubElement(parent, tag)
    if text is not None:
        made.text = replace_invalid_characters(text)
    for name, value in attributes.items():
        made.set(name, replace_invalid_characters(value))
    return made


def serialize(root: etree._Element) -> bytes:
    """The bytes of a document."""
    return etree.tostring(root, encoding="utf-8", xml_declaration=True, pretty_print=True)
