"""What all kinds of destinations have in common: messages go in order, and the first that is not taken ends it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Protocol

from tidings.delivery.messages import Message
from tidings.delivery.sql.destination_store import Destination


@dataclass(frozen=True, slots=True)
class Refusal:
    """Why a message was not taken.

    `status` is that of HTTP, if there was one; `after` is how many seconds the receiver asks to be left alone; `gone`
    says that it wants no more at all, `hopeless` that this message is never taken, however often it is tried.
    """

    problem: str
    status: int | None = None
    after: int = 0
    gone: bool = False
    hopeless: bool = False


@dataclass(frozen=True, slots=True)
class SendResult:
    """How many messages were taken, and why the next was not; without a refusal they are all, or it was time to end."""

    taken: int
    refusal: Refusal | None = None
    status: int | None = None


StopCheck = Callable[[], bool]
"""Whether it is time to end, asked between two messages."""


class Sender(Protocol):
    """Sends to destinations of one kind, from any number of threads."""

    def check(self, target: str) -> str:
        """Refuse a target that cannot be, or may not be; the place that it is at."""

    def shown(self, target: str) -> str:
        """What may be shown of a target."""

    def send(self, to: Destination, messages: Sequence[Message], enough: StopCheck) -> SendResult:
        """Send messages in order until one is not taken."""

    def end(self) -> None:
        """End what is under way: it fails."""

    def close(self) -> None:
        """Let go of what is held."""
