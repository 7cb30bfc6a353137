"""What to say about a text that does not parse: the usual slips by name, the rest by what was expected.

A slip is told from the text at the place where the parser stopped, and from what it would have taken there.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from lark import Lark, Token
from lark.exceptions import UnexpectedInput, UnexpectedToken
from lark.parsers.lalr_analysis import Shift
from lark.parsers.lalr_interactive_parser import InteractiveParser

from tidings.errors import Place, SyntaxProblem
from tidings.guessing import near, spend
from tidings.languages.tree import KEYWORDS
from tidings.operators import EXISTS, OPERATORS

END = "$END"
_Table = Mapping[Any, Mapping[str, tuple[Any, Any]]]

_LITERALS = frozenset({"STRING", "NUMBER", "DATE", "INSTANT", "BOOLEAN"})
_SPELLINGS = ", ".join(operator.spelling for operator in OPERATORS if operator is not EXISTS)


@dataclass(frozen=True, slots=True)
class Stop:
    """Where the parser stopped: the tokens before, what it would have taken next, and the text from there."""

    text: str
    tokens: tuple[Token, ...]
    accepts: frozenset[str]
    start: int

    @property
    def rest(self) -> str:
        return self.text[self.start :]

    @property
    def before(self) -> str:
        return str(self.tokens[-1]) if self.tokens else ""

    @property
    def takes_value(self) -> bool:
        return bool(self.accepts & _LITERALS)

    def problem(
        self,
        what: str,
        length: int,
        start: int | None = None,
        *,
        accepted: str | None = None,
        hint: str | None = None,
    ) -> SyntaxProblem:
        start = self.start if start is None else start
        place = Place.at(self.text, start, start + max(1, length))
        return SyntaxProblem(what, place=place, accepted=accepted, hint=hint)


EXPLAINED, LETTERS = 20, 8
"""To explain a slip takes about as long as to compare so many words; and another one for so many letters of the text,
which is read again.
"""


def explain_slip(text: str, parser: Lark, stopped: UnexpectedInput) -> SyntaxProblem:
    """The error for a text in which the parser stopped; of very many, it says where and no more."""
    if not spend(EXPLAINED + len(text) // LETTERS):
        is_end = isinstance(stopped, UnexpectedToken) and stopped.token.type == END
        start = len(text.rstrip()) if is_end else stopped.pos_in_stream or 0
        return SyntaxProblem("something else is expected here", place=Place.at(text, start))
    stop = _find_stop(text, parser)
    return next(problem for slip in SLIPS if (problem := slip(stop)) is not None)


def _find_stop(text: str, parser: Lark) -> Stop:
    parsing, tokens = parser.parse_interactive(text), []
    try:
        for token in parsing.iter_parse():
            tokens.append(token)
    except UnexpectedInput as unexpected:
        start = unexpected.pos_in_stream or 0
    else:
        start = tokens[-1].end_pos or 0 if tokens else 0
    before = tuple(token for token in tokens if (token.start_pos or 0) < start)
    return Stop(text, before, accepted_by(parsing), start)


def accepted_by(parsing: InteractiveParser) -> frozenset[str]:
    """The terminals that a parser would take next: as its own `accepts()`, which makes a parser of its own to try each,
    and takes longer than all the rest here.
    """
    state = parsing.parser_state
    states, end = state.parse_conf.states, state.parse_conf.end_state
    wanted = [name for name in states[state.position] if name.isupper()]
    return frozenset(name for name in wanted if _takes(states, [*state.state_stack], name, end))


def _takes(states: _Table, stack: list[Any], terminal: str, end: Any) -> bool:
    """Whether reducing what is on the stack leads to where the terminal is taken."""
    while stack[-1] != end or terminal != END:
        action, rule = states[stack[-1]].get(terminal, (None, None))
        if action is Shift or rule is None:
            return action is Shift
        del stack[len(stack) - len(rule.expansion) :]
        stack.append(states[stack[-1]][rule.origin.name][1])
    return True


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
    "~": "contains",
    "like": "contains",
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
    "matches": "contains",
    "has": "contains",
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


def double_quoted_value(stop: Stop) -> SyntaxProblem | None:
    found = re.match(r'"([^"]*)"', stop.rest)
    if not (stop.takes_value and found):
        return None
    meant = "'" + found[1].replace("'", "''") + "'"
    what = "double quotes are for attribute names, strings have single quotes"
    return stop.problem(what, len(found[0]), hint=f"write {meant}")


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


def bare_string(stop: Stop) -> SyntaxProblem | None:
    found = re.match(r"[^\W\d][\w-]*", stop.rest)
    if not (stop.takes_value and found) or found[0].lower() in KEYWORDS:
        return None
    return stop.problem(f"strings are written in single quotes: '{found[0]}'", len(found[0]))


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
    return stop.problem(f"expected {_wanted(stop)}{_after(stop)}", len(found[0]), hint=hint)


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
    return stop.problem(f"expected a predicate{_after(stop)}", len(found[0]), hint=hint)


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
    what = f"expected {_wanted(stop)}{_after(stop)}, not the word '{found[0]}'"
    return stop.problem(what, len(found[0]), hint=f'an attribute of that name is written "{found[0]}"')


def misspelt_join(stop: Stop) -> SyntaxProblem | None:
    """`adn`, `ro`: a word near one of the two that could stand here."""
    found = re.match(r"[A-Za-z]+\b", stop.rest)
    if not found or not stop.accepts & {"_AND", "_OR"}:
        return None
    word = found[0].lower()
    joins = [join for join in ("and", "or") if f"_{join.upper()}" in stop.accepts]
    meant = next((join for join in joins if sorted(join) == sorted(word)), None) or near(word, joins)
    if not meant:
        return None
    what = f"expected {_wanted(stop)}{_after(stop)}"
    return stop.problem(what, len(found[0]), hint=f"did you mean '{meant}'?")


def unknown_character(stop: Stop) -> SyntaxProblem | None:
    if not stop.rest.strip() or re.match(r"[\w'\"(),=<>!.-]", stop.rest, re.ASCII):
        return None
    first = stop.rest[0]
    hint = (
        f'names with other letters are written in double quotes: "{_name(stop)}"' if first.isalpha() else None
    )
    shown = f"'{first}'" if first.isprintable() else f"U+{ord(first):04X}"
    return stop.problem(f"the character {shown} means nothing here", 1, accepted=_wanted(stop), hint=hint)


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
        return stop.problem(f"expected {_wanted(stop)}{_after(stop)}", 1, accepted=accepted)
    word = re.match(r"'(?:[^']|'')*'|[\w.-]+|\W", stop.rest)
    length = len(word[0]) if word else 1
    return stop.problem(f"expected {_wanted(stop)}{_after(stop)}", length, accepted=accepted)


def _after(stop: Stop) -> str:
    return f" after {_quoted(stop.before)}" if stop.tokens else ""


def _quoted(token: str) -> str:
    return token if token.startswith("'") else f"'{token}'"


_WANTED: tuple[tuple[str, str], ...] = (
    ("_NOT", "a predicate"),
    ("PATH", "an attribute"),
    ("COMPARED", "an operator"),
    ("NUMBER", "a value"),
    ("LPAR", "'(' and a list of values"),
    ("COMMA", "',' or ')'"),
    ("RPAR", "'and', 'or' or ')'"),
    ("$END", "'and', 'or' or the end"),
    ("_AND", "'and' and the upper bound"),
)


def _wanted(stop: Stop) -> str:
    return next(phrase for terminal, phrase in _WANTED if terminal in stop.accepts)


SLIPS: tuple[Callable[[Stop], SyntaxProblem | None], ...] = (
    empty,
    null_value,
    misspelt_operator,
    unclosed_quote,
    double_quoted_value,
    bare_string,
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
