"""How subscriptions do: how often each matched, and what became of its deliveries."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from tidings.model import Subscription
from tidings.store import Health as Delivered
from tidings.store import Store


@dataclass(frozen=True, slots=True)
class Health:
    """What a subscription came to so far. Failures are those in a row; without destinations nothing is delivered."""

    matched: int = 0
    last_matched: str | None = None
    delivered: int = 0
    last_success: str | None = None
    consecutive_failures: int = 0
    last_error: str | None = None
    last_failure: str | None = None
    """When that was; it may be long past."""


def health_of(store: Store, asked: Iterable[Subscription]) -> dict[str, Health]:
    """The health of subscriptions, by id."""
    mine: dict[str, list[str]] = {}
    for one in asked:
        mine.setdefault(one.subscriber, []).append(one.id)
    return {id: one for subscriber, ids in mine.items() for id, one in _of(store, subscriber, ids).items()}


def _of(store: Store, subscriber: str, ids: list[str]) -> dict[str, Health]:
    delivered = store.destinations.health(subscriber, ids)
    matched = store.matched.of(subscriber, ids)
    return {id: _health(matched[id], delivered.get(id, Delivered())) for id in ids}


def _health(matched: tuple[int, str | None], told: Delivered) -> Health:
    failed = told.consecutive_failures
    return Health(*matched, told.delivered, told.last_success, failed, told.last_error, told.last_failure)
