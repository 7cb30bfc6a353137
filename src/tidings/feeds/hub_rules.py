"""What the hub does for whom, and how it calls."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from tidings.errors import InputError
from tidings.feeds.fetching import Answer, Fetcher, Manners
from tidings.web.network import Network


@dataclass(frozen=True, slots=True)
class Rules:
    """What the hub does for whom. Times are in seconds.

    `retries` are the waits after each failed delivery, `questions` those after each question that found nobody; after
    the last it is given up. `patience` is how long a callback may ask to be left alone after a delivery. After a
    question it is the last of `questions`: those that wait to be asked are few, and strangers could fill the places.
    `inside` allows callbacks on this machine and in private networks.
    """

    lease: int = 864_000
    shortest: int = 60
    longest: int = 2_592_000
    waiting: int = 1_000
    per_feed: int = 100
    retries: tuple[int, ...] = (10, 60, 300, 1_800, 7_200, 21_600)
    questions: tuple[int, ...] = (30, 300)
    patience: int = 86_400
    inside: bool = False


class HubBusy(InputError):
    """More ask than are served now."""


class Caller(Fetcher):
    """Calls callbacks: redirects are failures, answers are short."""

    def __init__(self, network: Network | None = None) -> None:
        super().__init__(Manners(connect=5.0, read=10.0, total=20.0, size=100_000, redirects=0), network)

    def push(self, url: str, headers: Mapping[str, str], body: bytes, inside_host: str | None) -> Answer:
        return self._ask("POST", url, headers, body, inside_host)
