"""Check of SPARQL queries for unsupported features: other servers (SERVICE), other graphs, updates.

Oxigraph would send requests to other servers. So keywords are found as SPARQL tokenizes them: not in strings, IRIs,
comments and prefixed names, but also in the escaped form \\u0053ERVICE.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from tidings.errors import NotSupported, Place, SyntaxProblem

MAX_QUERY_LENGTH = 100_000
"""The maximal length of a query in characters."""

_SUPPORTED = "SELECT, ASK, CONSTRUCT and DESCRIBE over the local metadata"
_READS_ONLY = "queries are read-only; register documents instead"
_ONE_GRAPH = "there is only one graph; leave it out"
_UNSUPPORTED = {
    "service": ("SERVICE is", "queries to other servers are never sent"),
    "from": ("FROM is", _ONE_GRAPH),
    "graph": ("GRAPH is", _ONE_GRAPH),
    **{
        word: (f"{word.upper()} is", _READS_ONLY)
        for word in ("insert", "delete", "load", "clear", "create", "drop", "copy", "move", "add")
    },
}
_TOKEN = re.compile(
    r'"""(?:[^"\\]|\\.|"(?!""))*+(?:"""|\\?\Z)'
    r"|'''(?:[^'\\]|\\.|'(?!''))*+(?:'''|\\?\Z)"
    r'|"(?:[^"\\\n\r]|\\.)*+(?:"|\\?\Z|(?=[\n\r]))'
    r"|'(?:[^'\\\n\r]|\\.)*+(?:'|\\?\Z|(?=[\n\r]))"
    r'|<[^<>"{}|^`\\\s]*+>'
    r"|\#[^\n\r]*+"
    r"|[?$@]\w++"
    r"|(?P<words>[\w.\-]++)(?!:)"
    r"|(?P<name>[\w.\-]*+:(?:[\w.\-:%]|\\.)*+)(?P<called>(?=(?:\s|\#[^\n\r]*+)*+\{))?"
    r"|.",
    re.DOTALL,
)
"""Possessive quantifiers keep matching linear; an unclosed string extends to the end."""
_WORD = re.compile(r"\w+")
_BEFORE = r"(?:[\d.]+(?:e\d+)?|true|false)?"
_KEYWORD = re.compile(rf"{_BEFORE}({'|'.join(_UNSUPPORTED)})(?:silent|named)?", re.IGNORECASE)
_CALLED = re.compile(rf"{_BEFORE}(service|graph)", re.IGNORECASE)
"""Oxigraph needs no space around a keyword: 1SERVICE<a:b>{} and SERVICEa:b{} call a server, too."""
_ESCAPED = re.compile(r"\\u([0-9A-Fa-f]{4})|\\U([0-9A-Fa-f]{8})")


def check_sparql(text: str) -> None:
    """Raise NotSupported at the first unsupported keyword."""
    if len(text) > MAX_QUERY_LENGTH:
        raise SyntaxProblem(
            "the text is too long",
            received=f"{len(text):,} characters",
            accepted=f"at most {MAX_QUERY_LENGTH:,}",
        )
    for written in dict.fromkeys((text, _replace_escapes(text))):
        for word, start in list_keywords(written):
            if word.lower() in _UNSUPPORTED:
                construct, hint = _UNSUPPORTED[word.lower()]
                place = Place.at(written, start, start + len(word))
                raise NotSupported(f"{construct} not supported", place=place, accepted=_SUPPORTED, hint=hint)


def list_keywords(text: str) -> Iterator[tuple[str, int]]:
    """Yield keywords and names of functions with their offsets."""
    for token in _TOKEN.finditer(text):
        if token["called"] is not None and (called := _CALLED.match(text, token.start())):
            yield called[1], called.start(1)
        for word in _WORD.finditer(token["words"] or ""):
            keyword = _KEYWORD.fullmatch(word[0])
            start = token.start() + word.start()
            yield (keyword[1], start + keyword.start(1)) if keyword else (word[0], start)


def _replace_escapes(text: str) -> str:
    """Replace escapes, which SPARQL allows anywhere in a query."""

    def character(match: re.Match[str]) -> str:
        number = int(match[1] or match[2], 16)
        return chr(number) if number < 0x110000 and not 0xD800 <= number < 0xE000 else match[0]

    return _ESCAPED.sub(character, text)


_CHARACTERS = re.compile(r"\[['_][^\]]*\],? ?")
_WHERE = re.compile(r"error at (\d+):(\d+)(?:-\d+(?::\d+)?)?: (.*)", re.DOTALL)


def sparql_syntax_error(text: str, message: str) -> SyntaxProblem:
    """Convert a message of Oxigraph's parser to an error with its place."""
    match = _WHERE.search(message)
    if match is None:
        return SyntaxProblem("invalid SPARQL", received=message)
    place = Place(text, int(match[1]), int(match[2]))
    if "Prefix not found" in match[3]:
        return _undeclared_prefix(text, place)
    reason = " ".join(_CHARACTERS.sub("", match[3]).split()).removesuffix(",")
    return SyntaxProblem(f"invalid SPARQL: {reason}", place=place)


MAX_NAME_LENGTH = 500
_PREFIXED = re.compile(r"([\w.-]*):[\w.%:-]*\Z")


def _undeclared_prefix(text: str, behind: Place) -> SyntaxProblem:
    """Report a name with an undeclared prefix; the parser returns the place after it."""
    lines = text.split("\n")[: behind.line]
    preceding = "\n".join([*lines[:-1], lines[-1][: behind.column - 1]])
    match = _PREFIXED.search(preceding, max(0, len(preceding) - MAX_NAME_LENGTH))
    place = Place.at(text, match.start(), match.end()) if match else behind
    prefix = match[1] if match else ""
    return SyntaxProblem(
        f"undeclared prefix '{prefix}:'", place=place, hint=f"start with PREFIX {prefix}: <...>"
    )
