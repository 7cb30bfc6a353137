"""Strict JSON parser that reports the position of each error.

Python's parser is fast but accepts more than JSON: NaN, duplicate keys, numbers that overflow to infinity, half of a
surrogate pair, any depth until the stack overflows. Hooks reject those during parsing. A hook does not know its
position, so a rejected text is scanned a second time, token by token, to find it.
"""

from __future__ import annotations

import json
import re
from typing import Any

from tidings.core.suggest import printable
from tidings.errors import DecodeProblem, Place
from tidings.values import Scalar, to_number

MAX_DEPTH = 64
"""Maximum nesting depth of objects and arrays, including the outermost."""

LONGEST_DRAWN = 160
"""Errors do not quote lines longer than this; they give the column only."""

MOST_VALUES = 200_000
"""Default maximum of values in one text: parsing that many takes about half a second."""

BATCHED = 5
"""Factor by which a batch of events or a feed may have more values than one publication."""

JsonObject = dict[str, Any]

OBJECT = 'a JSON object, such as {"price": 180}'
VALUE = "an object, an array, a string, a number, true, false or null"


def parse(body: bytes) -> JsonObject:
    """Parse a JSON object."""
    value = parse_value(body, OBJECT)
    if not isinstance(value, dict):
        raise DecodeProblem("the body is not a JSON object", received=_describe_type(value), accepted=OBJECT)
    return value


def parse_value(body: bytes, accepted: str = VALUE) -> Any:
    """Parse a JSON value. `accepted` describes it in the error for bytes that do not begin with one."""
    text = read_text(body)
    if _may_hide_problems(text):
        _reject_first_problem(text)
    return _parse_text(text, accepted)


def has_more_values(body: bytes, most: int) -> bool:
    """Return whether a text has more values than `most`, without parsing it.

    A value of two bytes becomes a Python object of a hundred. This only counts bytes, at memory speed: commas and
    opening brackets outside strings. An empty object or array counts twice.
    """
    if len(body) < 2 * most or _count_separators(body) < most:
        return False
    plain = body.replace(b"\\\\", b"").replace(b'\\"', b"")
    if plain.count(b'"') > 4 * most:  # each string is a key or a value
        return True
    return sum(map(_count_separators, plain.split(b'"')[::2])) >= most


def _count_separators(body: bytes) -> int:
    return body.count(b",") + body.count(b"[") + body.count(b"{")


def values_problem(most: int) -> DecodeProblem:
    """Build the error for a text with more values than `most`."""
    return DecodeProblem("too many values in this JSON", accepted=f"at most {most:,} values")


def looks_like_json_lines(body: bytes) -> bool:
    """Return whether bytes that are not JSON may be JSON Lines: an object on the first line, and another after it."""
    first, _, remaining = body.strip().partition(b"\n")
    try:
        parse(first)
    except DecodeProblem:
        return False
    return remaining.lstrip().startswith(b"{")


def read_text(body: bytes) -> str:
    """Decode a text: UTF-8 without a byte order mark, and not empty."""
    if body.startswith(b"\xef\xbb\xbf"):
        raise DecodeProblem(
            "the body starts with a byte order mark", accepted="UTF-8 without a byte order mark"
        )
    try:
        text = body.decode()
    except UnicodeDecodeError as error:
        shown, start = body.decode(errors="replace"), len(body[: error.start].decode())
        received = f"byte 0x{body[error.start]:02x} at offset {error.start}"
        raise build_problem(
            "the body is not UTF-8", shown, start, received=received, accepted="UTF-8"
        ) from None
    if not text.strip(" \t\n\r"):
        raise DecodeProblem("the body is empty", accepted=OBJECT)
    return text


class _NotJson(ValueError):
    """Input that Python's parser accepts but JSON does not allow; a second scan finds its position."""


def _build_object(pairs: list[tuple[str, Any]]) -> JsonObject:
    members = dict(pairs)
    if len(members) != len(pairs):
        raise _NotJson("a key occurs twice in one object")
    return members


def _parse_number(text: str) -> int | float:
    number = to_number(text)
    if number is None:
        raise _NotJson("a number is too large for a double")
    return number


def _reject_constant(text: str) -> None:
    raise _NotJson(f"{text} is not JSON")


_decoder = json.JSONDecoder(
    object_pairs_hook=_build_object,
    parse_int=_parse_number,
    parse_float=_parse_number,
    parse_constant=_reject_constant,
)


def _parse_text(text: str, accepted_value: str) -> Any:
    try:
        return _decoder.decode(text)
    except json.JSONDecodeError as error:
        message, accepted = _SYNTAX.get(error.msg, (error.msg[:1].lower() + error.msg[1:], None))
        if accepted == VALUE and not text[: error.pos].strip():
            accepted = accepted_value
        raise build_problem(message, text, error.pos, accepted=accepted) from None
    except _NotJson as error:
        _reject_first_problem(text)
        raise DecodeProblem(str(error)) from None


_SYNTAX: dict[str, tuple[str, str | None]] = {
    "Expecting value": ("expected a value", VALUE),
    "Expecting property name enclosed in double quotes": ("expected a key", "a string in double quotes"),
    "Expecting ':' delimiter": ("expected a colon after the key", ":"),
    "Expecting ',' delimiter": ("expected a comma or the end", ", or a closing bracket"),
    "Illegal trailing comma before end of object": ("expected a key after the comma", "a string"),
    "Illegal trailing comma before end of array": ("expected a value after the comma", None),
    "Unterminated string starting at": ("unterminated string", 'a closing "'),
    "Invalid control character at": ("a control character in a string", "its escape, such as \\n"),
    "Invalid \\escape": (
        "unknown escape sequence",
        '\\" \\\\ \\/ \\b \\f \\n \\r \\t or \\u and four hex digits',
    ),
    "Invalid \\uXXXX escape": ("invalid escape sequence", "\\u and four hex digits"),
    "Extra data": ("extra data after the JSON value", "one JSON value and nothing after it"),
}

# A valid text has only whitespace, commas and literals between its brackets, strings and numbers. A string before a
# colon is a key. An unterminated string extends to the end of the text: nothing in it is a token.
_TOKEN = re.compile(
    r'(?P<string>"(?:[^"\\]|\\.)*+(?:"|\Z))(?P<key>[ \t\n\r]*+:)?'
    r"|(?P<open>[\[{])|(?P<close>[\]}])|(?P<constant>NaN|-?Infinity)|(?P<number>-?[0-9][-+.0-9eE]*+)",
    re.DOTALL,
)
_NO_BRACKET = re.compile(r'"(?:[^"\\]|\\.)*+(?:"|\Z)|[^"\[\]{}]++', re.DOTALL)
_SURROGATE = re.compile(r"\\u[dD][89a-fA-F]")


def _may_hide_problems(text: str) -> bool:
    """Return whether Python's parser may miss excessive depth or half of a surrogate pair."""
    is_deep = text.count("{") + text.count("[") > MAX_DEPTH and _measure_depth(text) > MAX_DEPTH
    return is_deep or _SURROGATE.search(text) is not None


def _measure_depth(text: str) -> int:
    depth = deepest = 0
    for bracket in _NO_BRACKET.sub("", text):
        depth = depth + 1 if bracket in "[{" else max(0, depth - 1)
        deepest = max(deepest, depth)
    return deepest


def _reject_first_problem(text: str) -> None:
    """Raise the first problem that is not a syntax error; Python's parser reports those."""
    keys: list[set[str]] = []
    for token in _TOKEN.finditer(text):
        kind, lexeme, start, end = token.lastgroup, token[0], token.start(), token.end()
        if kind == "open":
            keys.append(set())
            if len(keys) > MAX_DEPTH:
                raise build_problem("nested too deeply", text, start, accepted=f"at most {MAX_DEPTH} levels")
        elif kind == "close":
            del keys[-1:]
        elif kind == "constant":
            raise build_problem(f"{lexeme} is not JSON", text, start, end, accepted="a finite number or null")
        elif kind == "number":
            _check_number(text, token)
        else:
            _check_string(text, token, keys)


def _check_number(text: str, token: re.Match[str]) -> None:
    try:
        number = to_number(token[0])
    except ValueError:  # not a number, such as 1.2.3: a syntax error
        return
    if number is None:
        received = token[0] if len(token[0]) <= 40 else f"a number of {len(token[0])} characters"
        message, accepted = "the number is too large for a double", "a number up to about 1.8e308"
        raise build_problem(message, text, token.start(), token.end(), received=received, accepted=accepted)


def _check_string(text: str, token: re.Match[str], keys: list[set[str]]) -> None:
    start, end = token.span("string")
    try:
        string = json.loads(token["string"])
    except json.JSONDecodeError:  # a syntax error, which Python's parser reports
        return
    if any("\ud800" <= character <= "\udfff" for character in string):
        message, accepted = "half of a surrogate pair", "both halves, such as \\ud83d\\ude00"
        raise build_problem(message, text, start, end, received=token["string"][:40], accepted=accepted)
    if token["key"] is not None and keys:
        if string in keys[-1]:
            message = f"the key '{printable(string)}' occurs twice in one object"
            raise build_problem(
                message, text, start, end, accepted="each key once; several values as an array"
            )
        keys[-1].add(string)


def build_problem(
    message: str,
    text: str,
    start: int,
    end: int | None = None,
    received: str | None = None,
    accepted: str | None = None,
) -> DecodeProblem:
    """Build an error at a position; it quotes the line if that is short and printable."""
    place = Place.at(text, start, end)
    line = text.split("\n")[place.line - 1]
    if len(line) <= LONGEST_DRAWN and line.rstrip("\r").isprintable():
        return DecodeProblem(message, place=place, received=received, accepted=accepted)
    return DecodeProblem(message, where=place.describe(), received=received, accepted=accepted)


def _describe_type(value: Scalar | list[Any] | None) -> str:
    if isinstance(value, list):
        return "an array"
    if isinstance(value, str):
        return "a string"
    return "null" if value is None else json.dumps(value)
