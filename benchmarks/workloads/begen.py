"""After BE-Gen: many attributes, 5 to 30 predicates, a share of equalities, a given probability of a match.

Attributes are in groups of a hundred. A subscription tests one group and an event has one, popular groups (by Zipf's
law) more often than others. Within a group every predicate holds with the same probability s, chosen so that a
subscription of 5 to 30 predicates matches an event with the given probability. The width of a range is s of the domain.
An equality holds with probability s because one value of its attribute is frequent.
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
"""Values of an attribute with range tests."""
VALUES = 50
"""Values of an attribute with equality tests; value 0 is the frequent one."""
GROUP_EXPONENT = 1.5


def begen(
    subscriptions: int, events: int, attributes: int, equality: float, probability: float, seed: int = 9
) -> Workload:
    """Generate a workload. `attributes` is a multiple of 100, `equality` the share of them with equality tests."""
    rng = np.random.default_rng(seed)
    names = tuple(Attribute(f"b{at:05d}") for at in range(attributes))
    popularity = shares(attributes // GROUP, GROUP_EXPONENT)
    holds = predicate_probability(probability / float((popularity**2).sum()))
    kinds = _compared_by_equality(attributes, equality)
    clauses = _subscriptions(rng, names, popularity, kinds, holds, subscriptions)
    publications = _events(rng, names, popularity, kinds, holds, events)
    title = f"BE-Gen, {attributes:,} attributes, {equality:.0%} equalities, {probability:.1%} match"
    return Workload(title, clauses, publications)


def predicate_probability(match: float) -> float:
    """Return the s for which the mean of s**k, over k from 5 to 30, is `match`."""
    if not 0 < match < 1:
        raise ValueError(f"no probability of a predicate gives a match in {match:.3g} of the cases")
    low, high, counts = 0.0, 1.0, np.arange(FEWEST, MOST + 1)
    while high - low > 1e-9:
        middle = (low + high) / 2
        low, high = (middle, high) if float((middle**counts).mean()) < match else (low, middle)
    return low


def _compared_by_equality(attributes: int, share: float) -> npt.NDArray[np.bool_]:
    """Choose attributes evenly, so that every group has its share."""
    return np.diff(np.floor(np.arange(attributes + 1) * share)) > 0


def _frequent_share(holds: float) -> float:
    """Return the probability of the frequent value so that two draws are equal with probability `holds`.

    With x for the frequent value, and the other values equally likely: x**2 + (1 - x)**2 / (VALUES - 1) = holds.
    """
    others = VALUES - 1
    return (1 + math.sqrt(max(0.0, 1 - VALUES * (1 - others * holds)))) / VALUES


def _values(rng: np.random.Generator, equal: npt.NDArray[np.bool_], holds: float) -> Integers:
    """Draw values of attributes: one of few, with a frequent one, or any value of the domain."""
    frequent, size = rng.random(len(equal)) < _frequent_share(holds), len(equal)
    few = np.where(frequent, 0, rng.integers(1, VALUES, size))
    return np.where(equal, few, rng.integers(0, DOMAIN, size))


def _subscriptions(
    rng: np.random.Generator,
    names: tuple[Attribute, ...],
    popularity: npt.NDArray[np.float64],
    kinds: npt.NDArray[np.bool_],
    holds: float,
    rows: int,
) -> Subscriptions:
    lengths = rng.integers(FEWEST, MOST + 1, rows)
    group = rng.choice(len(popularity), rows, p=popularity)
    attribute = np.repeat(group * GROUP, lengths) + np.nonzero(picked(rng, lengths, GROUP))[1]
    equal, width = kinds[attribute], round(holds * DOMAIN)
    low = np.where(equal, _values(rng, equal, holds), rng.integers(0, DOMAIN - width + 1, len(attribute)))
    relation = np.where(equal, Relation.EQ, Relation.BETWEEN)
    return conjunctions(names, lengths, attribute, relation, low, np.where(equal, low, low + width - 1))


def _events(
    rng: np.random.Generator,
    names: tuple[Attribute, ...],
    popularity: npt.NDArray[np.float64],
    kinds: npt.NDArray[np.bool_],
    holds: float,
    rows: int,
) -> Events:
    """Generate events with all attributes of one group."""
    group = rng.choice(len(popularity), rows, p=popularity)
    attribute = (group[:, None] * GROUP + np.arange(GROUP)).ravel()
    starts = starts_of(np.full(rows, GROUP))
    return Events(names, starts, attribute.astype(np.int32), _values(rng, kinds[attribute], holds))
