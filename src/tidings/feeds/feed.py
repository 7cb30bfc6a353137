"""A feed as it is handed to the formats: what it says of itself, where its other pages are, and its entries."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime

from tidings.feeds.entries import Entry

AUTHOR = "Tidings"


@dataclass(frozen=True, slots=True)
class Links:
    """Where a page of a feed is, and where the others are (RFC 5005); `hub` is WebSub's."""

    self: str
    current: str
    hub: str
    home: str
    prev_archive: str | None = None
    next_archive: str | None = None

    def related(self) -> Iterator[tuple[str, str]]:
        """The relations that formats and the Link header name, with their addresses."""
        yield "self", self.self
        yield "hub", self.hub
        if self.current != self.self:
            yield "current", self.current
        if self.prev_archive:
            yield "prev-archive", self.prev_archive
        if self.next_archive:
            yield "next-archive", self.next_archive


@dataclass(frozen=True, slots=True)
class Feed:
    """A page of a feed, entries newest first. An archive is one that will not change any more."""

    id: str
    title: str
    description: str
    updated: datetime
    links: Links
    entries: tuple[Entry, ...]
    archive: bool = False


def rfc3339(moment: datetime) -> str:
    """The way Atom, JSON Feed and RDF write instants."""
    return moment.astimezone(UTC).isoformat(timespec="seconds").replace("+00:00", "Z")
