"""What a SPARQL query may not ask here: for other servers, for other graphs, or for changes.

Oxigraph would ask other servers. So the words of a query are read as SPARQL reads them: what stands in strings, IRIs,
comments and prefixed names is none of them, and \\u0053ERVICE is one.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from tidings.errors import NotSupported, Place, SyntaxProblem

MAX_QUERY_LENGTH = 100_000
"""How many characters a query may have."""

_SUPPORTED = "SELECT, ASK, CONSTRUCT and DESCRIBE over the metadata that is here"
_READS_ONLY = "nothing is changed by a query: register documents"
_ONE_GRAPH = "there is one graph: leave it out"
_REFUSED = {
    "service": ("SERVICE is", "other servers are never asked"),
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
"""Each character is looked at a few times only, whatever stands there: a string that has no end goes to the end."""
_WORD = re.compile(r"\w+")
_BEFORE = r"(?:[\d.]+(?:e\d+)?|true|false)?"
_KEYWORD = re.compile(rf"{_BEFORE}({'|'.join(_REFUSED)})(?:silent|named)?", re.IGNORECASE)
_CALLED = re.compile(rf"{_BEFORE}(service|graph)", re.IGNORECASE)
"""Oxigraph needs no space around a word: 1SERVICE<a:b>{} and SERVICEa:b{} ask a server, too."""
_ESCAPED = re.compile(r"\\u([0-9A-Fa-f]{4})|\\U([0-9A-Fa-f]{8})")


def check_sparql(text: str) -> None:
    """Refuse what is never evaluated, with its place."""
    if len(text) > MAX_QUERY_LENGTH:
        raise SyntaxProblem(
            "the text is too long",
            received=f"{len(text):,} characters",
            accepted=f"at most {MAX_QUERY_LENGTH:,}",
        )
    for written in dict.fromkeys((text, _unescaped(text))):
        for word, start in list_keywords(written):
            if word.lower() in _REFUSED:
                what, hint = _REFUSED[word.lower()]
                place = Place.at(written, start, start + len(word))
                raise NotSupported(f"{what} not supported", place=place, accepted=_SUPPORTED, hint=hint)


def list_keywords(text: str) -> Iterator[tuple[str, int]]:
    """The keywords and names of functions, and where each stands."""
    for found in _TOKEN.finditer(text):
        if found["called"] is not None and (called := _CALLED.match(text, found.start())):
            yield called[1], called.start(1)
        for word in _WORD.finditer(found["words"] or ""):
            known = _KEYWORD.fullmatch(word[0])
            start = found.start() + word.start()
            yield (known[1], start + known.start(1)) if known else (word[0], start)


def _unescaped(text: str) -> str:
    """SPARQL takes such escapes anywhere in a query, before it looks for words."""

    def character(found: re.Match[str]) -> str:
        number = int(found[1] or found[2], 16)
        return chr(number) if number < 0x110000 and not 0xD800 <= number < 0xE000 else found[0]

    return _ESCAPED.sub(character, text)


_CHARACTERS = re.compile(r"\[['_][^\]]*\],? ?")
_WHERE = re.compile(r"error at (\d+):(\d+)(?:-\d+(?::\d+)?)?: (.*)", re.DOTALL)


def sparql_syntax_error(text: str, said: str) -> SyntaxProblem:
    """What a parser says that does not understand a query, at the place it names."""
    found = _WHERE.search(said)
    if found is None:
        return SyntaxProblem("this is no SPARQL query", received=said)
    place = Place(text, int(found[1]), int(found[2]))
    if "Prefix not found" in found[3]:
        return _no_prefix(text, place)
    told = " ".join(_CHARACTERS.sub("", found[3]).split()).removesuffix(",")
    return SyntaxProblem(f"this is no SPARQL query: {told}", place=place)


MAX_NAME_LENGTH = 500
_PREFIXED = re.compile(r"([\w.-]*):[\w.%:-]*\Z")


def _no_prefix(text: str, behind: Place) -> SyntaxProblem:
    """A name whose prefix nobody has declared; the parser names the place behind it."""
    lines = text.split("\n")[: behind.line]
    before = "\n".join([*lines[:-1], lines[-1][: behind.column - 1]])
    found = _PREFIXED.search(before, max(0, len(before) - MAX_NAME_LENGTH))
    place = Place.at(text, found.start(), found.end()) if found else behind
    prefix = found[1] if found else ""
    return SyntaxProblem(
        f"nothing says what '{prefix}:' stands for", place=place, hint=f"begin with PREFIX {prefix}: <...>"
    )
