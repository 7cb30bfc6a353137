"""XML as feeds are written: elements with texts, through lxml, so that nothing is ever put together from strings."""

from __future__ import annotations

from collections.abc import Mapping

from lxml import etree

from tidings.feeds.harmless import characters

HISTORY = "http://purl.org/syndication/history/1.0"
TIDINGS = "urn:x-tidings:feed"
"""The namespace of what only Tidings says: reasons and bindings."""


def named(namespace: str, name: str) -> str:
    return f"{{{namespace}}}{name}"


def root_of(tag: str, namespaces: Mapping[str | None, str], **attributes: str) -> etree._Element:
    """The root of a document; the prefix None is that of names without one."""
    made = etree.Element(tag, nsmap=namespaces)  # type: ignore[arg-type]
    for name, value in attributes.items():
        made.set(name, value)
    return made


def add(parent: etree._Element, tag: str, text: str | None = None, /, **attributes: str) -> etree._Element:
    """A new last child; attributes of a namespace are set by the caller."""
    made = etree.SubElement(parent, tag)
    if text is not None:
        made.text = characters(text)
    for name, value in attributes.items():
        made.set(name, characters(value))
    return made


def written(root: etree._Element) -> bytes:
    """The bytes of a document."""
    return etree.tostring(root, encoding="utf-8", xml_declaration=True, pretty_print=True)
