"""Protocol of subscription languages, and the result of compiling many texts of one."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Protocol

from tidings.errors import SubscriptionError, TextWarning
from tidings.events.schema.domains import Domain
from tidings.events.schema.event_schema import EventSchema
from tidings.matching.compiler.context import Context
from tidings.matching.compiler.plan import ClauseBlock, IrregularClauses, Plan
from tidings.matching.compiler.twig_writer import TwigWriter


@dataclass(slots=True)
class CompiledRows:
    """Many compiled texts, by row: clauses in blocks, irregular clauses, and the problems of refused texts."""

    blocks: list[ClauseBlock] = field(default_factory=list)
    irregular: IrregularClauses = field(default_factory=IrregularClauses)
    domains: dict[str, Domain] = field(default_factory=dict)
    problems: dict[int, SubscriptionError] = field(default_factory=dict)

    def add_domains(self, domains: Iterable[Domain]) -> None:
        self.domains.update({domain.name: domain for domain in domains})


class Language(Protocol):
    """A language that subscriptions are written in."""

    def compile(self, context: Context) -> Plan:
        """Compile one text."""

    def compile_rows(
        self, texts: Sequence[str], schema: EventSchema | None, limit: int, twigs: TwigWriter
    ) -> CompiledRows:
        """Compile many texts; twigs and patterns go to `twigs`, which all languages share."""

    def warnings(self, context: Context) -> tuple[TextWarning, ...]:
        """Return warnings about a text; a text that does not compile raises, as in `compile`."""
