"""Delivery policy: retries, timeouts, limits and allowed targets."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import timedelta

from tidings.cloud_events import LARGEST
from tidings.errors import InputError
from tidings.operations.http_client import HttpLimits
from tidings.operations.settings import NOTIFICATION_SERVICES

LEASE_MARGIN = timedelta(seconds=60)


@dataclass(frozen=True, slots=True)
class DeliveryPolicy:
    """Timing and limits of deliveries. Times are in seconds.

    Retries: `retry_delays` are the waits after each failed attempt, by default those of Standard Webhooks; after the
    last one a message becomes a dead letter. Up to the fraction `jitter` is added to a wait. `max_retry_after` limits a
    receiver's Retry-After.

    Concurrency: `workers` threads deliver, at most `per_host` of them to one host. A run of a cursor ends after `run`
    entries, `run_bytes` of publications or `run_seconds`. At shutdown, deliveries in progress have `grace` seconds.

    Sizes: a message carries at most `largest` bytes of its publication, a digest `digest` entries and `digest_bytes` of
    publications.

    Retention: dead letters are kept for `dead_letter_age`; after a rotation the old secret signs for `secret_overlap`.

    Targets: `inside` allows this machine and private networks; `brokers` are Kafka brokers that are always allowed;
    `schemes` are the allowed services of Apprise; a subscriber may have `per_subscriber` destinations.
    """

    retry_delays: tuple[float, ...] = (5, 300, 1_800, 7_200, 18_000, 36_000, 50_400, 72_000)
    jitter: float = 0.1
    max_retry_after: int = 86_400
    times: HttpLimits = field(default_factory=HttpLimits)
    workers: int = 32
    per_host: int = 8
    run: int = 100
    run_bytes: int = 2_000_000
    run_seconds: float = 20.0
    largest: int = LARGEST
    digest: int = 100
    digest_bytes: int = 1_000_000
    dead_letter_age: timedelta = timedelta(days=30)
    secret_overlap: timedelta = timedelta(days=1)
    grace: float = 10.0
    inside: bool = False
    brokers: tuple[str, ...] = ()
    schemes: tuple[str, ...] = NOTIFICATION_SERVICES
    per_subscriber: int = 20

    def __post_init__(self) -> None:
        minimums = {"workers": 1, "per_host": 1, "run": 1, "digest": 1, "per_subscriber": 1}
        for name, minimum in minimums.items():
            if getattr(self, name) < minimum:
                received, accepted = str(getattr(self, name)), f"{minimum} or more"
                raise InputError("invalid delivery policy", where=name, received=received, accepted=accepted)

    @property
    def lease(self) -> timedelta:
        """Lease time of a cursor: longer than a run with its last request can take."""
        return timedelta(seconds=self.run_seconds + self.times.total + self.grace) + LEASE_MARGIN
