"""What the matching algorithms have in common, seen from outside.

An algorithm holds subscriptions as plans and answers, for one event at a time, which of them it satisfies.
They all give the same answers; they differ in time, in space and in what it costs to change the
subscriptions.
"""

from __future__ import annotations

from typing import Protocol

from tidings.atoms import Event
from tidings.matching.compiler.plan import Plan


class Algorithm(Protocol):
    """Add and remove subscriptions, match events."""

    def add(self, id: str, plan: Plan) -> None:
        """Hold a subscription. A plan under an id that is already there takes the place of the old one."""

    def remove(self, id: str) -> bool:
        """Forget a subscription; says whether it was there."""

    def match(self, event: Event) -> set[str]:
        """The ids of the subscriptions the event satisfies."""

    def size(self) -> int:
        """Bytes of everything the algorithm holds, its subscriptions' predicates included."""

    def __len__(self) -> int:
        """How many subscriptions it holds."""
