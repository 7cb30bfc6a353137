"""The run of the predicate parser over a text, and the point where it stopped: tokens before it, tokens accepted."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from lark import Lark, Token
from lark.exceptions import UnexpectedInput, UnexpectedToken
from lark.parsers.lalr_analysis import Shift
from lark.parsers.lalr_interactive_parser import InteractiveParser

from tidings.errors import Place, SyntaxProblem
from tidings.events.schema.event_schema import EventSchema

END = "$END"
_Table = Mapping[Any, Mapping[str, tuple[Any, Any]]]

_LITERALS = frozenset({"STRING", "NUMBER", "DATE", "INSTANT", "BOOLEAN"})


@dataclass(frozen=True, slots=True)
class Stop:
    """The parser's state at an error: the tokens before it, the terminals accepted next, and the position.

    `schema` is the event schema that the text is checked against, if there is one.
    """

    text: str
    tokens: tuple[Token, ...]
    accepts: frozenset[str]
    start: int
    schema: EventSchema | None = None

    @property
    def rest(self) -> str:
        return self.text[self.start :]

    @property
    def before(self) -> str:
        return str(self.tokens[-1]) if self.tokens else ""

    @property
    def attribute(self) -> str:
        """The attribute of the unfinished predicate; empty if there is none yet."""
        paths = (token for token in reversed(self.tokens) if token.type == "PATH")
        return next(paths, "").replace('"', "")

    @property
    def expectation(self) -> str:
        """A phrase for the input that is accepted here."""
        return next(phrase for terminal, phrase in _EXPECTATIONS if terminal in self.accepts)

    @property
    def after(self) -> str:
        """A phrase for the token before: ` after '<'`."""
        return f" after {_quote_token(self.before)}" if self.tokens else ""

    @property
    def takes_value(self) -> bool:
        """Whether a value comes next. A predicate may begin with a value, but also with an attribute."""
        return bool(self.accepts & _LITERALS) and "PATH" not in self.accepts

    def problem(
        self,
        message: str,
        length: int,
        start: int | None = None,
        *,
        accepted: str | None = None,
        hint: str | None = None,
    ) -> SyntaxProblem:
        start = self.start if start is None else start
        place = Place.at(self.text, start, start + max(1, length))
        return SyntaxProblem(message, place=place, accepted=accepted, hint=hint)


class ParseRun:
    """One run of the parser over a text. It keeps the tokens, so that an error is explained without parsing again."""

    def __init__(self, parser: Lark, text: str) -> None:
        self._parsing, self._text = parser.parse_interactive(text), text
        self._tokens: list[Token] = []
        self._stack_at_end: list[Any] | None = None

    def finish(self) -> Any:
        """Return the result of the parser, or raise Lark's UnexpectedInput."""
        state = self._parsing.parser_state
        for token in self._parsing.lexer_thread.lex(state):  # type: ignore[no-untyped-call]
            self._tokens.append(token)
            state.feed_token(token)
        self._stack_at_end = [*state.state_stack]  # the attempt to end the text changes the stack
        return self._parsing.feed_eof(self._tokens[-1] if self._tokens else None)  # type: ignore[no-untyped-call]

    def find_start(self, unexpected: UnexpectedInput) -> int:
        """Return the position of an error; for an unexpected end, that after the last token."""
        is_end = isinstance(unexpected, UnexpectedToken) and unexpected.token.type == END
        if is_end:
            return self._tokens[-1].end_pos or 0 if self._tokens else 0
        return unexpected.pos_in_stream or 0

    def find_stop(self, unexpected: UnexpectedInput, schema: EventSchema | None = None) -> Stop:
        """Return the state of the parser at an error."""
        start = self.find_start(unexpected)
        preceding = tuple(token for token in self._tokens if (token.start_pos or 0) < start)
        return Stop(self._text, preceding, accepted_by(self._parsing, self._stack_at_end), start, schema)


def accepted_by(parsing: InteractiveParser, stack: list[Any] | None = None) -> frozenset[str]:
    """Return the terminals that a parser accepts next, in its current state or with another stack.

    Lark's own `accepts()` copies the parser for each terminal, which takes longer than everything else here.
    """
    state = parsing.parser_state
    states, end, stack = state.parse_conf.states, state.parse_conf.end_state, stack or state.state_stack
    terminals = [name for name in states[stack[-1]] if name.isupper()]
    return frozenset(name for name in terminals if _takes(states, [*stack], name, end))


def _takes(states: _Table, stack: list[Any], terminal: str, end: Any) -> bool:
    """Return whether reducing the stack leads to a shift of the terminal."""
    while stack[-1] != end or terminal != END:
        action, rule = states[stack[-1]].get(terminal, (None, None))
        if action is Shift or rule is None:
            return action is Shift
        del stack[len(stack) - len(rule.expansion) :]
        stack.append(states[stack[-1]][rule.origin.name][1])
    return True


def _quote_token(token: str) -> str:
    return token if token.startswith("'") else f"'{token}'"


_EXPECTATIONS: tuple[tuple[str, str], ...] = (
    ("COMPARED", "an operator"),
    ("IN", "an operator that is a word"),
    ("_NOT", "a predicate"),
    ("PATH", "an attribute"),
    ("NUMBER", "a value"),
    ("LPAR", "'(' and a list of values"),
    ("COMMA", "',' or ')'"),
    ("RPAR", "'and', 'or' or ')'"),
    ("$END", "'and', 'or' or the end"),
    ("_AND", "'and' and the upper bound"),
)
