"""Readers for files of reference data: CSV, JSON Lines and Parquet."""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Collection, Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

import pyarrow as pa
import pyarrow.parquet as pq
from pyarrow import fs

from tidings.core.text import plural
from tidings.errors import DecodeProblem, InputError
from tidings.parsers.strict_json import parse
from tidings.reference_data.declarations import Reference
from tidings.values import Scalar, to_number

MOST_BYTES = 64_000_000
MOST_ROWS = 500_000

Record = Mapping[str, Any]


class TableContent(NamedTuple):
    """Records of a table. `columns` is None if only the records name them, as in JSON Lines."""

    records: Iterable[Record]
    columns: Collection[str] | None


def locate_file(reference: Reference) -> tuple[Any, str, Any]:
    """Return the file system, the path and the file information of a declared file."""
    file, shown = reference.file, reference.shown_file
    try:
        files, path = fs.FileSystem.from_uri(file if "://" in file else Path(file).absolute().as_uri())
        info = files.get_file_info(path)
    except (pa.ArrowException, OSError) as problem:
        raise InputError(
            "the file cannot be accessed", hint=_first_line(problem).replace(file, shown)
        ) from problem
    if info.type is not fs.FileType.File:
        raise InputError("the file does not exist", received=f"'{shown}'")
    return files, path, info


def _first_line(problem: Exception) -> str:
    return str(problem).split("\n")[0]


def read_file_content(reference: Reference) -> TableContent:
    """Read a declared file. Values in CSV files are typed for events, and strings for documents."""
    files, path, info = locate_file(reference)
    if info.size > MOST_BYTES:
        raise too_large(f"{info.size:,} bytes")
    try:
        with files.open_input_stream(path, compression=None) as stream:
            body = stream.read()
    except OSError as problem:
        raise InputError("the file cannot be read", hint=_first_line(problem)) from problem
    suffix = Path(path).suffix.lower()
    if suffix == ".parquet":
        return _read_parquet(body)
    return (
        _read_csv(body, typed=not reference.is_of_documents) if suffix == ".csv" else _read_json_lines(body)
    )


def too_large(received: str) -> InputError:
    """Build the error for a table that exceeds the limits."""
    accepted = f"at most {MOST_ROWS:,} rows and {MOST_BYTES:,} bytes"
    hint = "each worker holds the table in memory: remove rows and columns that no subscription uses"
    return InputError("the table is too large", received=received, accepted=accepted, hint=hint)


def _read_parquet(body: bytes) -> TableContent:
    try:
        file = pq.ParquetFile(pa.BufferReader(body))
        groups = range(file.metadata.num_row_groups)
        size = sum(file.metadata.row_group(group).total_byte_size for group in groups)
        if size > MOST_BYTES or file.metadata.num_rows > MOST_ROWS:
            raise too_large(f"{file.metadata.num_rows:,} rows, {size:,} bytes")
        return read_arrow_content(file.read())
    except (pa.ArrowException, OSError, UnicodeDecodeError) as problem:  # column names may not be UTF-8
        raise InputError("not a valid Parquet file", hint=_first_line(problem)) from problem


def read_arrow_content(table: Any) -> TableContent:
    """Read the records of an Arrow table."""
    if table.nbytes > MOST_BYTES:
        raise too_large(f"{table.nbytes:,} bytes")
    return TableContent(table.to_pylist(), table.column_names)


def _read_json_lines(body: bytes) -> TableContent:
    return TableContent(_parse_lines(body), None)


def _parse_lines(body: bytes) -> Iterator[Record]:
    for number, line in enumerate(body.split(b"\n"), start=1):
        if line.strip():
            try:
                yield parse(line.rstrip(b"\r"))
            except DecodeProblem as problem:
                raise InputError(problem.what, where=f"line {number}", accepted=problem.accepted) from None


def _read_csv(body: bytes, typed: bool) -> TableContent:
    try:
        text = body.decode("utf-8-sig")
    except UnicodeDecodeError as problem:
        raise InputError(
            "the file is not UTF-8", where=f"byte {problem.start + 1}", accepted="UTF-8"
        ) from None
    header, lines = _read_rows(csv.reader(io.StringIO(text, newline=""), strict=True))
    columns = [_convert_column(column) if typed else column for column in zip(*lines, strict=True)]
    return TableContent((dict(zip(header, row, strict=True)) for row in zip(*columns, strict=True)), header)


def _read_rows(reader: Any) -> tuple[list[str], list[list[str | None]]]:
    """Read the header and the other lines, with None for empty values."""
    try:
        header: list[str] = next(reader, [])
        lines = []
        for line in reader:
            if line and len(line) != len(header):
                raise InputError(
                    "wrong number of values",
                    where=f"line {reader.line_num}",
                    received=plural(len(line), "value"),
                    accepted=f"{plural(len(header), 'value')}, as in the header",
                )
            if line:
                lines.append([value or None for value in line])
    except csv.Error as problem:
        raise InputError(f"not valid CSV: {problem}", where=f"line {reader.line_num}") from None
    if not header or len(set(header)) < len(header):
        raise InputError("invalid header", accepted="a first line with a unique name for each column")
    return header, lines


_NUMBER = re.compile(r"-?(?:0|[1-9][0-9]*)(?:\.[0-9]+)?(?:[eE][+-]?[0-9]+)?")
_BOOLEANS = {"true": True, "false": False}


def _convert_column(column: tuple[str | None, ...]) -> Iterable[Scalar | None]:
    """Convert a column to booleans or numbers if all values are valid JSON ones (007 is not); else keep strings."""
    values = [value for value in column if value is not None]
    if all(map(_BOOLEANS.__contains__, values)):
        return [None if value is None else _BOOLEANS[value] for value in column]
    if all(map(_NUMBER.fullmatch, values)):
        numbers = [None if value is None else to_number(value) for value in column]
        return numbers if numbers.count(None) == column.count(None) else column
    return column
