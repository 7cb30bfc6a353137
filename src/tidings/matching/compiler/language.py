"""Subscription languages, and the result of compiling many texts of one."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

from tidings.errors import SubscriptionError, TextWarning
from tidings.events.schema.domains import Domain
from tidings.events.schema.event_schema import EventSchema
from tidings.matching.compiler.blocks import merge, pack
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


@dataclass(frozen=True, slots=True)
class Knowledge:
    """What warnings about a text may consult: the loaded taxonomies, and recent publications of a kind, decoded."""

    taxonomy: Callable[[], Any]
    recent: Callable[[str], Iterable[Any]]


class Language(ABC):
    """A language that subscriptions are written in."""

    @abstractmethod
    def compile(self, context: Context) -> Plan:
        """Compile one text."""

    def compile_rows(
        self, texts: Sequence[str], schema: EventSchema | None, limit: int, twigs: TwigWriter
    ) -> CompiledRows:
        """Compile many texts; twigs and patterns go to `twigs`, which all languages share.

        Languages without twigs may leave it at this, which compiles one by one.
        """
        rows = CompiledRows()
        rows.blocks = merge(pack(self.compile_each(range(len(texts)), texts, schema, limit, rows)))
        return rows

    def compile_each(
        self,
        wanted: Iterable[int],
        texts: Sequence[str],
        schema: EventSchema | None,
        limit: int,
        into: CompiledRows,
    ) -> dict[int, Plan]:
        """Compile some of the texts one by one; return their plans by row, and add problems and domains to `into`."""
        plans: dict[int, Plan] = {}
        for row in wanted:
            try:
                plans[row] = self.compile(Context(texts[row], schema, limit))
            except SubscriptionError as problem:
                into.problems[row] = problem.with_traceback(None)
            else:
                into.add_domains(plans[row].domains)
        return plans

    def warnings(self, context: Context, knowledge: Knowledge | None = None) -> tuple[TextWarning, ...]:
        """Return warnings about a text; a text that does not compile raises, as in `compile`."""
        return ()
