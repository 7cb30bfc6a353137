"""Documents: XML, matched with XPath (paper 003, XML on relations)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from tidings.atoms import AtomShape
from tidings.core.text import escape_html, shorten
from tidings.documents import xml_decoder
from tidings.documents.model import Node, NodeKind
from tidings.kinds import (
    Claims,
    Environment,
    Kind,
    LanguageGuide,
    Part,
    PublicationSummary,
    Reader,
    Rehearsal,
    summarize_fields,
)
from tidings.model import Publication
from tidings.parsers.parser_pool import run_isolated

if TYPE_CHECKING:
    from tidings.matching.compiler.language import Language

XML = "application/xml"

MOST_SHOWN = 10_000
"""Maximum number of characters of a document in a summary."""


class Documents(Kind):
    name = "document"
    shape = AtomShape.TREE
    media_types = (XML, "text/xml")
    languages = ("xpath",)
    suffixes = {".xml": XML}
    titles = {XML: "XML"}
    sample = Part(XML, b"<nothing/>")

    def language(self, name: str) -> Language:
        from tidings.documents.xpath_language import XPathLanguage

        return XPathLanguage()

    def guide(self, name: str) -> LanguageGuide:
        from tidings.documents.samples import XPATH

        return XPATH

    def rehearse(self) -> Rehearsal:
        from tidings.documents.samples import REHEARSAL

        return REHEARSAL

    def decode(self, body: bytes, media_type: str, schema: object = None) -> Node:
        return xml_decoder.decode(body)

    def check(self, body: bytes, media_type: str, schema: object = None) -> Claims:
        run_isolated(check_document, body)
        return Claims()

    def open(self, environment: Environment) -> Reader:
        from tidings.documents.reader import DocumentReader

        return DocumentReader(environment)

    def summarize(self, publication: Publication, about: Sequence[str] = ()) -> PublicationSummary:
        """Summarize the leaves of the document's upper three levels."""
        root = xml_decoder.decode(publication.body)
        fields: dict[str, list[str]] = {}
        for node in [root, *root.children, *(inner for child in root.children for inner in child.children)]:
            if node.kind is NodeKind.ELEMENT and _is_leaf(node):
                fields.setdefault(node.name.rpartition("}")[2].lower(), []).append(node.value)
        text = publication.body[: 4 * MOST_SHOWN].decode("utf-8", "replace")
        return summarize_fields(fields, f"<pre>{escape_html(shorten(text, MOST_SHOWN))}</pre>")

    def sniff(self, text: str) -> str | None:
        return XML if text.startswith("<") else None


def check_document(body: bytes) -> None:
    """Validate a document, in a separate process if the service runs."""
    xml_decoder.decode(body)


def _is_leaf(node: Node) -> bool:
    return not any(child.kind is NodeKind.ELEMENT for child in node.children)


DOCUMENTS = Documents()
