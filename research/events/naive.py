"""The naive algorithm (paper 004, figure 1): every predicate of every subscription, one after another.

Time: grows with all predicates of all subscriptions, each evaluated as often as it was written.
Space: the subscriptions themselves and nothing else.
Change: free. It is what the others are measured against.
"""

from __future__ import annotations

from collections.abc import Iterable

from research.events.shared import ClauseAlgorithm
from research.events.view import EventView
from tidings.matching.compiler.plan import Clause


class Naive(ClauseAlgorithm):
    def __init__(self) -> None:
        super().__init__()
        self._tests: dict[int, Clause] = {}

    def _insert(self, number: int, clause: Clause) -> None:
        self._tests[number] = clause

    def _delete(self, number: int) -> None:
        del self._tests[number]

    def _matching(self, view: EventView) -> Iterable[int]:
        return (number for number, tests in self._tests.items() if view.holds(tests))
