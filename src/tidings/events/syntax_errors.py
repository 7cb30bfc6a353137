"""What to say about a text that does not parse: the usual slips by name, the rest by what was expected.

A slip is told from the text at the place where the parser stopped, and from what it would have taken there.
"""

from __future__ import annotations

import re
from collections.abc import Callable

from lark import Lark
from lark.exceptions import UnexpectedInput, UnexpectedToken

from tidings.core.suggest import closest, spend_budget
from tidings.errors import Place, SyntaxProblem
from tidings.events.operators import EXISTS, OPERATORS
from tidings.events.parse_failure import END, Stop, find_stop
from tidings.events.schema.event_schema import EventSchema
from tidings.events.tree import KEYWORDS
from tidings.events.unsupported_syntax import MISSING_QUOTES, UNSUPPORTED

_SPELLINGS = ", ".join(operator.spelling for operator in OPERATORS if operator is not EXISTS)


EXPLAINED, LETTERS = 20, 8
"""To explain a slip takes about as long as to compare so many words; and another one for so many letters of the text,
which is read again.
"""


def explain_slip(
    text: str, parser: Lark, stopped: UnexpectedInput, schema: EventSchema | None = None
) -> SyntaxProblem:
    """The error for a text in which the parser stopped; of very many, it says where and no more.

    `schema` tells attributes from words that were meant as strings.
    """
    if not spend_budget(EXPLAINED + len(text) // LETTERS):
        is_end = isinstance(stopped, UnexpectedToken) and stopped.token.type == END
        start = len(text.rstrip()) if is_end else stopped.pos_in_stream or 0
        return SyntaxProblem("something else is expected here", place=Place.at(text, start))
    stop = find_stop(text, parser, schema)
    return next(problem for slip in SLIPS if (problem := slip(stop)) is not None)


def empty(stop: Stop) -> SyntaxProblem | None:
    if stop.text.strip():
        return None
    return stop.problem("the text is empty", 1, accepted="predicates such as price < 200")


_MISSPELT = {
    "==": "=",
    "=<": "<=",
    "=>": ">=",
    "=!": "!=",
    "<>": "!=",
    "&&": "and",
    "&": "and",
    "||": "or",
    "|": "or",
    "!": "not",
    "eq": "=",
    "ne": "!=",
    "lt": "<",
    "gt": ">",
    "le": "<=",
    "ge": ">=",
    "equals": "=",
    "is": "=' or 'is a",
    "startswith": "starts with",
    "endswith": "ends with",
    "starts": "starts with",
    "ends": "ends with",
    "has": "=' or 'contains",
}
_OPERATOR = re.compile(r"[=<>!&|~]+|[A-Za-z]+")


def misspelt_operator(stop: Stop) -> SyntaxProblem | None:
    """`==`, `&&`, words of other languages. `==` stops the parser at its second character: look there too."""
    starts = [
        stop.start,
        *(token.start_pos or 0 for token in stop.tokens[-1:] if token.end_pos == stop.start),
    ]
    for start in starts:
        found = _OPERATOR.match(stop.text, start)
        meant = _MISSPELT.get(found[0].lower()) if found else None
        if found and meant and found.end() > stop.start and not (stop.takes_value and found[0].isalpha()):
            return stop.problem(f"'{found[0]}' is written '{meant}'", len(found[0]), start)
    return None


def unclosed_quote(stop: Stop) -> SyntaxProblem | None:
    quote = stop.rest[:1]
    if quote not in ("'", '"') or re.match(r"'(?:[^']|'')*'|\"[^\"]+\"", stop.rest):
        return None
    if stop.rest == '""' or stop.rest.startswith('""'):
        return stop.problem("an attribute needs a name", 2, accepted='a name in double quotes: "odd name"')
    what = "this string is not closed" if quote == "'" else "this name is not closed"
    hint = "a quote inside a string is written ''" if quote == "'" else None
    return stop.problem(what, len(stop.rest.rstrip()), accepted=f"a closing {quote}", hint=hint)


_NULL = re.compile(r"(?P<is>is\s+(?P<not>not\s+)?)?null\b(?!-)", re.IGNORECASE)


def null_value(stop: Stop) -> SyntaxProblem | None:
    """`= null`, `is not null`: other languages have a value that says that there is none."""
    found = _NULL.match(stop.rest)
    if not found or not ("COMPARED" in stop.accepts if found["is"] else stop.takes_value):
        return None
    hint = "not exists asks for an attribute without a value"
    if found["is"]:
        hint = f"write {'' if found['not'] else 'not '}exists {stop.before}"
    elif stop.before in ("=", "!="):
        hint = f"write {'' if stop.before == '!=' else 'not '}exists {stop.tokens[-2]}"
    return stop.problem("null is no value: what is null is not there", len(found[0]), hint=hint)


def quote_inside(stop: Stop) -> SyntaxProblem | None:
    """`'O'Hara'`: a string that ends too early, with more of it right behind."""
    found = re.match(r"\w+", stop.rest)
    if (
        not found
        or not stop.tokens
        or stop.tokens[-1].type != "STRING"
        or stop.tokens[-1].end_pos != stop.start
    ):
        return None
    hint = "a quote inside a string is written ''"
    return stop.problem(f"expected {stop.wanted}{stop.after}", len(found[0]), hint=hint)


def closes_nothing(stop: Stop) -> SyntaxProblem | None:
    if not stop.rest.startswith(")") or "$END" not in stop.accepts:
        return None
    return stop.problem("this ')' closes nothing", 1, hint="remove it, or open a '(' before")


def never_closed(stop: Stop) -> SyntaxProblem | None:
    """The text ends inside a parenthesis: the one to show is the one that was opened."""
    if stop.rest.strip() or "RPAR" not in stop.accepts:
        return None
    open_at: list[int] = []
    for token in stop.tokens:
        if token.type == "LPAR":
            open_at.append(token.start_pos or 0)
        elif token.type == "RPAR":
            open_at.pop()
    return stop.problem("this '(' is never closed", 1, open_at[-1], accepted="a ')' after it")


def value_first(stop: Stop) -> SyntaxProblem | None:
    found = re.match(r"'(?:[^']|'')*'|-?\d[\d.]*", stop.rest)
    if not found or "_NOT" not in stop.accepts:
        return None
    hint = "the attribute stands on the left, the value on the right"
    return stop.problem(f"expected a predicate{stop.after}", len(found[0]), hint=hint)


def exists_behind(stop: Stop) -> SyntaxProblem | None:
    found = re.match(r"exists\b", stop.rest, re.IGNORECASE)
    if not found or "COMPARED" not in stop.accepts:
        return None
    return stop.problem(
        "'exists' stands before its attribute", len(found[0]), hint=f"write exists {stop.before}"
    )


def negated_operator(stop: Stop) -> SyntaxProblem | None:
    found = re.match(r"not\b", stop.rest, re.IGNORECASE)
    if not found or "COMPARED" not in stop.accepts:
        return None
    hint = f"write not {stop.before} ..."
    return stop.problem("'not' stands before the whole predicate", len(found[0]), hint=hint)


def keyword_as_name(stop: Stop) -> SyntaxProblem | None:
    found = re.match(r"[A-Za-z]+", stop.rest)
    if not found or found[0].lower() not in KEYWORDS or "PATH" not in stop.accepts:
        return None
    what = f"expected {stop.wanted}{stop.after}, not the word '{found[0]}'"
    return stop.problem(what, len(found[0]), hint=f'an attribute of that name is written "{found[0]}"')


def misspelt_join(stop: Stop) -> SyntaxProblem | None:
    """`adn`, `ro`: a word near one of the two that could stand here."""
    found = re.match(r"[A-Za-z]+\b", stop.rest)
    if not found or not stop.accepts & {"_AND", "_OR"}:
        return None
    word = found[0].lower()
    joins = [join for join in ("and", "or") if f"_{join.upper()}" in stop.accepts]
    meant = next((join for join in joins if sorted(join) == sorted(word)), None) or closest(word, joins)
    if not meant:
        return None
    what = f"expected {stop.wanted}{stop.after}"
    return stop.problem(what, len(found[0]), hint=f"did you mean '{meant}'?")


def unknown_character(stop: Stop) -> SyntaxProblem | None:
    if not stop.rest.strip() or re.match(r"[\w'\"(),=<>!.-]", stop.rest, re.ASCII):
        return None
    first = stop.rest[0]
    hint = (
        f'names with other letters are written in double quotes: "{_name(stop)}"' if first.isalpha() else None
    )
    shown = f"'{first}'" if first.isprintable() else f"U+{ord(first):04X}"
    return stop.problem(f"the character {shown} means nothing here", 1, accepted=stop.wanted, hint=hint)


def _name(stop: Stop) -> str:
    """The whole name in which the parser stopped, perhaps behind letters that it took."""
    last = stop.tokens[-1] if stop.tokens else None
    is_part = last is not None and last.type == "PATH" and last.end_pos == stop.start
    found = re.match(r"[\w.-]+", stop.text[stop.start :])
    return f"{stop.before if is_part else ''}{found[0] if found else ''}"


def unexpected(stop: Stop) -> SyntaxProblem:
    """No usual slip: what was expected, after what."""
    accepted = _SPELLINGS if "COMPARED" in stop.accepts else None
    if not stop.rest.strip():
        return stop.problem(f"expected {stop.wanted}{stop.after}", 1, accepted=accepted)
    word = re.match(r"'(?:[^']|'')*'|[\w.-]+|\W", stop.rest)
    length = len(word[0]) if word else 1
    return stop.problem(f"expected {stop.wanted}{stop.after}", length, accepted=accepted)


SLIPS: tuple[Callable[[Stop], SyntaxProblem | None], ...] = (
    empty,
    null_value,
    *UNSUPPORTED,
    misspelt_operator,
    unclosed_quote,
    *MISSING_QUOTES,
    quote_inside,
    closes_nothing,
    never_closed,
    value_first,
    exists_behind,
    negated_operator,
    keyword_as_name,
    misspelt_join,
    unknown_character,
    unexpected,
)
