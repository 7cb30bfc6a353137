"""Subscription languages, and the result of compiling many texts of one."""

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
"""How many clauses one subscription may become."""

MOST_WARNINGS, LONGEST_WARNING = 10, 500
"""How many warnings about one text are given, and how many characters each sentence of one has: a text with hundreds of
bounds on one attribute has tens of thousands of pairs, each with its literals."""


@dataclass(frozen=True, slots=True)
class Context:
    """The text of a subscription, the schema it is checked against, and how many clauses it may become."""

    text: str
    schema: EventSchema | None = None
    limit: int = DEFAULT_LIMIT

    def problem(
        self,
        what: str,
        span: Span,
        *,
        received: str | None = None,
        accepted: str | None = None,
        hint: str | None = None,
    ) -> CheckProblem:
        """An error with the span underlined."""
        place = Place.at(self.text, span.start, span.end)
        return CheckProblem(what, place=place, received=received, accepted=accepted, hint=hint)

    def warning(self, what: str, span: Span, hint: str | None = None) -> TextWarning:
        """A warning with the span underlined."""
        return TextWarning(what, Place.at(self.text, span.start, span.end), hint)


def first_warnings(found: Iterable[TextWarning]) -> tuple[TextWarning, ...]:
    """Return the first of the warnings about a text, each once; if there are more, the last one says so."""
    distinct: dict[TextWarning, None] = {}
    for warning in found:
        shown = TextWarning(
            _shortened(warning.what), warning.place, warning.hint and _shortened(warning.hint)
        )
        if len(distinct) == MOST_WARNINGS and shown not in distinct:
            return (*distinct, TextWarning(f"there are more than these {MOST_WARNINGS} warnings"))
        distinct[shown] = None
    return tuple(distinct)


def _shortened(sentence: str) -> str:
    return sentence if len(sentence) <= LONGEST_WARNING else sentence[: LONGEST_WARNING - 1] + "…"


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
