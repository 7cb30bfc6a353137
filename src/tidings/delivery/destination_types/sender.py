"""Interface of senders: one for each type of destination. Messages are sent in order, up to the first refusal."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Protocol

from tidings.delivery.messages import Message
from tidings.delivery.sql.destination_store import Destination


@dataclass(frozen=True, slots=True)
class Refusal:
    """Why a message was not accepted.

    `status` is the HTTP status, if there was one. `after` is the receiver's Retry-After, in seconds. `gone` means that
    the receiver wants no further messages, `hopeless` that a retry of this message cannot succeed.
    """

    problem: str
    status: int | None = None
    after: int = 0
    gone: bool = False
    hopeless: bool = False


@dataclass(frozen=True, slots=True)
class SendResult:
    """Number of accepted messages, and the refusal of the next; None if all were accepted, or the run had to end."""

    accepted: int
    refusal: Refusal | None = None
    status: int | None = None


StopCheck = Callable[[], bool]
"""A function that returns whether to stop; called between two messages."""


class Sender(Protocol):
    """Sends to destinations of one type; safe to use from several threads."""

    def check(self, target: str) -> str:
        """Raise if the target is invalid or not allowed; return its host."""

    def mask_target(self, target: str) -> str:
        """Return the target without secrets."""

    def send(self, to: Destination, messages: Sequence[Message], enough: StopCheck) -> SendResult:
        """Send messages in order, up to the first that is not accepted."""

    def end(self) -> None:
        """Cancel requests in progress; they fail."""

    def close(self) -> None:
        """Release connections."""
