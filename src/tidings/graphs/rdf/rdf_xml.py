"""Checks of RDF/XML before the RDF parser sees it: parsed and serialised by libxml2.

The RDF parser aborts the process on an entity bomb, takes time quadratic in the nesting depth, and does not normalise
line ends and attribute values as XML 1.0 requires (sections 2.11 and 3.3.3). So it only sees what lxml has parsed and
serialised. lxml also reports lines and columns, which the RDF parser does not.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Any

from lxml import etree

from tidings.core.suggest import printable
from tidings.errors import DecodeProblem
from tidings.graphs.model import RDF
from tidings.graphs.rdf.rdf_errors import Limits, at_most, beyond, parser_message
from tidings.parsers.xml_bytes import convert_to_utf8
from tidings.parsers.xml_parser import DeclarationGuard, Element, make_parser, parse, parse_tree, serialise

_UNQUALIFIED = ("about", "ID", "resource", "parseType", "type", "nodeID", "datatype")
"""Attributes that old RDF/XML writes without rdf:, including the RSS 1.0 of many sites and of paper 002 (figure 13)."""

_OLD = etree.XPath(
    f"//rdf:*/@*[namespace-uri() = '' and ({' or '.join(f'local-name() = {name!r}' for name in _UNQUALIFIED)})]"
    "[not(ancestor::*[@rdf:parseType = 'Literal'])]",
    namespaces={"rdf": RDF},
)
_BARE = etree.XPath("//*[namespace-uri() = ''] | //*[@*[namespace-uri() = '']]")


def prepared(body: bytes, limits: Limits) -> bytes:
    """Return the publication as the RDF parser may see it."""
    return serialise_rdf(parse_rdf_xml(convert_to_utf8(body), limits))


def parse_rdf_xml(text: bytes, limits: Limits) -> Element:
    """Parse XML in UTF-8 and enforce the limits.

    Comments and instructions are dropped, because RDF/XML needs each text in one piece.
    """
    _refuse_namespaces(text, limits)
    try:
        root = parse_tree(text, comments=False, instructions=False)
    except DecodeProblem as problem:
        raise _too_deep(problem, limits) or problem from None
    _refuse_depth(root, text, limits)
    _refuse_attributes(root, text, limits)
    return root


def _refuse_namespaces(text: bytes, limits: Limits) -> None:
    """Limit namespace declarations; counting `xmlns` in the bytes spares most publications the second pass."""
    if text.count(b"xmlns") > min(limits.namespaces, limits.namespaces_in_scope):
        parse(text, make_parser(_Namespaces(limits)))


class _Namespaces(DeclarationGuard):
    """Counts namespace declarations, in total and in scope.

    The RDF parser compares each prefix with every declaration in scope.
    """

    def __init__(self, limits: Limits) -> None:
        self._limits, self._all, self._here = limits, 0, [0]

    def start(self, tag: str, attributes: dict[str, str], declared: dict[str, str]) -> None:
        self._all += len(declared)
        self._here.append(self._here[-1] + len(declared))
        at_most("namespaces", self._all, self._limits)
        at_most("namespaces_in_scope", self._here[-1], self._limits, where=f"<{printable(tag)}>")

    def end(self, tag: str) -> None:
        self._here.pop()


def _refuse_depth(root: Element, text: bytes, limits: Limits) -> None:
    """Limit nesting; counting `<` in the bytes spares most publications the search."""
    if text.count(b"<") <= limits.depth:
        return
    deep: Any = _deeper_than(limits.depth)(root)
    if deep:
        raise beyond("depth", limits, where=f"line {deep[0].sourceline}")


def _refuse_attributes(root: Element, text: bytes, limits: Limits) -> None:
    """Limit the attributes of an element; counting `=` in the bytes spares most publications the search."""
    if text.count(b"=") <= limits.attributes:
        return
    full: Any = _fuller_than(limits.attributes)(root)
    if full:
        raise beyond("attributes", limits, where=f"line {full[0].sourceline}")


@lru_cache(maxsize=8)
def _deeper_than(depth: int) -> etree.XPath:
    return etree.XPath("/*" * (depth + 1))


@lru_cache(maxsize=8)
def _fuller_than(attributes: int) -> etree.XPath:
    """The RDF parser compares each attribute of an element with every other."""
    return etree.XPath(f"//*[count(@*) > {attributes}]")


def _too_deep(problem: DecodeProblem, limits: Limits) -> DecodeProblem | None:
    """Make the error for a publication that exceeds libxml2's own depth limit."""
    if "Excessive depth" not in problem.what:
        return None
    where = problem.place.describe() if problem.place else problem.where
    return beyond("depth", limits, where=where)


def serialise_rdf(root: Element) -> bytes:
    """Serialise the elements for the RDF parser, adding rdf: to unqualified attributes of RDF's own elements.

    The recommendation allows it.
    """
    attributes: Any = _OLD(root)
    for value in attributes:
        element = value.getparent()
        if f"{{{RDF}}}{value.attrname}" in element.attrib:
            message, where = "an attribute appears both with and without rdf:", f"line {element.sourceline}"
            raise DecodeProblem(message, where=where, received=value.attrname, accepted="one of the two")
        element.set(f"{{{RDF}}}{value.attrname}", element.attrib.pop(value.attrname))
    return serialise(root)


def xml_problem(error: SyntaxError, body: bytes, limits: Limits) -> DecodeProblem:
    """Locate an error of the RDF parser in the publication; its own positions are in the serialised text."""
    message = parser_message(error)
    if "namespaces are required" in message:
        bare: Any = _BARE(parse_rdf_xml(convert_to_utf8(body), limits))
        if bare:
            return _without_namespace(bare[0])
    return DecodeProblem(f"invalid RDF/XML: {message}")


def _without_namespace(element: Element) -> DecodeProblem:
    names = [element.tag, *element.attrib]
    received = next(name for name in map(str, names) if not name.startswith("{"))
    message, accepted = (
        "a name without a namespace",
        "elements and attributes with a declared prefix, such as rdf:about",
    )
    return DecodeProblem(
        message, where=f"line {element.sourceline}", received=printable(received), accepted=accepted
    )
