"""The W3C XML conformance suite, with every reader of XML.

Documents with a DOCTYPE are rejected. To test their content, too, each of them is also read without its DOCTYPE,
and compared with expat.
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
"""Recommendations without a claim of conformance: XML 1.1 is rare, and libxml2 does not support it."""

MALFORMED_AND_ACCEPTED: dict[str, str] = {}
WELL_FORMED_AND_REFUSED: dict[str, str] = {}
_NAMES = "names that edition 5 of XML 1.0 allows; expat reads those of edition 4"
UNLIKE_EXPAT = {
    **{f"x-rmt5-{number}": _NAMES for number in ("014", "016", "019")},
    **{f"ibm-invalid-P89-ibm89n{number:02}.xml": _NAMES for number in range(6, 13)},
    "hst-lhs-007": "a mark and a declaration that disagree are refused (XML 1.0, 4.3.3); expat believes the mark",
}


class Case(NamedTuple):
    """A document of the suite, and the kind of case."""

    id: str
    kind: str
    namespaces: bool
    body: bytes

    @property
    def has_doctype(self) -> bool:
        plain = self.body.replace(b"\0", b"")  # for all Unicode encodings
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
    """Whether a case is for edition 5 of XML 1.0, or for every edition."""
    return case.get("RECOMMENDATION") not in LEFT_OUT and "5" in case.get("EDITION", "5").split()


def _is_accepted(body: bytes) -> bool:
    try:
        decode(body)
    except DecodeProblem:
        return False
    return True


def test_xml_suite_has_enough_cases() -> None:
    assert len(cases()) > 1_500


def test_xml_suite_documents_with_doctype_are_rejected_by_every_reader() -> None:
    disagreements = {}
    for case in cases():
        if case.has_doctype:
            disagreements |= {f"{case.id} {where}": "was accepted" for where in _accepting_readers(case.body)}
    assert not disagreements


def _accepting_readers(body: bytes) -> Iterator[str]:
    """Yield the readers that accept a document with a DOCTYPE; a parse that fails later, for lack of RDF or XMI,
    counts.
    """
    for name, read in (
        ("document", decode),
        ("RDF/XML", lambda data: rdf_decoder.decode(data, "application/rdf+xml")),
        ("feed", lambda data: items_of(data, "application/rss+xml")),
        ("XMI", read_xmi),
        ("XML-RPC", lambda data: parse_call(data, "text/xml")),
    ):
        try:
            read(body)
        except (TidingsError, Fault):
            continue
        yield name


def test_xml_suite_malformed_documents_are_rejected() -> None:
    malformed = [case for case in cases() if case.kind == "not-wf" and not case.has_doctype]
    assert len(malformed) > 100
    disagreements = {
        case.id: "is not well-formed and was accepted" for case in malformed if _is_accepted(case.body)
    }
    assert not [*unexplained(disagreements, MALFORMED_AND_ACCEPTED)]


def test_xml_suite_well_formed_documents_are_accepted() -> None:
    well_formed = [
        case
        for case in cases()
        if case.kind in ("valid", "invalid") and case.namespaces and not case.has_doctype
    ]
    disagreements = {
        case.id: "is well-formed and was refused" for case in well_formed if not _is_accepted(case.body)
    }
    assert not [*unexplained(disagreements, WELL_FORMED_AND_REFUSED)]


def test_xml_suite_decoders_agree_on_every_case() -> None:
    bodies = [case.body for case in cases()]
    bodies += [without for case in cases() if (without := _without_doctype(case.body)) is not None]
    nodes = []
    for body in bodies:
        try:
            nodes.append(decode(body))
        except DecodeProblem:
            nodes.append(None)
    separator = b"]]></a>-->"
    buffer = np.frombuffer(separator + b"".join(body + separator for body in bodies), np.uint8)
    sizes = np.array([len(body) for body in bodies], np.int64)
    ends = np.cumsum(sizes + len(separator))
    decoded = decode_documents(buffer, ends - sizes, ends, TagPaths(), DEFAULT)
    assert [i for i, _ in decoded.rejects] == [i for i, node in enumerate(nodes) if node is None]
    expected = atoms_of(nodes)
    assert all(_rows(decoded.atoms, i) == _rows(expected, i) for i in range(len(bodies)))


def _rows(atoms: Atoms, number: int) -> list[tuple[str, str]]:
    places = range(atoms.starts[number], atoms.starts[number + 1])
    return [(atoms.paths[atoms.path[at]], _value(atoms, at)) for at in places]


def _value(atoms: Atoms, at: int) -> str:
    start = int(atoms.payload[at])
    return atoms.text[start : start + atoms.length[at]].tobytes().decode()


def test_xml_suite_documents_without_doctype_agree_with_expat() -> None:
    disagreements, compared = {}, 0
    for case in cases():
        body = _without_doctype(case.body) if case.has_doctype else case.body
        if body is not None:
            compared += 1
            ours, theirs = _texts(body), _texts_of_expat(body)
            if ours != theirs:
                disagreements[case.id] = f"{str(ours)[:80]} here, {str(theirs)[:80]} in expat"
    assert compared > 1_000
    assert not [*unexplained(disagreements, UNLIKE_EXPAT)]


def _without_doctype(body: bytes) -> bytes | None:
    """Return the document without its DOCTYPE, if expat parses it up to there."""
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
    """Return elements and attributes with their own texts, or nothing if the document is rejected."""
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
    texts: list[tuple[str, str]] = []

    def begin(name: str, attributes: dict[str, str]) -> None:
        open_.append([])
        texts.extend((f"@{_named(key)}", value) for key, value in attributes.items())

    def end(name: str) -> None:
        texts.append((_named(name), "".join(open_.pop())))

    parser.StartElementHandler, parser.EndElementHandler = begin, end
    parser.CharacterDataHandler = lambda text: open_[-1].append(text)
    try:
        parser.Parse(body, True)
    except (expat.ExpatError, ValueError, LookupError):
        return None
    return sorted(texts)


def _named(name: str) -> str:
    return "{" + name if "}" in name else name
