"""Workloads: subscriptions and events as columns, and the same ones as texts, plans, dictionaries and JSON.

Everything is generated from a seed in NumPy, so that millions of subscriptions are ready in seconds and every engine is
given the same ones in the form it likes best.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from tidings.atoms import AtomKind, Atoms, Column, Event
from tidings.compiler.plan import ClauseBlock, Compiled, Numbers, Operands, Plan, Relation, Test, TestShape
from tidings.values import Kind

Integers = npt.NDArray[np.int64]
SIGNS = {Relation.EQ: "=", Relation.LT: "<", Relation.LE: "<=", Relation.GT: ">", Relation.GE: ">="}


@dataclass(frozen=True)
class Attribute:
    """A numeric attribute, or with `names` one whose integers stand for those strings."""

    name: str
    names: tuple[str, ...] = ()

    @property
    def kind(self) -> Kind:
        return Kind.STRING if self.names else Kind.NUMBER

    def value(self, code: int) -> str | int:
        return self.names[code] if self.names else code

    def literal(self, code: int) -> str:
        return f"'{self.names[code]}'" if self.names else str(code)


@dataclass(frozen=True)
class Subscriptions:
    """Row i asks, for each attribute a with a relation, that the event's value stands so to `bound[i, a]`."""

    attributes: tuple[Attribute, ...]
    relation: npt.NDArray[np.int8]
    bound: Integers

    def __len__(self) -> int:
        return len(self.relation)

    def part(self, rows: slice) -> Subscriptions:
        return replace(self, relation=self.relation[rows], bound=self.bound[rows])

    def compiled(self, first: int = 0) -> Compiled:
        """As an index takes them: one block of columns for each combination of attributes and relations."""
        codes = self.relation.astype(np.int64) @ (16 ** np.arange(self.relation.shape[1], dtype=np.int64))
        order = np.argsort(codes, kind="stable").astype(np.int32)
        _, starts = np.unique(codes[order], return_index=True)
        blocks = tuple(self._block(rows) for rows in np.split(order, starts[1:]))
        return Compiled(self._table(first), blocks, (), ())

    def _block(self, rows: npt.NDArray[np.int32]) -> ClauseBlock:
        used = np.flatnonzero(self.relation[rows[0]])
        relations = [Relation(int(self.relation[rows[0], at])) for at in used]
        attributes = [self.attributes[at] for at in used]
        shape = tuple(
            TestShape(Column(each.name), relation, each.kind)
            for each, relation in zip(attributes, relations, strict=True)
        )
        bounds = (self.bound[rows, at] for at in used)
        operands = tuple(_operands(each, bound) for each, bound in zip(attributes, bounds, strict=True))
        return ClauseBlock(shape, operands, rows)

    def _table(self, first: int) -> pa.Table:
        """Ids, subscribers and texts as a table. A text nobody reads in a benchmark is left empty."""
        ids = pc.binary_join_element_wise("s", pc.cast(np.arange(first, first + len(self)), pa.string()), "")
        constant = {"subscriber": "somebody", "language": "predicates", "text": ""}
        columns = {name: pa.repeat(value, len(self)) for name, value in constant.items()}
        return pa.table({"id": ids, **columns})

    def plans(self) -> Iterator[tuple[str, Plan]]:
        """One by one, for the algorithms in plain Python."""
        for row in range(len(self)):
            yield f"s{row}", Plan((tuple(Test(shape, value) for shape, value, _ in self._predicates(row)),))

    def texts(self) -> Iterator[str]:
        for row in range(len(self)):
            yield " and ".join(text for _, _, text in self._predicates(row))

    def _predicates(self, row: int) -> Iterator[tuple[TestShape, Any, str]]:
        for attribute, code, bound in zip(
            self.attributes, self.relation[row].tolist(), self.bound[row].tolist(), strict=True
        ):
            if code:
                relation = Relation(code)
                shape = TestShape(Column(attribute.name), relation, attribute.kind)
                text = f"{attribute.name} {SIGNS[relation]} {attribute.literal(bound)}"
                yield shape, attribute.value(bound), text


def _operands(attribute: Attribute, bounds: Integers) -> Operands:
    if attribute.names:
        names = pa.array([name.encode() for name in attribute.names], pa.binary())
        return Operands(names.take(pa.array(bounds)))
    return Operands(Numbers(bounds.astype(np.float64), np.zeros(len(bounds), np.int64)))


@dataclass(frozen=True)
class Events:
    """Row i has the value `value[i, a]` for each attribute a that is present."""

    attributes: tuple[Attribute, ...]
    present: npt.NDArray[np.bool_]
    value: Integers

    def __len__(self) -> int:
        return len(self.present)

    def first(self, count: int) -> Events:
        return replace(self, present=self.present[:count], value=self.value[:count])

    @cached_property
    def atoms(self) -> Atoms:
        """As a decoder hands them over: the atoms of one event after another, strings as places in a text."""
        rows, columns = np.nonzero(self.present)
        starts = np.zeros(len(self) + 1, np.int64)
        np.cumsum(self.present.sum(axis=1), out=starts[1:])
        kind = np.array([AtomKind.STRING if a.names else AtomKind.INTEGER for a in self.attributes], np.uint8)
        payload, length = self.value[rows, columns].copy(), np.zeros(len(rows), np.int32)
        text = bytearray()
        for at, attribute in enumerate(self.attributes):
            if attribute.names:
                mine = columns == at
                places, lengths = _laid_out(attribute.names, text)
                length[mine] = lengths[payload[mine]]
                payload[mine] = places[payload[mine]]
        names = tuple(a.name for a in self.attributes)
        data = np.frombuffer(bytes(text), np.uint8)
        return Atoms(names, starts, columns.astype(np.int32), kind[columns], payload, length, data)

    def dictionaries(self) -> Iterator[dict[str, str | int]]:
        for present, values in zip(self.present.tolist(), self.value.tolist(), strict=True):
            yield {
                a.name: a.value(value)
                for a, here, value in zip(self.attributes, present, values, strict=True)
                if here
            }

    def readable(self) -> list[Event]:
        return [{name: (value,) for name, value in event.items()} for event in self.dictionaries()]

    def json_lines(self) -> bytes:
        encode: Callable[[Any], str] = json.JSONEncoder(separators=(",", ":")).encode
        lines = (encode({"id": f"e{row}", **event}) for row, event in enumerate(self.dictionaries()))
        return "\n".join(lines).encode() + b"\n"


def _laid_out(names: Sequence[str], text: bytearray) -> tuple[Integers, npt.NDArray[np.int32]]:
    """Append the names to a text; where each begins and how long it is."""
    encoded = [name.encode() for name in names]
    lengths = np.array([len(each) for each in encoded], np.int32)
    places = len(text) + np.concatenate(([0], np.cumsum(lengths)[:-1])).astype(np.int64)
    text.extend(b"".join(encoded))
    return places, lengths


@dataclass(frozen=True)
class Workload:
    name: str
    subscriptions: Subscriptions
    events: Events


PAPER_ATTRIBUTES = (
    *(Attribute(f"s{at}", tuple(f"value{code:03d}" for code in range(200))) for at in range(3)),
    *(Attribute(f"n{at}") for at in range(3)),
)
PAPER_VALUES = np.array([200, 200, 200, 5000, 5000, 5000])


def paper004(subscriptions: int, events: int, p: float = 0.5, seed: int = 4) -> Workload:
    """Paper 004, section 4: six optional attributes, three of 200 strings and three of 5,000 numbers.

    Each is in a subscription with probability 0.5; a number is compared by `=` with probability p, otherwise by
    `<=` or `>=`; each attribute is in an event with probability 0.5. All values are uniform.
    """
    rng = np.random.default_rng(seed)
    present = _never_empty(rng, subscriptions)
    ordered = rng.random((subscriptions, 3)) >= p
    sides = rng.choice(np.array([Relation.LE, Relation.GE], np.int8), (subscriptions, 3))
    relation = np.full((subscriptions, 6), Relation.EQ, np.int8)
    relation[:, 3:][ordered] = sides[ordered]
    relation[~present] = 0
    bound = rng.integers(0, PAPER_VALUES, (subscriptions, 6))
    asked = Subscriptions(PAPER_ATTRIBUTES, relation, bound)
    values = rng.integers(0, PAPER_VALUES, (events, 6))
    published = Events(PAPER_ATTRIBUTES, rng.random((events, 6)) < 0.5, values)
    return Workload(f"paper 004, p = {p:g}", asked, published)


def _never_empty(rng: np.random.Generator, rows: int) -> npt.NDArray[np.bool_]:
    """Which attributes a subscription has; one without any is drawn again."""
    present = rng.random((rows, 6)) < 0.5
    while len(empty := np.flatnonzero(~present.any(axis=1))):
        present[empty] = rng.random((len(empty), 6)) < 0.5
    return present


STOCK_FIELDS = ("symbol", "price", "open", "high", "low", "close", "volume")
STOCK_RELATIONS = (Relation.EQ, Relation.GT, Relation.LT, Relation.GT, 0, 0, Relation.GT)
VOLUMES = 1_000_000
SPREAD = 0.02


def stock(
    subscriptions: int,
    events: int,
    symbols: int = 5000,
    ease: float = 0.0,
    seed: int = 3,
    name: str = "stock",
) -> Workload:
    """Paper 003, section 5.1, as events: one equality of 5,000 symbols and four ranges; quotes of seven fields.

        symbol = 'S0017' and price > 20133 and open < 19876 and high > 20210 and volume > 431187

    Prices (in cents) spread by two percent around each symbol's own. `ease` moves all bounds by so many spreads
    towards matching: 0 lets 9% of a symbol's subscriptions match, higher values more.
    """
    rng = np.random.default_rng(seed)
    names = tuple(f"S{code:04d}" for code in range(symbols))
    attributes = (Attribute("symbol", names), *(Attribute(name) for name in STOCK_FIELDS[1:]))
    level = rng.integers(1000, 50000, symbols)
    asked = _stock_bounds(rng, level, subscriptions, ease)
    relation = np.tile(np.array(STOCK_RELATIONS, np.int8), (subscriptions, 1))
    quotes = _stock_quotes(rng, level, events)
    present = np.ones((events, len(attributes)), np.bool_)
    return Workload(name, Subscriptions(attributes, relation, asked), Events(attributes, present, quotes))


def _around(rng: np.random.Generator, level: Integers, shift: float = 0.0) -> Integers:
    moved = level * (1 + SPREAD * (shift + rng.standard_normal(len(level))))
    return np.maximum(1, moved.astype(np.int64))


def _stock_bounds(rng: np.random.Generator, level: Integers, rows: int, ease: float) -> Integers:
    symbol = rng.integers(0, len(level), rows)
    mine = level[symbol]
    price, opening, high = _around(rng, mine, -ease), _around(rng, mine, ease), _around(rng, mine, -ease)
    volume = (rng.integers(1, VOLUMES, rows) * 2.0**-ease).astype(np.int64)
    nothing = np.zeros(rows, np.int64)
    return np.column_stack([symbol, price, opening, high, nothing, nothing, volume])


def _stock_quotes(rng: np.random.Generator, level: Integers, rows: int) -> Integers:
    symbol = rng.integers(0, len(level), rows)
    price, opening, close = (_around(rng, level[symbol]) for _ in range(3))
    high = np.maximum(price, opening) + rng.integers(0, 50, rows)
    low = np.maximum(1, np.minimum(price, opening) - rng.integers(0, 50, rows))
    return np.column_stack([symbol, price, opening, high, low, close, rng.integers(1, VOLUMES, rows)])
