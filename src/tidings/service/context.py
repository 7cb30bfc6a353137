"""Context of a running service: the state that routers and workers share, its health, and its pending work."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from tidings.core.text import plural
from tidings.feeds.hub.hub import Hub
from tidings.metadata.replication.log_follower import FollowWorker
from tidings.operations.metrics import Metrics
from tidings.operations.settings import ServicePart, Settings
from tidings.parsers.parser_pool import ParserPool
from tidings.service.authorization import ADMINISTRATOR_FILE, Access, NewToken
from tidings.service.tidings import Tidings

ALL_PARTS = frozenset(ServicePart)

HealthCheck = Callable[[], str | None]
"""Returns the problem of a part, or None."""
LivenessCheck = Callable[[], bool]
"""Returns whether a part works, or recovers by itself."""
PendingCheck = Callable[[], str | None]
"""Describes work in progress, or returns None."""


class Health:
    """The health checks of a service, by name."""

    def __init__(self) -> None:
        self._checks: dict[str, HealthCheck] = {}
        self._lives: dict[str, LivenessCheck] = {}

    def watch(self, name: str, check: HealthCheck, lives: LivenessCheck = lambda: True) -> None:
        """Add the checks of a part."""
        self._checks[name], self._lives[name] = check, lives

    def report(self) -> Mapping[str, str | None]:
        """Return the problem of each part, or None."""
        return {name: check() for name, check in self._checks.items()}

    def list_ended_parts(self) -> list[str]:
        """Return the parts that only a restart of the process brings back."""
        return [name for name, lives in self._lives.items() if not lives()]


class PendingWork:
    """The work that a service finishes before it ends."""

    def __init__(self) -> None:
        self._checks: list[PendingCheck] = []

    def watch(self, check: PendingCheck) -> None:
        """Add a description of work in progress."""
        self._checks.append(check)

    def count(self, count: Callable[[], int], noun: str) -> None:
        """Add work that can be counted."""
        self.watch(lambda: plural(number, noun) if (number := count()) else None)

    def describe(self) -> list[str]:
        """Describe all work in progress."""
        return [description for check in self._checks if (description := check())]


@dataclass(frozen=True, slots=True)
class ServiceContext:
    """A home folder, its settings, and the workers beside the requests.

    `following` replicates the metadata of another provider. `parts` are those that run in this process. `parsers` are
    the processes that parse untrusted bytes.
    """

    tidings: Tidings
    hub: Hub
    settings: Settings = field(default_factory=Settings)
    following: FollowWorker | None = None
    parts: frozenset[ServicePart] = ALL_PARTS
    health: Health = field(default_factory=Health)
    metrics: Metrics = field(default_factory=Metrics)
    pending: PendingWork = field(default_factory=PendingWork)
    parsers: ParserPool = field(default_factory=ParserPool)

    @property
    def access(self) -> Access:
        return Access(self.tidings.store)

    def create_first_token(self) -> NewToken | None:
        """Create the administrator's token in the home folder, unless there ever was one."""
        return self.access.make_first_administrator(self.settings.home / ADMINISTRATOR_FILE)

    @property
    def public_url(self) -> str | None:
        """The address at which other machines reach the service; with one, hubs push the feeds that are read."""
        return self.settings.public_url

    def includes(self, part: ServicePart) -> bool:
        return part in self.parts
