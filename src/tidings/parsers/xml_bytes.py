"""Preparation of XML before parsing: detection of the encoding, conversion to UTF-8, rejection of DOCTYPE.

All input is converted to UTF-8 here, so that every check and every parser (`xml_parser`) reads the same characters.
A document with a DOCTYPE is rejected before a parser sees it.
"""

from __future__ import annotations

import codecs
import re

from tidings.errors import DecodeProblem
from tidings.parsers.strict_json import build_problem

ENCODINGS = (
    *("UTF-8", "UTF-16", "US-ASCII", "ISO-8859-1 to 16", "windows-1250 to 1258", "KOI8-R", "KOI8-U"),
    *("Shift_JIS", "EUC-JP", "GB2312", "GBK", "GB18030", "Big5", "EUC-KR"),
)
"""Supported encodings, as error messages list them."""

MAX_QUOTED_BYTES = 65_536
"""Errors quote the text of documents up to this many bytes; for larger ones they give line and column only."""

_BYTE_ORDER_MARKS = (
    (codecs.BOM_UTF8, "utf-8"),
    (codecs.BOM_UTF16_LE, "utf-16-le"),
    (codecs.BOM_UTF16_BE, "utf-16-be"),
)
_UTF16_PREFIXES = ((b"<\0?\0", "utf-16-le"), (b"\0<\0?", "utf-16-be"))
_UTF32_PREFIXES = (codecs.BOM_UTF32_LE, codecs.BOM_UTF32_BE, b"<\0\0\0", b"\0\0\0<")
_DECLARED_NAMES = {
    "utf-8": ("utf-8", "utf8"),
    "utf-16-le": ("utf-16", "utf-16le", "iso-10646-ucs-2", "ucs-2"),
    "utf-16-be": ("utf-16", "utf-16be", "iso-10646-ucs-2", "ucs-2"),
}
"""Names that an XML declaration may use for the encoding that was detected from the bytes."""
_ENCODING_DECLARATION = re.compile(rb"""<\?xml\s[^<>]*?\sencoding\s*=\s*["']([A-Za-z0-9._-]+)["']""")
_LATIN = tuple(number for number in range(1, 17) if number != 12)
CODECS = (
    *("utf-8", "utf-16-le", "utf-16-be", "ascii", *(f"iso-8859-{number}" for number in _LATIN)),
    *(*(f"cp125{number}" for number in range(9)), "koi8-r", "koi8-u", "shift_jis", "euc-jp"),
    *("gb2312", "gbk", "gb18030", "big5", "euc-kr"),
)
"""Python's names of the supported encodings."""
_DECLARABLE_NAMES = frozenset(
    (
        *(*CODECS[3:], "us-ascii", "latin1"),
        *(f"iso_8859-{number}" for number in _LATIN),
        *(f"windows-125{number}" for number in range(9)),
    )
)
"""Names that an XML declaration may use for encodings that cannot be detected from the bytes."""
DOCUMENT_TYPE = "a document type declaration is not accepted"
WITHOUT_DECLARATIONS = (
    "a document without DOCTYPE; the entities lt, gt, amp, apos, quot; character references"
)
_PROLOG = re.compile(rb"(?:[ \t\r\n]++|<\?.*?\?>|<!--.*?-->)*+", re.DOTALL)


def convert_to_utf8(body: bytes) -> bytes:
    """Convert a document to UTF-8 without a byte order mark.

    The encoding is taken from the byte order mark, else from a UTF-16 prefix, else from the XML declaration. A
    declaration that contradicts the byte order mark is rejected, as XML 1.0 (4.3.3) requires.
    """
    if body.startswith(_UTF32_PREFIXES):
        raise _unsupported_encoding("utf-32")
    for mark, encoding in _BYTE_ORDER_MARKS:
        if body.startswith(mark):
            return _check_declaration(_decode_to_utf8(body[len(mark) :], encoding), encoding)
    for prefix, encoding in _UTF16_PREFIXES:
        if body.startswith(prefix):
            return _check_declaration(_decode_to_utf8(body, encoding), encoding)
    return _decode_to_utf8(body, _find_declared_encoding(body) or "utf-8")


def _find_declared_encoding(body: bytes) -> str | None:
    """Return the encoding that the XML declaration names, in lower case."""
    declaration = _ENCODING_DECLARATION.match(body)
    return declaration[1].decode().lower() if declaration else None


def _check_declaration(text: bytes, encoding: str) -> bytes:
    declared = _find_declared_encoding(text)
    if declared is not None and declared not in _DECLARED_NAMES[encoding]:
        message = "the XML declaration contradicts the encoding of the bytes"
        accepted = f"{_DECLARED_NAMES[encoding][0]}, or no encoding"
        raise DecodeProblem(message, received=declared[:40], accepted=accepted)
    return text


def _decode_to_utf8(body: bytes, encoding: str) -> bytes:
    if encoding in ("utf-8", "utf8"):
        return body  # the parser reports invalid UTF-8, with its position
    if not encoding.startswith("utf-16-") and encoding not in _DECLARABLE_NAMES:
        raise _unsupported_encoding(encoding)
    try:
        return body.decode(encoding).encode()
    except UnicodeDecodeError as error:
        received = f"byte 0x{body[error.start]:02x} at offset {error.start}"
        raise DecodeProblem(
            f"the body is not valid {encoding}", received=received, accepted=encoding
        ) from None


def _unsupported_encoding(encoding: str) -> DecodeProblem:
    message = "the encoding of the document is not supported"
    return DecodeProblem(message, received=encoding[:40], accepted=", ".join(ENCODINGS))


def reject_doctype(body: bytes) -> None:
    """Reject a document type declaration, the only place that declares entities, external DTDs and default attributes.

    Only the prolog is searched: `<!DOCTYPE html>` in a CDATA section is text.
    """
    prolog = _PROLOG.match(body)
    start = prolog.end() if prolog else 0
    if body.startswith(b"<!", start) and not body.startswith(b"<!--", start):
        keyword = re.compile(rb"<![A-Z]*").match(body, start)
        end = keyword.end() if keyword else start
        received = body[start:end].decode()
        raise build_problem_at(
            DOCUMENT_TYPE, body, start, end, received=received, accepted=WITHOUT_DECLARATIONS
        )


def build_syntax_problem(message: str, line: int, column: int, body: bytes) -> DecodeProblem:
    """Build the error for a document that is not well-formed from the parser's message and position."""
    text = re.sub(r", line \d+, column \d+$", "", message.split("\n")[0])
    start = 0
    for _ in range(line - 1):
        start = body.find(b"\n", start) + 1
    preceding = body[start : start + 4 * column].decode(errors="replace")[: max(0, column - 1)]
    position = min(start + len(preceding.encode()), len(body))
    return build_problem_at(f"not well-formed XML: {text}", body, position)


def build_problem_at(
    message: str,
    body: bytes,
    start: int,
    end: int | None = None,
    received: str | None = None,
    accepted: str | None = None,
) -> DecodeProblem:
    """Build an error at the bytes `start` to `end`."""
    preceding = body[:start].decode(errors="replace")
    if len(body) <= MAX_QUOTED_BYTES:
        last = None if end is None else len(body[:end].decode(errors="replace"))
        return build_problem(message, body.decode(errors="replace"), len(preceding), last, received, accepted)
    return DecodeProblem(message, where=describe_place(body, start), received=received, accepted=accepted)


def describe_place(body: bytes, start: int) -> str:
    """Describe the position of a byte as line and column."""
    line, first = body.count(b"\n", 0, start) + 1, body.rfind(b"\n", 0, start) + 1
    return f"line {line}, column {len(body[first:start].decode(errors='replace')) + 1}"
