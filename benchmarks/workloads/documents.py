"""Documents and XPath subscriptions in the form for engines: bytes in one buffer, texts in Arrow arrays."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from benchmarks.workloads.runs import Integers, starts_of

BLOCK_BYTES = 2 << 20
"""Size of a block that is decoded and matched at once: it fits into the processor's cache."""


@dataclass(frozen=True)
class Documents:
    """XML documents; number i is `buffer[starts[i]:ends[i]]`."""

    buffer: npt.NDArray[np.uint8]
    starts: Integers
    ends: Integers

    @classmethod
    def of(cls, bodies: Sequence[bytes]) -> Documents:
        bounds = starts_of([len(body) for body in bodies])
        return cls(np.frombuffer(b"".join(bodies), np.uint8), bounds[:-1], bounds[1:])

    def __len__(self) -> int:
        return len(self.starts)

    def first(self, count: int) -> Documents:
        return replace(self, starts=self.starts[:count], ends=self.ends[:count])

    def bodies(self) -> list[bytes]:
        """Return the documents one by one, for a parser."""
        data = self.buffer.tobytes()
        return [data[start:end] for start, end in zip(self.starts.tolist(), self.ends.tolist(), strict=True)]

    def blocks(self, most: int = BLOCK_BYTES) -> Iterator[Documents]:
        """Split the documents into blocks of about `most` bytes."""
        cuts = np.flatnonzero(np.diff(self.starts // most, prepend=-1))
        for first, last in zip(cuts, [*cuts[1:], len(self)], strict=True):
            yield replace(self, starts=self.starts[first:last], ends=self.ends[first:last])


@dataclass(frozen=True)
class Texts:
    """XPath subscriptions, each with its linear path predicates.

    The predicates of text i are `starts[i]:starts[i + 1]` of `linear`, which has the numbers of their linear paths:
    equal numbers mean equal paths.
    """

    chunks: tuple[pa.Array, ...]
    starts: Integers
    linear: npt.NDArray[np.int64]

    def __len__(self) -> int:
        return len(self.starts) - 1

    def __iter__(self) -> Iterator[str]:
        for chunk in self.chunks:
            yield from chunk.to_pylist()

    def first(self, count: int) -> Texts:
        starts, chunks, left = self.starts[: count + 1], [], count
        for chunk in self.chunks:
            chunks.append(chunk[:left])
            left = max(0, left - len(chunk))
        kept = tuple(chunk for chunk in chunks if len(chunk))
        return Texts(kept, starts, self.linear[: starts[-1]])

    def parts(self, most: int) -> Iterator[pa.ChunkedArray]:
        """Split the texts into parts of `most`, so that not all have to be compiled at once."""
        whole = pa.chunked_array(self.chunks, pa.string())
        for first in range(0, len(self), most):
            yield whole[first : first + most]

    @property
    def predicates(self) -> int:
        """Return the total number of linear path predicates."""
        return len(self.linear)

    @cached_property
    def linear_paths(self) -> int:
        """Return the number of different linear paths."""
        return len(np.unique(self.linear))


@dataclass(frozen=True)
class DocumentWorkload:
    """Counterpart of `Workload` for documents."""

    name: str
    subscriptions: Texts
    events: Documents
