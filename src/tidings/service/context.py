"""What the application works with: handed to each router, so that a new one needs no new parameter of `app_for`."""

from __future__ import annotations

from dataclasses import dataclass, field

from tidings.feeds.hub.hub import Hub
from tidings.metadata.replication.log_follower import FollowWorker
from tidings.operations.health import Health, PendingWork
from tidings.operations.metrics import Metrics
from tidings.operations.settings import ServicePart, Settings
from tidings.parsers.parser_pool import ParserPool
from tidings.service.authorization import Access
from tidings.service.tidings import Tidings

ALL_PARTS = frozenset(ServicePart)


@dataclass(frozen=True, slots=True)
class ServiceContext:
    """A home folder, how it is served, and what works beside the requests.

    `following` is what the metadata of another provider is followed with. `parts` are those that this process has.
    `parsers` are the processes that parse what was sent, while the application runs.
    """

    tidings: Tidings
    hub: Hub
    settings: Settings = field(default_factory=Settings)
    following: FollowWorker | None = None
    parts: frozenset[ServicePart] = ALL_PARTS
    health: Health = field(default_factory=Health)
    metrics: Metrics = field(default_factory=Metrics)
    under_way: PendingWork = field(default_factory=PendingWork)
    parsers: ParserPool = field(default_factory=ParserPool)

    @property
    def access(self) -> Access:
        """The tokens."""
        return Access(self.tidings.store)

    @property
    def public_url(self) -> str | None:
        """Where others than this machine reach the service; then hubs are asked to push the feeds that are read."""
        return self.settings.public_url

    def has(self, part: ServicePart) -> bool:
        return part in self.parts
