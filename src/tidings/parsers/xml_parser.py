"""The only place where XML is parsed: libxml2 without document types, entities, files or network.

    tree = parse_tree(as_utf8(body))
    bytes_for_another_parser = serialised(tree)

A document type declaration is refused three times over. `refuse_declarations` looks for it in the prolog, so that the
problem has a place. The parser itself refuses it: a target's `doctype` is called before the internal subset is read,
and a tree is only handed out if it has no DTD. And nothing that a declaration names can be opened, because every load
is refused. All of them read the same bytes: UTF-8 without a byte order mark and without NUL.

Parsers of other libraries (RDF/XML, XML-RPC) never see what was sent. They get what `serialised` writes.
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
    malformed,
    problem_at,
    refuse_declarations,
)

Element = etree._Element


class DeclarationGuard:
    """A parser target that keeps nothing, and refuses a document type declaration as soon as the parser meets one."""

    def doctype(self, name: str, public: str | None, system: str | None) -> None:
        raise _declared()

    def close(self) -> None:
        """Nothing is kept."""


class _LoadGuard(etree.Resolver):
    """Refuses to open whatever a document names.

    `load_dtd=False` and `no_network=True` are not enough: `collect_ids=False` sets a flag in libxml2 that makes it read
    the external DTD, from any file of this machine.
    """

    def resolve(self, system_url: str, public_id: str, context: object) -> Any:  # type: ignore[override]
        raise DecodeProblem("the document refers to another one, and nothing is loaded", received=system_url)


_LOAD_GUARD = _LoadGuard()


def make_parser(
    target: DeclarationGuard | None = None, comments: bool = True, instructions: bool = True
) -> etree.XMLParser:
    """A parser for bytes in UTF-8, whatever the XML declaration says. It must not serve two threads at once.

    A target is handed `&#38;` for `&amp;` in attributes unless entities are replaced; there are none but the five then.
    That two elements have one xml:id is no matter of well-formedness: ids are not collected.
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
    """Parse a document with a parser of `make_parser`; refuse it if it is not well-formed.

    An error about namespaces stops nothing, and is forgotten when a mere warning comes after it: `<p:a><?xml-x?></p:a>`
    is accepted by lxml. So the parser's log is looked at, too.
    """
    if text.startswith(codecs.BOM_UTF8) or 0 in text:
        raise _ambiguous(text)
    return parse_unambiguous(text, parser)


def parse_unambiguous(text: bytes, parser: etree.XMLParser) -> Any:
    """The same for bytes that are known not to begin with a byte order mark and to have no NUL.

    libxml2 reports a lack of memory as it reports errors of the document, with the text "unknown error".
    """
    try:
        made = etree.fromstring(text, parser)
    except etree.XMLSyntaxError as error:
        last = parser.error_log.last_error
        if last is not None and last.type == etree.ErrorTypes.ERR_NO_MEMORY:
            raise MemoryError("parsing XML") from None
        raise malformed(error.msg or "", *error.position, text) from None
    if parser.error_log.last_error is not None:
        for entry in parser.error_log.filter_from_errors():
            if entry.type == etree.ErrorTypes.ERR_NO_MEMORY:
                raise MemoryError("parsing XML")
            raise malformed(entry.message, entry.line, entry.column, text)
    return made


def parse_tree(text: bytes, comments: bool = True, instructions: bool = True) -> Element:
    """The document element of a document without a document type."""
    refuse_declarations(text)
    if may_declare(text):  # in a CDATA section or a comment, unless the look at the prolog was wrong
        parse(text, make_parser(DeclarationGuard()))
    root: Element = parse(text, _TREES.parser(comments, instructions))
    info = root.getroottree().docinfo
    if info.internalDTD is not None or info.externalDTD is not None:
        raise _declared()
    return root


def is_plain(batch: bytes) -> bool:
    """Whether none of the documents in these bytes has a document type, a byte order mark or a NUL."""
    return not (may_declare(batch) or codecs.BOM_UTF8 in batch or 0 in batch)


def may_declare(text: bytes) -> bool:
    """Whether there may be a document type declaration in the text: nothing else begins one."""
    return b"<!DOCTYPE" in text


class _Trees(threading.local):
    """The parsers of a thread that build trees: to make one takes as long as to parse a small document."""

    def __init__(self) -> None:
        self._parsers: dict[tuple[bool, bool], etree.XMLParser] = {}

    def parser(self, comments: bool, instructions: bool) -> etree.XMLParser:
        found = self._parsers.get((comments, instructions))
        if found is None:
            found = make_parser(comments=comments, instructions=instructions)
            self._parsers[comments, instructions] = found
        return found


_TREES = _Trees()


def serialised(root: Element) -> bytes:
    """The document as another parser may see it: ASCII, without a declaration, line ends and values normalised."""
    return etree.tostring(root, with_tail=False)


def indented(text: bytes) -> str:
    """The document with a line for each element; text that stands between elements stays as it is."""
    root = parse_tree(text)
    etree.indent(root)
    return etree.tostring(root, encoding="unicode", with_tail=False)


def _ambiguous(text: bytes) -> DecodeProblem:
    """The refusal of bytes that libxml2 would not read literally.

    It drops a byte order mark at the beginning, and takes bytes with NULs among them for another encoding.
    """
    if text.startswith(codecs.BOM_UTF8):
        accepted = "one byte order mark at most"
        return problem_at("not well-formed XML: a second byte order mark", text, 0, 3, accepted=accepted)
    at = text.index(0)
    return problem_at("not well-formed XML: a NUL character", text, at, at + 1)


def _declared() -> DecodeProblem:
    return DecodeProblem(DOCUMENT_TYPE, accepted=WITHOUT_DECLARATIONS)
