"""Everything Tidings refuses or warns about: errors with their places, and warnings.

    TidingsError
    ├── InputError                 something a person or a publisher wrote
    │   ├── SubscriptionError      a subscription's text
    │   │   ├── SyntaxProblem      does not parse                      (column underlined)
    │   │   │   └── NotSupported   is of the language, but of a part that subscriptions do not have
    │   │   ├── CheckProblem       parses, but contradicts the schema  (column underlined)
    │   │   └── TooLarge           would compile to more clauses than the limit
    │   ├── PublicationError       a publication's bytes
    │   │   ├── DecodeProblem      not JSON, not an object, a number nobody can hold ...
    │   │   ├── ConsistencyProblem breaks rule R1, R2 or R3 of the event schema
    │   │   └── BudgetExceeded     takes more time, memory or steps than one publication may take
    │   ├── SchemaError            a schema or an extension of one
    │   ├── IdTaken                an id that already stands for something else
    │   ├── OverLimit              more of something than the limit allows
    │   ├── Absent                 something that is asked for by name is not there
    │   └── Gone                   it was there once: whoever reads on from there has to begin anew
    ├── NotAllowed                 whoever asks may not do this
    ├── TooOften                   whoever asks does so more often than the limit allows
    ├── Overloaded                 the service has too much to do; it can be tried again
    ├── StoreError                 the store cannot be reached, or is of another version
    ├── NotTold                    a change is committed, and whom it concerns could not be told
    └── SetupError                 Java, Spark or a folder is missing
        └── SlowStart              a Python process of Spark did not start in time: it can be tried again

Each carries the same facts as fields, so that an API can hand them over and the command line can draw them. A
`TextWarning` is no error: the text is accepted, and its author should know something about it.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Self, TypeGuard, TypeVar


@dataclass(frozen=True, slots=True)
class Place:
    """Where in a text: line and column count from one, `length` characters are underlined."""

    text: str
    line: int
    column: int
    length: int = 1

    @classmethod
    def at(cls, text: str, start: int, end: int | None = None) -> Place:
        """The place of the characters `start` to `end` (counted from zero) of `text`."""
        line = text.count("\n", 0, start) + 1
        column = start - (text.rfind("\n", 0, start) + 1) + 1
        return cls(text, line, column, max(1, (start + 1 if end is None else end) - start))

    def describe(self) -> str:
        several = "\n" in self.text
        return f"line {self.line}, column {self.column}" if several else f"column {self.column}"

    def facts(self) -> dict[str, int]:
        """The fields of the place, for machines."""
        return {"line": self.line, "column": self.column, "length": self.length}

    def drawn(self, note: str = "") -> str:
        """The line of the text, with the place underlined and `note` beside the underline.

        Of a long line only the surroundings of the place are shown.
        """
        lines = self.text.split("\n")
        line = lines[self.line - 1] if self.line <= len(lines) else ""
        first = max(0, self.column - 1 - _SHOWN // 2) if len(line) > _SHOWN else 0
        shown = line[first : first + _SHOWN]
        before = ("…" if first else "") + shown[: self.column - 1 - first]
        after = shown[self.column - 1 - first :]
        under = "".join("\t" if c == "\t" else " " * _width(c) for c in before)
        under += "^" * max(1, sum(_width(c) for c in after[: self.length]))
        more = "…" if first + _SHOWN < len(line) else ""
        return f"  {before}{after}{more}\n  {under}" + (f"   {note}" if note else "")


_SHOWN = 120


def _width(character: str) -> int:
    """How many columns of a terminal a character takes: none for accents put on another, two for wide scripts."""
    if unicodedata.combining(character):
        return 0
    return 2 if unicodedata.east_asian_width(character) in "WF" else 1


class TidingsError(Exception):
    """What was wrong (`what`), where, what was received, what would be accepted, and a hint."""

    exit_code = 1
    pointer: str | None = None
    """Which member of a request it is about, as a JSON pointer; where there is no request, there is none."""

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
        """An error may travel between processes: Spark's workers report theirs."""
        return restored, (type(self), self.__dict__)

    def headline(self) -> str:
        where = self.place.describe() if self.place else self.where
        line = f"{self.what} ({where})" if where else self.what
        if self.received is not None:
            line += f"; received {self.received}"
        return line + (f"; accepted: {self.accepted}" if self.accepted else "")

    def message(self) -> str:
        if self.place is None:
            return self.headline() + (f"; {self.hint}" if self.hint else "")
        return f"{self.headline()}\n{self.place.drawn(self.hint or '')}"

    def hinted(self, hint: str) -> Self:
        """The same with another hint."""
        return restored(type(self), self.__dict__ | {"hint": hint})

    def located(self, where: str) -> Self:
        """The same with another `where`."""
        return restored(type(self), self.__dict__ | {"where": where})

    def nowhere(self) -> Self:
        """The same without saying where, for those whose business that is not."""
        return restored(type(self), self.__dict__ | {"where": None})

    def moved(self, what: str, place: Place | None) -> Self:
        """The same at another place, that of its text in a longer one."""
        return restored(type(self), self.__dict__ | {"what": what, "place": place})

    def facts(self) -> dict[str, object]:
        """The same as fields, for machines."""
        place = self.place and self.place.facts()
        named = {"place": place, "where": self.where, "received": self.received}
        named |= {"accepted": self.accepted, "hint": self.hint, "pointer": self.pointer}
        return {"error": type(self).__name__, "what": self.what} | {k: v for k, v in named.items() if v}


@dataclass(frozen=True, slots=True)
class TextWarning:
    """A warning about an accepted text: it can never match, or it means something else than it seems to."""

    what: str
    place: Place | None = None
    hint: str | None = None

    def headline(self) -> str:
        return f"{self.what} ({self.place.describe()})" if self.place else self.what

    def message(self) -> str:
        if self.place is None:
            return self.headline() + (f"; {self.hint}" if self.hint else "")
        return f"{self.headline()}\n{self.place.drawn(self.hint or '')}"

    def facts(self) -> dict[str, object]:
        """The fields of the warning, for machines."""
        named = {"place": self.place and self.place.facts(), "hint": self.hint}
        return {"what": self.what} | {name: value for name, value in named.items() if value}


_E = TypeVar("_E", bound=TidingsError)


def restored(kind: type[_E], facts: dict[str, object]) -> _E:
    """The error of a kind that has these facts."""
    error = kind.__new__(kind)
    error.__dict__.update(facts)
    Exception.__init__(error, error.message())
    return error


@contextmanager
def pointing(pointer: str) -> Iterator[None]:
    """What goes wrong inside is about this member of what was asked, unless it says of another one."""
    try:
        yield
    except TidingsError as problem:
        problem.pointer = problem.pointer or pointer
        raise


class InputError(TidingsError):
    """Something a person or a publisher wrote cannot be taken as it is."""

    exit_code = 2


class SubscriptionError(InputError):
    """A subscription's text cannot be taken."""


class SyntaxProblem(SubscriptionError):
    """The text does not parse."""


class NotSupported(SyntaxProblem):
    """The text uses a part of its language that subscriptions do not have; `accepted` is what they have."""

    def headline(self) -> str:
        where = f" ({self.place.describe()})" if self.place else ""
        return f"{self.what}{where}; supported: {self.accepted}"


class CheckProblem(SubscriptionError):
    """The text parses, but contradicts the schema or itself."""


class TooLarge(SubscriptionError):
    """The subscription would need more clauses than the limit allows."""


class PublicationError(InputError):
    """A publication cannot be taken."""


class DecodeProblem(PublicationError):
    """The bytes are not what they are said to be."""


class ConsistencyProblem(PublicationError):
    """An event breaks one of the event schema's rules; `rule` is R1, R2 or R3."""

    def __init__(self, rule: str, what: str, **more: str | None) -> None:
        self.rule = rule
        super().__init__(f"{what} (rule {rule})", **more)  # type: ignore[arg-type]

    def facts(self) -> dict[str, object]:
        return super().facts() | {"rule": self.rule}


class BudgetExceeded(PublicationError):
    """Matching or explaining a publication takes more than its budget of time, memory or steps."""


class SchemaError(InputError):
    """A schema contradicts itself, or an extension is not one."""


class IdTaken(InputError):
    """An id was used before, for something else."""


class OverLimit(InputError):
    """There would be more of something than the limit allows; `accepted` is the limit."""


class Absent(InputError):
    """What is asked for by its name is not there."""


class Gone(InputError):
    """What is asked for was there, and is kept no more: who reads on from there has to begin anew."""


class NotAllowed(TidingsError):
    """Whoever asks may not do this."""

    exit_code = 2


class TooOften(TidingsError):
    """Whoever asks does so more often than the limit allows; `seconds` is how long to wait."""

    def __init__(self, what: str, *, seconds: int, **more: str | None) -> None:
        self.seconds = seconds
        super().__init__(what, **more)  # type: ignore[arg-type]


class Overloaded(TidingsError):
    """The service has too much to do at the moment: the same can be tried again."""


class StoreError(TidingsError):
    """The store cannot be used."""


class NotTold(TidingsError):
    """Changes are committed, and telling whom they concern went wrong; `noticed` are the changes."""

    def __init__(self, what: str, *, noticed: Sequence[object], **more: str | None) -> None:
        self.noticed = tuple(noticed)
        super().__init__(what, **more)  # type: ignore[arg-type]


class SetupError(TidingsError):
    """Something the machine should have is not there."""

    exit_code = 4


class SlowStart(SetupError):
    """A Python process of Spark did not answer within the ten seconds that Spark gives it: the machine is busy."""


def error_from(facts: Mapping[str, object], text: str | None = None) -> TidingsError:
    """The error that has these facts: what `facts` made of it, again where it was sent to.

    `text` is the text that its place is in; without it the place is told in words. A kind that is not known here is a
    plain TidingsError.
    """
    kind = _kinds().get(str(facts.get("error")), TidingsError)
    fields: dict[str, object] = {"what": str(facts.get("what", "unknown")), "place": None}
    fields |= {name: facts.get(name) for name in ("where", "received", "accepted", "hint")}
    fields |= {name: facts[name] for name in ("pointer", "rule") if name in facts}
    if (at := _place_from(facts, text)) is not None:
        fields |= {"place": at} if text else {"where": f"line {at.line}, column {at.column}"}
    return restored(kind, fields)


def warning_from(facts: Mapping[str, object], text: str) -> TextWarning:
    """The warning about a text that `TextWarning.facts` wrote these facts of."""
    hint = facts.get("hint")
    what, place = str(facts.get("what", "unknown")), _place_from(facts, text)
    return TextWarning(what, place, None if hint is None else str(hint))


def _place_from(facts: Mapping[str, object], text: str | None) -> Place | None:
    place = facts.get("place")
    if not isinstance(place, dict):
        return None
    return Place(text or "", *(int(place.get(name, 1)) for name in ("line", "column", "length")))


def _kinds() -> dict[str, type[TidingsError]]:
    return {kind.__name__: kind for kind in globals().values() if _is_kind(kind)}


def _is_kind(found: object) -> TypeGuard[type[TidingsError]]:
    return isinstance(found, type) and issubclass(found, TidingsError)
