"""Files of reference data: CSV, JSON Lines and Parquet, as records by column."""

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
    """What stands in a table, before anybody asks what it is for. The columns are None where rows name them."""

    records: Iterable[Record]
    columns: Collection[str] | None


def locate_file(reference: Reference) -> tuple[Any, str, Any]:
    """Where a file is, and what is known of it from outside."""
    file, shown = reference.file, reference.shown_file
    try:
        files, path = fs.FileSystem.from_uri(file if "://" in file else Path(file).absolute().as_uri())
        info = files.get_file_info(path)
    except (pa.ArrowException, OSError) as problem:
        raise InputError("the file cannot be reached", hint=_said(problem).replace(file, shown)) from problem
    if info.type is not fs.FileType.File:
        raise InputError("there is no such file", received=f"'{shown}'")
    return files, path, info


def _said(problem: Exception) -> str:
    return str(problem).split("\n")[0]


def read_file_content(reference: Reference) -> TableContent:
    """What stands in a declared file. Values of CSV files are what events have, or texts for documents."""
    files, path, info = locate_file(reference)
    if info.size > MOST_BYTES:
        raise too_large(f"{info.size:,} bytes")
    try:
        with files.open_input_stream(path, compression=None) as stream:
            body = stream.read()
    except OSError as problem:
        raise InputError("the file cannot be read", hint=_said(problem)) from problem
    kind = Path(path).suffix.lower()
    if kind == ".parquet":
        return _parquet(body)
    return _csv(body, typed=not reference.is_of_documents) if kind == ".csv" else _json_lines(body)


def too_large(received: str) -> InputError:
    """The refusal of a table that is too large, with the limits."""
    accepted = f"at most {MOST_ROWS:,} rows and {MOST_BYTES:,} bytes"
    hint = "each worker holds the table in memory: leave out what subscriptions do not ask about"
    return InputError("the table is too large", received=received, accepted=accepted, hint=hint)


def _parquet(body: bytes) -> TableContent:
    try:
        file = pq.ParquetFile(pa.BufferReader(body))
        groups = range(file.metadata.num_row_groups)
        size = sum(file.metadata.row_group(group).total_byte_size for group in groups)
        if size > MOST_BYTES or file.metadata.num_rows > MOST_ROWS:
            raise too_large(f"{file.metadata.num_rows:,} rows, {size:,} bytes")
        return content_of_arrow(file.read())
    except (
        pa.ArrowException,
        OSError,
        UnicodeDecodeError,
    ) as problem:  # UnicodeDecodeError: names of columns
        raise InputError("this is no Parquet file", hint=_said(problem)) from problem


def content_of_arrow(table: Any) -> TableContent:
    """What stands in an Arrow table."""
    if table.nbytes > MOST_BYTES:
        raise too_large(f"{table.nbytes:,} bytes")
    return TableContent(table.to_pylist(), table.column_names)


def _json_lines(body: bytes) -> TableContent:
    return TableContent(_objects(body), None)


def _objects(body: bytes) -> Iterator[Record]:
    for number, line in enumerate(body.split(b"\n"), start=1):
        if line.strip():
            try:
                yield parse(line.rstrip(b"\r"))
            except DecodeProblem as problem:
                raise InputError(problem.what, where=f"line {number}", accepted=problem.accepted) from None


def _csv(body: bytes, typed: bool) -> TableContent:
    try:
        text = body.decode("utf-8-sig")
    except UnicodeDecodeError as problem:
        raise InputError(
            "the file is not UTF-8", where=f"byte {problem.start + 1}", accepted="UTF-8"
        ) from None
    header, lines = _lines(csv.reader(io.StringIO(text, newline=""), strict=True))
    columns = [_typed(column) if typed else column for column in zip(*lines, strict=True)]
    return TableContent((dict(zip(header, row, strict=True)) for row in zip(*columns, strict=True)), header)


def _lines(reader: Any) -> tuple[list[str], list[list[str | None]]]:
    """The first line, and the others with None for what is empty."""
    try:
        header: list[str] = next(reader, [])
        lines = []
        for line in reader:
            if line and len(line) != len(header):
                received = plural(len(line), "value")
                raise InputError(
                    "a line of another length",
                    where=f"line {reader.line_num}",
                    received=received,
                    accepted=f"{len(header)}, as in the first line",
                )
            if line:
                lines.append([value or None for value in line])
    except csv.Error as problem:
        raise InputError(f"this is no CSV: {problem}", where=f"line {reader.line_num}") from None
    if not header or len(set(header)) < len(header):
        raise InputError("the first line does not name the columns", accepted="a different name for each")
    return header, lines


_NUMBER = re.compile(r"-?(?:0|[1-9][0-9]*)(?:\.[0-9]+)?(?:[eE][+-]?[0-9]+)?")
_BOOLEANS = {"true": True, "false": False}


def _typed(column: tuple[str | None, ...]) -> Iterable[Scalar | None]:
    """Numbers if all values are written as JSON writes numbers (007 is none), else booleans or strings."""
    values = [value for value in column if value is not None]
    if all(map(_BOOLEANS.__contains__, values)):
        return [None if value is None else _BOOLEANS[value] for value in column]
    if all(map(_NUMBER.fullmatch, values)):
        numbers = [None if value is None else to_number(value) for value in column]
        return numbers if numbers.count(None) == column.count(None) else column
    return column
