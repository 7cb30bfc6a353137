"""Output files of a task: each pair once, in row groups of bounded size."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tidings.matching.parquet import Dictionary
from tidings.spark.batch import output
from tidings.spark.batch.output import SUBSCRIPTION, ChunkOutput, ChunkReport, SubscriptionColumn
from tidings.spark.sources.files import Location

SUBSCRIPTIONS = [f"s{number}" for number in range(40)]
pair = st.tuples(st.integers(0, 4), st.integers(0, 39))


@given(st.lists(st.lists(st.lists(pair, max_size=12), max_size=3), max_size=6))
def test_chunk_output_writes_each_pair_once(tmp_path_factory, blocks):
    """Blocks of five publications, each matched in several parts."""
    folder, report, expected = tmp_path_factory.mktemp("out"), ChunkReport(7, 0), []
    column = SubscriptionColumn(SUBSCRIPTION, Dictionary(pa.array(SUBSCRIPTIONS)))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(output, "ROW_GROUP", 10)
        with ChunkOutput(Location.of(folder), report, column) as out:
            for number, parts in enumerate(blocks):
                ids = pa.array([f"e{number}.{place}" for place in range(5)])
                for part in parts:
                    publications, subscriptions = np.array(part, np.int32).reshape(-1, 2).T.copy()
                    out.write(ids, publications, subscriptions)
                    expected.extend((f"e{number}.{place}", f"s{row}") for place, row in part)
    assert report.matches == len(expected)
    assert (report.matches_file == "") == (not expected) == (not list(folder.iterdir()))
    if expected:
        file = pq.ParquetFile(folder / report.matches_file)
        sizes = [file.metadata.row_group(i).num_rows for i in range(file.metadata.num_row_groups)]
        assert all(10 <= size < 22 for size in sizes[:-1])
        assert [tuple(row.values()) for row in file.read().to_pylist()] == expected


def test_chunk_output_of_failed_task_leaves_no_complete_file(tmp_path):
    report = ChunkReport(0, 0)
    with (
        pytest.raises(ZeroDivisionError),
        ChunkOutput(
            Location.of(tmp_path), report, SubscriptionColumn(SUBSCRIPTION, Dictionary(pa.array(["s"])))
        ) as out,
    ):
        out.write(pa.array(["e"]), np.zeros(1, np.int32), np.zeros(1, np.int32))
        raise ZeroDivisionError
    assert report.matches == 0 and list(tmp_path.iterdir()) == []
