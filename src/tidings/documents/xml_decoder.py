"""XML documents as nodes with tag paths. This is the specification of decoding.

    <stock id="7">IBM<price>83.50</price></stock>

has the nodes `/stock` ('IBM83.50'), `/stock/@id` ('7'), `/stock/text()` ('IBM'), `/stock/price` ('83.50') and
`/stock/price/text()` ('83.50'). Nodes are those of XPath: comments and processing instructions are not nodes, but
separate the text around them; CDATA is text; white space is text; namespace declarations are not attributes. Faster
decoders are tested against this one.

A document is read twice: first to check the limits, with a parser that stores nothing and stops at the first
violation, and then to build the nodes.

`read_elements` gives elements with their line instead, for readers that report where a document is wrong.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any

from lxml import etree

from tidings.core.limits import check_limits, limits_from, over_limit
from tidings.core.suggest import printable
from tidings.documents.model import Node, NodeKind, show_node
from tidings.errors import DecodeProblem
from tidings.parsers.xml_bytes import convert_to_utf8, reject_doctype
from tidings.parsers.xml_parser import (
    DeclarationGuard,
    Element,
    is_plain,
    make_parser,
    parse,
    parse_tree,
    parse_unambiguous,
)


@dataclass(frozen=True, slots=True)
class Limits:
    """Size limits of a document. Lengths are in bytes of UTF-8; a name includes its namespace."""

    document: int = 16_000_000
    depth: int = 200
    nodes: int = 250_000
    text: int = 10_000_000
    nested_text: int = 100_000_000
    attributes: int = 256
    attribute_length: int = 1_000_000
    namespaces: int = 256
    name_length: int = 1_000
    path_length: int = 4_000
    tag_paths: int = 10_000

    def __post_init__(self) -> None:
        check_limits(self, MOST)


MOST = {"depth": 256, "text": 10_000_000, "attribute_length": 10_000_000, "name_length": 50_000}
"""Limits of the parser itself (libxml2, without its option for huge documents)."""

OVER = {
    "document": ("the document is too large", "bytes"),
    "depth": ("elements are nested too deeply", "levels"),
    "nodes": ("the document has too many elements, attributes and texts", "nodes"),
    "text": ("a text is too long", "bytes"),
    "nested_text": ("the text, counted once for each enclosing element, is too long", "bytes"),
    "attributes": ("an element has too many attributes", "attributes"),
    "attribute_length": ("the value of an attribute is too long", "bytes"),
    "namespaces": ("the document declares too many namespaces", "declarations"),
    "name_length": ("a name is too long", "bytes, including its namespace"),
    "path_length": ("a tag path is too long", "bytes"),
    "tag_paths": ("the document has too many different tag paths", "tag paths"),
}
"""The message for each limit, and the unit of the limit."""

DEFAULT = limits_from("TIDINGS_DOCUMENT_LIMITS", Limits)
beyond = partial(over_limit, OVER)
"""Make the error of a document that exceeds the named limit."""


def decode(body: bytes, limits: Limits = DEFAULT) -> Node:
    """Decode a document; return its document element."""
    if len(body) > limits.document:
        raise beyond("document", limits, received=f"{len(body):,} bytes")
    return decode_utf8(convert_to_utf8(body), limits)


def decode_utf8(text: bytes, limits: Limits = DEFAULT) -> Node:
    """Decode a document that is already UTF-8, regardless of its XML declaration."""
    return _node(checked_tree(text, limits), None)


def checked_tree(text: bytes, limits: Limits = DEFAULT) -> Any:
    """Parse a document with lxml after checking it for forbidden declarations and limits."""
    reject_doctype(text)
    parse(text, make_parser(_Measured(limits)))
    return parse_tree(text)


class WellFormedness:
    """Checks which documents of a batch are well-formed; not thread-safe, as it reuses parsers.

    The parser with a guard refuses document types and builds no tree, which makes it faster for all but small
    documents. These need it only if some document of the batch may have a document type.
    """

    def __init__(self, batch: bytes) -> None:
        """Prepare the parsers; `batch` are the bytes that contain all documents."""
        self._guarded, self._plain = make_parser(DeclarationGuard()), make_parser()
        self._is_plain = is_plain(batch)

    def refuse(self, text: bytes) -> None:
        """Raise a problem for UTF-8 bytes that are not well-formed or have a document type declaration."""
        if self._is_plain:
            parse_unambiguous(text, self._plain if len(text) < _SMALL else self._guarded)
        else:
            parse(text, self._guarded)


_SMALL = 2_000
"""Size in bytes below which building a tree is faster than calling a guard."""


class _Measured(DeclarationGuard):
    """Parser target that refuses a document at the first thing that exceeds a limit."""

    def __init__(self, limits: Limits) -> None:
        self._limits = limits
        # Tag path of each open element, and how much text came before it.
        self._around: list[tuple[str, int]] = []
        self._tag_paths: set[str] = set()
        self._nodes = self._namespaces = self._text_before = self._nested = 0
        self._text: int | None = None

    def start(self, tag: str, attributes: dict[str, str], declared: dict[str, str]) -> None:
        self._end_text()
        self._namespaces += len(declared)
        self._at_most("namespaces", self._namespaces)
        for uri in declared.values():
            if "}" in uri:
                raise DecodeProblem(
                    "a namespace name contains a }", where=self._current_element(), received=printable(uri)
                )
        self._around.append((self._node(NodeKind.ELEMENT, tag), self._text_before))
        self._at_most("depth", len(self._around))
        self._at_most("attributes", len(attributes))
        for name, value in attributes.items():
            self._at_most("attribute_length", len(value.encode()))
            self._node(NodeKind.ATTRIBUTE, name)

    def data(self, text: str) -> None:
        self._text = (self._text or 0) + len(text.encode())
        self._at_most("text", self._text)

    def end(self, tag: str) -> None:
        self._end_text()
        self._nested += self._text_before - self._around[-1][1]
        self._at_most("nested_text", self._nested)
        self._around.pop()

    def comment(self, text: str) -> None:
        self._end_text()

    def pi(self, target: str, text: str | None = None) -> None:
        self._end_text()

    def _end_text(self) -> None:
        if self._text is not None:
            self._text_before += self._text
            self._text = None
            self._node(NodeKind.TEXT, "")

    def _node(self, kind: NodeKind, name: str) -> str:
        path = f"{self._around[-1][0] if self._around else ''}/{show_node(kind, name)}"
        self._nodes += 1
        self._tag_paths.add(path)
        self._at_most("nodes", self._nodes)
        self._at_most("name_length", len(name.encode()))
        self._at_most("path_length", len(path.encode()))
        self._at_most("tag_paths", len(self._tag_paths))
        return path

    def _at_most(self, limit: str, value: int) -> None:
        if value > getattr(self._limits, limit):
            raise beyond(limit, self._limits, where=self._current_element())

    def _current_element(self) -> str | None:
        return printable(self._around[-1][0]) if self._around else None


def _node(element: Element, parent: Node | None) -> Node:
    node = Node(NodeKind.ELEMENT, element.tag, "", parent)
    for name, value in element.attrib.items():
        node.children.append(Node(NodeKind.ATTRIBUTE, str(name), str(value), node))
    _add_text(node, element.text)
    for child in element:
        if isinstance(child.tag, str):  # comments and processing instructions have none
            node.children.append(_node(child, node))
        _add_text(node, child.tail)
    content = (child.value for child in node.children if child.kind is not NodeKind.ATTRIBUTE)
    node.value = "".join(content)
    return node


def _add_text(node: Node, text: str | None) -> None:
    if text is not None:
        node.children.append(Node(NodeKind.TEXT, "", text, node))


@dataclass(frozen=True, slots=True)
class XmlElement:
    """An element: namespace and name, attributes as `{namespace}name`, text, and the line where it begins."""

    namespace: str
    name: str
    attributes: Mapping[str, str]
    text: str
    children: tuple[XmlElement, ...]
    line: int


def read_elements(body: bytes, limits: Limits = DEFAULT) -> XmlElement:
    """Parse a document; it is refused where `xml_decoder.decode` refuses it: declarations, entities, limits."""
    if len(body) > limits.document:
        raise beyond("document", limits, received=f"{len(body):,} bytes")
    return _element(checked_tree(convert_to_utf8(body), limits))


def _element(element: etree._Element) -> XmlElement:
    name = etree.QName(element)
    return XmlElement(
        name.namespace or "",
        name.localname,
        {str(key): str(value) for key, value in element.attrib.items()},
        (element.text or "").strip(),
        tuple(_element(child) for child in element if isinstance(child.tag, str)),
        element.sourceline or 0,  # type: ignore[arg-type]  # the stubs leave it open
    )
