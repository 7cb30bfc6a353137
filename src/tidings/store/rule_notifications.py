"""Notifications of rules over metadata: what entered their results, changed inside them, and left.

They are written in the transaction that moves the results, so each move is told once: nothing has to be looked up, and
the position of the log (with the number of a change of rules) makes the id.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from typing import NamedTuple

from sqlalchemy import Connection, select

from tidings.model import Reason
from tidings.store import bulk, notifications, sequences
from tidings.store.found import Found
from tidings.store.rule_filter import Outcome
from tidings.store.rule_tables import metadata_rules


class Move(NamedTuple):
    """What a resource did in the results of a rule. They order by resource, then by rule."""

    uri: str
    rule: str
    kind: str


Reasons = Callable[[Sequence[Move]], Mapping[Move, Sequence[Reason]]]
"""Finds the reasons of moves."""

PART = 5_000
"""How many moves are explained and written at once: where many rules ask for much, a batch has millions."""


def moves(outcome: Outcome) -> list[Move]:
    """All moves, in the order in which they are told."""
    return sorted(_moves(outcome))


def _moves(outcome: Outcome) -> Iterator[Move]:
    for kind in ("entered", "changed", "left"):
        for rule, uri in getattr(outcome, kind):
            yield Move(uri, rule, kind)


def tell(connection: Connection, at: str, told: Sequence[Move], reasons: Reasons, moment: datetime) -> None:
    """Tell the owners of rules, or hold it for those who accept a delay. `at` is different each time."""
    rules = _owners(connection, {move.rule for move in told})
    delays = {(rule, owner): within for rule, (owner, within) in rules.items() if within is not None}
    numbers = sequences.lock(connection, {owner for owner, _ in rules.values()})
    before = dict(numbers)
    for part in bulk.pieces(told, PART):
        why = reasons(part)
        found = {_id(at, move): _found(move, rules[move.rule][0], why[move]) for move in part}
        notifications.write_part(connection, found, numbers, delays, moment)
    sequences.advance(connection, numbers, before)


def _found(move: Move, owner: str, because: Sequence[Reason]) -> Found:
    return Found(move.uri, move.rule, owner, because, kind=move.kind)


def _owners(connection: Connection, rules: Iterable[str]) -> dict[str, tuple[str, int | None]]:
    rows = bulk.select_among(connection, _OWNED, metadata_rules.c.name, sorted(rules))
    return {name: (owner, within) for name, owner, within in rows}


_OWNED = select(metadata_rules.c.name, metadata_rules.c.owner, metadata_rules.c.within)


def _id(at: str, move: Move) -> str:
    named = f"{at}:{len(move.uri)}:{move.uri}{move.rule}".encode()
    return "m-" + hashlib.blake2b(named, digest_size=10).hexdigest()
