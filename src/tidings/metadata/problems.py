"""What is wrong with a schema or a metadata document: every finding at once, each with resource, property and reason.

Whoever writes a document mends it in one go; a reader that stops at the first problem makes that a conversation.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import asdict, dataclass

from tidings.counts import plural
from tidings.errors import PublicationError, SchemaError, TidingsError

SHOWN, TOLD = 20, 100
"""How many findings a message lists, and how many the facts for machines: one slip may be in each of many resources."""


@dataclass(frozen=True, slots=True)
class Finding:
    """One thing that is wrong: with which resource, with which of its properties, and why."""

    resource: str
    what: str
    property: str | None = None
    received: str | None = None
    accepted: str | None = None
    hint: str | None = None

    def error(self) -> TidingsError:
        """The finding alone, for its words."""
        return TidingsError(
            self.what,
            where=f"{self.resource}, {self.property}" if self.property else self.resource,
            received=self.received,
            accepted=self.accepted,
            hint=self.hint,
        )

    def facts(self) -> dict[str, str]:
        return {name: value for name, value in asdict(self).items() if value is not None}


class _Found(TidingsError):
    """Says a single finding itself, and lists several below a line that counts them."""

    findings: tuple[Finding, ...]

    def __init__(self, where: str, findings: Iterable[Finding]) -> None:
        self.findings = tuple(findings)
        if len(self.findings) > 1:
            super().__init__(plural(len(self.findings), "problem"), where=where)
            return
        only = self.findings[0].error()
        super().__init__(
            only.what, where=only.where, received=only.received, accepted=only.accepted, hint=only.hint
        )

    def message(self) -> str:
        return "\n".join((super().message(), *self._lines()))

    def _lines(self) -> Iterator[str]:
        if len(self.findings) > 1:
            yield from (f"  {finding.error().message()}" for finding in self.findings[:SHOWN])
        if len(self.findings) > SHOWN:
            yield f"  and {len(self.findings) - SHOWN:,} more"

    def facts(self) -> dict[str, object]:
        return super().facts() | {"problems": [finding.facts() for finding in self.findings[:TOLD]]}


class MetadataSchemaError(_Found, SchemaError):
    """An RDF Schema that makes no sense."""


class MetadataError(_Found, PublicationError):
    """A metadata document that breaks the schema; nothing of it counts."""
