"""What is wrong with a model: every finding at once, each with its place.

Whoever writes a model mends it in one go; a reader that stops at the first problem makes that a conversation.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from tidings.core.text import plural
from tidings.errors import InputError, Place, TidingsError

SHOWN, TOLD = 20, 100
"""How many findings a message lists, and how many the facts for machines."""

SourceLocation = Place | str
"""Where something was written: in a text, or `line 7`, or `Course.materials`."""


@dataclass(frozen=True, slots=True)
class Finding:
    """One thing that is wrong, and where."""

    at: SourceLocation
    what: str
    received: str | None = None
    accepted: str | None = None
    hint: str | None = None

    def error(self) -> TidingsError:
        """The finding alone, for its words."""
        place, where = (self.at, None) if isinstance(self.at, Place) else (None, self.at)
        return InputError(
            self.what,
            place=place,
            where=where,
            received=self.received,
            accepted=self.accepted,
            hint=self.hint,
        )


class ModelError(InputError):
    """A model that makes no sense: says a single finding itself, and lists several below a line that counts them."""

    findings: tuple[Finding, ...]

    def __init__(self, findings: Iterable[Finding], name: str = "the model") -> None:
        self.findings = tuple(sorted(findings, key=_order))
        if len(self.findings) > 1:
            super().__init__(f"{name}: {plural(len(self.findings), 'problem')}")
            return
        only = self.findings[0].error()
        super().__init__(
            f"{name}: {only.what}",
            place=only.place,
            where=only.where,
            received=only.received,
            accepted=only.accepted,
            hint=only.hint,
        )

    def named(self, name: str) -> ModelError:
        """The same, of a model of another name."""
        return ModelError(self.findings, name)

    def message(self) -> str:
        return "\n".join((super().message(), *self._lines()))

    def _lines(self) -> Iterator[str]:
        if len(self.findings) > 1:
            for finding in self.findings[:SHOWN]:
                yield from (f"  {line}" for line in finding.error().message().split("\n"))
        if len(self.findings) > SHOWN:
            yield f"  and {len(self.findings) - SHOWN:,} more"

    def facts(self) -> dict[str, object]:
        problems = [finding.error().facts() for finding in self.findings[:TOLD]]
        for each in problems:
            del each["error"]
        return super().facts() | {"problems": problems}


def _order(finding: Finding) -> tuple[int, int]:
    """By line in a text; what has no line stays in the order in which it was found."""
    return (finding.at.line, finding.at.column) if isinstance(finding.at, Place) else (0, 0)
