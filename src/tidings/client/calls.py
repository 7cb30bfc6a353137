"""What can be asked of the service: each call as a value, which both clients send."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, fields
from typing import Any, Generic, TypeVar

from tidings.client.notifications import (
    AckPosition,
    NotificationPage,
    parse_notification_page,
    parse_position,
)

T = TypeVar("T")

STREAM = "/v1/notifications/stream"
ACK = "/v1/notifications/ack"

READ_SECONDS = 30.0


@dataclass(frozen=True, slots=True)
class Call(Generic[T]):
    """A request, and what makes a value of its answer. `text` is what places in errors are places of."""

    method: str
    path: str
    read: Callable[[Any], T]
    params: Mapping[str, str] | None = None
    json: Any = None
    content: bytes | None = None
    headers: Mapping[str, str] | None = None
    text: str | None = None
    seconds: float = READ_SECONDS
    once: bool = False
    """Whether it must not be done twice: what it makes has no id."""


def build_params(**given: object) -> dict[str, str]:
    """The parameters that were given."""
    return {name: str(value) for name, value in given.items() if value is not None}


def make_reader(kind: type[T]) -> Callable[[Mapping[str, Any]], T]:
    """What makes a value of an answer; members that a newer service has besides are left out."""
    names = [field.name for field in fields(kind)]  # type: ignore[arg-type]
    return lambda answer: kind(**{name: answer[name] for name in names if name in answer})


def read_notifications(
    after: int | None, limit: int, subscription: str | None, subscriber: str | None, wait: float
) -> Call[NotificationPage]:
    params = build_params(
        after=after, limit=limit, subscription=subscription, subscriber=subscriber, wait=wait or None
    )
    return Call("GET", "/v1/notifications", parse_notification_page, params, seconds=READ_SECONDS + wait)


def read_position(subscriber: str | None) -> Call[AckPosition]:
    return Call("GET", ACK, parse_position, build_params(subscriber=subscriber))


def acknowledge(upto: int, subscriber: str | None) -> Call[AckPosition]:
    return Call("PUT", ACK, parse_position, build_params(subscriber=subscriber), json={"upto": upto})
