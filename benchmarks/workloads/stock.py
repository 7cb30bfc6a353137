"""S, stock quotes: paper 003, section 5.1, as events."""

from __future__ import annotations

import numpy as np

from benchmarks.workloads.draws import drawn
from benchmarks.workloads.events import Attribute, Events, table
from benchmarks.workloads.forms import Subscriptions, Workload, conjunctions
from benchmarks.workloads.runs import Integers
from tidings.matching.compiler.plan import Relation

FIELDS = ("symbol", "price", "open", "high", "low", "close", "volume")
TESTS = {0: Relation.EQ, 1: Relation.GT, 2: Relation.LT, 3: Relation.GT, 6: Relation.GT}
"""Fields tested by a subscription, and the relations."""

VOLUMES = 1_000_000
SPREAD = 0.02


def stock(
    subscriptions: int,
    events: int,
    symbols: int = 5000,
    ease: float = 0.0,
    skewed: bool = False,
    seed: int = 3,
    name: str = "",
) -> Workload:
    """Generate subscriptions with one equality of 5,000 symbols and four ranges; quotes have seven fields.

        symbol = 'S0017' and price > 20133 and open < 19876 and high > 20210 and volume > 431187

    Prices (in cents) spread by two percent around each symbol's own. `ease` moves all bounds towards
    matching by that many spreads: with 0, 9% of a symbol's subscriptions match, with higher values more. `skewed` draws
    symbols by Zipf's law, in subscriptions and in quotes.
    """
    rng = np.random.default_rng(seed)
    names = tuple(f"S{code:04d}" for code in range(symbols))
    attributes = (Attribute("symbol", names), *(Attribute(name) for name in FIELDS[1:]))
    level = rng.integers(1000, 50000, symbols)
    subscribed = drawn(rng, symbols, subscriptions, skewed)
    clauses = _subscriptions(attributes, _bounds(rng, subscribed, level[subscribed], ease))
    quoted = drawn(rng, symbols, events, skewed)
    title = name or ("stock, Zipf" if skewed else "stock")
    return Workload(title, clauses, _quotes(rng, attributes, quoted, level[quoted]))


def _subscriptions(attributes: tuple[Attribute, ...], bounds: Integers) -> Subscriptions:
    rows = len(bounds)
    attribute, relation = np.tile(list(TESTS), (rows, 1)), np.tile(list(TESTS.values()), (rows, 1))
    return conjunctions(attributes, np.full(rows, len(TESTS)), attribute, relation, bounds)


def _around(rng: np.random.Generator, level: Integers, shift: float = 0.0) -> Integers:
    moved = level * (1 + SPREAD * (shift + rng.standard_normal(len(level))))
    return np.maximum(1, moved.astype(np.int64))


def _bounds(rng: np.random.Generator, symbol: Integers, level: Integers, ease: float) -> Integers:
    price, opening, high = _around(rng, level, -ease), _around(rng, level, ease), _around(rng, level, -ease)
    volume = (rng.integers(1, VOLUMES, len(symbol)) * 2.0**-ease).astype(np.int64)
    return np.column_stack([symbol, price, opening, high, volume])


def _quotes(
    rng: np.random.Generator, attributes: tuple[Attribute, ...], symbol: Integers, level: Integers
) -> Events:
    price, opening, close = (_around(rng, level) for _ in range(3))
    high = np.maximum(price, opening) + rng.integers(0, 50, len(symbol))
    low = np.maximum(1, np.minimum(price, opening) - rng.integers(0, 50, len(symbol)))
    volume = rng.integers(1, VOLUMES, len(symbol))
    return table(attributes, np.column_stack([symbol, price, opening, high, low, close, volume]))
