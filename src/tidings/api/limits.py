"""Limits of the API for one caller."""

from __future__ import annotations

from dataclasses import dataclass

from tidings.core.limits import check_limits, limits_from
from tidings.matching.compiler.language import DEFAULT_LIMIT
from tidings.parsers.strict_json import MOST_VALUES
from tidings.service.subscriptions import SubscriptionLimits

VARIABLE = "TIDINGS_API_LIMITS"
"""The environment variable, as in `TIDINGS_API_LIMITS="rate=600"`; the setting is `limits.api`."""


@dataclass(frozen=True, slots=True)
class Limits:
    """Limits for one caller. Each limit is a positive integer."""

    body: int = 16_000_000
    """Bytes of a publication, or of a bulk request."""
    bulk: int = 100_000
    """Items of a bulk request."""
    values: int = MOST_VALUES
    """Values in one JSON text; five times as many in a batch or a feed."""
    refusals: int = 1_000
    """Refused items of a bulk request after which the rest is not read."""
    request: int = 1_000_000
    """Bytes of any other request."""
    uploads: int = 256_000_000
    """Bytes of all publications and bulk requests that are being received at the same time."""
    subscriptions: int = 10_000
    """Subscriptions of one subscriber, paused ones included."""
    clauses: int = DEFAULT_LIMIT
    """Clauses that a subscription may compile to. It cannot exceed the default, which is the limit of the stream."""
    rate: int = 60_000
    """Requests per minute with one token."""
    burst: int = 2_000
    """Requests that one token may send at once."""
    tokens: int = 10_000
    """Tokens whose request counts are remembered."""
    preview: int = 1_000
    """Latest publications that a preview examines."""
    preview_bytes: int = 32_000_000
    """Bytes that a preview reads."""
    preview_seconds: int = 3
    """Seconds that a preview takes."""

    def __post_init__(self) -> None:
        check_limits(self, {"clauses": DEFAULT_LIMIT})

    @property
    def of_subscriptions(self) -> SubscriptionLimits:
        """The limits of subscriptions, which the API, the console and XML-RPC share."""
        return SubscriptionLimits(self.clauses, self.subscriptions)


def load_limits() -> Limits:
    """Return the limits of the environment, with defaults for the others."""
    return limits_from(VARIABLE, Limits)
