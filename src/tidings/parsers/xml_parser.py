"""Hardened XML parser: libxml2 without document types, entities, files or network. No other module parses XML.

    tree = parse_tree(convert_to_utf8(body))
    bytes_for_another_parser = serialise(tree)

Three independent checks reject a document type declaration. `reject_doctype` searches the prolog, so that the
error has a position. The parser rejects it: it calls a target's `doctype` before it reads the internal subset, and
`parse_tree` only returns a tree without a DTD. Finally, the parser cannot open anything that a declaration names. All
three read the same bytes: UTF-8 without a byte order mark and without NUL.

Parsers of other libraries (RDF/XML, XML-RPC) never see the original bytes. They get the output of `serialise`.
"""

from __future__ import annotations

import codecs
import threading
from typing import Any

from lxml import etree

from tidings.errors import DecodeProblem
from tidings.parsers.xml_bytes import (
    DOCUMENT_TYPE,
    WITHOUT_DECLARATIONS,
    build_problem_at,
    build_syntax_problem,
    reject_doctype,
)

Element = etree._Element


class DeclarationGuard:
    """Parser target that discards all content and rejects a document type declaration as soon as it begins."""

    def doctype(self, name: str, public: str | None, system: str | None) -> None:
        raise _doctype_problem()

    def close(self) -> None:
        """Do nothing: there is no result."""


class _LoadGuard(etree.Resolver):
    """Resolver that rejects every external reference.

    `load_dtd=False` and `no_network=True` are not enough: `collect_ids=False` sets a flag in libxml2 that makes it read
    the external DTD, from any file on this machine.
    """

    def resolve(self, system_url: str, public_id: str, context: object) -> Any:  # type: ignore[override]
        raise DecodeProblem("external references are not loaded", received=system_url)


_LOAD_GUARD = _LoadGuard()


def make_parser(
    target: DeclarationGuard | None = None, comments: bool = True, instructions: bool = True
) -> etree.XMLParser:
    """Create a parser for UTF-8 that ignores the encoding in the XML declaration. It is not thread-safe.

    With a target, entities are resolved: otherwise the target gets `&#38;` for `&amp;` in attributes. Only the five
    predefined entities exist. IDs are not collected, because a duplicate xml:id is not a well-formedness error.
    """
    parser = etree.XMLParser(
        encoding="utf-8",
        resolve_entities=False if target is None else "internal",  # type: ignore[arg-type]
        no_network=True,
        load_dtd=False,
        dtd_validation=False,
        huge_tree=False,
        remove_comments=not comments,
        remove_pis=not instructions,
        collect_ids=False,
        target=target,  # type: ignore[arg-type]
    )
    parser.resolvers.add(_LOAD_GUARD)
    return parser


def parse(text: bytes, parser: etree.XMLParser) -> Any:
    """Parse a document with a parser of `make_parser`; reject it if it is not well-formed.

    A namespace error does not stop the parser, and a later warning hides it: lxml accepts `<p:a><?xml-x?></p:a>`.
    Therefore the parser's log is checked, too.
    """
    if text.startswith(codecs.BOM_UTF8) or 0 in text:
        raise _ambiguous_bytes(text)
    return parse_unambiguous(text, parser)


def parse_unambiguous(text: bytes, parser: etree.XMLParser) -> Any:
    """Parse bytes that are known to have no byte order mark and no NUL.

    libxml2 reports running out of memory like an error in the document, with the message "unknown error".
    """
    try:
        result = etree.fromstring(text, parser)
    except etree.XMLSyntaxError as error:
        last = parser.error_log.last_error
        if last is not None and last.type == etree.ErrorTypes.ERR_NO_MEMORY:
            raise MemoryError("parsing XML") from None
        raise build_syntax_problem(error.msg or "", *error.position, text) from None
    if parser.error_log.last_error is not None:
        for entry in parser.error_log.filter_from_errors():
            if entry.type == etree.ErrorTypes.ERR_NO_MEMORY:
                raise MemoryError("parsing XML")
            raise build_syntax_problem(entry.message, entry.line, entry.column, text)
    return result


def parse_tree(text: bytes, comments: bool = True, instructions: bool = True) -> Element:
    """Parse a document without a document type, and return its document element."""
    reject_doctype(text)
    if may_have_doctype(text):  # in a CDATA section or a comment, unless the check of the prolog failed
        parse(text, make_parser(DeclarationGuard()))
    root: Element = parse(text, _TREE_PARSERS.get(comments, instructions))
    info = root.getroottree().docinfo
    if info.internalDTD is not None or info.externalDTD is not None:
        raise _doctype_problem()
    return root


def is_plain(batch: bytes) -> bool:
    """Return whether no document in these bytes has a document type, a byte order mark or a NUL."""
    return not (may_have_doctype(batch) or codecs.BOM_UTF8 in batch or 0 in batch)


def may_have_doctype(text: bytes) -> bool:
    """Return whether the text may contain a document type declaration, which always begins this way."""
    return b"<!DOCTYPE" in text


class _TreeParsers(threading.local):
    """Parsers of one thread that build trees. Creating one takes as long as parsing a small document."""

    def __init__(self) -> None:
        self._parsers: dict[tuple[bool, bool], etree.XMLParser] = {}

    def get(self, comments: bool, instructions: bool) -> etree.XMLParser:
        parser = self._parsers.get((comments, instructions))
        if parser is None:
            parser = make_parser(comments=comments, instructions=instructions)
            self._parsers[comments, instructions] = parser
        return parser


_TREE_PARSERS = _TreeParsers()


def serialise(root: Element) -> bytes:
    """Serialise a document for another parser: ASCII, no declaration, normalised line ends and attribute values."""
    return etree.tostring(root, with_tail=False)


def indent_xml(text: bytes) -> str:
    """Format a document with one line per element; text between elements is unchanged."""
    root = parse_tree(text)
    etree.indent(root)
    return etree.tostring(root, encoding="unicode", with_tail=False)


def _ambiguous_bytes(text: bytes) -> DecodeProblem:
    """Build the error for bytes that libxml2 would not read literally.

    It skips a leading byte order mark, and treats bytes with NULs as another encoding.
    """
    if text.startswith(codecs.BOM_UTF8):
        accepted = "at most one byte order mark"
        return build_problem_at(
            "not well-formed XML: a second byte order mark", text, 0, 3, accepted=accepted
        )
    position = text.index(0)
    return build_problem_at("not well-formed XML: a NUL character", text, position, position + 1)


def _doctype_problem() -> DecodeProblem:
    return DecodeProblem(DOCUMENT_TYPE, accepted=WITHOUT_DECLARATIONS)
