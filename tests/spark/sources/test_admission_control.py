"""Bounded batches of streaming sources, in both ways: with Spark's admission control, and without."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from pyspark.sql.datasource import DataSource, InputPartition

from tidings.errors import SetupError
from tidings.spark.sources import admission_control
from tidings.spark.sources.admission_control import (
    ONCE,
    BoundedReader,
    OffsetTrackingReader,
    StreamReader,
    set_trigger,
    stop_at_end,
)

MOST = 3
"""Numbers in a batch."""


class CountingReader(BoundedReader):
    """Reads the numbers up to the one in a file. Each look at the file while a query runs increases it."""

    def __init__(self, options: Any) -> None:
        super().__init__(options)
        self._file, self._end, self._beginning = Path(options["file"]), None, 1

    def _head(self) -> int:
        head = int(self._file.read_text())
        self._file.write_text(str(head + 1))
        return head

    def first_offset(self):
        self._beginning += 1  # as with rows that are appended while the query starts
        return {"position": self._beginning}

    def stop_at_head(self):
        self._end = self._head()

    def next_offset(self, start):
        head = self._head() if self._end is None else self._end
        if head < 0:
            raise SetupError("the numbers have gone")
        return {"position": max(start["position"], min(head, start["position"] + MOST))}

    def ranges(self, start, end):
        return [InputPartition((start["position"], end["position"]))]

    def read(self, partition):
        after, upto = partition.value
        yield from ((number,) for number in range(after + 1, upto + 1))


class SparkCounting(CountingReader, StreamReader):
    """With the base that fits the installed version of Spark."""


class TrackingCounting(CountingReader, OffsetTrackingReader):
    """With the base for Spark 4.1, which every version supports."""


class Counting(DataSource):
    @classmethod
    def name(cls):
        return "counting"

    def schema(self):
        return "number long"

    def streamReader(self, schema):
        kind = TrackingCounting if self.options["tracking"] == "True" else SparkCounting
        return kind(self.options)


@pytest.fixture(params=[False, True], ids=["as-installed", "tracking"])
def is_tracking(request, monkeypatch):
    if request.param:
        monkeypatch.setattr(admission_control, "HAS_ADMISSION_CONTROL", False)
    return request.param


@pytest.fixture
def read_once(session, tmp_path, is_tracking):
    """Run a query that ends at the initial head; return its batches."""
    session.dataSource.register(Counting)

    def run(file):
        batches = []

        def collect(rows, batch):
            batches.append((batch, [row.number for row in rows.collect()]))

        options = {"file": str(file), ONCE: "True", "tracking": str(is_tracking)}
        rows = session.readStream.format("counting").options(**options).load()
        writer = rows.writeStream.foreachBatch(collect).option(
            "checkpointLocation", str(tmp_path / "checkpoint")
        )
        query = set_trigger(writer, once=True).start()
        stop_at_end(query, once=True)
        try:
            assert query.awaitTermination(60), "the query does not end"
        finally:
            query.stop()
        return batches

    return run


def test_once_reads_bounded_batches_up_to_the_initial_head(read_once, tmp_path):
    """The head moves all the time, and the checkpoint is the only memory of where the next run begins."""
    file = tmp_path / "head"
    file.write_text("9")
    assert read_once(file) == [(0, [3, 4, 5]), (1, [6, 7, 8]), (2, [9])]
    file.write_text("14")
    assert read_once(file) == [(3, [10, 11, 12]), (4, [13, 14])]
    file.write_text("14")
    assert read_once(file) == []


def test_once_repeats_an_unfinished_batch_with_the_same_rows(read_once, tmp_path):
    """A batch that was planned and not committed has the same end, wherever the head is by then."""
    file = tmp_path / "head"
    file.write_text("7")
    read_once(file)
    for name in ("1", ".1.crc"):
        (tmp_path / "checkpoint/commits" / name).unlink()
    file.write_text("9")
    assert read_once(file) == [(1, [6, 7]), (2, [8, 9])]


def test_once_of_a_failing_source_raises(read_once, tmp_path):
    file = tmp_path / "head"
    file.write_text("7")
    read_once(file)
    file.write_text("-1")
    with pytest.raises(Exception, match="the numbers have gone"):
        read_once(file)
