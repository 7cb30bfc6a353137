"""What was found out about publications that a task cannot finish, for the tasks that do the rest."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from tidings.errors import BudgetExceeded


@dataclass(frozen=True, slots=True)
class Verdicts:
    """Why publications, by position, and pairs of them with subscriptions are dead letters.

    Tasks do not touch these, and put them among their dead letters, since they have the bodies. Subscriptions in
    `suspended` have so many pairs that they are suspended with this batch: nothing more is explained for them.
    """

    publications: Mapping[int, BudgetExceeded] = field(default_factory=dict)
    pairs: Mapping[int, Mapping[str, BudgetExceeded]] = field(default_factory=dict)
    suspended: frozenset[str] = frozenset()

    def refuse(self, position: int, problem: BudgetExceeded) -> Verdicts:
        """The same, and a publication as a whole."""
        return replace(self, publications={**self.publications, position: problem})

    def refuse_pair(self, position: int, subscription: str, problem: BudgetExceeded) -> Verdicts:
        """The same, and a publication with one subscription."""
        pairs = {**self.pairs.get(position, {}), subscription: problem}
        return replace(self, pairs={**self.pairs, position: pairs})

    def suspend(self, subscription: str, most: int) -> Verdicts:
        """The same, without a subscription that has so many pairs."""
        if sum(subscription in pairs for pairs in self.pairs.values()) < most:
            return self
        return replace(self, suspended=self.suspended | {subscription})


NO_VERDICTS = Verdicts()
