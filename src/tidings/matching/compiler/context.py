"""What the rewrites know beside the tree: the text, for drawing errors, and what is to hold."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from tidings.core.source_text import Span
from tidings.errors import CheckProblem, Place, TextWarning
from tidings.events.schema.event_schema import EventSchema

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
