"""Errors for syntax that predicates do not support: functions, patterns, list positions, arithmetic, two
attributes.

Each error states what is unsupported and what is accepted. A hint is given only if the text it suggests can
match: quotes for a bare word only if it cannot be an attribute, and no wildcard pattern as the characters to
look for.
"""

from __future__ import annotations

import re
from collections.abc import Callable

from tidings.errors import NotSupported, SyntaxProblem
from tidings.events.parse_failure import Stop
from tidings.events.predicate_tree import BARE_SEGMENT, KEYWORDS
from tidings.events.schema.domains import DomainKind
from tidings.values import show

VALUES = "a number, a string in single quotes, true or false, or a date"
PREDICATE = "a predicate such as price < 200"
TEXT_OPERATORS = "contains, starts with, ends with"
NO_ATTRIBUTES = "comparing two attributes is not supported"
NO_STRING = frozenset({DomainKind.NUMERIC, DomainKind.BOOLEAN, DomainKind.INSTANT})
"""Domains that have no string values."""
MOMENTS = frozenset({"now", "today", "yesterday", "tomorrow", "current_date", "current_timestamp", "sysdate"})

Slip = Callable[[Stop], SyntaxProblem | None]


def not_supported(
    stop: Stop,
    construct: str,
    length: int,
    start: int | None = None,
    accepted: str = VALUES,
    hint: str | None = None,
) -> NotSupported:
    """Make the error; `what` includes its verb: 'functions are'."""
    place = stop.problem(construct, length, start).place
    return NotSupported(
        f"{construct} not supported in subscriptions", place=place, accepted=accepted, hint=hint
    )


_CALL = re.compile(r"(?P<name>[^\W\d][\w.]*)\s*\((?P<inside>[^()]*\)?)")


def function(stop: Stop) -> SyntaxProblem | None:
    """`date > now()`, `lower(title) = 'oak'`."""
    last = stop.tokens[-1] if stop.tokens else None
    is_called = last is not None and last.type == "PATH" and "COMPARED" in stop.accepts
    start = last.start_pos or 0 if last is not None and is_called else stop.start
    match = _CALL.match(stop.text, start)
    if not match or not (stop.takes_value or is_called) or match["name"].lower() in KEYWORDS:
        return None
    hint = _moment(match["name"])
    accepted = PREDICATE if is_called else VALUES
    return not_supported(stop, "functions are", len(match[0]), start, accepted, hint)


def _moment(word: str) -> str | None:
    is_moment = word.lower() in MOMENTS
    return "write the date or date-time itself, such as 2004-05-31T12:30:00Z" if is_moment else None


_LIKE = re.compile(r"(?P<word>i?like)\b\s*(?:'(?P<pattern>(?:[^']|'')*)')?", re.IGNORECASE)
_LIKED = {
    (True, True): "contains",
    (False, True): "starts with",
    (True, False): "ends with",
    (False, False): "=",
}
"""The operator for a LIKE pattern with or without a % at its beginning and end."""


def like(stop: Stop) -> SyntaxProblem | None:
    """`title like '%clock%'` is `title contains 'clock'`; other patterns have no equivalent."""
    match = _LIKE.match(stop.rest)
    if not match or "IN" not in stop.accepts:
        return None
    start, length = stop.start + match.start("word"), len(match["word"])
    pattern = match["pattern"]
    plain = None if pattern is None else pattern.removeprefix("%").removesuffix("%")
    if not plain or re.search(r"[%_\\]", plain) or match["word"].lower() != "like":
        return _patterns(stop, match["word"], length, start)
    operator = _LIKED[pattern.startswith("%"), pattern.endswith("%")]
    is_negated = stop.tokens[-1].type == "_NOT"
    attribute = stop.tokens[-2 if is_negated else -1]
    hint = f"write {'not ' if is_negated else ''}{attribute} {operator} '{plain}'"
    return not_supported(stop, f"the operator '{match['word']}' is", length, start, TEXT_OPERATORS, hint)


_PATTERN = re.compile(
    r"(?P<word>=?~\*?|!~\*?|(?:matches|rlike|regexp|regex|glob|similar\s+to)\b)", re.IGNORECASE
)


def pattern(stop: Stop) -> SyntaxProblem | None:
    """`title matches '.*clock'`, `title ~ 'clock'`; the parser stops after the `=` of `=~`."""
    last = stop.tokens[-1] if stop.tokens else None
    behind = last is not None and last.type == "COMPARED" and last.end_pos == stop.start
    start = (last.start_pos or 0) if last is not None and behind else stop.start
    match = _PATTERN.match(stop.text, start)
    if not match or not (behind or "IN" in stop.accepts) or match.end() <= stop.start:
        return None
    return _patterns(stop, match["word"], len(match["word"]), match.start("word"))


def _patterns(stop: Stop, word: str, length: int, start: int) -> NotSupported:
    hint = f"{TEXT_OPERATORS} look for plain characters, without wildcards"
    return not_supported(stop, f"patterns (the operator '{word}') are", length, start, TEXT_OPERATORS, hint)


_POSITION = re.compile(
    rf"(?:\[\s*(?:-?\d+|\*)?\s*\]|\.\d+)(?:\[\s*(?:-?\d+|\*)?\s*\]|\.\d+|\.{BARE_SEGMENT})*"
)


def position(stop: Stop) -> SyntaxProblem | None:
    """`tags[0] = 1`, `items[*].price < 5`: a predicate applies to all values of its attribute."""
    match = _POSITION.match(stop.rest)
    if (
        not match
        or not stop.tokens
        or stop.tokens[-1].type != "PATH"
        or stop.tokens[-1].end_pos != stop.start
    ):
        return None
    path = stop.before + re.sub(r"\[[^\]]*\]|\.\d+", "", match[0])
    hint = f"write {path} without a position: the predicate holds if some value in the list satisfies it"
    return not_supported(
        stop,
        "positions in lists are",
        len(match[0]),
        accepted="attributes such as price or seller.city",
        hint=hint,
    )


def arithmetic(stop: Stop) -> SyntaxProblem | None:
    """`price > 2 * 50`, `price + 5 > 10`."""
    match = re.match(r"[+*/-]", stop.rest)
    if (
        not match
        or not stop.tokens
        or not (stop.takes_value or stop.accepts & {"COMPARED", "_AND", "_OR", "$END"})
    ):
        return None
    return not_supported(stop, "arithmetic is", 1, accepted=PREDICATE)


UNSUPPORTED: tuple[Slip, ...] = (function, like, pattern, position, arithmetic)


_DOUBLE = re.compile(r'"(?P<word>[^"]*)"(?:\."[^"]*"|\.\w+)*')
_BARE = re.compile(r"[^\W\d][\w-]*(?:\.[^\W\d][\w-]*)*")
_MORE_WORDS = re.compile(
    r"(?:\s+(?!(?:and|or|not|in|between|is|contains|starts|ends)\b)[^\W\d][\w-]*)+(?=\s*(?:$|\)|,|and\b|or\b))",
    re.IGNORECASE,
)


def double_quoted_value(stop: Stop) -> SyntaxProblem | None:
    """`symbol = "YHOO"`: a string as in other languages, or an attribute."""
    match = _DOUBLE.match(stop.rest)
    if not (stop.takes_value and match):
        return None
    word = match["word"]
    if _is_attribute(stop, match[0].replace('"', "")):
        return _two_attributes(stop, len(match[0]))
    message = "double quotes enclose attribute names; strings use single quotes"
    if _takes_no_string(stop):
        return _no_value(stop, match[0], len(match[0]))
    beside = "" if _knows_all_attributes(stop) else f"; {NO_ATTRIBUTES}"
    return stop.problem(message, len(match[0]), hint=f"write {show(word)}{beside}")


def bare_word(stop: Stop) -> SyntaxProblem | None:
    """`symbol = YHOO`, `price > reserve`: an unquoted string, or another attribute."""
    match = _BARE.match(stop.rest)
    if not (stop.takes_value and match) or match[0].lower() in KEYWORDS:
        return None
    word, length = match[0], len(match[0])
    if _is_attribute(stop, word):
        return _two_attributes(stop, length)
    if (moment := _moment(word)) is not None:
        return stop.problem(f"{word} is not a value", length, accepted=VALUES, hint=moment)
    if _takes_no_string(stop):
        return _no_value(stop, word, length)
    following = _MORE_WORDS.match(stop.text, stop.start + length)
    written = word + (following[0] if following else "")
    if _knows_all_attributes(stop):
        return stop.problem(f"write strings in single quotes: {show(written)}", len(written))
    hint = f"write a string as {show(written)}; {NO_ATTRIBUTES}"
    return stop.problem(f"{written} is not a value", len(written), accepted=VALUES, hint=hint)


def _is_attribute(stop: Stop, word: str) -> bool:
    return stop.schema is not None and word in stop.schema.attributes


def _knows_all_attributes(stop: Stop) -> bool:
    return stop.schema is not None and not stop.schema.is_empty and not stop.schema.open


def _two_attributes(stop: Stop, length: int) -> NotSupported:
    return not_supported(stop, "comparing two attributes is", length)


def _takes_no_string(stop: Stop) -> bool:
    domain = stop.schema.domain_of(stop.attribute) if stop.schema is not None else None
    return domain is not None and domain.kind in NO_STRING


_EXAMPLES = {
    DomainKind.NUMERIC: "a number such as 200",
    DomainKind.BOOLEAN: "true or false",
    DomainKind.INSTANT: "a date or date-time such as 2004-05-31 or 2004-05-31T12:30:00Z",
}


def _no_value(stop: Stop, word: str, length: int) -> SyntaxProblem:
    """A word where the schema accepts no string: quoted, it would be refused or never match."""
    assert stop.schema is not None
    domain = stop.schema.domain_of(stop.attribute)
    assert domain is not None
    message = f"{stop.attribute} is {domain.kind}, but {word} is not"
    return stop.problem(message, length, accepted=_EXAMPLES[domain.kind], hint=NO_ATTRIBUTES)


MISSING_QUOTES: tuple[Slip, ...] = (double_quoted_value, bare_word)
