"""Cardinalities as people and tools write them."""

from __future__ import annotations

import re

from tidings.objects.model import ANY, Cardinality, End

ACCEPTED = "such as 1, 0..1, *, 1..*, 2..5"
_MANY = frozenset(("*", "n", "m", "many", "-1"))
_RANGE = re.compile(r"\s*(?:([0-9]{1,9})\s*\.\.\.?\s*)?([0-9]{1,9}|\*|[nNmM]|many|-1)\s*")


def read_cardinality(text: str) -> Cardinality | None:
    """The cardinality that a text says; None if it says none."""
    found = _RANGE.fullmatch(text)
    if found is None:
        return None
    least = None if found[1] is None else int(found[1])
    if found[2].lower() in _MANY:
        return Cardinality(least or 0)
    most = int(found[2])
    made = Cardinality(most if least is None else least, most)
    return made if made.least <= most and most > 0 else None


_CROWS_FEET = {
    "||": Cardinality(1, 1),
    "|o": Cardinality(0, 1),
    "o|": Cardinality(0, 1),
    "}o": ANY,
    "o{": ANY,
    "}|": Cardinality(1),
    "|{": Cardinality(1),
    "}": ANY,
    "{": ANY,
    "*": Cardinality(0, 1),
}


def drawn_cardinality(head: str) -> Cardinality:
    """What the head of a line says beside it: crow's feet, and that a part belongs to one whole at most."""
    return _CROWS_FEET.get(head, ANY)


def owning_end(source: Cardinality, target: Cardinality) -> End | None:
    """Whose table has the other's key; None for many to many. One to one it is the source's."""
    if target.is_one:
        return End.SOURCE
    return End.TARGET if source.is_one else None
