"""Errors and warnings, with their places in texts.

    TidingsError
    ├── InputError                  input of a user or a publisher
    │   ├── SubscriptionError       the text of a subscription
    │   │   ├── SyntaxProblem       does not parse                      (column underlined)
    │   │   │   └── NotSupported    valid in the language, but not supported in subscriptions
    │   │   ├── CheckProblem        parses, but contradicts the schema  (column underlined)
    │   │   └── TooLarge            would compile to more clauses than the limit
    │   ├── PublicationError        the bytes of a publication
    │   │   ├── DecodeProblem       not JSON, not an object, a number out of range ...
    │   │   ├── ConsistencyProblem  breaks rule R1, R2 or R3 of the event schema
    │   │   └── BudgetExceeded      needs more time, memory or steps than one publication may use
    │   ├── SchemaError             a schema or an extension of one
    │   ├── IdConflict              an id that is already used for something else
    │   ├── LimitExceeded           more of something than the limit allows
    │   ├── NotFound                something named in a request does not exist
    │   └── Gone                    it existed once: a reader has to start again
    ├── NotAllowed                  the caller has no permission
    ├── RateLimited                 the caller exceeds a rate limit
    ├── Overloaded                  the service is busy; the request can be retried
    ├── StoreError                  the store cannot be reached, or has another version
    ├── NotificationFailed          a change is committed, but its subscribers could not be notified
    └── SetupError                  Java, Spark or a folder is missing
        └── SlowStart               a Python process of Spark did not start in time; it can be retried

Each error has the same facts as fields: the API returns them and the command line draws them. A `TextWarning`
is not an error: the text is accepted, and its author receives a remark about it.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Self, TypeGuard, TypeVar


@dataclass(frozen=True, slots=True)
class Place:
    """A place in a text: line and column count from one, `length` characters are underlined."""

    text: str
    line: int
    column: int
    length: int = 1

    @classmethod
    def at(cls, text: str, start: int, end: int | None = None) -> Place:
        """Return the place of the characters `start` to `end` (counted from zero) of `text`."""
        line = text.count("\n", 0, start) + 1
        column = start - (text.rfind("\n", 0, start) + 1) + 1
        return cls(text, line, column, max(1, (start + 1 if end is None else end) - start))

    def describe(self) -> str:
        several = "\n" in self.text
        return f"line {self.line}, column {self.column}" if several else f"column {self.column}"

    def facts(self) -> dict[str, int]:
        """Return the fields of the place, for machines."""
        return {"line": self.line, "column": self.column, "length": self.length}

    def draw(self, note: str = "") -> str:
        """Return the line of the text, with the place underlined and `note` beside the underline.

        Of a long line only the part around the place is shown.
        """
        lines = self.text.split("\n")
        line = lines[self.line - 1] if self.line <= len(lines) else ""
        first = max(0, self.column - 1 - _SHOWN // 2) if len(line) > _SHOWN else 0
        shown = line[first : first + _SHOWN]
        leading = ("…" if first else "") + shown[: self.column - 1 - first]
        trailing = shown[self.column - 1 - first :]
        under = "".join("\t" if c == "\t" else " " * _width(c) for c in leading)
        under += "^" * max(1, sum(_width(c) for c in trailing[: self.length]))
        ellipsis = "…" if first + _SHOWN < len(line) else ""
        return f"  {leading}{trailing}{ellipsis}\n  {under}" + (f"   {note}" if note else "")


_SHOWN = 120


def _width(character: str) -> int:
    """Return the terminal columns of a character: none for combining marks, two for wide scripts."""
    if unicodedata.combining(character):
        return 0
    return 2 if unicodedata.east_asian_width(character) in "WF" else 1


class TidingsError(Exception):
    """An error: the problem (`what`), its place, the received input, the accepted input, and a hint."""

    exit_code = 1
    pointer: str | None = None
    """The member of a request that is wrong, as a JSON pointer; None without a request."""

    def __init__(
        self,
        what: str,
        *,
        place: Place | None = None,
        where: str | None = None,
        received: str | None = None,
        accepted: str | None = None,
        hint: str | None = None,
    ) -> None:
        self.what, self.place, self.where = what, place, where
        self.received, self.accepted, self.hint = received, accepted, hint
        super().__init__(self.message())

    def __reduce__(self) -> tuple[object, ...]:
        """Pickle the error: Spark's workers send theirs to the driver."""
        return restore_error, (type(self), self.__dict__)

    def headline(self) -> str:
        where = self.place.describe() if self.place else self.where
        line = f"{self.what} ({where})" if where else self.what
        if self.received is not None:
            line += f"; received {self.received}"
        return line + (f"; accepted: {self.accepted}" if self.accepted else "")

    def message(self) -> str:
        if self.place is None:
            return self.headline() + (f"; {self.hint}" if self.hint else "")
        return f"{self.headline()}\n{self.place.draw(self.hint or '')}"

    def with_hint(self, hint: str) -> Self:
        """Return the same error with another hint."""
        return restore_error(type(self), self.__dict__ | {"hint": hint})

    def with_where(self, where: str) -> Self:
        """Return the same error with another `where`."""
        return restore_error(type(self), self.__dict__ | {"where": where})

    def without_where(self) -> Self:
        """Return the same error without `where`, for callers who may not know internal addresses."""
        return restore_error(type(self), self.__dict__ | {"where": None})

    def with_place(self, what: str, place: Place | None) -> Self:
        """Return the same error at another place: that of its text in a longer one."""
        return restore_error(type(self), self.__dict__ | {"what": what, "place": place})

    def facts(self) -> dict[str, object]:
        """Return the fields of the error, for machines."""
        place = self.place and self.place.facts()
        named = {"place": place, "where": self.where, "received": self.received}
        named |= {"accepted": self.accepted, "hint": self.hint, "pointer": self.pointer}
        return {"error": type(self).__name__, "what": self.what} | {k: v for k, v in named.items() if v}


@dataclass(frozen=True, slots=True)
class TextWarning:
    """A warning about an accepted text: it can never match, or its meaning may surprise its author."""

    what: str
    place: Place | None = None
    hint: str | None = None

    def headline(self) -> str:
        return f"{self.what} ({self.place.describe()})" if self.place else self.what

    def message(self) -> str:
        if self.place is None:
            return self.headline() + (f"; {self.hint}" if self.hint else "")
        return f"{self.headline()}\n{self.place.draw(self.hint or '')}"

    def facts(self) -> dict[str, object]:
        """Return the fields of the warning, for machines."""
        named = {"place": self.place and self.place.facts(), "hint": self.hint}
        return {"what": self.what} | {name: value for name, value in named.items() if value}


_E = TypeVar("_E", bound=TidingsError)


def restore_error(kind: type[_E], facts: dict[str, object]) -> _E:
    """Make an error of a class from its facts."""
    error = kind.__new__(kind)
    error.__dict__.update(facts)
    Exception.__init__(error, error.message())
    return error


@contextmanager
def pointing(pointer: str) -> Iterator[None]:
    """Set the JSON pointer of errors that are raised inside and have none."""
    try:
        yield
    except TidingsError as problem:
        problem.pointer = problem.pointer or pointer
        raise


class InputError(TidingsError):
    """Input of a user or a publisher cannot be accepted."""

    exit_code = 2


class SubscriptionError(InputError):
    """The text of a subscription cannot be accepted."""


class SyntaxProblem(SubscriptionError):
    """The text does not parse."""


class NotSupported(SyntaxProblem):
    """The text uses a part of its language that subscriptions do not support; `accepted` is the supported part."""

    def headline(self) -> str:
        where = f" ({self.place.describe()})" if self.place else ""
        return f"{self.what}{where}; supported: {self.accepted}"


class CheckProblem(SubscriptionError):
    """The text parses, but contradicts the schema or itself."""


class TooLarge(SubscriptionError):
    """The subscription would need more clauses than the limit allows."""


class PublicationError(InputError):
    """A publication cannot be accepted."""


class DecodeProblem(PublicationError):
    """The bytes do not match their media type."""


class ConsistencyProblem(PublicationError):
    """An event breaks a rule of the event schema; `rule` is R1, R2 or R3."""

    def __init__(self, rule: str, what: str, **more: str | None) -> None:
        self.rule = rule
        super().__init__(f"{what} (rule {rule})", **more)  # type: ignore[arg-type]

    def facts(self) -> dict[str, object]:
        return super().facts() | {"rule": self.rule}


class BudgetExceeded(PublicationError):
    """Matching or explaining a publication exceeds its budget of time, memory or steps."""


class SchemaError(InputError):
    """A schema contradicts itself, or an extension is invalid."""


class IdConflict(InputError):
    """An id is already used for something else."""


class LimitExceeded(InputError):
    """More of something than the limit allows; `accepted` is the limit."""


class NotFound(InputError):
    """Something named in a request does not exist."""


class Gone(InputError):
    """The requested data existed, but is no longer stored: a reader has to start again."""


class NotAllowed(TidingsError):
    """The caller has no permission."""

    exit_code = 2


class RateLimited(TidingsError):
    """The caller exceeds a rate limit; `seconds` is how long to wait."""

    def __init__(self, what: str, *, seconds: int, **more: str | None) -> None:
        self.seconds = seconds
        super().__init__(what, **more)  # type: ignore[arg-type]


class Overloaded(TidingsError):
    """The service is busy; the same request can be retried."""


class StoreError(TidingsError):
    """The store cannot be used."""


class NotificationFailed(TidingsError):
    """Changes are committed, but notifying their subscribers failed; `noticed` are the changes."""

    def __init__(self, what: str, *, noticed: Sequence[object], **more: str | None) -> None:
        self.noticed = tuple(noticed)
        super().__init__(what, **more)  # type: ignore[arg-type]


class SetupError(TidingsError):
    """The machine lacks something that is required."""

    exit_code = 4


class SlowStart(SetupError):
    """A Python process of Spark did not answer within the ten seconds that Spark allows: the machine is busy."""


def error_from(facts: Mapping[str, object], text: str | None = None) -> TidingsError:
    """Rebuild an error from its `facts`, where it was sent to.

    `text` is the text that its place refers to; without it the place is described in words. An unknown class
    becomes a plain TidingsError.
    """
    kind = _error_classes().get(str(facts.get("error")), TidingsError)
    fields: dict[str, object] = {"what": str(facts.get("what", "unknown")), "place": None}
    fields |= {name: facts.get(name) for name in ("where", "received", "accepted", "hint")}
    fields |= {name: facts[name] for name in ("pointer", "rule") if name in facts}
    if (place := _place_from(facts, text)) is not None:
        fields |= {"place": place} if text else {"where": f"line {place.line}, column {place.column}"}
    return restore_error(kind, fields)


def warning_from(facts: Mapping[str, object], text: str) -> TextWarning:
    """Rebuild a warning about a text from its `facts`."""
    hint = facts.get("hint")
    what, place = str(facts.get("what", "unknown")), _place_from(facts, text)
    return TextWarning(what, place, None if hint is None else str(hint))


def _place_from(facts: Mapping[str, object], text: str | None) -> Place | None:
    place = facts.get("place")
    if not isinstance(place, dict):
        return None
    return Place(text or "", *(int(place.get(name, 1)) for name in ("line", "column", "length")))


def _error_classes() -> dict[str, type[TidingsError]]:
    return {kind.__name__: kind for kind in globals().values() if _is_error_class(kind)}


def _is_error_class(value: object) -> TypeGuard[type[TidingsError]]:
    return isinstance(value, type) and issubclass(value, TidingsError)
