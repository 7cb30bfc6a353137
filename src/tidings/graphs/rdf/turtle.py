"""What is looked at before Turtle, N-Triples, TriG or N-Quads is parsed: characters, and how deep brackets stand.

A triple term, `<<( ... )>>`, is new in RDF 1.2 and not accepted; some thousand of them inside each other overflow the
parser's stack, so the parser does not get to see them. Annotations, `{| ... |}`, and names of triples, `~`, make such
terms, too.
"""

from __future__ import annotations

import codecs
import re

from tidings.graphs.rdf.limits import Limits, beyond
from tidings.parsers.xml_bytes import place_in, problem_at

# One match takes all up to the next bracket. Quotes, angle brackets and number signs begin something that may have
# brackets in it; a backslash takes the next character with it (`ex:a\#b` is a name, no comment). A string that does not
# end takes one character: the parser refuses it there, and sees nothing of the rest.
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
"""What makes a term of a triple. IRIs, strings and comments may have these signs in them, and are passed over."""


def prepared(body: bytes, limits: Limits) -> bytes:
    """The same bytes for the parser, without a byte order mark."""
    text = body.removeprefix(codecs.BOM_UTF8)
    _refuse_other_encodings(text)
    depth, opened, at = 0, 0, _skip(text, 0)
    while at < len(text):
        step = _step(text, at)
        depth, opened = depth + step, opened + max(0, step)
        if depth < 0:
            raise problem_at("a bracket is closed that was not opened", text, at)
        if depth > limits.depth:
            raise beyond("depth", limits, where=place_in(text, at))
        if opened > limits.edges:  # each is at least one
            raise beyond("edges", limits, where=place_in(text, at))
        at = _skip(text, at + 1)
    return text


def _refuse_other_encodings(text: bytes) -> None:
    try:
        text.decode()
    except UnicodeDecodeError as error:
        received = f"byte 0x{text[error.start]:02x} at offset {error.start}"
        raise problem_at(
            "the body is not UTF-8", text, error.start, received=received, accepted="UTF-8"
        ) from None


def _skip(text: bytes, start: int) -> int:
    skipped = _SKIPPED.match(text, start)
    return skipped.end() if skipped else start


def _step(text: bytes, at: int) -> int:
    for sign, what in _RDF_12.items():
        if text.startswith(sign, at):
            accepted, end = "IRIs, blank nodes and literals", at + len(sign)
            raise problem_at(what, text, at, end, received=sign.decode(), accepted=accepted)
    return 1 if text[at : at + 1] in b"[({" else -1
