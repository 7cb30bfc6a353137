"""The W3C XML conformance suite, at each place that reads XML.

Documents with a DOCTYPE are refused, whatever is in it. So that their content is tested, too, each of them is read once
more without its DOCTYPE, and compared with what expat reads.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import NamedTuple
from xml.parsers import expat
from xmlrpc.client import Fault

import numpy as np
import pytest
from lxml import etree

from tests.conformance.suites import unexplained, xml_suite
from tidings.api.xml_rpc.service_methods import parse_call
from tidings.atoms import Atoms
from tidings.documents.tag_paths import TagPaths
from tidings.documents.xml_batch_decoder import atoms_of, decode_documents
from tidings.documents.xml_decoder import DEFAULT, decode
from tidings.errors import DecodeProblem, TidingsError
from tidings.graphs.rdf import rdf_decoder
from tidings.graphs.syndication.feed_parser import items_of
from tidings.objects.readers.xmi_reader import read_xmi

pytestmark = [pytest.mark.long, pytest.mark.xdist_group("conformance")]

LEFT_OUT = {"XML1.1", "NS1.1"}
"""Recommendations that are not claimed: XML 1.1 is rarely written, and libxml2 does not read it."""

MALFORMED_AND_ACCEPTED: dict[str, str] = {}
WELL_FORMED_AND_REFUSED: dict[str, str] = {}
_NAMES = "names that edition 5 of XML 1.0 allows; expat reads those of edition 4"
UNLIKE_EXPAT = {
    **{f"x-rmt5-{number}": _NAMES for number in ("014", "016", "019")},
    **{f"ibm-invalid-P89-ibm89n{number:02}.xml": _NAMES for number in range(6, 13)},
    "hst-lhs-007": "a mark and a declaration that disagree are refused (XML 1.0, 4.3.3); expat believes the mark",
}


class Case(NamedTuple):
    """A document of the suite, and what kind of case it is."""

    id: str
    kind: str
    namespaces: bool
    body: bytes

    @property
    def has_doctype(self) -> bool:
        plain = self.body.replace(b"\0", b"")  # whichever of the Unicode encodings it is
        return b"<!DOCTYPE" in _NO_MARKUP.sub(b"", plain)


_NO_MARKUP = re.compile(rb"<!--.*?-->|<!\[CDATA\[.*?\]\]>|<\?.*?\?>", re.DOTALL)


@cache
def cases() -> tuple[Case, ...]:
    root = xml_suite()
    parser = etree.XMLParser(resolve_entities=False, no_network=True)
    manifest = etree.parse(str(root / "cleaned" / "xmlconf-flattened.xml"), parser)
    return tuple(_cases(manifest.getroot(), root / "xmlconf"))


def _cases(element: etree._Element, folder: Path) -> Iterator[Case]:
    base = element.get("{http://www.w3.org/XML/1998/namespace}base")
    folder = folder / base if base else folder
    for child in element:
        if child.tag == "TESTCASES":
            yield from _cases(child, folder)
        elif child.tag == "TEST" and _is_claimed(child):
            body = (folder / child.get("URI", "")).read_bytes()
            yield Case(child.get("ID", ""), child.get("TYPE", ""), child.get("NAMESPACE") != "no", body)


def _is_claimed(case: etree._Element) -> bool:
    """Edition 5 of XML 1.0, and cases that hold for every edition."""
    return case.get("RECOMMENDATION") not in LEFT_OUT and "5" in case.get("EDITION", "5").split()


def _is_accepted(body: bytes) -> bool:
    try:
        decode(body)
    except DecodeProblem:
        return False
    return True


def test_suite_has_enough_cases() -> None:
    assert len(cases()) > 1_500


def test_documents_with_a_doctype_are_refused_everywhere() -> None:
    found = {}
    for case in cases():
        if case.has_doctype:
            found |= {f"{case.id} {where}": "was accepted" for where in _entries_that_accept(case.body)}
    assert not found


def _entries_that_accept(body: bytes) -> Iterator[str]:
    """Where a document is read that has a DOCTYPE. A parse that fails later, at what is not RDF or XMI, says so."""
    for name, read in (
        ("document", decode),
        ("RDF/XML", lambda given: rdf_decoder.decode(given, "application/rdf+xml")),
        ("feed", lambda given: items_of(given, "application/rss+xml")),
        ("XMI", read_xmi),
        ("XML-RPC", lambda given: parse_call(given, "text/xml")),
    ):
        try:
            read(body)
        except (TidingsError, Fault):
            continue
        yield name


def test_malformed_documents_are_refused() -> None:
    wrong = [case for case in cases() if case.kind == "not-wf" and not case.has_doctype]
    assert len(wrong) > 100
    found = {case.id: "is not well-formed and was accepted" for case in wrong if _is_accepted(case.body)}
    assert not [*unexplained(found, MALFORMED_AND_ACCEPTED)]


def test_well_formed_documents_are_accepted() -> None:
    right = [
        case
        for case in cases()
        if case.kind in ("valid", "invalid") and case.namespaces and not case.has_doctype
    ]
    found = {case.id: "is well-formed and was refused" for case in right if not _is_accepted(case.body)}
    assert not [*unexplained(found, WELL_FORMED_AND_REFUSED)]


def test_both_decoders_agree_on_every_case() -> None:
    bodies = [case.body for case in cases()]
    bodies += [without for case in cases() if (without := _without_doctype(case.body)) is not None]
    nodes = []
    for body in bodies:
        try:
            nodes.append(decode(body))
        except DecodeProblem:
            nodes.append(None)
    between = b"]]></a>-->"
    buffer = np.frombuffer(between + b"".join(body + between for body in bodies), np.uint8)
    sizes = np.array([len(body) for body in bodies], np.int64)
    ends = np.cumsum(sizes + len(between))
    found = decode_documents(buffer, ends - sizes, ends, TagPaths(), DEFAULT)
    assert [i for i, _ in found.rejects] == [i for i, node in enumerate(nodes) if node is None]
    expected = atoms_of(nodes)
    assert all(_rows(found.atoms, i) == _rows(expected, i) for i in range(len(bodies)))


def _rows(atoms: Atoms, number: int) -> list[tuple[str, str]]:
    places = range(atoms.starts[number], atoms.starts[number + 1])
    return [(atoms.paths[atoms.path[at]], _value(atoms, at)) for at in places]


def _value(atoms: Atoms, at: int) -> str:
    start = int(atoms.payload[at])
    return atoms.text[start : start + atoms.length[at]].tobytes().decode()


def test_documents_without_their_doctype_are_read_as_expat_reads_them() -> None:
    found, compared = {}, 0
    for case in cases():
        body = _without_doctype(case.body) if case.has_doctype else case.body
        if body is not None:
            compared += 1
            ours, theirs = _texts(body), _texts_of_expat(body)
            if ours != theirs:
                found[case.id] = f"{str(ours)[:80]} here, {str(theirs)[:80]} in expat"
    assert compared > 1_000
    assert not [*unexplained(found, UNLIKE_EXPAT)]


def _without_doctype(body: bytes) -> bytes | None:
    """The document without its DOCTYPE, if expat reads it up to there."""
    where: list[int] = []
    parser = expat.ParserCreate()
    parser.StartDoctypeDeclHandler = lambda *_: where.append(parser.CurrentByteIndex)
    parser.EndDoctypeDeclHandler = lambda: where.append(parser.CurrentByteIndex)
    with suppress(expat.ExpatError, ValueError):  # ValueError: an encoding of several bytes, such as EUC-JP
        parser.Parse(body, True)
    if len(where) != 2:
        return None
    end = where[1] + (2 if b"\0" in body[:4] else 1)
    return body[: where[0]] + body[end:]


def _texts(body: bytes) -> list[tuple[str, str]] | None:
    """Elements and attributes with their own texts; nothing if the document is refused."""
    try:
        root = decode(body)
    except DecodeProblem:
        return None
    atoms = atoms_of([root])
    named = ((_LAST.search(path), value) for path, value in _rows(atoms, 0) if not path.endswith("/text()"))
    return sorted((name[1], value) for name, value in named if name)


_LAST = re.compile(r"/((?:@?\{[^}]*\}|@)?[^/{}]+)$")


def _texts_of_expat(body: bytes) -> list[tuple[str, str]] | None:
    parser = expat.ParserCreate(namespace_separator="}")
    parser.buffer_text = True
    open_: list[list[str]] = []
    found: list[tuple[str, str]] = []

    def begin(name: str, attributes: dict[str, str]) -> None:
        open_.append([])
        found.extend((f"@{_named(key)}", value) for key, value in attributes.items())

    def end(name: str) -> None:
        found.append((_named(name), "".join(open_.pop())))

    parser.StartElementHandler, parser.EndElementHandler = begin, end
    parser.CharacterDataHandler = lambda text: open_[-1].append(text)
    try:
        parser.Parse(body, True)
    except (expat.ExpatError, ValueError, LookupError):
        return None
    return sorted(found)


def _named(name: str) -> str:
    return "{" + name if "}" in name else name
