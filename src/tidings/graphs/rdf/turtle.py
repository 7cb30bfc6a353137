"""Checks of Turtle, N-Triples, TriG and N-Quads before the parser: encoding, nesting of brackets, RDF 1.2 syntax.

Triple terms, `<<( ... )>>`, are new in RDF 1.2 and not accepted. A few thousand nested ones overflow the parser's
stack, so the parser never sees them. Annotations, `{| ... |}`, and reifiers, `~`, create such terms, too.
"""

from __future__ import annotations

import codecs
import re

from tidings.graphs.rdf.rdf_errors import Limits, beyond
from tidings.parsers.xml_bytes import build_problem_at, describe_place

# One match skips everything up to the next bracket. Strings, IRIs and comments may contain brackets; a backslash
# escapes the next character (`ex:a\#b` is a name, not a comment). Of an unterminated string one character is skipped:
# the parser reports it there and reads no further.
_SKIPPED = re.compile(
    rb"(?:[^][(){}<~\"'#\\]++"
    rb'|"""(?:[^"\\]|\\.|""?(?!"))*+"""'
    rb"|'''(?:[^'\\]|\\.|''?(?!'))*+'''"
    rb'|"(?:[^"\\\r\n]|\\.)*+"'
    rb"|'(?:[^'\\\r\n]|\\.)*+'"
    rb"|<(?!<)[^<>\"{}|^`\x00-\x20]*+>"
    rb"|\#[^\r\n]*+"
    rb"|\\."
    rb"|<(?!<)|[\"'\\])*+",
    re.DOTALL,
)


_RDF_12 = {
    b"<<": "a triple as a term (RDF 1.2) is not accepted",
    b"{|": "an annotation of a triple (RDF 1.2) is not accepted",
    b"~": "a name for a triple (RDF 1.2) is not accepted",
}
"""Syntax that creates triple terms. IRIs, strings and comments, which may contain it, are skipped."""


def prepared(body: bytes, limits: Limits) -> bytes:
    """Return the bytes without a byte order mark, if the parser can read them safely."""
    text = body.removeprefix(codecs.BOM_UTF8)
    _refuse_other_encodings(text)
    depth, opened, position = 0, 0, _skip(text, 0)
    while position < len(text):
        step = _step(text, position)
        depth, opened = depth + step, opened + max(0, step)
        if depth < 0:
            raise build_problem_at("a closing bracket without an opening one", text, position)
        if depth > limits.depth:
            raise beyond("depth", limits, where=describe_place(text, position))
        if opened > limits.edges:  # each bracket is at least one edge
            raise beyond("edges", limits, where=describe_place(text, position))
        position = _skip(text, position + 1)
    return text


def _refuse_other_encodings(text: bytes) -> None:
    try:
        text.decode()
    except UnicodeDecodeError as error:
        received = f"byte 0x{text[error.start]:02x} at offset {error.start}"
        raise build_problem_at(
            "the body is not UTF-8", text, error.start, received=received, accepted="UTF-8"
        ) from None


def _skip(text: bytes, start: int) -> int:
    skipped = _SKIPPED.match(text, start)
    return skipped.end() if skipped else start


def _step(text: bytes, position: int) -> int:
    for sign, message in _RDF_12.items():
        if text.startswith(sign, position):
            accepted, end = "IRIs, blank nodes and literals", position + len(sign)
            raise build_problem_at(message, text, position, end, received=sign.decode(), accepted=accepted)
    return 1 if text[position : position + 1] in b"[({" else -1
