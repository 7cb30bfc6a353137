"""What is looked at before RDF/XML is parsed, because its parser trusts: declarations, depth, and well-formedness.

An entity bomb makes the parser abort the process, and elements inside each other cost it the square of their depth. So
lxml reads first. It also knows lines and columns, which the parser of RDF/XML does not.
"""

from __future__ import annotations

import re
from functools import lru_cache
from typing import Any

from lxml import etree

from tidings.errors import DecodeProblem
from tidings.graphs import RDF
from tidings.publications.rdf_limits import Limits, at_most, beyond
from tidings.publications.xml_bytes import as_utf8, malformed, refuse_declarations
from tidings.schema.names import safe

_DECLARATION = re.compile(rb"<\?xml\s.*?\?>", re.DOTALL)

_UNQUALIFIED = ("about", "ID", "resource", "parseType", "type", "nodeID", "datatype")
"""Attributes that old RDF/XML writes without rdf:, the RSS 1.0 of many sites and of paper 002 (figure 13) included."""

_OLD = etree.XPath(
    f"//rdf:*/@*[namespace-uri() = '' and ({' or '.join(f'local-name() = {name!r}' for name in _UNQUALIFIED)})]"
    "[not(ancestor::*[@rdf:parseType = 'Literal'])]",
    namespaces={"rdf": RDF},
)
_BARE = etree.XPath("//*[namespace-uri() = ''] | //*[@*[namespace-uri() = '']]")


def prepared(body: bytes, limits: Limits) -> bytes:
    """The publication in UTF-8 for the parser, which takes no other encoding and no declaration of one."""
    text = as_utf8(body)
    root = parsed_xml(text, limits)
    if _OLD(root) or b"<![CDATA[" in text or b"<!--" in text:
        return _qualified(root)
    return _DECLARATION.sub(b"", text, count=1) if text.startswith(b"<?xml") else text


def parsed_xml(text: bytes, limits: Limits) -> etree._Element:
    """The elements of XML that is UTF-8 by now, within the limits of depth and namespaces, and without declarations."""
    refuse_declarations(text)
    at_most("namespaces", text.count(b"xmlns"), limits)
    parser = etree.XMLParser(
        encoding="utf-8",
        remove_comments=True,
        resolve_entities=False,
        no_network=True,
        load_dtd=False,
        collect_ids=False,
    )
    try:
        root = etree.fromstring(text, parser)
    except etree.XMLSyntaxError as error:
        raise _not_well_formed(error, text, limits) from None
    _refuse_depth(root, text, limits)
    _refuse_attributes(root, text, limits)
    return root


def _refuse_depth(root: etree._Element, text: bytes, limits: Limits) -> None:
    """There are no more elements inside each other than less-than signs: most publications need no closer look."""
    if text.count(b"<") <= limits.depth:
        return
    deep: Any = _deeper_than(limits.depth)(root)
    if deep:
        raise beyond("depth", limits, where=f"line {deep[0].sourceline}")


def _refuse_attributes(root: etree._Element, text: bytes, limits: Limits) -> None:
    """Each attribute has an equals sign."""
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
    """The parser of RDF/XML compares each attribute of an element with each."""
    return etree.XPath(f"//*[count(@*) > {attributes}]")


def _not_well_formed(error: etree.XMLSyntaxError, text: bytes, limits: Limits) -> DecodeProblem:
    said, (line, column) = error.msg or "", error.position
    if "Excessive depth" in said:
        return beyond("depth", limits, where=f"line {line}, column {column}")
    return malformed(said, line, column, text)


def _qualified(root: etree._Element) -> bytes:
    """The same with rdf: before the attributes of RDF's own elements that lack it: the recommendation allows that.

    Without comments and CDATA sections: to the parser, a text with one in its middle is two, which it refuses.
    """
    found: Any = _OLD(root)
    for value in found:
        element = value.getparent()
        if f"{{{RDF}}}{value.attrname}" in element.attrib:
            what, where = "an attribute stands there with and without rdf:", f"line {element.sourceline}"
            raise DecodeProblem(what, where=where, received=value.attrname, accepted="one of them")
        element.set(f"{{{RDF}}}{value.attrname}", element.attrib.pop(value.attrname))
    return etree.tostring(root)


def refused(said: str, text: bytes, limits: Limits) -> DecodeProblem:
    """What the parser said of it, and where, if that can be found out."""
    if "namespaces are required" in said:
        bare: Any = _BARE(parsed_xml(text, limits))
        if bare:
            return _without_namespace(bare[0])
    return DecodeProblem(f"not RDF/XML: {said}")


def _without_namespace(element: etree._Element) -> DecodeProblem:
    names = [element.tag, *element.attrib]
    received = next(name for name in map(str, names) if not name.startswith("{"))
    what, accepted = (
        "a name in no namespace",
        "elements and attributes with a prefix that is declared, such as rdf:about",
    )
    return DecodeProblem(what, where=f"line {element.sourceline}", received=safe(received), accepted=accepted)
