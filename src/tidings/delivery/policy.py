"""How deliveries are made: how often, how long, how many at once."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import timedelta

from tidings.cloud_events import LARGEST
from tidings.errors import InputError
from tidings.operations.http_pool import Timeouts
from tidings.operations.settings import NOTIFICATION_SERVICES

MARGIN = timedelta(seconds=60)


@dataclass(frozen=True, slots=True)
class DeliveryPolicy:
    """Times are in seconds.

    `retries` are the waits after each failed attempt, those of Standard Webhooks; after the last it is given up. Up to
    `jitter` of a wait is added to it. `patience` is how long a receiver may ask to be left alone. `workers` deliver at
    the same time, `per_place` of them to one host. A lane is worked on for `run` entries, `run_bytes` of publications
    and `run_seconds` at most.
    `digest` is how many entries a digest has, `digest_bytes` how much of publications it carries, `largest` how much a
    message does. `letters` is how long dead letters are kept, `overlap` how long an old secret signs, too. `grace` is
    how long what is under way has to end.

    `inside` allows receivers on this machine and in private networks, `brokers` are those of Kafka that may be named
    anyway, `schemes` what Apprise may be asked for. `per_subscriber` is how many destinations one may have.
    """

    retries: tuple[float, ...] = (5, 300, 1_800, 7_200, 18_000, 36_000, 50_400, 72_000)
    jitter: float = 0.1
    patience: int = 86_400
    times: Timeouts = field(default_factory=Timeouts)
    workers: int = 32
    per_place: int = 8
    run: int = 100
    run_bytes: int = 2_000_000
    run_seconds: float = 20.0
    largest: int = LARGEST
    digest: int = 100
    digest_bytes: int = 1_000_000
    letters: timedelta = timedelta(days=30)
    overlap: timedelta = timedelta(days=1)
    grace: float = 10.0
    inside: bool = False
    brokers: tuple[str, ...] = ()
    schemes: tuple[str, ...] = NOTIFICATION_SERVICES
    per_subscriber: int = 20

    def __post_init__(self) -> None:
        least = {"workers": 1, "per_place": 1, "run": 1, "digest": 1, "per_subscriber": 1}
        for name, low in least.items():
            if getattr(self, name) < low:
                received = str(getattr(self, name))
                raise InputError("no such rule", where=name, received=received, accepted=f"{low} or more")

    @property
    def lease(self) -> timedelta:
        """For so long nobody else takes what one has taken: longer than a run and its last request may last."""
        return timedelta(seconds=self.run_seconds + self.times.total + self.grace) + MARGIN
