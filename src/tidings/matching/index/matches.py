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
    """Pairs of a publication (its place in the batch) and a subscription, segment by segment."""

    def __init__(self, found: Sequence[Found]) -> None:
        self._found = found

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

    def only(self, wanted: npt.NDArray[np.bool_]) -> Matches:
        """The matches of those publications of the batch that are wanted."""
        kept = [
            (segment, wanted[publication], publication, rows) for segment, publication, rows in self._found
        ]
        return Matches(
            [(segment, publication[keep], rows[keep]) for segment, keep, publication, rows in kept]
        )

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


def _joined(parts: Sequence[npt.NDArray[np.int32]]) -> npt.NDArray[np.int32]:
    """All in one array; the array itself if there is only one."""
    return parts[0] if len(parts) == 1 else np.concatenate([*parts, np.empty(0, np.int32)])
