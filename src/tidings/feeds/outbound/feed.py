"""Model of a feed page for the writers, and helpers to write XML."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime

from lxml import etree

from tidings.core.text import replace_invalid_characters
from tidings.feeds.outbound.entries import Entry

AUTHOR = "Tidings"


@dataclass(frozen=True, slots=True)
class Links:
    """URLs of a feed page and of related pages (RFC 5005), and of the WebSub hub."""

    self: str
    current: str
    hub: str
    home: str
    prev_archive: str | None = None
    next_archive: str | None = None

    def related(self) -> Iterator[tuple[str, str]]:
        """Yield the link relations of feeds and of the Link header, with their URLs."""
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
    """A page of a feed, entries newest first. An archive page does not change any more."""

    id: str
    title: str
    description: str
    updated: datetime
    links: Links
    entries: tuple[Entry, ...]
    archive: bool = False


def rfc3339(moment: datetime) -> str:
    """Format a time for Atom, JSON Feed and RDF."""
    return moment.astimezone(UTC).isoformat(timespec="seconds").replace("+00:00", "Z")


HISTORY = "http://purl.org/syndication/history/1.0"
TIDINGS = "urn:x-tidings:feed"
"""XML namespace of extensions of Tidings: reasons and bindings."""


def qualified_name(namespace: str, name: str) -> str:
    return f"{{{namespace}}}{name}"


def create_root(tag: str, namespaces: Mapping[str | None, str], **attributes: str) -> etree._Element:
    """Create the root element; the prefix None is the default namespace."""
    made = etree.Element(tag, nsmap=namespaces)  # type: ignore[arg-type]
    for name, value in attributes.items():
        made.set(name, value)
    return made


def add_element(
    parent: etree._Element, tag: str, text: str | None = None, /, **attributes: str
) -> etree._Element:
    """Append a child element; the caller sets attributes with a namespace."""
    made = etree.SubElement(parent, tag)
    if text is not None:
        made.text = replace_invalid_characters(text)
    for name, value in attributes.items():
        made.set(name, replace_invalid_characters(value))
    return made


def serialize(root: etree._Element) -> bytes:
    """Serialize a document."""
    return etree.tostring(root, encoding="utf-8", xml_declaration=True, pretty_print=True)
