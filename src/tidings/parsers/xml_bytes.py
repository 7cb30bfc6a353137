"""XML as bytes, before it is parsed: one decision about the encoding, and a look for declarations.

Whatever comes in is turned into UTF-8 here, so that each check and each parser (`xml_parser`) read the same characters.
A document that has a DOCTYPE is refused before a parser sees it.
"""

from __future__ import annotations

import codecs
import re

from tidings.errors import DecodeProblem
from tidings.parsers.strict_json import problem

ENCODINGS = (
    *("UTF-8", "UTF-16", "US-ASCII", "ISO-8859-1 to 16", "windows-1250 to 1258", "KOI8-R", "KOI8-U"),
    *("Shift_JIS", "EUC-JP", "GB2312", "GBK", "GB18030", "Big5", "EUC-KR"),
)
"""What a document may be written in."""

LONGEST_KEPT = 65_536
"""Of a larger document a problem keeps the line and the column, not the text to underline them in."""

_MARKS = ((codecs.BOM_UTF8, "utf-8"), (codecs.BOM_UTF16_LE, "utf-16-le"), (codecs.BOM_UTF16_BE, "utf-16-be"))
_UNMARKED = ((b"<\0?\0", "utf-16-le"), (b"\0<\0?", "utf-16-be"))
_WIDE = (codecs.BOM_UTF32_LE, codecs.BOM_UTF32_BE, b"<\0\0\0", b"\0\0\0<")
_SAME = {
    "utf-8": ("utf-8", "utf8"),
    "utf-16-le": ("utf-16", "utf-16le", "iso-10646-ucs-2", "ucs-2"),
    "utf-16-be": ("utf-16", "utf-16be", "iso-10646-ucs-2", "ucs-2"),
}
"""What an XML declaration may call the encoding that the bytes are in."""
_DECLARED = re.compile(rb"""<\?xml\s[^<>]*?\sencoding\s*=\s*["']([A-Za-z0-9._-]+)["']""")
_LATIN = tuple(number for number in range(1, 17) if number != 12)
CODECS = (
    *("utf-8", "utf-16-le", "utf-16-be", "ascii", *(f"iso-8859-{number}" for number in _LATIN)),
    *(*(f"cp125{number}" for number in range(9)), "koi8-r", "koi8-u", "shift_jis", "euc-jp"),
    *("gb2312", "gbk", "gb18030", "big5", "euc-kr"),
)
"""How Python calls the encodings that a document may be written in."""
_KNOWN = frozenset(
    (
        *(*CODECS[3:], "us-ascii", "latin1"),
        *(f"iso_8859-{number}" for number in _LATIN),
        *(f"windows-125{number}" for number in range(9)),
    )
)
"""How an XML declaration may call those that it has to name."""
DOCUMENT_TYPE = "a document type declaration is not accepted"
WITHOUT_DECLARATIONS = (
    "a document without DOCTYPE; the entities lt, gt, amp, apos, quot; character references"
)
_PROLOG = re.compile(rb"(?:[ \t\r\n]++|<\?.*?\?>|<!--.*?-->)*+", re.DOTALL)


def as_utf8(body: bytes) -> bytes:
    """The same document in UTF-8 without its byte order mark.

    The mark decides, or that the bytes are evidently UTF-16, or else the XML declaration. A declaration that names
    another encoding than the mark is refused, as XML 1.0 (4.3.3) asks.
    """
    if body.startswith(_WIDE):
        raise _unknown("utf-32")
    for mark, encoding in _MARKS:
        if body.startswith(mark):
            return _marked(_recoded(body[len(mark) :], encoding), encoding)
    for beginning, encoding in _UNMARKED:
        if body.startswith(beginning):
            return _marked(_recoded(body, encoding), encoding)
    return _recoded(body, _declared_in(body) or "utf-8")


def _declared_in(body: bytes) -> str | None:
    """The encoding that the XML declaration names, in lower case."""
    declared = _DECLARED.match(body)
    return declared[1].decode().lower() if declared else None


def _marked(text: bytes, encoding: str) -> bytes:
    declared = _declared_in(text)
    if declared is not None and declared not in _SAME[encoding]:
        what = "the XML declaration names another encoding than the one that the bytes are in"
        accepted = f"{_SAME[encoding][0]}, or no encoding"
        raise DecodeProblem(what, received=declared[:40], accepted=accepted)
    return text


def _recoded(body: bytes, encoding: str) -> bytes:
    if encoding in ("utf-8", "utf8"):
        return body  # whether it is, the parser says, with the place
    if not encoding.startswith("utf-16-") and encoding not in _KNOWN:
        raise _unknown(encoding)
    try:
        return body.decode(encoding).encode()
    except UnicodeDecodeError as error:
        received = f"byte 0x{body[error.start]:02x} at offset {error.start}"
        raise DecodeProblem(f"the body is not {encoding}", received=received, accepted=encoding) from None


def _unknown(encoding: str) -> DecodeProblem:
    what = "the body is not in the encoding that it names, or that encoding is not supported"
    return DecodeProblem(what, received=encoding[:40], accepted=", ".join(ENCODINGS))


def refuse_declarations(body: bytes) -> None:
    """Refuse a document type declaration: entities, external DTDs and default attributes stand there, nowhere else.

    Only what precedes the document element is looked at: `<!DOCTYPE html>` in a CDATA section is text.
    """
    prolog = _PROLOG.match(body)
    start = prolog.end() if prolog else 0
    if body.startswith(b"<!", start) and not body.startswith(b"<!--", start):
        received = re.compile(rb"<![A-Z]*").match(body, start)
        end = received.end() if received else start
        said = body[start:end].decode()
        raise problem_at(DOCUMENT_TYPE, body, start, end, received=said, accepted=WITHOUT_DECLARATIONS)


def malformed(said: str, line: int, column: int, body: bytes) -> DecodeProblem:
    """What the parser says of a document that is not well-formed, at its place."""
    what = re.sub(r", line \d+, column \d+$", "", said.split("\n")[0])
    start = 0
    for _ in range(line - 1):
        start = body.find(b"\n", start) + 1
    before = body[start : start + 4 * column].decode(errors="replace")[: max(0, column - 1)]
    at = min(start + len(before.encode()), len(body))
    return problem_at(f"not well-formed XML: {what}", body, at)


def problem_at(
    what: str,
    body: bytes,
    start: int,
    end: int | None = None,
    received: str | None = None,
    accepted: str | None = None,
) -> DecodeProblem:
    """A problem at the bytes `start` to `end`."""
    before = body[:start].decode(errors="replace")
    if len(body) <= LONGEST_KEPT:
        last = None if end is None else len(body[:end].decode(errors="replace"))
        return problem(what, body.decode(errors="replace"), len(before), last, received, accepted)
    return DecodeProblem(what, where=place_in(body, start), received=received, accepted=accepted)


def place_in(body: bytes, start: int) -> str:
    """Line and column of a byte."""
    line, first = body.count(b"\n", 0, start) + 1, body.rfind(b"\n", 0, start) + 1
    return f"line {line}, column {len(body[first:start].decode(errors='replace')) + 1}"
