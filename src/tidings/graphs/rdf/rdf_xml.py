"""RDF/XML before it is parsed: checked and written again by libxml2, because the parser of RDF/XML trusts its input.

An entity bomb makes that parser abort the process, elements inside each other cost it the square of their depth, and
it does not normalise line ends and attribute values as XML 1.0 (2.11, 3.3.3) asks. So it only sees what lxml has read
and written. lxml also knows lines and columns, which the parser of RDF/XML does not.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Any

from lxml import etree

from tidings.core.suggest import printable
from tidings.errors import DecodeProblem
from tidings.graphs.model import RDF
from tidings.graphs.rdf.limits import Limits, at_most, beyond
from tidings.parsers.xml_bytes import as_utf8
from tidings.parsers.xml_parser import DeclarationGuard, Element, make_parser, parse, parse_tree, serialised

_UNQUALIFIED = ("about", "ID", "resource", "parseType", "type", "nodeID", "datatype")
"""Attributes that old RDF/XML writes without rdf:, the RSS 1.0 of many sites and of paper 002 (figure 13) included."""

_OLD = etree.XPath(
    f"//rdf:*/@*[namespace-uri() = '' and ({' or '.join(f'local-name() = {name!r}' for name in _UNQUALIFIED)})]"
    "[not(ancestor::*[@rdf:parseType = 'Literal'])]",
    namespaces={"rdf": RDF},
)
_BARE = etree.XPath("//*[namespace-uri() = ''] | //*[@*[namespace-uri() = '']]")


def prepared(body: bytes, limits: Limits) -> bytes:
    """The publication as the parser of RDF/XML may see it."""
    return written(parsed_xml(as_utf8(body), limits))


def parsed_xml(text: bytes, limits: Limits) -> Element:
    """The elements of XML that is UTF-8 by now, without comments and instructions, if it is within the limits.

    Without them a text is one text, which is what RDF/XML takes, however many CDATA sections it was written with.
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
    """There are no more declarations than there are bytes that say so: most publications need no closer look."""
    if text.count(b"xmlns") > min(limits.namespaces, limits.namespaces_in_scope):
        parse(text, make_parser(_Namespaces(limits)))


class _Namespaces(DeclarationGuard):
    """Counts declarations: all of them, and those that hold at an element.

    The parser of RDF/XML compares each prefix with each that is declared there.
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
    """There are no more elements inside each other than less-than signs: most publications need no closer look."""
    if text.count(b"<") <= limits.depth:
        return
    deep: Any = _deeper_than(limits.depth)(root)
    if deep:
        raise beyond("depth", limits, where=f"line {deep[0].sourceline}")


def _refuse_attributes(root: Element, text: bytes, limits: Limits) -> None:
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


def _too_deep(problem: DecodeProblem, limits: Limits) -> DecodeProblem | None:
    """The refusal of a publication that is nested more deeply than libxml2 goes."""
    if "Excessive depth" not in problem.what:
        return None
    where = problem.place.describe() if problem.place else problem.where
    return beyond("depth", limits, where=where)


def written(root: Element) -> bytes:
    """The elements for the parser of RDF/XML, with rdf: before the attributes of RDF's own elements that lack it.

    The recommendation allows that.
    """
    found: Any = _OLD(root)
    for value in found:
        element = value.getparent()
        if f"{{{RDF}}}{value.attrname}" in element.attrib:
            what, where = "an attribute stands there with and without rdf:", f"line {element.sourceline}"
            raise DecodeProblem(what, where=where, received=value.attrname, accepted="one of them")
        element.set(f"{{{RDF}}}{value.attrname}", element.attrib.pop(value.attrname))
    return serialised(root)


def refused(said: str, body: bytes, limits: Limits) -> DecodeProblem:
    """What the parser said of a publication, and where in it, if that can be found out."""
    if "namespaces are required" in said:
        bare: Any = _BARE(parsed_xml(as_utf8(body), limits))
        if bare:
            return _without_namespace(bare[0])
    return DecodeProblem(f"not RDF/XML: {said}")


def _without_namespace(element: Element) -> DecodeProblem:
    names = [element.tag, *element.attrib]
    received = next(name for name in map(str, names) if not name.startswith("{"))
    what, accepted = (
        "a name in no namespace",
        "elements and attributes with a prefix that is declared, such as rdf:about",
    )
    return DecodeProblem(
        what, where=f"line {element.sourceline}", received=printable(received), accepted=accepted
    )
