"""The algorithms by name: the naive one and the seven of paper 004, section 3."""

from __future__ import annotations

from collections.abc import Callable

from research.events.aguilera import Aguilera
from research.events.equality_preferred import EqualityPreferred
from research.events.fair_predicate import FairPredicate
from research.events.gough import Gough
from research.events.hanson import Hanson
from research.events.naive import Naive
from research.events.neon import Neon
from research.events.protocol import Algorithm
from research.events.quarantining import Quarantining

ALGORITHMS: dict[str, Callable[[], Algorithm]] = {
    "naive": Naive,
    "fair predicate": FairPredicate,
    "equality-preferred": EqualityPreferred,
    "quarantining": Quarantining,
    "hanson": Hanson,
    "gough": Gough,
    "aguilera": Aguilera,
    "neon": Neon,
}
