"""Rows of reference tables: validated from a file, and written to a copy for lookups.

The driver reads and checks a file once, and writes its rows to a Parquet file with the keys of each row and the values
that it adds. Tasks read only that copy, so all tasks of a batch see the same rows even if the file changes.
"""

from __future__ import annotations

import hashlib
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

from tidings.core.atomic_files import sync, temporary_beside
from tidings.core.suggest import did_you_mean, printable, shorten_list
from tidings.documents.xpath.xpath_tree import show_number
from tidings.errors import DecodeProblem, InputError
from tidings.events.json_decoder import flatten
from tidings.reference_data import files
from tidings.reference_data.declarations import Reference, check_element_name
from tidings.reference_data.files import Record, TableContent, too_large
from tidings.values import Scalar

Values = dict[str, tuple[Scalar, ...]]


class Row(NamedTuple):
    """A row of a table: the values of its key, and the values that it adds."""

    keys: tuple[Scalar, ...]
    added: Values


def read_file(reference: Reference) -> list[Row]:
    """Read and check the rows of a declared file."""
    with name_table_in_errors(reference):
        return build_rows(reference, files.read_file_content(reference))


def read_stamp(reference: Reference) -> str:
    """Return the size and modification time of the file, which change when the file does."""
    with name_table_in_errors(reference):
        _, _, info = files.locate_file(reference)
    return f"{info.size}-{info.mtime_ns}"


@contextmanager
def name_table_in_errors(reference: Reference) -> Iterator[None]:
    """Add the name of the table to errors that are raised in this context."""
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


def build_rows(reference: Reference, content: TableContent) -> list[Row]:
    """Build the rows of a declared table from its records."""
    rows, columns = [], dict.fromkeys(content.columns or ())
    for number, record in enumerate(content.records, start=1):
        if number > files.MOST_ROWS:
            raise too_large(f"more than {files.MOST_ROWS:,} rows")
        try:
            values = _flatten_record(record)
        except DecodeProblem as problem:
            raise InputError(problem.what, where=f"row {number}: {problem.where}") from None
        if not values.keys() <= columns.keys():
            columns.update(dict.fromkeys(values))
        rows.append((values, number))
    if rows or content.columns is not None:
        _check_columns(reference, columns)
    added_columns = [column for column in columns if _is_added(reference, column)]
    if reference.is_of_documents:
        for column in added_columns:
            check_element_name(column)
    build = _build_document_row if reference.is_of_documents else _build_event_row
    fields = frozenset(added_columns)
    return [build(reference, values, fields, number) for values, number in rows]


_FLAT_TYPES = frozenset({str, bool, type(None)})


def _flatten_record(record: Record) -> Values:
    """Flatten a record like an event. Records of strings take a shortcut, because they are the most frequent."""
    if all(type(value) in _FLAT_TYPES for value in record.values()):
        return {name: (value,) for name, value in record.items() if value is not None}
    return flatten(_convert_to_json(record))


def _convert_to_json(value: Any) -> Any:
    """Convert decimals to numbers, and dates and times to ISO 8601; other values are returned unchanged."""
    if isinstance(value, Mapping):
        return {key: _convert_to_json(inner) for key, inner in value.items()}
    if isinstance(value, list | tuple):
        return [_convert_to_json(inner) for inner in value]
    if isinstance(value, Decimal):
        return int(value) if value == value.to_integral_value() else float(value)
    return value.isoformat() if isinstance(value, date | datetime | time) else value


def _check_columns(reference: Reference, columns: Collection[str]) -> None:
    if any(name.startswith(f"{reference.key}.") for name in columns):
        raise InputError("the key column contains objects", received=repr(printable(reference.key)))
    for column in (reference.key, *reference.fields):
        if not any(name == column or name.startswith(f"{column}.") for name in columns):
            raise InputError(
                "unknown column",
                received=repr(printable(column)),
                accepted=shorten_list(columns),
                hint=did_you_mean(column, columns),
            )


def _is_added(reference: Reference, column: str) -> bool:
    """Return whether a column is added. A field also selects nested columns: `address` selects `address.city`."""
    if not reference.fields:
        return column != reference.key
    return any(column == field or column.startswith(f"{field}.") for field in reference.fields)


def _build_event_row(reference: Reference, values: Values, fields: frozenset[str], _: int) -> Row:
    """Build a row for events."""
    added = {field: field_values for field, field_values in values.items() if field in fields}
    return Row(values.get(reference.key, ()), added)


def _build_document_row(reference: Reference, values: Values, fields: frozenset[str], number: int) -> Row:
    """Build a row for documents, with values as strings."""
    added = {
        field: [format_value(value) for value in field_values]
        for field, field_values in values.items()
        if field in fields
    }
    for field, texts in added.items():
        for text in texts:
            if not text.isprintable() and _NOT_IN_XML.search(text):
                message = "the value has a character that XML does not allow"
                raise InputError(
                    message, where=f"row {number}: {printable(field)}", received=printable(repr(text))
                )
    keys = tuple(format_value(value) for value in values.get(reference.key, ()))
    return Row(keys, {field: tuple(texts) for field, texts in added.items()})


_NOT_IN_XML = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


def format_value(value: Scalar) -> str:
    """Format a value for documents; numbers have no exponent, because XPath 1.0 has none."""
    if isinstance(value, str):
        return value
    if isinstance(value, bool):
        return "true" if value else "false"
    return show_number(value)


def build_table(rows: Iterable[Row]) -> Any:
    """Build the Arrow table that `enrichment.Lookup` reads."""
    keys, added = [], []
    for row in rows:
        keys.append(list(dict.fromkeys(map(json.dumps, row.keys))))
        added.append(json.dumps(row.added))
    columns = {"keys": pa.array(keys, pa.list_(pa.string())), "added": pa.array(added, pa.string())}
    return pa.table(columns)


def compute_digest(value: object) -> str:
    """Hash a declaration or a file stamp for the name of a copy."""
    return hashlib.blake2b(repr(value).encode("utf-8", "backslashreplace"), digest_size=8).hexdigest()


def find_last_copy(folder: Path, reference: Reference) -> Path | None:
    """Find the newest copy of the rows of a declaration. After a batch, unused copies are deleted."""
    copies = [
        (_read_mtime(path), path) for path in folder.absolute().glob(f"{compute_digest(reference)}-*.parquet")
    ]
    return max(copies, default=(0, None))[1]


def _read_mtime(path: Path) -> int:
    try:
        return path.stat().st_mtime_ns
    except FileNotFoundError:  # deleted meanwhile, because a newer copy exists
        return 0


def write_rows(rows: Iterable[Row], path: Path) -> None:
    """Write rows for `enrichment.open_lookup` atomically."""
    with temporary_beside(path) as unfinished:
        pq.write_table(build_table(rows), unfinished)
        sync(unfinished)
        unfinished.replace(path)
