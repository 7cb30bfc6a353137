"""Explanations of predicate texts that do not parse: common mistakes by name, the others by the expected input.

Each rule looks at the text where the parser stopped and at the tokens that it would have accepted there.
"""

from __future__ import annotations

import re
from collections.abc import Callable

from lark.exceptions import UnexpectedInput

from tidings.core.suggest import closest, spend_budget
from tidings.errors import Place, SyntaxProblem
from tidings.events.operators import EXISTS, OPERATORS
from tidings.events.parse_failure import ParseRun, Stop
from tidings.events.predicate_tree import KEYWORDS
from tidings.events.schema.event_schema import EventSchema
from tidings.events.unsupported_syntax import MISSING_QUOTES, UNSUPPORTED

_SPELLINGS = ", ".join(operator.spelling for operator in OPERATORS if operator is not EXISTS)
_COMPARISONS = ", ".join(each.spelling for each in OPERATORS if not each.spelling[0].isalpha())
_WORDS = ", ".join(each.spelling for each in OPERATORS if each.spelling[0].isalpha() and each is not EXISTS)


EXPLAINED, LETTERS = 20, 8
"""Cost of explaining a mistake, in word comparisons: a constant, plus a share for the length of the text."""


def explain_slip(
    text: str, run: ParseRun, stopped: UnexpectedInput, schema: EventSchema | None = None
) -> SyntaxProblem:
    """Return the error for a text in which a run of the parser stopped.

    Without budget left (see `suggest.bounded_search`) it only gives the position. `schema` tells attributes
    from words that were meant as strings.
    """
    if not spend_budget(EXPLAINED + len(text) // LETTERS):
        return SyntaxProblem("unexpected input", place=Place.at(text, run.find_start(stopped)))
    stop = run.find_stop(stopped, schema)
    return next(problem for slip in SLIPS if (problem := slip(stop)) is not None)


def empty(stop: Stop) -> SyntaxProblem | None:
    if stop.text.strip():
        return None
    return stop.problem("the text is empty", 1, accepted="predicates such as price < 200")


_MISSPELT = {
    "===": "=",
    "=<": "<=",
    "=>": ">=",
    "=!": "!=",
    "&": "and",
    "|": "or",
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
    """`==`, `&&`, words of other languages. The parser stops at the second character of `==`: look before it, too."""
    starts = [
        stop.start,
        *(token.start_pos or 0 for token in stop.tokens[-1:] if token.end_pos == stop.start),
    ]
    for start in starts:
        match = _OPERATOR.match(stop.text, start)
        suggestion = _MISSPELT.get(match[0].lower()) if match else None
        if (
            match
            and suggestion
            and match.end() > stop.start
            and not (stop.takes_value and match[0].isalpha())
        ):
            return stop.problem(f"write '{suggestion}' instead of '{match[0]}'", len(match[0]), start)
    return None


def unclosed_quote(stop: Stop) -> SyntaxProblem | None:
    quote = stop.rest[:1]
    if quote not in ("'", '"') or re.match(r"'(?:[^']|'')*'|\"[^\"]+\"", stop.rest):
        return None
    if stop.rest == '""' or stop.rest.startswith('""'):
        return stop.problem("an attribute needs a name", 2, accepted='a name in double quotes: "odd name"')
    message = "this string is not closed" if quote == "'" else "this name is not closed"
    hint = "a quote inside a string is written ''" if quote == "'" else None
    return stop.problem(message, len(stop.rest.rstrip()), accepted=f"a closing {quote}", hint=hint)


_NULL = re.compile(r"null\b(?!-)", re.IGNORECASE)


def null_value(stop: Stop) -> SyntaxProblem | None:
    """`= null`: absence is a value in other languages, and equal to nothing in SQL."""
    match = _NULL.match(stop.rest)
    if not match or not stop.takes_value:
        return None
    hint = "a is null finds events without the attribute a"
    if stop.before in ("=", "==", "!=", "<>") and stop.tokens[-2].type == "PATH":
        hint = f"write {stop.tokens[-2]} is {'' if stop.before in ('=', '==') else 'not '}null"
    return stop.problem("null means the attribute is absent", len(match[0]), hint=hint)


def quote_inside(stop: Stop) -> SyntaxProblem | None:
    """`'O'Hara'`: a string that ends too early, directly followed by more of it."""
    match = re.match(r"\w+", stop.rest)
    if (
        not match
        or not stop.tokens
        or stop.tokens[-1].type != "STRING"
        or stop.tokens[-1].end_pos != stop.start
    ):
        return None
    hint = "a quote inside a string is written ''"
    return stop.problem(f"expected {stop.expectation}{stop.after}", len(match[0]), hint=hint)


def closes_nothing(stop: Stop) -> SyntaxProblem | None:
    if not stop.rest.startswith(")") or "$END" not in stop.accepts:
        return None
    return stop.problem("unmatched ')'", 1, hint="remove it, or add a '(' before it")


def never_closed(stop: Stop) -> SyntaxProblem | None:
    """The text ends inside parentheses: point at the one that was opened."""
    if stop.rest.strip() or "RPAR" not in stop.accepts:
        return None
    open_at: list[int] = []
    for token in stop.tokens:
        if token.type == "LPAR":
            open_at.append(token.start_pos or 0)
        elif token.type == "RPAR":
            open_at.pop()
    return stop.problem("this '(' is never closed", 1, open_at[-1], accepted="a ')' after it")


_COMPARISON = re.compile(r"(?P<operator>[=<>!]+)\s*(?:'(?:[^']|'')*'|[\w.:+-]*)")


def negated_comparison(stop: Stop) -> SyntaxProblem | None:
    """`a not = 1`: only operators that are words have a negated form."""
    match = _COMPARISON.match(stop.rest)
    if not match or len(stop.tokens) < 2 or stop.tokens[-1].type != "_NOT" or "IN" not in stop.accepts:
        return None
    return stop.problem(
        f"expected {stop.expectation}{stop.after}",
        len(match["operator"]),
        accepted=_WORDS,
        hint=f"write not {stop.tokens[-2]} {match[0]}",
    )


def keyword_as_name(stop: Stop) -> SyntaxProblem | None:
    match = re.match(r"[A-Za-z]+", stop.rest)
    if not match or match[0].lower() not in KEYWORDS or "PATH" not in stop.accepts:
        return None
    message = f"expected {stop.expectation}{stop.after}, not the word '{match[0]}'"
    return stop.problem(message, len(match[0]), hint=f'for an attribute of that name, write "{match[0]}"')


def misspelt_join(stop: Stop) -> SyntaxProblem | None:
    """`adn`, `ro`: a misspelt `and` or `or`."""
    match = re.match(r"[A-Za-z]+\b", stop.rest)
    if not match or not stop.accepts & {"_AND", "_OR"}:
        return None
    word = match[0].lower()
    joins = [join for join in ("and", "or") if f"_{join.upper()}" in stop.accepts]
    suggestion = next((join for join in joins if sorted(join) == sorted(word)), None) or closest(word, joins)
    if not suggestion:
        return None
    message = f"expected {stop.expectation}{stop.after}"
    return stop.problem(message, len(match[0]), hint=f"did you mean '{suggestion}'?")


def unknown_character(stop: Stop) -> SyntaxProblem | None:
    if not stop.rest.strip() or re.match(r"[\w'\"(),=<>!.-]", stop.rest, re.ASCII):
        return None
    first = stop.rest[0]
    hint = f'write names with other letters in double quotes: "{_name(stop)}"' if first.isalpha() else None
    shown = f"'{first}'" if first.isprintable() else f"U+{ord(first):04X}"
    return stop.problem(f"unexpected character {shown}", 1, accepted=stop.expectation, hint=hint)


def _name(stop: Stop) -> str:
    """The whole name in which the parser stopped, including letters that it accepted before."""
    last = stop.tokens[-1] if stop.tokens else None
    is_part = last is not None and last.type == "PATH" and last.end_pos == stop.start
    match = re.match(r"[\w.-]+", stop.text[stop.start :])
    return f"{stop.before if is_part else ''}{match[0] if match else ''}"


def unexpected(stop: Stop) -> SyntaxProblem:
    """No common mistake: state the expected input."""
    accepted = None
    if "COMPARED" in stop.accepts:
        accepted = _SPELLINGS if "IN" in stop.accepts else _COMPARISONS
    if not stop.rest.strip():
        return stop.problem(f"expected {stop.expectation}{stop.after}", 1, accepted=accepted)
    word = re.match(r"'(?:[^']|'')*'|[\w.-]+|\W", stop.rest)
    length = len(word[0]) if word else 1
    return stop.problem(f"expected {stop.expectation}{stop.after}", length, accepted=accepted)


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
    negated_comparison,
    keyword_as_name,
    misspelt_join,
    unknown_character,
    unexpected,
)
