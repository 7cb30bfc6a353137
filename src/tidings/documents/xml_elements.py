"""Documents as elements that know their line, for what reads XML of one kind and says where it is wrong."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from lxml import etree

from tidings.documents.xml_decoder import DEFAULT, Limits, beyond, checked_tree
from tidings.parsers.xml_bytes import as_utf8


@dataclass(frozen=True, slots=True)
class Element:
    """An element: its namespace and name, its attributes as `{namespace}name`, its text, and the line it begins in."""

    namespace: str
    name: str
    attributes: Mapping[str, str]
    text: str
    children: tuple[Element, ...]
    line: int


def read_elements(body: bytes, limits: Limits = DEFAULT) -> Element:
    """The document element; refused is what `xml.decode` refuses: declarations, entities, what is beyond limits."""
    if len(body) > limits.document:
        raise beyond("document", limits, received=f"{len(body):,} bytes")
    return _element(checked_tree(as_utf8(body), limits))


def _element(found: etree._Element) -> Element:
    name = etree.QName(found)
    return Element(
        name.namespace or "",
        name.localname,
        {str(key): str(value) for key, value in found.attrib.items()},
        (found.text or "").strip(),
        tuple(_element(child) for child in found if isinstance(child.tag, str)),
        found.sourceline or 0,  # type: ignore[arg-type]  # the stubs leave it open
    )
