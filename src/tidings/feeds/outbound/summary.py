"""Summaries of publications for feeds: title, link, text and date.

Each kind of publications knows where these are. What a publication lacks is left out; its entry is then titled by the
reasons of the match.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import datetime

from tidings.errors import PublicationError
from tidings.graphs.feed_formats.dates import instant
from tidings.kinds import PublicationSummary, kind_of
from tidings.model import Publication


def summarize_publication(publication: Publication | None, about: Sequence[str] = ()) -> PublicationSummary:
    """Summarize a publication; `about` names resources that the match is about.

    The summary is empty for a publication that is not in the journal, because the stream reads a folder, and for one
    that today's limits would reject.
    """
    if publication is None:
        return PublicationSummary()
    try:
        return kind_of(publication.media_type).summarize(publication, about)
    except PublicationError:
        return PublicationSummary()


def first_date(texts: Iterable[str]) -> datetime | None:
    """Return the first of the texts that is a date."""
    return next((date for text in texts if (date := instant(text))), None)
