"""Feed formats, and content negotiation between them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from tidings.feeds.outbound.feed import Feed
from tidings.feeds.outbound.writers import render_atom, render_json_feed, render_rss1, render_rss2
from tidings.graphs.rdf.media_types import ATOM, JSON_FEED, RDF_XML, RSS


@dataclass(frozen=True, slots=True)
class Format:
    """A feed format: suffix of its URLs, media type, and further media types that select it."""

    suffix: str
    media_type: str
    render: Callable[[Feed], bytes]
    also: tuple[str, ...] = ()

    @property
    def content_type(self) -> str:
        return f"{self.media_type}; charset=utf-8"


FORMATS: Mapping[str, Format] = {
    made.suffix: made
    for made in (
        Format("atom", ATOM, render_atom, ("application/xml", "text/xml")),
        Format("rss", RSS, render_rss2),
        Format("rdf", RDF_XML, render_rss1),
        Format("json", JSON_FEED, render_json_feed, ("application/json",)),
    )
}
DEFAULT = FORMATS["atom"]


def negotiate_format(accept: str | None) -> Format:
    """Return the format that an Accept header prefers; Atom if it names none, which is better than an error."""
    wanted = sorted(_preferences(accept or ""), key=lambda each: -each[1])
    for media_type, quality in wanted:
        found = _of(media_type) if quality > 0 else None
        if found:
            return found
    return DEFAULT


def _preferences(accept: str) -> list[tuple[str, float]]:
    return [_preference(part) for part in accept.split(",")[:50]]


def _preference(part: str) -> tuple[str, float]:
    media_type, *parameters = (word.strip().lower() for word in part.split(";"))
    given = next((word[2:] for word in parameters if word.startswith("q=")), "1")
    try:
        return media_type, float(given)
    except ValueError:
        return media_type, 0.0


def _of(media_type: str) -> Format | None:
    return next((one for one in FORMATS.values() if media_type in (one.media_type, *one.also)), None)
