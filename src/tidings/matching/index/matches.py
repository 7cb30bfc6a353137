"""Matches: what matching a batch gives, as arrays until somebody asks for more."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import cached_property
from itertools import accumulate

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from tidings.matching.index.segment import Segment
from tidings.model import Subscription

Found = tuple[Segment, npt.NDArray[np.int32], npt.NDArray[np.int32]]


class Matches:
    """Pairs of a publication (its place in the batch) and a subscription, segment by segment.

    `undecided` are further pairs, of graphs, for which the search reached its step limit: they may match or not.
    `tidings.graphs.explanation.Explainer(graph).matches(pattern)` decides such a pair by another search.
    """

    def __init__(self, found: Sequence[Found], undecided: Sequence[Found] = ()) -> None:
        self._found, self._undecided = found, undecided

    def __len__(self) -> int:
        return sum(len(publication) for _, publication, _ in self._found)

    @cached_property
    def publication(self) -> npt.NDArray[np.int32]:
        """The publication of each pair."""
        return _joined([publication for _, publication, _ in self._found])

    @cached_property
    def subscription(self) -> npt.NDArray[np.int32]:
        """The subscription of each pair, as its place in `Index.ids`."""
        firsts = accumulate((len(segment.ids) for segment, _, _ in self._found[:-1]), initial=0)
        found = zip(self._found, firsts, strict=False)
        return _joined([rows + np.int32(first) if first else rows for (_, _, rows), first in found])

    @property
    def undecided(self) -> Matches:
        """The pairs that were left undecided; none of them is in this object itself."""
        return Matches(self._undecided)

    @property
    def candidates(self) -> Matches:
        """The matches and the undecided pairs: for callers that check every pair themselves."""
        if not any(len(publication) for _, publication, _ in self._undecided):
            return self
        both = zip(self._found, self._undecided, strict=True)
        return Matches([(segment, _joined([p, q]), _joined([r, s])) for (segment, p, r), (_, q, s) in both])

    def only(self, wanted: npt.NDArray[np.bool_]) -> Matches:
        """The matches of those publications of the batch that are wanted."""
        return Matches(_wanted(self._found, wanted), _wanted(self._undecided, wanted))

    def moved(self, first: int) -> Matches:
        """The same pairs, of a batch that has `first` more publications before them."""
        return Matches(_moved(self._found, first), _moved(self._undecided, first)) if first else self

    def ids(self) -> pa.Array:
        """The subscription's id of each pair."""
        parts = [segment.ids.take(pa.array(rows)) for segment, _, rows in self._found]
        return parts[0] if len(parts) == 1 else pa.concat_arrays([*parts, pa.array([], pa.string())])

    def table(self) -> pa.Table:
        """The subscription of each pair: id, subscriber, language, text."""
        parts = [segment.subscriptions.take(pa.array(rows)) for segment, _, rows in self._found]
        names = ("id", "subscriber", "language", "text")
        return (
            pa.concat_tables(parts)
            if parts
            else pa.table({name: pa.array([], pa.string()) for name in names})
        )

    def subscriptions(self) -> list[Subscription]:
        return [Subscription(**row) for row in self.table().to_pylist()]

    def pairs(self) -> Iterator[tuple[int, str]]:
        """Publication and subscription id, one pair at a time; for small results and for reading."""
        return zip(self.publication.tolist(), self.ids().to_pylist(), strict=True)


def _wanted(found: Sequence[Found], wanted: npt.NDArray[np.bool_]) -> list[Found]:
    kept = [(segment, wanted[publication], publication, rows) for segment, publication, rows in found]
    return [(segment, publication[keep], rows[keep]) for segment, keep, publication, rows in kept]


def _moved(found: Sequence[Found], first: int) -> list[Found]:
    return [(segment, publication + np.int32(first), rows) for segment, publication, rows in found]


def _joined(parts: Sequence[npt.NDArray[np.int32]]) -> npt.NDArray[np.int32]:
    """All in one array; the array itself if there is only one."""
    return parts[0] if len(parts) == 1 else np.concatenate([*parts, np.empty(0, np.int32)])
