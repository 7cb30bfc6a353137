"""What the parser of graphs says of a publication, at its place and in our words."""

from __future__ import annotations

import re

from tidings.core.suggest import printable
from tidings.errors import DecodeProblem
from tidings.graphs.rdf import rdf_xml
from tidings.graphs.rdf.limits import Limits
from tidings.graphs.rdf.media_types import Syntax
from tidings.parsers.xml_bytes import problem_at

NO_BASE = "tidings-no-base://relative/"
BASELESS = NO_BASE[: NO_BASE.index("//")]
"""What relative IRIs are resolved against where the parser would not say that there is no base."""

RELATIVE = "a relative IRI, and nothing to resolve it against"
ACCEPTED = "absolute IRIs; a base in the publication (@base, xml:base) or given with it (--base)"

_WHERE = re.compile(r"^Parser error (?:at|between) .*?: (?=\S)", re.DOTALL)


def relative(text: str) -> DecodeProblem:
    """The problem of an IRI that was resolved against nothing."""
    return DecodeProblem(RELATIVE, received=f"<{printable(text.removeprefix(NO_BASE))}>", accepted=ACCEPTED)


def xml_problem(error: SyntaxError, body: bytes, limits: Limits) -> DecodeProblem:
    """What the parser of RDF/XML said of a publication. Its places are in what it was given, not in the publication."""
    return rdf_xml.refused(_WHERE.sub("", error.msg or ""), body, limits)


def syntax_problem(error: SyntaxError, text: bytes, syntax: Syntax) -> DecodeProblem:
    """What the parser said; it counts lines and columns from one, and columns in characters."""
    said = _WHERE.sub("", error.msg or "")
    if error.lineno is None or error.offset is None:
        return DecodeProblem(f"not {syntax.value}: {said}")
    start = _offset(text, error.lineno, error.offset)
    end = _offset(text, error.end_lineno or error.lineno, error.end_offset or error.offset)
    if "No scheme found" in said:
        received = printable(text[start:end].decode(errors="replace"))
        return problem_at(RELATIVE, text, start, end, received=received, accepted=ACCEPTED)
    return problem_at(f"not {syntax.value}: {printable(said, 200)}", text, start, max(start + 1, end))


def _offset(text: bytes, line: int, column: int) -> int:
    """The byte at which a line's column begins."""
    start = 0
    for _ in range(line - 1):
        start = text.find(b"\n", start) + 1
    before = text[start : start + 4 * column].decode(errors="replace")[: max(0, column - 1)]
    return min(start + len(before.encode()), len(text))
