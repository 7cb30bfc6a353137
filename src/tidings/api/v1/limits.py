"""Limits of the API. The settings name them (`limits.api`), or the environment: `TIDINGS_API_LIMITS="rate=600"`."""

from __future__ import annotations

from dataclasses import dataclass

from tidings.core.limits import check_limits, limits_from
from tidings.matching.compiler.context import DEFAULT_LIMIT
from tidings.parsers.strict_json import MOST_VALUES
from tidings.service.subscriptions import SubscriptionLimits

VARIABLE = "TIDINGS_API_LIMITS"


@dataclass(frozen=True, slots=True)
class Limits:
    """What one caller may ask for. Each is a whole number from one on."""

    body: int = 16_000_000
    """Bytes of a publication, or of many publications or subscriptions that come together."""
    bulk: int = 100_000
    """How many may come together."""
    values: int = MOST_VALUES
    """Values in one JSON text; in a batch or a feed five times as many."""
    refusals: int = 1_000
    """How many of many may be refused before the rest is not read."""
    request: int = 1_000_000
    """Bytes of any other request."""
    uploads: int = 256_000_000
    """Bytes of all such bodies that are on their way in at the same time."""
    subscriptions: int = 10_000
    """How many subscriptions a subscriber may have, paused ones counted."""
    clauses: int = DEFAULT_LIMIT
    """How many clauses a subscription may become. The stream takes no more than it does by default."""
    rate: int = 60_000
    """Requests a minute with one token."""
    burst: int = 2_000
    """How many of those may come at once."""
    tokens: int = 10_000
    """How many tokens are remembered with how often they came."""
    preview: int = 1_000
    """How many of the last publications a preview looks at."""
    preview_bytes: int = 32_000_000
    """How many bytes it reads for that."""
    preview_seconds: int = 3
    """How long it takes at most."""

    def __post_init__(self) -> None:
        check_limits(self, {"clauses": DEFAULT_LIMIT})

    @property
    def of_subscriptions(self) -> SubscriptionLimits:
        """What whoever takes subscriptions over HTTP has to heed, here, in the console and over XML-RPC."""
        return SubscriptionLimits(self.clauses, self.subscriptions)


def load_limits() -> Limits:
    """Those of the environment; what it does not name is as it is by default."""
    return limits_from(VARIABLE, Limits)
