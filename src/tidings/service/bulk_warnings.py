"""Warnings about many subscriptions that were taken together."""

from __future__ import annotations

from functools import cached_property

from tidings.compiler.context import Context
from tidings.compiler.pipeline import LANGUAGES
from tidings.errors import TextWarning
from tidings.graphs import Graph
from tidings.model import Subscription
from tidings.service.graph_warnings import recent_graphs
from tidings.service.subscribing import Subscribing

MOST = 1_000
"""So many texts are looked through: each is read once more, and files may have millions."""

MOST_CHARACTERS = 100_000
"""So many characters of those texts, the last text included: reading them takes about a fifth of a second."""


class BulkWarnings:
    """Warnings about texts that were accepted, one after the other; `passed_over` counts those beyond the limits."""

    def __init__(self, subscribing: Subscribing) -> None:
        self._subscribing = subscribing
        self._looked_at = self._characters = self.passed_over = 0

    def about(self, one: Subscription) -> tuple[TextWarning, ...]:
        """Warnings about a subscription in a language that has some."""
        if one.language not in LANGUAGES:
            return ()
        if self._looked_at >= MOST or self._characters + len(one.text) > MOST_CHARACTERS:
            self.passed_over += 1
            return ()
        self._looked_at += 1
        self._characters += len(one.text)
        context = Context(one.text, self._subscribing.schema(), self._subscribing.limited.clauses)
        return self._subscribing.warnings(one.language, context, lambda: self._recent)

    @cached_property
    def _recent(self) -> tuple[Graph, ...]:
        return tuple(recent_graphs(self._subscribing.store))
