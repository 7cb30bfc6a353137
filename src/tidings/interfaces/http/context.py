"""What the application works with: handed to each router, so that a new one needs no new parameter of `app_for`."""

from __future__ import annotations

from dataclasses import dataclass, field

from tidings.backbone.follow_loop import FollowLoop
from tidings.feeds.hub import Hub
from tidings.operating.health import Health
from tidings.operating.metrics import Metrics
from tidings.operating.settings import Part, Settings
from tidings.operating.under_way import UnderWay
from tidings.publications.parser_pool import ParserPool
from tidings.service import Tidings
from tidings.service.access import Access

EVERYTHING = frozenset(Part)


@dataclass(frozen=True, slots=True)
class Context:
    """A home folder, how it is served, and what works beside the requests.

    `following` is what the metadata of another provider is followed with. `parts` are those that this process has.
    `parsers` are the processes that parse what was sent, while the application runs.
    """

    tidings: Tidings
    hub: Hub
    settings: Settings = field(default_factory=Settings)
    following: FollowLoop | None = None
    parts: frozenset[Part] = EVERYTHING
    health: Health = field(default_factory=Health)
    metrics: Metrics = field(default_factory=Metrics)
    under_way: UnderWay = field(default_factory=UnderWay)
    parsers: ParserPool = field(default_factory=ParserPool)

    @property
    def access(self) -> Access:
        """The tokens."""
        return Access(self.tidings.store)

    @property
    def public_url(self) -> str | None:
        """Where others than this machine reach the service; then hubs are asked to push the feeds that are read."""
        return self.settings.public_url

    def has(self, part: Part) -> bool:
        return part in self.parts
