"""Retries of deliveries: how long to wait after a failed attempt, and when to give up."""

from __future__ import annotations

from random import Random

from tidings.delivery.delivery_policy import DeliveryPolicy
from tidings.delivery.destination_types.sender import Refusal


def has_attempts_left(policy: DeliveryPolicy, attempts: int) -> bool:
    """Return whether a message may be sent again after this many failed attempts."""
    return attempts <= len(policy.retry_delays)


def choose_retry_delay(
    policy: DeliveryPolicy, attempts: int, refusal: Refusal, chance: Random
) -> float | None:
    """Return how many seconds to wait after this many failed attempts; None to give up.

    A receiver may ask for a longer wait. Jitter keeps messages that failed together from coming back together.
    """
    if refusal.hopeless or not has_attempts_left(policy, attempts):
        return None
    seconds = max(policy.retry_delays[attempts - 1], refusal.after)
    return seconds * chance.uniform(1.0, 1.0 + policy.jitter)
