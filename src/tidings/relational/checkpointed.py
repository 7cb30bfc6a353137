"""Tables of a batch that are used more than once: computed once, and then tables of their own.

Merely persisting them is not enough. To Spark a persisted table is still all that led to it, and every further round of
joins has all earlier ones analysed and optimised again.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from pyspark.sql import DataFrame


class CheckpointedTables:
    """Keeps tables, in memory or on disk as Spark likes; the first use computes them."""

    def __init__(self) -> None:
        self._frames: list[DataFrame] = []

    def __call__(self, frame: DataFrame) -> DataFrame:
        self._frames.append(frame.localCheckpoint(eager=False))
        return self._frames[-1]

    def release(self) -> None:
        """Spark drops what nobody can ask for any more."""
        self._frames.clear()


@contextmanager
def checkpointed_tables() -> Iterator[CheckpointedTables]:
    kept = CheckpointedTables()
    try:
        yield kept
    finally:
        kept.release()
