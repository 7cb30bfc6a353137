"""Subscriptions as lines of JSON: what `tidings match` reads from files, and what is taken line by line.

    {"id": "s1", "subscriber": "ana", "language": "predicates", "text": "price < 200", "within": "10 minutes"}

Only the text has to be there. `"state": "paused"` is said of one that is to be paused. A `reason`, which lines have of
subscriptions that a service suspended, is accepted and not kept: here the subscription is paused by the importer.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from tidings.core.arguments import check_members
from tidings.core.suggest import PYDANTIC_WORDS, no_such
from tidings.errors import InputError
from tidings.parsers.strict_json import parse_value
from tidings.store.subscriptions.view import ACTIVE, PAUSED

MAX_LENGTHS = {"language": 100, "text": 500_000, "id": 500, "within": 100, "subscriber": 500, "state": 100}
"""The members of a subscription that is asked for, and how many characters each may have."""

REASON = "reason"
"""What a listed line has that is not asked for: why a service suspended the subscription."""

_NEEDED = ("language", "text")
_STATES = (ACTIVE, PAUSED)


@dataclass(frozen=True, slots=True)
class SubscriptionLine:
    """A subscription as somebody asks for it."""

    text: str
    language: str
    id: str | None = None
    within: str | None = None
    subscriber: str | None = None
    state: str | None = None

    @property
    def is_paused(self) -> bool:
        return self.state == PAUSED


def parse_subscription_line(
    line: bytes, language: str = "predicates", within: str | None = None
) -> SubscriptionLine:
    """What a line asks for, or why it cannot be read; language and delay are for lines that do not say theirs."""
    if line.lstrip().startswith(b"["):  # perhaps the first of many lines: the array of a whole file
        raise _no_object("an array", "an object a line, without an array around them")
    found = parse_value(line, "a JSON object")
    check_members(found)
    if not isinstance(found, dict):
        raise _no_object()
    found.pop(REASON, None)
    for name in found:
        if name not in MAX_LENGTHS:
            raise _about(name, no_such("member", name, list(MAX_LENGTHS)))
    if "text" not in found:
        raise _about("text", InputError("'text' is missing"))
    members = {"language": language, "within": within} | found
    asked = SubscriptionLine(**{name: _checked(name, value) for name, value in members.items()})
    if asked.state not in (None, *_STATES):
        raise _wrong("state", asked.state, " or ".join(map(repr, _STATES)))
    return asked


def _no_object(received: str | None = None, hint: str | None = None) -> InputError:
    return InputError("the line cannot be used", received=received, accepted="a JSON object", hint=hint)


def _checked(name: str, value: Any) -> Any:
    if value is None and name not in _NEEDED:
        return None
    if not isinstance(value, str):
        raise _wrong(name, value, PYDANTIC_WORDS["string_type"])
    if len(value) > MAX_LENGTHS[name]:
        raise _wrong(name, value, PYDANTIC_WORDS["string_too_long"].format(max_length=MAX_LENGTHS[name]))
    return value


def _wrong(name: str, value: Any, accepted: str) -> InputError:
    received = str(value)[:200] if isinstance(value, str | int | float) else None
    return _about(name, InputError(f"'{name}' cannot be this", received=received, accepted=accepted))


def _about(name: str, problem: InputError) -> InputError:
    problem.pointer = f"/{name.replace('~', '~0').replace('/', '~1')}"
    return problem
