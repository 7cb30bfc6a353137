"""Tables of reference data: what is read of a file, and how rows are kept for whoever looks them up.

A file is read once, by whoever leads the work, checked, and written down as *rows*: a Parquet file with the keys of
each row and what it adds. Tasks read that copy only: all of a batch see the same rows, whatever becomes of the file.
"""

from __future__ import annotations

import csv
import io
import json
import re
from collections.abc import Collection, Iterable, Iterator, Mapping
from contextlib import contextmanager
from datetime import date, datetime, time
from decimal import Decimal
from pathlib import Path
from typing import Any, NamedTuple

import pyarrow as pa
import pyarrow.parquet as pq
from pyarrow import fs

from tidings.durable import sync
from tidings.errors import DecodeProblem, InputError
from tidings.languages.xpath_shown import show_number
from tidings.publications.event import flatten
from tidings.publications.references import Reference, check_element_name
from tidings.publications.strict_json import parse
from tidings.schema.names import did_you_mean, safe, some
from tidings.values import Scalar, to_number

MOST_BYTES = 64_000_000
MOST_ROWS = 500_000

Values = dict[str, tuple[Scalar, ...]]
Record = Mapping[str, Any]


class Row(NamedTuple):
    """A row of a table: the values of its key, and what it adds."""

    keys: tuple[Scalar, ...]
    added: Values


class Read(NamedTuple):
    """What stands in a table, before anybody asks what it is for. The columns are None where rows name them."""

    records: Iterable[Record]
    columns: Collection[str] | None


def read_file(reference: Reference) -> list[Row]:
    """The rows of a declared file, or a refusal that says what is wrong with it."""
    with naming(reference):
        return rows_of(reference, _read(reference))


def stamp(reference: Reference) -> str:
    """What changes when the file does: its size and the time of its last change."""
    with naming(reference):
        _, _, info = _found(reference.file)
    return f"{info.size}-{info.mtime_ns}"


@contextmanager
def naming(reference: Reference) -> Iterator[None]:
    """What is refused in here names the table that it is about."""
    try:
        yield
    except InputError as problem:
        raise InputError(
            f"the reference table {reference.name} cannot be used: {problem.what}",
            where=problem.where or (problem.place.describe() if problem.place else None),
            received=problem.received,
            accepted=problem.accepted,
            hint=problem.hint,
        ) from problem


def _found(file: str) -> tuple[Any, str, Any]:
    try:
        files, path = fs.FileSystem.from_uri(file if "://" in file else Path(file).absolute().as_uri())
        info = files.get_file_info(path)
    except (pa.ArrowException, OSError) as problem:
        raise InputError("the file cannot be reached", hint=str(problem).split("\n")[0]) from problem
    if info.type is not fs.FileType.File:
        raise InputError("there is no such file", received=f"'{file}'")
    return files, path, info


def _read(reference: Reference) -> Read:
    files, path, info = _found(reference.file)
    if info.size > MOST_BYTES:
        raise _too_large(f"{info.size:,} bytes")
    try:
        with files.open_input_stream(path, compression=None) as stream:
            body = stream.read()
    except OSError as problem:
        raise InputError("the file cannot be read", hint=str(problem).split("\n")[0]) from problem
    kind = Path(path).suffix.lower()
    if kind == ".parquet":
        return _parquet(body)
    return _csv(body, typed=not reference.is_of_documents) if kind == ".csv" else _json_lines(body)


def _too_large(received: str) -> InputError:
    accepted = f"at most {MOST_ROWS:,} rows and {MOST_BYTES:,} bytes"
    hint = "each worker holds the table in memory: leave out what subscriptions do not ask about"
    return InputError("the table is too large", received=received, accepted=accepted, hint=hint)


def _parquet(body: bytes) -> Read:
    try:
        file = pq.ParquetFile(pa.BufferReader(body))
        groups = range(file.metadata.num_row_groups)
        size = sum(file.metadata.row_group(group).total_byte_size for group in groups)
        if size > MOST_BYTES or file.metadata.num_rows > MOST_ROWS:
            raise _too_large(f"{file.metadata.num_rows:,} rows, {size:,} bytes")
        return of_arrow(file.read())
    except (pa.ArrowException, OSError) as problem:
        raise InputError("this is no Parquet file", hint=str(problem).split("\n")[0]) from problem


def of_arrow(table: Any) -> Read:
    """What stands in an Arrow table."""
    return Read(table.to_pylist(), table.column_names)


def _json_lines(body: bytes) -> Read:
    return Read(_objects(body), None)


def _objects(body: bytes) -> Iterator[Record]:
    for number, line in enumerate(body.split(b"\n"), start=1):
        if line.strip():
            try:
                yield parse(line.rstrip(b"\r"))
            except DecodeProblem as problem:
                raise InputError(problem.what, where=f"line {number}", accepted=problem.accepted) from None


def _csv(body: bytes, typed: bool) -> Read:
    try:
        text = body.decode("utf-8-sig")
    except UnicodeDecodeError as problem:
        raise InputError(
            "the file is not UTF-8", where=f"byte {problem.start + 1}", accepted="UTF-8"
        ) from None
    header, lines = _lines(csv.reader(io.StringIO(text, newline=""), strict=True))
    columns = [_typed(column) if typed else column for column in zip(*lines, strict=True)]
    return Read((dict(zip(header, row, strict=True)) for row in zip(*columns, strict=True)), header)


def _lines(reader: Any) -> tuple[list[str], list[list[str | None]]]:
    """The first line, and the others with None for what is empty."""
    try:
        header: list[str] = next(reader, [])
        lines = []
        for line in reader:
            if line and len(line) != len(header):
                received = f"{len(line)} values"
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


def rows_of(reference: Reference, read: Read) -> list[Row]:
    """The rows of a declared table, as those who look them up want them."""
    rows, known = [], dict.fromkeys(read.columns or ())
    for number, record in enumerate(read.records, start=1):
        if number > MOST_ROWS:
            raise _too_large(f"more than {MOST_ROWS:,} rows")
        try:
            values = flatten(_plain(record))
        except DecodeProblem as problem:
            raise InputError(problem.what, where=f"row {number}: {problem.where}") from None
        known.update(dict.fromkeys(values))
        rows.append((values, number))
    if rows or read.columns is not None:
        _check_columns(reference, known)
    wanted = [column for column in known if _is_wanted(reference, column)]
    if reference.is_of_documents:
        for column in wanted:
            check_element_name(column)
    return [_row(reference, values, set(wanted), number) for values, number in rows]


def _plain(value: Any) -> Any:
    """Decimals as numbers, dates and times as ISO 8601 writes them; the rest is what JSON has, or is refused."""
    if isinstance(value, Mapping):
        return {key: _plain(inner) for key, inner in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(inner) for inner in value]
    if isinstance(value, Decimal):
        return int(value) if value == value.to_integral_value() else float(value)
    return value.isoformat() if isinstance(value, date | datetime | time) else value


def _check_columns(reference: Reference, known: Collection[str]) -> None:
    for column in (reference.key, *reference.fields):
        if not any(name == column or name.startswith(f"{column}.") for name in known):
            raise InputError(
                "there is no such column",
                received=repr(safe(column)),
                accepted=some(known),
                hint=did_you_mean(column, known),
            )


def _is_wanted(reference: Reference, column: str) -> bool:
    """Of nested columns the outer one may be named: `address` is all of `address.city`, `address.zip`."""
    if not reference.fields:
        return column != reference.key
    return any(column == field or column.startswith(f"{field}.") for field in reference.fields)


def _row(reference: Reference, values: Values, wanted: set[str], number: int) -> Row:
    keys = values.get(reference.key, ())
    added = {field: found for field, found in values.items() if field in wanted}
    if not reference.is_of_documents:
        return Row(keys, added)
    shown = {field: tuple(map(text_of, found)) for field, found in added.items()}
    for field, texts in shown.items():
        if any(map(_NOT_IN_XML.search, texts)):
            what = "a value with a character that XML does not have"
            raise InputError(what, where=f"row {number}: {safe(field)}", received=safe(repr(texts[0])))
    return Row(tuple(map(text_of, keys)), {**shown})


_NOT_IN_XML = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


def text_of(value: Scalar) -> str:
    """A value as documents have it; numbers without an exponent, which XPath does not know."""
    if isinstance(value, bool):
        return "true" if value else "false"
    return value if isinstance(value, str) else show_number(value)


def write_rows(rows: Iterable[Row], path: Path) -> None:
    """Keep rows for `enrichment.opened`; the file is there as a whole or not at all."""
    keys, added = [], []
    for row in rows:
        keys.append(list(dict.fromkeys(map(json.dumps, row.keys))))
        added.append(json.dumps(row.added))
    columns = {"keys": pa.array(keys, pa.list_(pa.string())), "added": pa.array(added, pa.string())}
    unfinished = path.with_name(f".{path.name}.unfinished")
    pq.write_table(pa.table(columns), unfinished)
    sync(unfinished)
    unfinished.replace(path)
