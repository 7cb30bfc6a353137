"""Matches of a batch: arrays of pairs, from which ids and subscriptions are looked up on demand."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import cached_property
from itertools import accumulate
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from tidings.matching.index.segment import Segment
from tidings.matching.kernels.rows import order_by_publication
from tidings.model import Subscription

COLUMNS = ("id", "subscriber", "language", "text")
SegmentPairs = tuple[Segment, npt.NDArray[np.int32], npt.NDArray[np.int32]]


class PairOrder(NamedTuple):
    """Pairs in the order of publications: `order` has their numbers; those of publication i start at `starts[i]`."""

    order: npt.NDArray[np.int32]
    starts: npt.NDArray[np.int64]

    @property
    def matched(self) -> npt.NDArray[np.int64]:
        """The publications with a match."""
        return np.flatnonzero(self.starts[1:] > self.starts[:-1])

    @property
    def publications(self) -> npt.NDArray[np.int64]:
        """The publication of each pair, in this order."""
        return np.repeat(np.arange(len(self.starts) - 1), np.diff(self.starts))


class Matches:
    """Pairs of a publication (its position in the batch) and a subscription, segment by segment.

    `undecided` are pairs of graphs for which the search reached its step limit: they may match or not.
    `tidings.graphs.reference_matcher.Explainer(graph).matches(pattern)` decides such a pair by another search.
    """

    def __init__(self, pairs: Sequence[SegmentPairs], undecided: Sequence[SegmentPairs] = ()) -> None:
        self._pairs, self._undecided = pairs, undecided

    def __len__(self) -> int:
        return sum(len(publication) for _, publication, _ in self._pairs)

    @cached_property
    def publication(self) -> npt.NDArray[np.int32]:
        """The publication of each pair."""
        return _join([publication for _, publication, _ in self._pairs])

    @cached_property
    def subscription(self) -> npt.NDArray[np.int32]:
        """The subscription of each pair, as its position in `Index.ids`."""
        firsts = accumulate((len(segment.ids) for segment, _, _ in self._pairs[:-1]), initial=0)
        pairs = zip(self._pairs, firsts, strict=False)
        return _join([rows + np.int32(first) if first else rows for (_, _, rows), first in pairs])

    @property
    def undecided(self) -> Matches:
        """The undecided pairs. They are not part of this object's pairs."""
        return Matches(self._undecided)

    @property
    def candidates(self) -> Matches:
        """The matches and the undecided pairs, for callers that check every pair themselves."""
        if not any(len(publication) for _, publication, _ in self._undecided):
            return self
        both = zip(self._pairs, self._undecided, strict=True)
        return Matches([(segment, _join([p, q]), _join([r, s])) for (segment, p, r), (_, q, s) in both])

    def select(self, mask: npt.NDArray[np.bool_]) -> Matches:
        """Return the matches of the wanted publications of the batch."""
        return Matches(_select(self._pairs, mask), _select(self._undecided, mask))

    def written_in(self, languages: Sequence[str]) -> Matches:
        """Return the matches with subscriptions in some languages."""
        return Matches(_written_in(self._pairs, languages), _written_in(self._undecided, languages))

    def shift(self, first: int) -> Matches:
        """Return the same pairs with `first` added to the positions of publications."""
        return Matches(_shift(self._pairs, first), _shift(self._undecided, first)) if first else self

    def ids(self) -> pa.Array:
        """Return the subscription id of each pair."""
        parts = [segment.ids.take(pa.array(rows)) for segment, _, rows in self._pairs]
        return parts[0] if len(parts) == 1 else pa.concat_arrays([*parts, pa.array([], pa.string())])

    def order(self, publications: int) -> PairOrder:
        """Return the order of the pairs by publication, given the number of publications.

        A counting sort: NumPy's stable sort took a third of the time of a task with 18 matches for each publication.
        """
        order = np.empty(len(self), np.int32)
        starts = np.zeros(publications + 1, np.int64)
        order_by_publication(self.publication, starts, order)
        return PairOrder(order, starts)

    def table(self, columns: Sequence[str] = COLUMNS, order: npt.NDArray[np.int32] | None = None) -> pa.Table:
        """Return the subscription of each pair: id, subscriber, language, text, or some of these columns.

        With an order, the rows are in that order.
        """
        names = list(columns)
        if order is not None:
            if len(self._pairs) == 1:
                segment, _, rows = self._pairs[0]
                return segment.subscriptions.select(names).take(pa.array(rows[order]))
            return self.table(columns).take(pa.array(order))
        parts = [segment.subscriptions.select(names).take(pa.array(rows)) for segment, _, rows in self._pairs]
        return (
            pa.concat_tables(parts)
            if parts
            else pa.table({name: pa.array([], pa.string()) for name in names})
        )

    def subscriptions(self) -> list[Subscription]:
        return [Subscription(**row) for row in self.table().to_pylist()]

    def pairs(self) -> Iterator[tuple[int, str]]:
        """Iterate over pairs of publication and subscription id; for small results."""
        return zip(self.publication.tolist(), self.ids().to_pylist(), strict=True)


def _select(pairs: Sequence[SegmentPairs], chosen: npt.NDArray[np.bool_]) -> list[SegmentPairs]:
    masks = [chosen[publication] for _, publication, _ in pairs]
    return [
        (segment, publication[mask], rows[mask])
        for (segment, publication, rows), mask in zip(pairs, masks, strict=True)
    ]


def _written_in(pairs: Sequence[SegmentPairs], languages: Sequence[str]) -> list[SegmentPairs]:
    accepted = pa.array(languages, pa.string())
    selected: list[SegmentPairs] = []
    for segment, publication, rows in pairs:
        language = segment.subscriptions["language"].take(pa.array(rows))
        mask = pc.is_in(language, accepted).to_numpy()
        selected.append((segment, publication[mask], rows[mask]))
    return selected


def _shift(pairs: Sequence[SegmentPairs], first: int) -> list[SegmentPairs]:
    return [(segment, publication + np.int32(first), rows) for segment, publication, rows in pairs]


def _join(parts: Sequence[npt.NDArray[np.int32]]) -> npt.NDArray[np.int32]:
    """Concatenate arrays; a single array is returned as it is."""
    return parts[0] if len(parts) == 1 else np.concatenate([*parts, np.empty(0, np.int32)])
