"""XML as elements that know their line, for readers that report where a document is wrong."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from lxml import etree

from tidings.documents.xml_decoder import DEFAULT, Limits, beyond, checked_tree
from tidings.parsers.xml_bytes import as_utf8


@dataclass(frozen=True, slots=True)
class Element:
    """An element: namespace and name, attributes as `{namespace}name`, text, and the line where it begins."""

    namespace: str
    name: str
    attributes: Mapping[str, str]
    text: str
    children: tuple[Element, ...]
    line: int


def read_elements(body: bytes, limits: Limits = DEFAULT) -> Element:
    """Parse a document; it is refused where `xml_decoder.decode` refuses it: declarations, entities, limits."""
    if len(body) > limits.document:
        raise beyond("document", limits, received=f"{len(body):,} bytes")
    return _element(checked_tree(as_utf8(body), limits))


def _element(element: etree._Element) -> Element:
    name = etree.QName(element)
    return Element(
        name.namespace or "",
        name.localname,
        {str(key): str(value) for key, value in element.attrib.items()},
        (element.text or "").strip(),
        tuple(_element(child) for child in element if isinstance(child.tag, str)),
        element.sourceline or 0,  # type: ignore[arg-type]  # the stubs leave it open
    )
