"""The algorithms by name: the naive one and the seven of paper 004, section 3."""

from __future__ import annotations

from collections.abc import Callable

from tidings.matching.algorithms.aguilera import Aguilera
from tidings.matching.algorithms.equality_preferred import EqualityPreferred
from tidings.matching.algorithms.fair_predicate import FairPredicate
from tidings.matching.algorithms.gough import Gough
from tidings.matching.algorithms.hanson import Hanson
from tidings.matching.algorithms.naive import Naive
from tidings.matching.algorithms.neon import Neon
from tidings.matching.algorithms.protocol import Algorithm
from tidings.matching.algorithms.quarantining import Quarantining

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
