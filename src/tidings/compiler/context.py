"""What the rewrites know beside the tree: the text, for drawing errors, and what is to hold."""

from __future__ import annotations

from dataclasses import dataclass

from tidings.errors import CheckProblem, Place, TextWarning
from tidings.languages.tree import Span
from tidings.schema.event_schema import EventSchema

DEFAULT_LIMIT = 256
"""How many clauses one subscription may become."""


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
