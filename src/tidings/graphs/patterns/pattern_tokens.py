"""Tokens of graph subscriptions in GQL or SPARQL, with their positions.

The first characters determine the kind of a token: `?x` is a variable, `<...>` an IRI, quotes begin a string, a digit a
number or a date, and a word with a colon is a prefixed name.
"""

from __future__ import annotations

import re
from itertools import accumulate
from typing import NamedTuple

from tidings.core.source_text import NAME_REST, NAME_START, SPACE, Tokens
from tidings.errors import Place, SyntaxProblem

_ESCAPED = r"\\u[0-9A-Fa-f]{4}|\\U[0-9A-Fa-f]{8}"
_IRI = rf"""<(?:[^<>"{{}}|^`\\\x00-\x20]|{_ESCAPED})*>"""
_CLOSED = (
    r'"""(?:(?:""?)?(?:[^"\\]|\\.))*"""|'
    r"'''(?:(?:''?)?(?:[^'\\]|\\.))*'''|"
    r'"(?!"")(?:[^"\\\n\r]|\\[^\n\r])*"|'
    r"'(?!'')(?:[^'\\\n\r]|\\[^\n\r])*'"
)
_STRING = rf"""{_CLOSED}|\"{{3}}.*|'{{3}}.*|["'][^\n]*"""
"""A string, closed or not. An unclosed one is one token, so that not every quote in it is tried to the end."""

_ODD = r"%[0-9A-Fa-f]{2}|\\[_~.\-!$&'()*+,;=/?#@%]"
_DATE = r"[0-9]{4}-[0-9]{2}-[0-9]{2}(?:[Tt][0-9:.]*[0-9](?:[Zz]|[+-][0-9]{2}:?[0-9]{2})?)?(?![\w-])"
_NUMBER = r"[+-]?(?:[0-9]+\.[0-9]*[eE][+-]?[0-9]+|\.?[0-9]+[eE][+-]?[0-9]+|[0-9]*\.[0-9]+|[0-9]+)(?!\w)"


class _Names(NamedTuple):
    """Patterns of SPARQL's names, for the characters that may begin (PN_CHARS_BASE) and continue a name."""

    variable: str
    prefixed: str
    blank: str

    @classmethod
    def of(cls, start: str, later: str) -> _Names:
        """Prefixes have a maximum length: otherwise a text of dots and letters takes quadratic time."""
        first, going_on = rf"(?:[{start}_0-9]|{_ESCAPED})", rf"(?:[{start}_{later}-]|{_ESCAPED})"
        prefix = rf"(?:[{start}]|{_ESCAPED})(?:(?:{going_on}|\.){{0,63}}{going_on})?"
        local = rf"(?:{first}|:|{_ODD})(?:(?:{going_on}|[.:]|{_ODD})*(?:{going_on}|:|{_ODD}))?"
        return cls(
            variable=rf"{first}(?:[{start}_{later}]|{_ESCAPED})*",
            prefixed=rf"(?:{prefix})?:(?:{local})?",
            blank=rf"_:{first}(?:(?:{going_on}|\.)*{going_on})?",
        )


def _pattern(names: _Names) -> re.Pattern[str]:
    return re.compile(
        rf"({_IRI}|{_STRING}|@[A-Za-z]+(?:-[A-Za-z0-9]+)*|[?$]{names.variable}|{_DATE}|{_NUMBER}"
        rf"|{names.blank}|{names.prefixed}|[^\W\d]\w*"
        r"|&&|\|\||\^\^|[!<>]=|[{}()\[\],;.=<>!*/|^+?&-])",
        re.DOTALL,
    )


_START = NAME_START.replace("_", "")
_NAMES, _ASCII_NAMES = _Names.of(_START, NAME_REST), _Names.of("A-Za-z", "0-9")
_TOKEN, _ASCII_TOKEN = _pattern(_NAMES), _pattern(_ASCII_NAMES)
"""Most texts are ASCII, and sets of many ranges are slow."""

_NAME = re.compile(rf"[?$]{_NAMES.variable}|{_NAMES.blank}|{_NAMES.prefixed}")
_CODE_POINT = re.compile(_ESCAPED)
_CLOSED_STRING = re.compile(_CLOSED, re.DOTALL)
_COMMENT = re.compile(rf"({_IRI}|{_STRING}|\\.)|#[^\n\r]*", re.DOTALL)  # `ex:a\#b` is a name
_CURLY = "“”„‘’‚«»"


def tokens_of(text: str) -> Tokens:
    """Split a text into tokens, or raise a problem at the first character outside of them."""
    pattern = _ASCII_TOKEN if text.isascii() else _TOKEN
    parts = pattern.split(_without_comments(text) if "#" in text else text)
    if "".join(parts[::2]).strip(SPACE):
        raise _unexpected_character(text, parts)
    words = parts[1::2]
    quoted = '"' in text or "'" in text
    if quoted and any(word[0] in "\"'" and not _CLOSED_STRING.fullmatch(word) for word in words):
        raise _unclosed(text, words, parts)
    words += ("", "", "")
    tokens = Tokens(text, words, list(accumulate(map(len, parts))))
    if "\\" in text:
        words[:] = [_unescaped_name(word, tokens, at) for at, word in enumerate(words)]
    return tokens


def has_comments(text: str) -> bool:
    """Return whether a text has comments; IRIs and strings may contain a number sign, too."""
    return "#" in text and _without_comments(text) != text


def _without_comments(text: str) -> str:
    return _COMMENT.sub(lambda match: match[1] or " " * len(match[0]), text)


def _unclosed(text: str, words: list[str], parts: list[str]) -> SyntaxProblem:
    position = next(
        i for i, word in enumerate(words) if word[0] in "\"'" and not _CLOSED_STRING.fullmatch(word)
    )
    start, first = len("".join(parts[: 2 * position + 1])), words[position].split("\n")[0].rstrip()
    quote = first[:3] if first[:3] in ('"""', "'''") else first[0]
    place = Place.at(text, start, start + len(first))
    return SyntaxProblem("this string is not closed", place=place, accepted=f"a closing {quote}")


def _unexpected_character(text: str, parts: list[str]) -> SyntaxProblem:
    edges = [0, *accumulate(map(len, parts))]
    part = next(i for i in range(0, len(parts), 2) if parts[i].strip(SPACE))
    start = edges[part] + len(parts[part]) - len(parts[part].lstrip(SPACE))
    first = text[start]
    if first.isdigit():
        match = re.match(r"[\w.:+-]+", text[start:])
        place = Place.at(text, start, start + len(match[0]) if match else None)
        return SyntaxProblem("this is not a number", place=place, hint="write text in quotes")
    hint = "write strings in straight quotes: \"...\" or '...'" if first in _CURLY else None
    shown = f"'{first}'" if first.isprintable() else f"U+{ord(first):04X}"
    return SyntaxProblem(f"unexpected character {shown}", place=Place.at(text, start), hint=hint)


def _unescaped_name(word: str, tokens: Tokens, position: int) -> str:
    """Replace escapes such as `\\u00e9` in a name; IRIs and strings are unescaped when they are read."""
    if word[:1] in ("<", "'", '"') or not _CODE_POINT.search(word):
        return word
    name = _CODE_POINT.sub(lambda match: _character(match[0], tokens.place(position)), word)
    if not _NAME.fullmatch(name):
        raise SyntaxProblem(
            "a name cannot contain this character", place=tokens.place(position), received=word
        )
    return name


def _character(written: str, place: Place) -> str:
    code = int(written[2:], 16)
    if code > 0x10FFFF or 0xD800 <= code <= 0xDFFF:
        raise SyntaxProblem("there is no such character", place=place, received=written)
    return chr(code)


_NAMED = {"t": "\t", "b": "\b", "n": "\n", "r": "\r", "f": "\f", '"': '"', "'": "'", "\\": "\\"}
_ESCAPE = re.compile(rf"({_ESCAPED})|\\(.)", re.DOTALL)


def unescaped(written: str, place: Place) -> str:
    """Replace the escapes in the content of a string or an IRI."""
    if "\\" not in written:
        return written

    def read(match: re.Match[str]) -> str:
        if match[1]:
            return _character(match[1], place)
        if match[2] not in _NAMED:
            accepted = r"""\t \b \n \r \f \" \' \\ \uXXXX \UXXXXXXXX"""
            received = f"\\{match[2]}"
            raise SyntaxProblem("there is no such escape", place=place, received=received, accepted=accepted)
        return _NAMED[match[2]]

    return _ESCAPE.sub(read, written)


def body(word: str) -> str:
    """Return a string's token without its quotes."""
    width = 3 if word[:3] in ('"""', "'''") and len(word) >= 6 else 1
    return word[width:-width]
