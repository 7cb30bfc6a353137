"""Triggering rules that were asked about what is stored before they are stored themselves, by many at once.

Meanwhile documents may have changed. The log says which: what was found in those does not count, and they are asked
once more, in the transaction that adds the rules.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass

from sqlalchemy import Connection

from tidings.metadata.as_json import document_of
from tidings.metadata.resources import Resource
from tidings.store import atom_rows, bulk, counters, metadata_log
from tidings.store.metadata_tables import APPLIED
from tidings.store.rule_tables import rule_results

PAIRS = 50_000
"""How many results are held in memory at once."""

Found = tuple[str, int]
"""The URI of a resource, and the place of a rule among those that were asked."""


@dataclass(frozen=True, slots=True)
class Evaluated:
    """Rules by their keys, and which resources satisfy them among those that were stored at a position or later.

    `pairs` can be gone through again and again, and `ask` asks the same rules about other resources.
    """

    position: int
    keys: Sequence[str]
    pairs: Iterable[Found]
    ask: Callable[[Collection[Resource]], Iterable[Found]]


def stands(connection: Connection, evaluated: Evaluated, new: Set[str]) -> bool:
    """Whether it can be used for rules that are new now: all of them were asked, and the log says what has changed."""
    return metadata_log.first(connection) <= evaluated.position + 1 and not new - frozenset(evaluated.keys)


def put(connection: Connection, evaluated: Evaluated, numbers: Mapping[str, int]) -> None:
    """Materialise the results of new rules, whose numbers are given by their keys."""
    applied = counters.current(connection, APPLIED)
    changed = metadata_log.documents(connection, evaluated.position, applied)
    uris = [uri for each in atom_rows.of_documents(connection, changed).values() for uri in each]
    again = [each.resource for each in atom_rows.load(connection, uris).values()]
    given = [numbers.get(key) for key in evaluated.keys]
    for found in (_unchanged(evaluated.pairs, changed), evaluated.ask(again) if again else ()):
        rows = ((uri, number) for uri, place in found if (number := given[place]) is not None)
        for piece in bulk.pieces(rows, PAIRS):
            bulk.insert_rows(connection, rule_results, piece)


def _unchanged(pairs: Iterable[Found], changed: Collection[str]) -> Iterator[Found]:
    return (pair for pair in pairs if document_of(pair[0]) not in changed) if changed else iter(pairs)
