"""After ads: boolean expressions of 1 to 56 predicates over 122 attributes, composed of shared subexpressions.

An advertiser's expression is

    <place> and <device> and <audience> and ... and (<offer> or <offer> or <offer>)

where each <part> is a conjunction of one to four predicates from a pool, popular parts (by Zipf's law) in many
expressions. An expression has parts of one to ten themes and, in a third of the cases, two to four alternatives of an
eleventh. So it has at most 10 * 4 + 4 * 4 = 56 predicates, and at most four clauses: one for each alternative.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from benchmarks.workloads.draws import picked, zipf
from benchmarks.workloads.events import Attribute, Events, table
from benchmarks.workloads.forms import Subscriptions, Workload
from benchmarks.workloads.runs import Integers, places, starts_of
from tidings.matching.compiler.plan import Relation

THEMES = 10
OFFER = THEMES
"""Number of the theme of the alternatives."""
SIZES = np.array([11] * THEMES + [12])
"""Attributes of each theme."""
ATTRIBUTES = tuple(Attribute(f"ad{at:03d}") for at in range(SIZES.sum()))
POOL = 500
"""Parts of each theme."""
LONGEST = 4
ALTERNATIVES = 4
NUMBERS = 1000
NUMERIC = np.arange(len(ATTRIBUTES)) % 3 == 0
"""Attributes with numbers from 0 to 999 and interval tests; the others have few values and equality tests."""


class Pool(NamedTuple):
    """Parts: part p has the tests `starts[p]:starts[p + 1]`; those of theme t start at p = t * POOL."""

    starts: Integers
    attribute: Integers
    low: Integers
    high: Integers


def ads(subscriptions: int, events: int, seed: int = 10) -> Workload:
    rng = np.random.default_rng(seed)
    values = np.where(NUMERIC, NUMBERS, rng.integers(20, 500, len(ATTRIBUTES)))
    pool = _pool(rng, values)
    clauses, owner = _clauses(rng, subscriptions)
    return Workload("ads", _subscriptions(pool, clauses, owner, subscriptions), _events(rng, values, events))


def _pool(rng: np.random.Generator, values: Integers) -> Pool:
    lengths = rng.integers(1, LONGEST + 1, (len(SIZES), POOL))
    first = starts_of(SIZES)
    of_theme = [
        first[theme] + np.nonzero(picked(rng, lengths[theme], size))[1] for theme, size in enumerate(SIZES)
    ]
    attribute = np.concatenate(of_theme)
    low = _value(rng, values, attribute)
    width = rng.integers(NUMBERS // 10, NUMBERS // 2, len(attribute))
    return Pool(starts_of(lengths.ravel()), attribute, low, np.where(NUMERIC[attribute], low + width, low))


def _value(rng: np.random.Generator, values: Integers, attribute: Integers) -> Integers:
    """Draw a value for each attribute: numbers uniformly; of few values, the low ones more often."""
    share = rng.random(len(attribute))
    number, name = share * values[attribute], (values[attribute] + 1.0) ** share - 1
    return np.where(NUMERIC[attribute], number, name).astype(np.int64)


def _clauses(rng: np.random.Generator, rows: int) -> tuple[npt.NDArray[np.int16], npt.NDArray[np.int32]]:
    """Return for each clause its part of each theme, or -1 for none, and its expression."""
    themes = 1 + rng.binomial(THEMES - 1, rng.beta(1.5, 3, rows))
    offers = np.where(rng.random(rows) < 1 / 3, rng.integers(2, ALTERNATIVES + 1, rows), 0)
    part = (np.arange(len(SIZES)) * POOL + zipf(rng, POOL, (rows, len(SIZES)))).astype(np.int16)
    part[:, :OFFER][~picked(rng, themes, THEMES)] = -1
    part[offers == 0, OFFER] = -1
    owner = np.repeat(np.arange(rows, dtype=np.int32), np.maximum(1, offers))
    clauses, number = part[owner], np.arange(len(owner)) - np.searchsorted(owner, owner)
    several = clauses[:, OFFER] >= 0
    offer = clauses[several, OFFER] - OFFER * POOL + number[several]
    clauses[several, OFFER] = OFFER * POOL + offer % POOL
    return clauses, owner


def _subscriptions(
    pool: Pool, clauses: npt.NDArray[np.int16], owner: npt.NDArray[np.int32], size: int
) -> Subscriptions:
    lengths = np.where(clauses >= 0, np.diff(pool.starts)[clauses], 0).sum(axis=1)
    tests = places(pool.starts, clauses[clauses >= 0])
    attribute = pool.attribute[tests]
    return Subscriptions(
        ATTRIBUTES,
        starts_of(lengths),
        attribute.astype(np.int32),
        np.where(NUMERIC[attribute], Relation.BETWEEN, Relation.EQ).astype(np.int8),
        pool.low[tests],
        pool.high[tests],
        owner,
        size,
    )


def _events(rng: np.random.Generator, values: Integers, rows: int) -> Events:
    """Generate events, each with a random four fifths of the attributes."""
    cells = np.tile(np.arange(len(ATTRIBUTES)), rows)
    value = _value(rng, values, cells).reshape(rows, len(ATTRIBUTES))
    return table(ATTRIBUTES, value, rng.random(value.shape) < 0.8)
