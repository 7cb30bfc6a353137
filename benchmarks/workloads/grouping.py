"""Bringing equal things together: clauses of one shape, tests of one kind and operand.

By 64-bit hashes, which are checked afterwards: two different things under one hash are an error, not a guess.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from benchmarks.workloads.runs import Integers, places, starts_of

Hashes = npt.NDArray[np.uint64]


class Groups(NamedTuple):
    """Equal things together: those of group g are `order[bounds[g]:bounds[g + 1]]`."""

    order: npt.NDArray[np.int32]
    bounds: Integers

    @property
    def sizes(self) -> Integers:
        return np.diff(self.bounds)

    @property
    def leaders(self) -> npt.NDArray[np.int32]:
        """The first of each group."""
        return self.order[self.bounds[:-1]]

    def only(self, groups: npt.NDArray[np.bool_]) -> Groups:
        """Some of the groups."""
        return Groups(self.order[np.repeat(groups, self.sizes)], starts_of(self.sizes[groups]))


def same_shape(tokens: Integers, starts: Integers) -> Groups:
    """Clauses of the same tokens in the same order."""
    lengths = np.diff(starts)
    if not lengths.all():
        raise ValueError("a clause without tests has no shape")
    place = np.arange(len(tokens)) - np.repeat(starts[:-1], lengths)
    hashes = _mixed(_mixed(tokens.view(np.uint64)) + place.view(np.uint64))
    groups = _together(np.add.reduceat(hashes, starts[:-1]) if len(lengths) else hashes)
    like = np.repeat(groups.leaders, groups.sizes)
    _check(lengths[groups.order], lengths[like])
    _check(tokens[places(starts, groups.order)], tokens[places(starts, like)])
    return groups


def same_row(columns: tuple[Integers, ...]) -> Groups:
    """Rows that are equal in every column."""
    hashes = np.zeros(len(columns[0]), np.uint64)
    for column in columns:
        hashes = _mixed(hashes + column.view(np.uint64))
    groups = _together(hashes)
    for column in columns:
        _check(column[groups.order], column[np.repeat(groups.leaders, groups.sizes)])
    return groups


def by_test(starts: Integers, groups: Groups) -> Integers:
    """The places of all tests, group by group, in a group test by test: columns without gaps.

    Test j of row i of a group with k rows stands at j * k + i of the group.
    """
    order, bounds, sizes = groups.order, groups.bounds, groups.sizes
    lengths = np.diff(starts)[order]
    begins = starts_of(lengths)
    group = np.repeat(np.arange(len(sizes)), sizes)
    first = begins[bounds[:-1]][group] + np.arange(len(order)) - bounds[group]
    number = np.arange(begins[-1]) - np.repeat(begins[:-1], lengths)
    found = np.empty(begins[-1], np.int64)
    found[np.repeat(first, lengths) + number * np.repeat(sizes[group], lengths)] = places(starts, order)
    return found


def _together(hashes: Hashes) -> Groups:
    order = np.argsort(hashes, kind="stable").astype(np.int32)
    ordered = hashes[order]
    new = np.flatnonzero(np.diff(ordered, prepend=~ordered[:1]))
    return Groups(order, np.append(new, len(order)).astype(np.int64))


def _mixed(numbers: Hashes) -> Hashes:
    """The finisher of splitmix64: each bit of the number changes about half of the result's."""
    mixed = (numbers + np.uint64(1)) * np.uint64(0x9E3779B97F4A7C15)
    mixed = (mixed ^ (mixed >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    return mixed ^ (mixed >> np.uint64(27))


def _check(these: Integers, those: Integers) -> None:
    if not np.array_equal(these, those):
        raise ValueError("two different things have the same hash: another multiplier is needed")
