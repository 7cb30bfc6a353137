"""Problems of a model, all reported at once, each with its location, so that the author can fix them in one go."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from tidings.core.text import plural
from tidings.errors import InputError, Place, TidingsError

MAX_SHOWN, MAX_FACTS = 20, 100
"""Maximum numbers of findings in a message, and in the facts of the API."""

SourceLocation = Place | str
"""A place in a text, or a description such as `line 7` or `Course.materials`."""


@dataclass(frozen=True, slots=True)
class Finding:
    """One problem and its location."""

    at: SourceLocation
    what: str
    received: str | None = None
    accepted: str | None = None
    hint: str | None = None

    def error(self) -> TidingsError:
        """Return the finding as an error of its own."""
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
    """An invalid model: the message is the only finding, or the number of findings followed by a list."""

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
        """Return a copy under another name of the model."""
        return ModelError(self.findings, name)

    def message(self) -> str:
        return "\n".join((super().message(), *self._lines()))

    def _lines(self) -> Iterator[str]:
        if len(self.findings) > 1:
            for finding in self.findings[:MAX_SHOWN]:
                yield from (f"  {line}" for line in finding.error().message().split("\n"))
        if len(self.findings) > MAX_SHOWN:
            yield f"  and {len(self.findings) - MAX_SHOWN:,} more"

    def facts(self) -> dict[str, object]:
        problems = [finding.error().facts() for finding in self.findings[:MAX_FACTS]]
        for each in problems:
            del each["error"]
        return super().facts() | {"problems": problems}


def _order(finding: Finding) -> tuple[int, int]:
    """Sort by position in a text; findings without one keep their order."""
    return (finding.at.line, finding.at.column) if isinstance(finding.at, Place) else (0, 0)
