"""What a delivery tells those who count: metrics, logs, traces."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

DELIVERED, FAILED, DEAD = "delivered", "failed", "dead"


@dataclass(frozen=True, slots=True)
class Happened:
    """`what` became of notifications of a subscription, on their way to a destination of a kind: delivered, failed (and
    tried again later) or dead. `ids` are the notifications, `seconds` is how long it took.
    """

    what: str
    kind: str
    destination: str
    subscription: str
    ids: tuple[str, ...]
    seconds: float
    problem: str | None = None

    @property
    def count(self) -> int:
        return len(self.ids)


Listener = Callable[[Happened], None]
"""Is called in the thread of the loop, after it is durable."""


def nobody(_: Happened) -> None:
    """Nobody counts."""
