"""Codecs: the constants of each column, sorted and mapped to codes (see `kernels.codes` for their meaning)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from tidings.atoms import Aspect, Column
from tidings.errors import TidingsError
from tidings.events.schema.domains import Domain
from tidings.matching.array_functions import starts_of
from tidings.matching.compiler.plan import Literals, Relation
from tidings.matching.kernels import codes as kernel
from tidings.matching.kernels import strings as tries
from tidings.matching.kernels.encode import Codecs
from tidings.values import Kind

Codes = npt.NDArray[np.int32]
_DENSE_LIMIT = 1 << 28
_GRID_LIMIT = 1 << 22

Lot = tuple[Kind, int]
"""A lot of constants of a column: their kind, and the number of the lot."""

BOUNDS = {
    Kind.NUMBER: (kernel.NUMBER_CODES, kernel.STRING_CODES - 1),
    Kind.STRING: (kernel.STRING_CODES, kernel.BOOLEAN_CODES - 1),
    Kind.BOOLEAN: (kernel.BOOLEAN_CODES, kernel.LAST_CODE),
    Kind.INSTANT: (kernel.INSTANT_CODES, kernel.LAST_CODE),
}
"""The first and last code of a kind."""


def is_order(aspect: Aspect) -> bool:
    """Whether an aspect compares values by the order of a domain."""
    return Aspect.AT_MOST <= aspect <= Aspect.ABOVE


def code_bounds(column: Column, kind: Kind | None) -> tuple[int, int]:
    """Return the first and last code of the values that a literal of this kind can be compared with."""
    whole = column.aspect <= Aspect.INSTANT or column.aspect is Aspect.NUMBER
    return BOUNDS[kind] if kind is not None and whole else (0, kernel.LAST_CODE)


@dataclass
class ColumnConstants:
    """Collects the constants of a column, sorts them once, then returns the codes of each lot."""

    column: Column
    shared: pa.Array | None = None
    """Sorted strings that several columns share; the strings of this column are among them."""
    ordered: bool = False
    keyed: bool = False
    equals: bool = True
    lots: dict[Kind, list[Literals]] = field(default_factory=lambda: {kind: [] for kind in Kind})
    dense_low: int | None = None
    dense_count: int = 0
    dense_distinct: int = 0
    nearest: npt.NDArray[np.float64] = field(default_factory=lambda: np.empty(0))
    rest: npt.NDArray[np.int64] = field(default_factory=lambda: np.empty(0, np.int64))
    strings: pa.Array = field(default_factory=lambda: pa.array([], pa.binary()))
    instants: npt.NDArray[np.int64] = field(default_factory=lambda: np.empty(0, np.int64))
    _codes: dict[Kind, Codes] = field(default_factory=dict)
    _keys: list[Lot] = field(default_factory=list)
    _starts: dict[Kind, npt.NDArray[np.int64]] = field(default_factory=dict)

    def add(self, literals: Literals, kind: Kind, relation: Relation) -> Lot:
        """Add a lot of constants; `codes` returns its codes after `finish`."""
        self.ordered |= kind == Kind.STRING and relation not in (Relation.EQ, Relation.NE, Relation.IN)
        self.keyed |= relation in (Relation.EQ, Relation.IN)
        self.lots[kind].append(literals)
        lot = kind, len(self.lots[kind]) - 1
        if relation in (Relation.EQ, Relation.IN):
            self._keys.append(lot)
        return lot

    def finish(self) -> None:
        """Sort and code all constants: once for the column, however many lots there are."""
        code_all = {
            Kind.NUMBER: self._code_numbers,
            Kind.STRING: self._code_strings,
            Kind.BOOLEAN: self._code_booleans,
            Kind.INSTANT: self._code_instants,
        }
        for kind, lots in self.lots.items():
            if lots:
                self._starts[kind] = starts_of([len(lot) for lot in lots])
                self._codes[kind] = code_all[kind](lots)
        self.lots.clear()

    def codes(self, lot: Lot) -> Codes:
        """Return the codes of a lot."""
        kind, number = lot
        return self._codes[kind][self._starts[kind][number] : self._starts[kind][number + 1]]

    def frequency(self, codes: Codes) -> npt.NDArray[np.float32]:
        """Return how frequent each of these codes is among the constants of equalities."""
        named, counts = self._frequencies
        shares: npt.NDArray[np.float64] = counts[np.searchsorted(named, codes)] / counts.sum()
        return shares.astype(np.float32)

    @cached_property
    def _frequencies(self) -> tuple[Codes, npt.NDArray[np.int64]]:
        return np.unique(np.concatenate([self.codes(lot) for lot in self._keys]), return_counts=True)

    @property
    def distinct(self) -> int:
        """The number of different constants, by which keys are chosen."""
        return self.dense_distinct + len(self.nearest) + len(self.strings) + len(self.instants)

    def span(self, kind: Kind | None) -> int:
        """Return the number of codes that the constants of a kind are spread over."""
        counts = {
            Kind.NUMBER: self.dense_count + len(self.nearest),
            Kind.STRING: len(self.strings),
            Kind.INSTANT: len(self.instants),
        }
        return 2 * max(1, counts.get(kind, 1) if kind is not None else 1)

    def _code_numbers(self, lots: Sequence[Any]) -> Codes:
        # Adding zero turns -0.0 into 0.0: they are one number, and must have one code.
        nearest = np.concatenate([lot.nearest for lot in lots]) + 0.0
        remainder = np.concatenate([lot.rest for lot in lots])
        if not remainder.any():
            low, high = nearest.min(), nearest.max()
            if high - low < _DENSE_LIMIT and max(-low, high) < 2**53 and not (nearest % 1).any():
                self.dense_low, self.dense_count = int(low), int(high - low) + 1
                self.dense_distinct = len(np.unique(nearest)) if self.keyed else self.dense_count
                return _odd_codes(nearest.astype(np.int64) - self.dense_low)
            self.nearest, place = np.unique(nearest, return_inverse=True)
            self.rest = np.zeros(len(self.nearest), np.int64)
            return _odd_codes(place)
        order = np.lexsort((remainder, nearest))
        near, left = nearest[order], remainder[order]
        new = np.concatenate(([True], (near[1:] != near[:-1]) | (left[1:] != left[:-1])))
        self.nearest, self.rest = near[new], left[new]
        place = np.empty(len(order), np.int64)
        place[order] = np.cumsum(new) - 1
        return _odd_codes(place)

    def _code_strings(self, lots: Sequence[Any]) -> Codes:
        values = pa.chunked_array([pa.array(lot, pa.binary()) for lot in lots])
        self.strings = _sort_distinct(values) if self.shared is None else self.shared
        indices = pc.index_in(values, value_set=self.strings)
        if indices.null_count:
            raise TidingsError(f"the constants of {self.column.path} are not among the strings of the twigs")
        place = np.asarray(indices).astype(np.int64)
        return _odd_codes(place, kernel.STRING_CODES if self.column.aspect == Aspect.VALUE else 0)

    def _code_booleans(self, lots: Sequence[Any]) -> Codes:
        return _odd_codes(np.concatenate(lots).astype(np.int64), kernel.BOOLEAN_CODES)

    def _code_instants(self, lots: Sequence[Any]) -> Codes:
        self.instants, place = np.unique(np.concatenate(lots).astype(np.int64), return_inverse=True)
        return _odd_codes(place, kernel.INSTANT_CODES)


def _sort_distinct(values: pa.ChunkedArray) -> pa.Array:
    """Return the different strings, sorted."""
    distinct = pc.unique(values)
    return distinct.take(pc.sort_indices(distinct))


def _odd_codes(place: npt.NDArray[np.int64], base: int = 0) -> Codes:
    """Return the codes of constants from their ranks: odd numbers; even codes are values between constants."""
    return (base + 2 * place + 1).astype(np.int32)


def build_codecs(columns: Sequence[ColumnConstants], domains: Mapping[str, Domain]) -> Codecs:
    """Build the arrays that the encoding kernel reads, from finished columns."""
    named = [_lookup_strings(c, domains) for c in columns]
    related_start, related_offsets, related = _relations(columns, named, domains)
    trie_start, trie = _tries(columns)
    return Codecs(
        aspect=np.array([c.column.aspect for c in columns], np.uint8),
        numbers=_number_codec(columns),
        strings=string_codec(
            named,
            [c.ordered for c in columns],
            [c.equals for c in columns],
            [c.shared is not None for c in columns],
        ),
        instants=kernel.InstantCodec(
            start=starts_of([len(c.instants) for c in columns])[:-1],
            count=np.array([len(c.instants) for c in columns], np.int64),
            micros=_join([c.instants for c in columns], np.int64),
        ),
        trie_start=trie_start,
        trie=trie,
        related_start=related_start,
        related_offsets=related_offsets,
        related=related,
    )


def _number_codec(columns: Sequence[ColumnConstants]) -> kernel.NumberCodec:
    grids = [_grid(c.nearest) for c in columns]
    modes = [
        kernel.DENSE_NUMBERS
        if c.dense_low is not None
        else (kernel.RANKED_NUMBERS if len(c.nearest) else kernel.NO_NUMBERS)
        for c in columns
    ]
    return kernel.NumberCodec(
        mode=np.array(modes, np.uint8),
        start=starts_of([len(c.nearest) for c in columns])[:-1],
        count=np.array([c.dense_count or len(c.nearest) for c in columns], np.int64),
        low=np.array([c.dense_low or 0 for c in columns], np.int64),
        nearest=_join([c.nearest for c in columns], np.float64),
        rest=_join([c.rest for c in columns], np.int64),
        grid_start=starts_of([len(grid) for grid, _, _ in grids])[:-1],
        grid_cells=np.array([len(grid) - 1 for grid, _, _ in grids], np.int64),
        grid_low=np.array([low for _, low, _ in grids], np.float64),
        grid_scale=np.array([scale for _, _, scale in grids], np.float64),
        grid=_join([grid for grid, _, _ in grids], np.int32),
    )


def _grid(nearest: npt.NDArray[np.float64]) -> tuple[npt.NDArray[np.int32], float, float]:
    """Divide the range of the constants into cells: first constant of each cell (and one past the end), low
    end, scale.

    The cell of a constant is computed exactly as the kernel computes the cell of a value. A value is searched
    for from the first constant of its cell up to and including the first of the next non-empty one.
    """
    count = len(nearest)
    cells = int(min(max(1, 2 * count), _GRID_LIMIT))
    if count == 0:
        return np.zeros(2, np.int32), 0.0, 0.0
    low, span = float(nearest[0]), float(nearest[-1]) - float(nearest[0])
    scale = cells / span if 0.0 < span < np.inf and np.isfinite(cells / span) else 0.0
    with np.errstate(over="ignore", invalid="ignore"):
        x = (nearest - low) * scale
    cell = np.where(x > 0.0, np.minimum(np.floor(np.minimum(x, cells - 1)), cells - 1), 0).astype(np.int64)
    return np.searchsorted(cell, np.arange(cells + 1)).astype(np.int32), low, scale


def _lookup_strings(column: ColumnConstants, domains: Mapping[str, Domain]) -> pa.Array:
    """Return the strings to look up in a column: its constants, or all values of the domain for an order aspect."""
    if is_order(column.column.aspect):
        names = sorted(value.encode() for value in domains[column.column.domain].values)
        return pa.array(names, pa.binary())
    if column.shared is not None:
        return column.shared
    if column.column.aspect == Aspect.VALUE:
        return column.strings
    return pa.array([], pa.binary())


def string_codec(
    named: Sequence[pa.Array], ordered: Sequence[bool], equals: Sequence[bool], shared: Sequence[bool]
) -> kernel.StringCodec:
    """Build hash tables of the different strings of each column, which are sorted if the column is `ordered`.

    Columns that share one array of strings share one table.
    """
    tables = list({id(strings): strings for strings in named}.values())
    number_of = {id(strings): number for number, strings in enumerate(tables)}
    table = np.array([number_of[id(strings)] for strings in named], np.int64)
    counts = [len(strings) for strings in tables]
    sizes = [1 << max(1, (2 * count - 1).bit_length()) if count else 0 for count in counts]
    offsets, data = _pack(pa.concat_arrays(tables) if tables else pa.array([], pa.binary()))
    codec = kernel.StringCodec(
        start=starts_of(counts)[table],
        count=np.array(counts, np.int64)[table],
        longest=np.array([_longest(strings) for strings in tables], np.int64)[table],
        ordered=np.array(ordered, np.uint8),
        equals=np.array(equals, np.uint8),
        shared=np.array(shared, np.uint8),
        offsets=offsets,
        data=data,
        slot_start=starts_of(sizes)[table],
        slot_mask=np.array([max(0, size - 1) for size in sizes], np.int64)[table],
        slots=np.full(sum(sizes), -1, np.int32),
    )
    for number in np.unique(table, return_index=True)[1]:
        if codec.count[number]:
            kernel.fill_slots(codec, int(number))
    return codec


def _longest(strings: pa.Array) -> int:
    """Return the number of bytes of the longest string; -1 if there is none."""
    longest = pc.max(pc.binary_length(strings)).as_py()
    return -1 if longest is None else int(longest)


def _tries(columns: Sequence[ColumnConstants]) -> tuple[npt.NDArray[np.int64], tries.Trie]:
    built = []
    for column in columns:
        if Aspect.PREFIX <= column.column.aspect <= Aspect.SUBSTRING:
            built.append(_trie(column))
        else:
            built.append(tries.Trie(*(np.empty(0, dtype) for dtype in ("i4", "u1", "i4", "i4", "i4"))))
    starts = starts_of([len(trie.first) for trie in built])[:-1]
    dtypes = (np.int32, np.uint8, np.int32, np.int32, np.int32)
    parts = (_join([trie[i] for trie in built], dtype) for i, dtype in enumerate(dtypes))
    return starts, tries.Trie(*parts)


def _trie(column: ColumnConstants) -> tries.Trie:
    """Build the trie of a column's patterns; those of SUFFIX columns are reversed and keep their numbers."""
    patterns = column.strings
    if column.column.aspect != Aspect.SUFFIX:
        built: tries.Trie = tries.build_trie(*_pack(patterns))
        return built
    backwards = pa.array([bytes(reversed(p)) for p in patterns.to_pylist()], pa.binary())
    order = pc.sort_indices(backwards)
    built = tries.build_trie(*_pack(backwards.take(order)))
    numbers = np.append(order.to_numpy(), -1).astype(np.int32)
    return built._replace(pattern=numbers[built.pattern])


def _relations(
    columns: Sequence[ColumnConstants], named: Sequence[pa.Array], domains: Mapping[str, Domain]
) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64], Codes]:
    """List the codes of related constants for each order column and each value of its domain."""
    starts, offsets, related = [], [0], []
    for column, values in zip(columns, named, strict=True):
        starts.append(len(offsets) - 1)
        if not is_order(column.column.aspect):
            continue
        domain = domains[column.column.domain]
        constants = {c.decode(): 2 * i + 1 for i, c in enumerate(column.strings.to_pylist())}
        for value in values.to_pylist():
            related.extend(_related_codes(column.column.aspect, domain, value.decode(), constants))
            offsets.append(len(related))
    return np.array(starts, np.int64), np.array(offsets, np.int64), np.array(related, np.int32)


def _related_codes(aspect: Aspect, domain: Domain, value: str, constants: Mapping[str, int]) -> list[int]:
    strict = aspect in (Aspect.BELOW, Aspect.ABOVE)
    if aspect in (Aspect.AT_MOST, Aspect.BELOW):
        above = domain.ancestors(value)
        codes = [constants[name] for name in above if name in constants and not (strict and name == value)]
    else:
        codes = [
            code
            for name, code in constants.items()
            if domain.at_most(name, value) and not (strict and name == value)
        ]
    return sorted(codes)


def _pack(strings: pa.Array) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.uint8]]:
    """Return the offsets and bytes of a binary array, starting at zero."""
    data: list[Any] = strings.buffers()
    if len(strings) == 0:
        return np.zeros(1, np.int64), np.empty(0, np.uint8)
    raw = np.frombuffer(data[1], np.int32)[strings.offset : strings.offset + len(strings) + 1].astype(
        np.int64
    )
    text = np.frombuffer(data[2], np.uint8) if data[2] is not None else np.empty(0, np.uint8)
    return raw - raw[0], text[raw[0] : raw[-1]].copy()


def _join(parts: Sequence[npt.NDArray[Any]], dtype: Any) -> npt.NDArray[Any]:
    return np.concatenate(parts).astype(dtype) if parts else np.empty(0, dtype)
