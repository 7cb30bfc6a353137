"""Tables of reference data: what is read of a file, and how rows are kept for whoever looks them up.

A file is read once, by whoever leads the work, checked, and written down as *rows*: a Parquet file with the keys of
each row and what it adds. Tasks read that copy only: all of a batch see the same rows, whatever becomes of the file.
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
    """A row of a table: the values of its key, and what it adds."""

    keys: tuple[Scalar, ...]
    added: Values


def read_file(reference: Reference) -> list[Row]:
    """The rows of a declared file, or a refusal that says what is wrong with it."""
    with naming(reference):
        return rows_of(reference, files.read_file_content(reference))


def stamp(reference: Reference) -> str:
    """What changes when the file does: its size and the time of its last change."""
    with naming(reference):
        _, _, info = files.locate_file(reference)
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


def rows_of(reference: Reference, read: TableContent) -> list[Row]:
    """The rows of a declared table, as those who look them up want them."""
    rows, known = [], dict.fromkeys(read.columns or ())
    for number, record in enumerate(read.records, start=1):
        if number > files.MOST_ROWS:
            raise too_large(f"more than {files.MOST_ROWS:,} rows")
        try:
            values = _flat(record)
        except DecodeProblem as problem:
            raise InputError(problem.what, where=f"row {number}: {problem.where}") from None
        if not values.keys() <= known.keys():
            known.update(dict.fromkeys(values))
        rows.append((values, number))
    if rows or read.columns is not None:
        _check_columns(reference, known)
    wanted = [column for column in known if _is_wanted(reference, column)]
    if reference.is_of_documents:
        for column in wanted:
            check_element_name(column)
    made = _texts if reference.is_of_documents else _values
    fields = frozenset(wanted)
    return [made(reference, values, fields, number) for values, number in rows]


_FLAT = frozenset({str, bool, type(None)})


def _flat(record: Record) -> Values:
    """The values of a record, as an event would have them. Most records have strings only, and there are many."""
    if all(type(value) in _FLAT for value in record.values()):
        return {name: (value,) for name, value in record.items() if value is not None}
    return flatten(_plain(record))


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
    if any(name.startswith(f"{reference.key}.") for name in known):
        raise InputError("the key is no column of single values", received=repr(printable(reference.key)))
    for column in (reference.key, *reference.fields):
        if not any(name == column or name.startswith(f"{column}.") for name in known):
            raise InputError(
                "there is no such column",
                received=repr(printable(column)),
                accepted=shorten_list(known),
                hint=did_you_mean(column, known),
            )


def _is_wanted(reference: Reference, column: str) -> bool:
    """Of nested columns the outer one may be named: `address` is all of `address.city`, `address.zip`."""
    if not reference.fields:
        return column != reference.key
    return any(column == field or column.startswith(f"{field}.") for field in reference.fields)


def _values(reference: Reference, values: Values, wanted: frozenset[str], _: int) -> Row:
    """A row for events."""
    added = {field: found for field, found in values.items() if field in wanted}
    return Row(values.get(reference.key, ()), added)


def _texts(reference: Reference, values: Values, wanted: frozenset[str], number: int) -> Row:
    """A row for documents, of texts."""
    added = {field: [text_of(value) for value in found] for field, found in values.items() if field in wanted}
    for field, texts in added.items():
        for text in texts:
            if not text.isprintable() and _NOT_IN_XML.search(text):
                what = "a value with a character that XML does not have"
                raise InputError(
                    what, where=f"row {number}: {printable(field)}", received=printable(repr(text))
                )
    keys = tuple(text_of(value) for value in values.get(reference.key, ()))
    return Row(keys, {field: tuple(texts) for field, texts in added.items()})


_NOT_IN_XML = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


def text_of(value: Scalar) -> str:
    """A value as documents have it; numbers without an exponent, which XPath does not know."""
    if isinstance(value, str):
        return value
    if isinstance(value, bool):
        return "true" if value else "false"
    return show_number(value)


def table_of(rows: Iterable[Row]) -> Any:
    """Rows as `enrichment.Lookup` takes them."""
    keys, added = [], []
    for row in rows:
        keys.append(list(dict.fromkeys(map(json.dumps, row.keys))))
        added.append(json.dumps(row.added))
    columns = {"keys": pa.array(keys, pa.list_(pa.string())), "added": pa.array(added, pa.string())}
    return pa.table(columns)


def digest(of: object) -> str:
    """A declaration, or a state of a file, as the name of a copy has it."""
    return hashlib.blake2b(repr(of).encode("utf-8", "backslashreplace"), digest_size=8).hexdigest()


def last_copy(folder: Path, reference: Reference) -> Path | None:
    """The copy of the rows of this declaration that were read last. Behind a batch, those not in use are deleted."""
    kept = [(_written(path), path) for path in folder.absolute().glob(f"{digest(reference)}-*.parquet")]
    return max(kept, default=(0, None))[1]


def _written(path: Path) -> int:
    try:
        return path.stat().st_mtime_ns
    except FileNotFoundError:  # deleted just now, because there is a newer one
        return 0


def write_rows(rows: Iterable[Row], path: Path) -> None:
    """Write rows for `enrichment.opened`; the file is there as a whole or not at all."""
    with temporary_beside(path) as unfinished:
        pq.write_table(table_of(rows), unfinished)
        sync(unfinished)
        unfinished.replace(path)
