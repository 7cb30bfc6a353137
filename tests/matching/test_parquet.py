"""Parquet files of matches are readable with pyarrow and DuckDB."""

from __future__ import annotations

import io
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tidings.errors import InputError
from tidings.matching import parquet
from tidings.matching.parquet import Dictionary, EncodedColumn, GrowingColumn, KnownColumn, ParquetFile

NAMES = ("publication", "subscription")
words = st.lists(st.text(max_size=12), min_size=1, max_size=40)


def write_file(names: tuple[str, ...], groups: list[list[EncodedColumn]]) -> bytes:
    sink = io.BytesIO()
    file = ParquetFile(sink, names)
    for columns in groups:
        file.write(columns)
    file.close()
    return sink.getvalue()


def encode_known(strings: list[str], numbers: list[int], cut: int = 0) -> EncodedColumn:
    column = KnownColumn(Dictionary(pa.array(strings, pa.string())))
    for part in np.split(np.array(numbers, np.int32), [cut]):
        column.add(part)
    return column.encode()


def encode_growing(strings: list[str], numbers: list[int], cut: int = 0) -> EncodedColumn:
    """Encode two blocks with the same strings, each in two parts."""
    column = GrowingColumn()
    for block in np.split(np.array(numbers, np.int32), [cut]):
        dictionary = pa.array(strings, pa.string())
        for part in np.array_split(block, 2):
            column.add(dictionary, part)
    return column.encode()


@st.composite
def columns(draw: st.DrawFn) -> tuple[list[str], list[int], int]:
    """Strings and their numbers: in runs or at random, more than there are strings or fewer."""
    strings = draw(words)
    number, length = st.integers(0, len(strings) - 1), st.integers(1, draw(st.sampled_from([1, 3, 300])))
    runs = draw(st.lists(st.tuples(number, length), min_size=1, max_size=30))
    numbers = [number for number, length in runs for _ in range(length)]
    return strings, numbers, draw(st.integers(0, len(numbers)))


@pytest.mark.parametrize("column", [encode_known, encode_growing])
@given(st.lists(columns(), min_size=1, max_size=3), st.sampled_from([8, 64, 1 << 17]))
def test_parquet_file_write_is_read_by_pyarrow(
    column: Callable[..., EncodedColumn], groups: list[tuple[list[str], list[int], int]], page: int
) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(parquet, "PAGE", page)
        data = write_file(("word",), [[column(*group)] for group in groups])
    wanted = [strings[number] for strings, numbers, _ in groups for number in numbers]
    table = pq.read_table(pa.BufferReader(data))
    assert table.column("word").to_pylist() == wanted
    assert table.schema.field("word") == pa.field("word", pa.string(), nullable=False)


@pytest.mark.parametrize("column", [encode_known, encode_growing])
def test_parquet_file_large_dictionaries_and_long_runs_are_read_by_pyarrow(
    column: Callable[..., EncodedColumn],
) -> None:
    strings = [f"é{number}" for number in range(70_000)]
    numbers = [*range(0, 70_000, 2), *[69_999] * 300_000, *range(40_000)]
    data = write_file(("word",), [[column(strings, numbers, 7)]])
    assert pq.read_table(pa.BufferReader(data)).column("word").to_pylist() == [strings[n] for n in numbers]


@pytest.mark.parametrize("column", [encode_known, encode_growing])
def test_parquet_file_few_rows_omits_unused_strings(
    column: Callable[..., EncodedColumn],
) -> None:
    strings = [f"s{number}" for number in range(100_000)]
    data = write_file(("word",), [[column(strings, [7, 99_999, 7])]])
    assert len(data) < 1_000
    assert pq.read_table(pa.BufferReader(data)).column("word").to_pylist() == ["s7", "s99999", "s7"]


def test_growing_column_has_bounds_of_strings() -> None:
    columns = [encode_growing(["b", "a", "ü"], [0, 1, 2]), encode_known(["x"], [0, 0, 0])]
    group = pq.ParquetFile(pa.BufferReader(write_file(NAMES, [columns]))).metadata.row_group(0)
    assert (group.column(0).statistics.min, group.column(0).statistics.max) == ("a", "ü")
    assert group.column(0).statistics.null_count == 0
    assert not group.column(1).is_stats_set


def test_known_column_more_bytes_than_page_are_rejected(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(parquet, "MOST_BYTES", 30)
    assert encode_known(["x" * 26], [0]).rows == 1
    with pytest.raises(InputError, match="too long for Parquet; received 31 bytes"):
        encode_known(["x" * 27], [0])


def test_parquet_file_without_rows_has_columns() -> None:
    table = pq.read_table(pa.BufferReader(write_file(NAMES, [])))
    assert (table.column_names, table.num_rows) == ([*NAMES], 0)


def test_parquet_file_is_read_by_duckdb(tmp_path: Path) -> None:
    duckdb = pytest.importorskip("duckdb")
    strings = [f"s{number}" for number in range(3_000)]
    groups = [
        [encode_growing(["e1", "e2"], [0] * 20 + [1] * 2_980), encode_known(strings, list(range(3_000)))]
    ] * 2
    (tmp_path / "matches.parquet").write_bytes(write_file(NAMES, groups))
    query = (
        f"select publication, count(*), max(subscription) from '{tmp_path}/*.parquet' group by all order by 1"
    )
    assert duckdb.sql(query).fetchall() == [("e1", 40, "s9"), ("e2", 5_960, "s999")]
