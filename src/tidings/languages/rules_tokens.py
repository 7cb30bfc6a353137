"""The words of a rule or a query over metadata: names, literals, operators, and where each stands."""

from __future__ import annotations

import re
from itertools import accumulate

from tidings.errors import Place, SyntaxProblem
from tidings.languages.xpath_tokens import Tokens

WORD = r"[^\W\d][\w-]*"
_TOKEN = re.compile(
    rf"({WORD}(?::{WORD})?"
    r"|[0-9]{4}-[0-9]{2}-[0-9]{2}(?:[Tt][0-9:.]+(?:[Zz]|[+-][0-9]{2}:?[0-9]{2})?)?"
    r"|-?[0-9]+(?:\.[0-9]+)?(?:[eE][+-]?[0-9]+)?"
    r"""|'(?:[^']|'')*'|"[^"]+\""""
    r"""|(?<![\w"'?)])<[^<>\s=][^<>\s]*>"""  # `c.a<5)or(c.b>3` has no resource in it
    r"|!=|<=|>=|==|<>|=<|=>|&&|\|\||[=<>.,()?*+/%;!|&-])"
)
_SPACE = " \t\r\n"
_CURLY = "“”„‘’‚«»"


def tokens_of(text: str) -> Tokens:
    """The tokens of a text, or a problem at the first character that is part of none."""
    parts = _TOKEN.split(text)
    if "".join(parts[::2]).strip(_SPACE):
        raise _stray(text, parts)
    words = parts[1::2]
    words += ("", "")
    return Tokens(text, words, list(accumulate(map(len, parts))))


def is_word(token: str) -> bool:
    """Whether a token is a name or a keyword, and not quoted."""
    first = token[:1]
    return first == "_" or (
        first.isalnum() and not first.isdecimal()
    )  # as the pattern has it: `²` begins a word


def _stray(text: str, parts: list[str]) -> SyntaxProblem:
    edges = [0, *accumulate(map(len, parts))]
    part = next(i for i in range(0, len(parts), 2) if parts[i].strip(_SPACE))
    start = edges[part] + len(parts[part]) - len(parts[part].lstrip(_SPACE))
    first = text[start]
    if first == "'":
        place = Place.at(text, start, len(text.rstrip()))
        return SyntaxProblem("this string is not closed", place=place, accepted="a closing '")
    if first == '"':
        place = Place.at(text, start, len(text.rstrip()))
        return SyntaxProblem("this name is not closed", place=place, accepted='a closing "')
    hint = "strings stand in straight quotes: '...'" if first in _CURLY else None
    shown = f"'{first}'" if first.isprintable() else f"U+{ord(first):04X}"
    return SyntaxProblem(f"the character {shown} means nothing here", place=Place.at(text, start), hint=hint)
