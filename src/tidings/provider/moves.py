"""What several runs of the filter come to."""

from __future__ import annotations

from collections.abc import Sequence

from tidings.store.rule_filter import Outcome, Pair


class Moves:
    """Outcomes one after the other, as if there had been one run: who comes and goes again did not move."""

    def __init__(self) -> None:
        self._before: dict[Pair, bool] = {}
        self._now: dict[Pair, bool] = {}
        self._ends: dict[Pair, Sequence[int]] = {}

    def add(self, outcome: Outcome) -> None:
        for pairs, was, now in (
            (outcome.entered, False, True),
            (outcome.changed, True, True),
            (outcome.left, True, False),
        ):
            for pair in pairs:
                self._before.setdefault(pair, was)
                self._now[pair] = now
        self._ends |= outcome.ends

    def outcome(self) -> Outcome:
        was, now = self._before, self._now
        entered = frozenset(pair for pair in now if now[pair] and not was[pair])
        changed = frozenset(pair for pair in now if now[pair] and was[pair])
        left = frozenset(pair for pair in now if was[pair] and not now[pair])
        return Outcome(entered, changed, left, self._ends)
