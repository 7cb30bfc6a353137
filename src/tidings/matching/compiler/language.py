"""Subscription languages: their protocol, the context of a compilation, and the result of compiling many texts."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

from tidings.core.source_text import Span
from tidings.errors import CheckProblem, Place, SubscriptionError, TextWarning
from tidings.events.schema.domains import Domain
from tidings.events.schema.event_schema import EventSchema
from tidings.matching.compiler.blocks import merge, pack
from tidings.matching.compiler.plan import ClauseBlock, IrregularClauses, Plan, TwigWriter

DEFAULT_LIMIT = 256
"""The most clauses of one subscription."""

MOST_WARNINGS, LONGEST_WARNING = 10, 500
"""The most warnings about one text, and the most characters of each sentence: a text with hundreds of bounds
on one attribute has tens of thousands of pairs, each with its literals.
"""


@dataclass(frozen=True, slots=True)
class Context:
    """The text of a subscription, the schema it is checked against, and the most clauses it may become."""

    text: str
    schema: EventSchema | None = None
    limit: int = DEFAULT_LIMIT

    def problem(
        self,
        message: str,
        span: Span,
        *,
        received: str | None = None,
        accepted: str | None = None,
        hint: str | None = None,
    ) -> CheckProblem:
        """Make an error with the span underlined."""
        place = Place.at(self.text, span.start, span.end)
        return CheckProblem(message, place=place, received=received, accepted=accepted, hint=hint)

    def warning(self, message: str, span: Span, hint: str | None = None) -> TextWarning:
        """Make a warning with the span underlined."""
        return TextWarning(message, Place.at(self.text, span.start, span.end), hint)


def first_warnings(warnings: Iterable[TextWarning]) -> tuple[TextWarning, ...]:
    """Return the first warnings about a text, each once; if there are more, the last one states that."""
    distinct: dict[TextWarning, None] = {}
    for warning in warnings:
        shown = TextWarning(_shorten(warning.what), warning.place, warning.hint and _shorten(warning.hint))
        if len(distinct) == MOST_WARNINGS and shown not in distinct:
            return (*distinct, TextWarning(f"only the first {MOST_WARNINGS} warnings are shown"))
        distinct[shown] = None
    return tuple(distinct)


def _shorten(sentence: str) -> str:
    return sentence if len(sentence) <= LONGEST_WARNING else sentence[: LONGEST_WARNING - 1] + "…"


@dataclass(slots=True)
class CompiledRows:
    """Many compiled texts, by row: clauses in blocks, irregular clauses, and the problems of rejected texts."""

    blocks: list[ClauseBlock] = field(default_factory=list)
    irregular: IrregularClauses = field(default_factory=IrregularClauses)
    domains: dict[str, Domain] = field(default_factory=dict)
    problems: dict[int, SubscriptionError] = field(default_factory=dict)

    def add_domains(self, domains: Iterable[Domain]) -> None:
        self.domains.update({domain.name: domain for domain in domains})


@dataclass(frozen=True, slots=True)
class Knowledge:
    """Data for warnings: the loaded taxonomies, and recent publications of a kind, decoded."""

    taxonomy: Callable[[], Any]
    recent: Callable[[str], Iterable[Any]]


class Language(ABC):
    """A language for subscriptions."""

    @abstractmethod
    def compile(self, context: Context) -> Plan:
        """Compile one text."""

    def compile_rows(
        self, texts: Sequence[str], schema: EventSchema | None, limit: int, twigs: TwigWriter
    ) -> CompiledRows:
        """Compile many texts; twigs and patterns go to `twigs`, which all languages share.

        This default compiles one by one, which is enough for languages without twigs.
        """
        rows = CompiledRows()
        rows.blocks = merge(pack(self.compile_each(range(len(texts)), texts, schema, limit, rows)))
        return rows

    def compile_each(
        self,
        rows: Iterable[int],
        texts: Sequence[str],
        schema: EventSchema | None,
        limit: int,
        into: CompiledRows,
    ) -> dict[int, Plan]:
        """Compile some of the texts one by one; return their plans by row, and add problems and domains to `into`."""
        plans: dict[int, Plan] = {}
        for row in rows:
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
