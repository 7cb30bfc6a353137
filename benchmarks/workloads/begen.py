"""Like BE-Gen: many attributes, 5 to 30 predicates, a share of equalities, a wanted probability of a match.

How the probability is brought about: attributes come in groups of a hundred; a subscription asks about one group and
an event speaks of one, popular groups (by Zipf's law) more often than others. Within a group every predicate holds with
the same probability s, chosen so that a subscription of 5 to 30 of them matches an event as often as wanted. A
range is s of the domain wide. An equality holds with probability s because one value of its attribute is usual.
"""

from __future__ import annotations

import math

import numpy as np
import numpy.typing as npt

from benchmarks.workloads.draws import picked, shares
from benchmarks.workloads.events import Attribute, Events
from benchmarks.workloads.forms import Subscriptions, Workload, conjunctions
from benchmarks.workloads.runs import Integers, starts_of
from tidings.matching.compiler.plan import Relation

GROUP = 100
FEWEST, MOST = 5, 30
DOMAIN = 10_000
"""Values of an attribute that is compared by ranges."""
VALUES = 50
"""Values of one that is compared by equality; value 0 is the usual one."""
GROUP_EXPONENT = 1.5


def begen(
    subscriptions: int, events: int, attributes: int, equality: float, probability: float, seed: int = 9
) -> Workload:
    """`attributes` is a multiple of 100; `equality` the share of them that is compared by equality."""
    rng = np.random.default_rng(seed)
    names = tuple(Attribute(f"b{at:05d}") for at in range(attributes))
    popular = shares(attributes // GROUP, GROUP_EXPONENT)
    holds = predicate_probability(probability / float((popular**2).sum()))
    kinds = _compared_by_equality(attributes, equality)
    asked = _asked(rng, names, popular, kinds, holds, subscriptions)
    published = _published(rng, names, popular, kinds, holds, events)
    title = f"BE-Gen, {attributes:,} attributes, {equality:.0%} equalities, {probability:.1%} match"
    return Workload(title, asked, published)


def predicate_probability(match: float) -> float:
    """The s for which s**k, over k from 5 to 30 equally often, is `match` on average."""
    if not 0 < match < 1:
        raise ValueError(f"no probability of a predicate gives a match in {match:.3g} of the cases")
    low, high, counts = 0.0, 1.0, np.arange(FEWEST, MOST + 1)
    while high - low > 1e-9:
        middle = (low + high) / 2
        low, high = (middle, high) if float((middle**counts).mean()) < match else (low, middle)
    return low


def _compared_by_equality(attributes: int, share: float) -> npt.NDArray[np.bool_]:
    """Spread evenly, so that every group has its share."""
    return np.diff(np.floor(np.arange(attributes + 1) * share)) > 0


def _usual(holds: float) -> float:
    """How often the usual value has to be drawn so that two draws are equal with probability `holds`.

    With x for the usual value and the rest shared evenly by the others: x**2 + (1 - x)**2 / (VALUES - 1) = holds.
    """
    others = VALUES - 1
    return (1 + math.sqrt(max(0.0, 1 - VALUES * (1 - others * holds)))) / VALUES


def _values(rng: np.random.Generator, equal: npt.NDArray[np.bool_], holds: float) -> Integers:
    """Values of attributes: one of few with a usual one, or anywhere in the domain."""
    usual, size = rng.random(len(equal)) < _usual(holds), len(equal)
    few = np.where(usual, 0, rng.integers(1, VALUES, size))
    return np.where(equal, few, rng.integers(0, DOMAIN, size))


def _asked(
    rng: np.random.Generator,
    names: tuple[Attribute, ...],
    popular: npt.NDArray[np.float64],
    kinds: npt.NDArray[np.bool_],
    holds: float,
    rows: int,
) -> Subscriptions:
    lengths = rng.integers(FEWEST, MOST + 1, rows)
    group = rng.choice(len(popular), rows, p=popular)
    attribute = np.repeat(group * GROUP, lengths) + np.nonzero(picked(rng, lengths, GROUP))[1]
    equal, width = kinds[attribute], round(holds * DOMAIN)
    low = np.where(equal, _values(rng, equal, holds), rng.integers(0, DOMAIN - width + 1, len(attribute)))
    relation = np.where(equal, Relation.EQ, Relation.BETWEEN)
    return conjunctions(names, lengths, attribute, relation, low, np.where(equal, low, low + width - 1))


def _published(
    rng: np.random.Generator,
    names: tuple[Attribute, ...],
    popular: npt.NDArray[np.float64],
    kinds: npt.NDArray[np.bool_],
    holds: float,
    rows: int,
) -> Events:
    """Events that give all attributes of a group."""
    group = rng.choice(len(popular), rows, p=popular)
    attribute = (group[:, None] * GROUP + np.arange(GROUP)).ravel()
    starts = starts_of(np.full(rows, GROUP))
    return Events(names, starts, attribute.astype(np.int32), _values(rng, kinds[attribute], holds))
