"""Subscriptions as lines of JSON, for `tidings match` and for bulk subscribe.

    {"id": "s1", "subscriber": "ana", "language": "predicates", "text": "price < 200", "within": "10 minutes"}

Only `text` is required. With `"state": "paused"` the subscription starts paused. A `reason`, which exported lines have
if a service suspended the subscription, is accepted and ignored: here the importer pauses it.
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
"""The members of a line, with the maximum length of each."""

REASON = "reason"
"""A member of exported lines only: why the service suspended the subscription."""

_REQUIRED = ("language", "text")
_STATES = (ACTIVE, PAUSED)


@dataclass(frozen=True, slots=True)
class SubscriptionLine:
    """A requested subscription."""

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
    """Parse a line, or raise; `language` and `within` are the defaults of lines without them."""
    if line.lstrip().startswith(b"["):  # perhaps the first line of a file that is one array
        raise _not_an_object("an array", "one object per line, without an array around them")
    members = parse_value(line, "a JSON object")
    check_members(members)
    if not isinstance(members, dict):
        raise _not_an_object()
    members.pop(REASON, None)
    for name in members:
        if name not in MAX_LENGTHS:
            raise _with_pointer(name, no_such("member", name, list(MAX_LENGTHS)))
    if "text" not in members:
        raise _with_pointer("text", InputError("'text' is missing"))
    members = {"language": language, "within": within} | members
    parsed = SubscriptionLine(**{name: _check_member(name, value) for name, value in members.items()})
    if parsed.state not in (None, *_STATES):
        raise _invalid("state", parsed.state, " or ".join(map(repr, _STATES)))
    return parsed


def _not_an_object(received: str | None = None, hint: str | None = None) -> InputError:
    return InputError("the line is not an object", received=received, accepted="a JSON object", hint=hint)


def _check_member(name: str, value: Any) -> Any:
    if value is None and name not in _REQUIRED:
        return None
    if not isinstance(value, str):
        raise _invalid(name, value, PYDANTIC_WORDS["string_type"])
    if len(value) > MAX_LENGTHS[name]:
        raise _invalid(name, value, PYDANTIC_WORDS["string_too_long"].format(max_length=MAX_LENGTHS[name]))
    return value


def _invalid(name: str, value: Any, accepted: str) -> InputError:
    """Build the error of an invalid member, in the words of the API's own validation (`api.parameters`)."""
    received = str(value)[:200] if isinstance(value, str | int | float) else None
    return _with_pointer(name, InputError(f"'{name}' is invalid", received=received, accepted=accepted))


def _with_pointer(name: str, problem: InputError) -> InputError:
    problem.pointer = f"/{name.replace('~', '~0').replace('/', '~1')}"
    return problem
