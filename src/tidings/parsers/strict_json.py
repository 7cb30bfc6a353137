"""Strict JSON: bytes to a value, or a problem that says where.

Python's reader is fast but accepts more than JSON: NaN, a key twice, numbers that become infinite, half a
surrogate pair, any depth until the stack ends. Hooks refuse those while it reads. They do not know the place,
so a refused text is read a second time, token by token, to find it.
"""

from __future__ import annotations

import json
import re
from typing import Any

from tidings.core.suggest import printable
from tidings.errors import DecodeProblem, Place
from tidings.values import Scalar, to_number

MAX_DEPTH = 64
"""How many objects and arrays may stand inside each other, the outermost counted."""

LONGEST_DRAWN = 160
"""A line longer than this is not drawn in an error: the column says where."""

MOST_VALUES = 200_000
"""How many values a text may have by default: reading so many takes about half a second."""

BATCHED = 5
"""How many times as many values a batch of events, or a feed, may have."""

JsonObject = dict[str, Any]

OBJECT = 'a JSON object, such as {"price": 180}'
VALUE = "an object, an array, a string, a number, true, false or null"


def parse(body: bytes) -> JsonObject:
    """The JSON object in the bytes."""
    value = parse_value(body, OBJECT)
    if not isinstance(value, dict):
        raise DecodeProblem("the body is not a JSON object", received=_named(value), accepted=OBJECT)
    return value


def parse_value(body: bytes, wanted: str = VALUE) -> Any:
    """The JSON value in the bytes. `wanted` is what is said of bytes that do not even begin as one."""
    text = read_text(body)
    if _may_hide_problems(text):
        _refuse_first_problem(text)
    return _parse_text(text, wanted)


def has_more_values(body: bytes, most: int) -> bool:
    """Return whether a text has more values than `most`, before anything is made of it.

    A value of two bytes becomes an object of a hundred. Only bytes are counted here, at the speed of memory: commas
    and opening brackets outside strings. An empty object or array counts twice.
    """
    if len(body) < 2 * most or _separators(body) < most:
        return False
    plain = body.replace(b"\\\\", b"").replace(b'\\"', b"")
    if plain.count(b'"') > 4 * most:  # each string is a key or a value
        return True
    return sum(map(_separators, plain.split(b'"')[::2])) >= most


def _separators(body: bytes) -> int:
    return body.count(b",") + body.count(b"[") + body.count(b"{")


def values_problem(most: int) -> DecodeProblem:
    """Return the problem of a text with more values than `most`."""
    return DecodeProblem("too many values in this JSON", accepted=f"at most {most:,} values")


def seem_lines(body: bytes) -> bool:
    """Whether bytes that are no JSON may be JSON Lines: an object on the first line, and another begins after it."""
    first, _, rest = body.strip().partition(b"\n")
    try:
        parse(first)
    except DecodeProblem:
        return False
    return rest.lstrip().startswith(b"{")


def read_text(body: bytes) -> str:
    """The bytes as text: UTF-8 without a byte order mark, and not empty."""
    if body.startswith(b"\xef\xbb\xbf"):
        raise DecodeProblem("the body starts with a byte order mark", accepted="UTF-8 without one")
    try:
        text = body.decode()
    except UnicodeDecodeError as error:
        shown, start = body.decode(errors="replace"), len(body[: error.start].decode())
        received = f"byte 0x{body[error.start]:02x} at offset {error.start}"
        raise problem("the body is not UTF-8", shown, start, received=received, accepted="UTF-8") from None
    if not text.strip(" \t\n\r"):
        raise DecodeProblem("the body is empty", accepted=OBJECT)
    return text


class _Refused(ValueError):
    """Something Python's reader would take and JSON does not have; the second reading says where."""


def _no_twice(pairs: list[tuple[str, Any]]) -> JsonObject:
    made = dict(pairs)
    if len(made) != len(pairs):
        raise _Refused("a key occurs twice in one object")
    return made


def _finite(text: str) -> int | float:
    number = to_number(text)
    if number is None:
        raise _Refused("a number is too large for a double")
    return number


def _no_constant(text: str) -> None:
    raise _Refused(f"{text} is not JSON")


_reader = json.JSONDecoder(
    object_pairs_hook=_no_twice, parse_int=_finite, parse_float=_finite, parse_constant=_no_constant
)


def _parse_text(text: str, wanted: str) -> Any:
    try:
        return _reader.decode(text)
    except json.JSONDecodeError as error:
        what, accepted = _SYNTAX.get(error.msg, (error.msg[:1].lower() + error.msg[1:], None))
        if accepted == VALUE and not text[: error.pos].strip():
            accepted = wanted
        raise problem(what, text, error.pos, accepted=accepted) from None
    except _Refused as error:
        _refuse_first_problem(text)
        raise DecodeProblem(str(error)) from None


_SYNTAX: dict[str, tuple[str, str | None]] = {
    "Expecting value": ("expected a value", VALUE),
    "Expecting property name enclosed in double quotes": ("expected a key", "a string in double quotes"),
    "Expecting ':' delimiter": ("expected a colon after the key", ":"),
    "Expecting ',' delimiter": ("expected a comma or the end", ", or a closing bracket"),
    "Illegal trailing comma before end of object": ("expected a key after the comma", "a string"),
    "Illegal trailing comma before end of array": ("expected a value after the comma", None),
    "Unterminated string starting at": ("the string does not end", 'a closing "'),
    "Invalid control character at": ("a control character stands in a string", "its escape, such as \\n"),
    "Invalid \\escape": ("no such escape", '\\" \\\\ \\/ \\b \\f \\n \\r \\t or \\u and four hex digits'),
    "Invalid \\uXXXX escape": ("no such escape", "\\u and four hex digits"),
    "Extra data": ("something follows the object", "one JSON object and nothing after it"),
}

# Between the brackets, strings and numbers of a valid text stand only spaces, commas and harmless words. A
# string that a colon follows is a key. An unterminated string takes the rest: nothing in it is a token.
_TOKEN = re.compile(
    r'(?P<string>"(?:[^"\\]|\\.)*+(?:"|\Z))(?P<key>[ \t\n\r]*+:)?'
    r"|(?P<open>[\[{])|(?P<close>[\]}])|(?P<constant>NaN|-?Infinity)|(?P<number>-?[0-9][-+.0-9eE]*+)",
    re.DOTALL,
)
_NO_BRACKET = re.compile(r'"(?:[^"\\]|\\.)*+(?:"|\Z)|[^"\[\]{}]++', re.DOTALL)
_SURROGATE = re.compile(r"\\u[dD][89a-fA-F]")


def _may_hide_problems(text: str) -> bool:
    """Whether Python's reader could take the text without noticing its depth or half a surrogate pair."""
    deep = text.count("{") + text.count("[") > MAX_DEPTH and _depth(text) > MAX_DEPTH
    return deep or _SURROGATE.search(text) is not None


def _depth(text: str) -> int:
    depth = deepest = 0
    for bracket in _NO_BRACKET.sub("", text):
        depth = depth + 1 if bracket in "[{" else max(0, depth - 1)
        deepest = max(deepest, depth)
    return deepest


def _refuse_first_problem(text: str) -> None:
    """Raise the first problem that is not one of syntax; syntax is left to Python's reader."""
    keys: list[set[str]] = []
    for token in _TOKEN.finditer(text):
        kind, found, start, end = token.lastgroup, token[0], token.start(), token.end()
        if kind == "open":
            keys.append(set())
            if len(keys) > MAX_DEPTH:
                raise problem("nested too deeply", text, start, accepted=f"at most {MAX_DEPTH} levels")
        elif kind == "close":
            del keys[-1:]
        elif kind == "constant":
            raise problem(f"{found} is not JSON", text, start, end, accepted="a finite number or null")
        elif kind == "number":
            _check_number(text, token)
        else:
            _check_string(text, token, keys)


def _check_number(text: str, token: re.Match[str]) -> None:
    try:
        number = to_number(token[0])
    except ValueError:  # not a number at all, such as 1.2.3: a problem of syntax
        return
    if number is None:
        received = token[0] if len(token[0]) <= 40 else f"a number of {len(token[0])} characters"
        what, accepted = "the number is too large for a double", "a number up to about 1.8e308"
        raise problem(what, text, token.start(), token.end(), received=received, accepted=accepted)


def _check_string(text: str, token: re.Match[str], keys: list[set[str]]) -> None:
    start, end = token.span("string")
    try:
        string = json.loads(token["string"])
    except json.JSONDecodeError:  # a problem of syntax, left to Python's reader
        return
    if any("\ud800" <= character <= "\udfff" for character in string):
        what, accepted = "half of a surrogate pair", "both halves, such as \\ud83d\\ude00"
        raise problem(what, text, start, end, received=token["string"][:40], accepted=accepted)
    if token["key"] is not None and keys:
        if string in keys[-1]:
            what = f"the key '{printable(string)}' occurs twice in one object"
            raise problem(what, text, start, end, accepted="each key once; several values as an array")
        keys[-1].add(string)


def problem(
    what: str,
    text: str,
    start: int,
    end: int | None = None,
    received: str | None = None,
    accepted: str | None = None,
) -> DecodeProblem:
    """A problem at a place of the text, drawn when its line is short and harmless to print."""
    place = Place.at(text, start, end)
    line = text.split("\n")[place.line - 1]
    if len(line) <= LONGEST_DRAWN and line.rstrip("\r").isprintable():
        return DecodeProblem(what, place=place, received=received, accepted=accepted)
    return DecodeProblem(what, where=place.describe(), received=received, accepted=accepted)


def _named(value: Scalar | list[Any] | None) -> str:
    if isinstance(value, list):
        return "an array"
    if isinstance(value, str):
        return "a string"
    return "null" if value is None else json.dumps(value)
