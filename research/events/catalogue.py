"""The algorithms by name: the naive one and the seven of paper 004, section 3."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from research.events.aguilera import Aguilera
from research.events.algorithm import Algorithm, ClauseAlgorithm
from research.events.counting import EqualityPreferred, FairPredicate, Quarantining
from research.events.evaluation import EventView
from research.events.gough import Gough
from research.events.hanson import Hanson
from research.events.neon import Neon
from tidings.matching.compiler.plan import Clause


class Naive(ClauseAlgorithm):
    """The naive algorithm (paper 004, figure 1): every predicate of every subscription, one after another.

    Time: grows with all predicates of all subscriptions, each evaluated as often as it was written.
    Space: the subscriptions themselves.
    Change: free. The others are measured against it.
    """

    def __init__(self) -> None:
        super().__init__()
        self._tests: dict[int, Clause] = {}

    def _insert(self, number: int, clause: Clause) -> None:
        self._tests[number] = clause

    def _delete(self, number: int) -> None:
        del self._tests[number]

    def _matching(self, view: EventView) -> Iterable[int]:
        return (number for number, tests in self._tests.items() if view.holds(tests))


ALGORITHMS: dict[str, Callable[[], Algorithm]] = {
    "naive": Naive,
    "fair predicate": FairPredicate,
    "equality-preferred": EqualityPreferred,
    "quarantining": Quarantining,
    "hanson": Hanson,
    "gough": Gough,
    "aguilera": Aguilera,
    "neon": Neon,
}
