"""What somebody sends, into the journal: the same for those who send it over HTTP and for those who paste it.

    found = offered(sent, schema)          what it is, each checked
    outcomes = take(store, sent, found)    where each of them stands now, or why it does not

What belongs together is taken as a whole or not at all. Of many that stand for themselves each has its outcome.
"""

from __future__ import annotations

from collections.abc import Sequence

from tidings.errors import InputError
from tidings.model import Publication
from tidings.publications.rdf_media_types import plain
from tidings.service.offering import LINES, Offered, Sent, is_bulk
from tidings.service.publishing import CHUNK
from tidings.store import Appended, Store

Outcome = Appended | InputError


def take(store: Store, sent: Sent, found: Sequence[Offered]) -> list[Outcome]:
    """Make it durable: an outcome for each, in the order in which they came."""
    good = [one for one in found if isinstance(one, Publication)]
    if not is_bulk(sent):
        return [*store.journal.append_all(good)]
    if sent.id is not None:
        raise InputError("an id is for one publication", where="id", hint="?id_field= names where ids are")
    chunks = range(0, len(good), CHUNK)
    taken = iter([one for start in chunks for one in store.journal.offer(good[start : start + CHUNK])])
    return [one if isinstance(one, InputError) else next(taken) for one in found]


def lines_of(sent: Sent) -> list[int] | None:
    """The numbers of the lines that the outcomes are of, counted from one; none if it is not taken line by line."""
    if plain(sent.media_type) not in LINES:
        return None
    return [number for number, line in enumerate(sent.body.split(b"\n"), start=1) if line.strip()]
