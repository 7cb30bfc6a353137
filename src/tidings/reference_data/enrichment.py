"""Enrichment: joins publications with the matching rows of reference tables.

`enrich_document` and `enrich_event` are the specification. In a batch, documents that match a row are enriched as bytes
(`enrich_body`) and decoded again; events get additional atoms.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache, partial
from typing import Any
from weakref import WeakValueDictionary

import numpy as np
import numpy.typing as npt
import pyarrow.parquet as pq

from tidings.atoms import AtomKind, Atoms, Event
from tidings.documents.model import Node, NodeKind
from tidings.errors import DecodeProblem, PublicationError
from tidings.parsers.xml_bytes import convert_to_utf8
from tidings.reference_data.declarations import REF, Reference, parse_linear_path, selects
from tidings.values import Scalar

MOST_ADDED = 10_000
"""Maximum number of rows added to one publication; with more it is matched as it was published."""

Added = Mapping[str, Sequence[Scalar]]
"""Values that one row adds, by field."""

Key = bytes | int | float | tuple[bool]
"""A lookup key: strings as bytes, and booleans in a tuple, so that true is not equal to 1."""


@dataclass(frozen=True, slots=True)
class Snapshot:
    """A declared table and the file with a copy of its rows."""

    reference: Reference
    path: str


def enrich_document(document: Node, rows: Iterable[Added]) -> Node:
    """Append an element `ref` for each row to the document element; return the document."""
    for row in rows:
        ref = _append_child(document, NodeKind.ELEMENT, REF)
        for name, values in row.items():
            for value in values:
                element = _append_child(ref, NodeKind.ELEMENT, name, str(value))
                if value:
                    _append_child(element, NodeKind.TEXT, "", str(value))
                ref.value += str(value)
        document.value += ref.value
    return document


def _append_child(parent: Node, kind: NodeKind, name: str, value: str = "") -> Node:
    parent.children.append(Node(kind, name, value, parent))
    return parent.children[-1]


def enrich_event(event: Event, rows: Iterable[Added]) -> Event:
    """Return the event with attributes `ref.FIELD` added for the rows; existing values there are kept."""
    enriched = {path: list(values) for path, values in event.items()}
    for row in rows:
        for name, values in row.items():
            enriched.setdefault(f"{REF}.{name}", []).extend(values)
    return enriched


def enrich_body(body: bytes, rows: Iterable[Added]) -> bytes:
    """Enrich the bytes of a well-formed document like `enrich_document`; the result is UTF-8."""
    text = convert_to_utf8(body)
    if text is not body:
        text = _ENCODING.sub(rb"\1", text, count=1)
    start, end = _find_last_tag(text)
    head, tail = text[:start], text[start:]
    if text.endswith(b"/>", start, end):
        name = re.split(rb"[\s/]", text[start + 1 : end], maxsplit=1)[0]
        head, tail = text[: end - 2] + b">", b"</" + name + b">" + text[end:]
    tag = b'<ref xmlns="">' if b"xmlns" in text else b"<ref>"
    return head + b"".join(tag + _format_row(row) + b"</ref>" for row in rows) + tail


_ENCODING = re.compile(rb"""\A(<\?xml\s[^<>]*?)\sencoding\s*=\s*["'][A-Za-z0-9._-]+["']""")
_MARKUP = re.compile(
    rb"""<!--.*?-->|<!\[CDATA\[.*?\]\]>|<\?.*?\?>|<(?:[^"'<>]++|"[^"]*+"|'[^']*+')*+>""", re.DOTALL
)


def _find_last_tag(text: bytes) -> tuple[int, int]:
    """Return the span of the last tag: the end tag of the document element, or its empty-element tag.

    Comments and processing instructions may follow it. They end with --> and ?>, and may contain tags.
    """
    stripped = text.rstrip(b" \t\r\n")
    if not stripped.endswith((b"-->", b"?>")):
        return stripped.rfind(b"<"), len(stripped)
    tags = (markup.span() for markup in _MARKUP.finditer(text) if markup[0][1:2] not in b"!?")
    *_, last = tags
    return last


def _format_row(row: Added) -> bytes:
    return "".join(
        f"<{name}>{_escape(str(value))}</{name}>" for name, values in row.items() for value in values
    ).encode()


def _escape(text: str) -> str:
    """Escape text, including \\r, which a parser would turn into \\n, and >, because ]]> is not valid text."""
    return text if text.isalnum() else text.translate(_ESCAPES)


_ESCAPES = str.maketrans({"&": "&amp;", "<": "&lt;", ">": "&gt;", "\r": "&#13;"})


class Lookup:
    """A table in memory: row numbers by key. `row` returns the values that a row adds."""

    def __init__(self, reference: Reference, table: Any) -> None:
        self.reference = reference
        self._steps = parse_linear_path(reference.on) if reference.is_of_documents else ()
        self.row = lru_cache(maxsize=MOST_ADDED)(partial(_parse_row, table["added"].combine_chunks()))
        self._rows: dict[Key, list[int]] = {}
        for number, keys in enumerate(table["keys"].to_pylist()):
            for key in keys:
                self._rows.setdefault(_make_key(json.loads(key)), []).append(number)

    def find_rows(self, atoms: Atoms) -> dict[int, set[int]]:
        """Find the rows of each publication that has any; beyond the maximum, only some of them."""
        rows_by_publication: dict[int, set[int]] = {}
        places = (
            np.flatnonzero(self._are_key_paths(atoms.paths)[atoms.path]) if len(atoms.path) else _NO_PLACES
        )
        publications = np.searchsorted(atoms.starts, places, side="right") - 1
        for publication, key in zip(publications.tolist(), _read_keys(atoms, places), strict=True):
            if (
                key in self._rows
                and len(rows := rows_by_publication.setdefault(publication, set())) <= MOST_ADDED
            ):
                rows.update(self._rows[key][: MOST_ADDED + 1])
        return rows_by_publication

    def _are_key_paths(self, paths: tuple[str, ...]) -> npt.NDArray[np.bool_]:
        """Return which of the paths lead to key values."""
        if self._steps:
            return np.array([_selects(self._steps, path) for path in paths], np.bool_)
        return np.array([path == self.reference.on for path in paths], np.bool_)


def _parse_row(added: Any, number: int) -> Added:
    row: Added = json.loads(added[number].as_py())
    return row


_NO_PLACES = np.empty(0, np.int64)
_selects = lru_cache(maxsize=1 << 17)(selects)


def _make_key(value: Scalar) -> Key:
    if isinstance(value, bool):
        return (value,)
    return value.encode() if isinstance(value, str) else value


def _read_keys(atoms: Atoms, places: npt.NDArray[np.int64]) -> Iterator[Key]:
    text: Any = memoryview(np.ascontiguousarray(atoms.text))  # type: ignore[arg-type]
    columns = (atoms.kind[places], atoms.payload[places], atoms.length[places])
    for kind, payload, length in zip(*(column.tolist() for column in columns), strict=True):
        if kind == AtomKind.STRING:
            yield bytes(text[payload : payload + length])
        elif kind == AtomKind.BOOLEAN:
            yield (bool(payload),)
        else:
            yield payload if kind == AtomKind.INTEGER else float(np.int64(payload).view(np.float64))


_OPEN_LOOKUPS: WeakValueDictionary[Snapshot, Lookup] = WeakValueDictionary()


def open_lookup(snapshot: Snapshot) -> Lookup:
    """Open the table of a snapshot. It is read once and stays in memory as long as it is referenced."""
    table = _OPEN_LOOKUPS.get(snapshot)
    if table is None:
        table = _OPEN_LOOKUPS[snapshot] = Lookup(snapshot.reference, pq.read_table(snapshot.path))
    return table


class Enrichment:
    """Reference tables that publications are joined with, ordered by name."""

    def __init__(self, snapshots: Iterable[Snapshot]) -> None:
        self._tables = _sort_tables(open_lookup(snapshot) for snapshot in snapshots)

    @classmethod
    def of(cls, tables: Iterable[Lookup]) -> Enrichment:
        """Build an enrichment from tables in memory."""
        enrichment = cls(())
        enrichment._tables = _sort_tables(tables)
        return enrichment

    @property
    def is_empty(self) -> bool:
        return not self._tables

    @property
    def attributes(self) -> tuple[str, ...]:
        """Attributes of events that have to be decoded to look up rows."""
        references = (table.reference for table in self._tables)
        return tuple(reference.on for reference in references if not reference.is_of_documents)

    def find_rows(self, atoms: Atoms, are_documents: bool) -> dict[int, list[Added]]:
        """Find the rows to add, by the place of the publication: tables by name, rows in table order."""
        added: dict[int, list[Added]] = {}
        for table in self._tables:
            if table.reference.is_of_documents == are_documents:
                for publication, numbers in table.find_rows(atoms).items():
                    added.setdefault(publication, []).extend(map(table.row, sorted(numbers)))
        return added


def find_added(
    enrichment: Enrichment, atoms: Atoms, are_documents: bool
) -> tuple[dict[int, list[Added]], list[tuple[int, PublicationError]]]:
    """Find the rows to add, by the place of the publication, and the publications that match too many rows."""
    rows_by_place = enrichment.find_rows(atoms, are_documents)
    excessive = [place for place, rows in rows_by_place.items() if len(rows) > MOST_ADDED]
    return rows_by_place, [(place, _too_many_rows(rows_by_place.pop(place))) for place in excessive]


def _too_many_rows(rows: list[Added]) -> DecodeProblem:
    return build_unenriched_problem(
        DecodeProblem(
            "the publication matches too many rows",
            received=f"{len(rows):,} rows or more",
            accepted=f"at most {MOST_ADDED:,} rows of reference tables",
        )
    )


def build_unenriched_problem(problem: PublicationError) -> DecodeProblem:
    """Build the error for a publication that is matched without reference data.

    It has no position: that would be a position in the enriched bytes, which exist in memory only.
    """
    return DecodeProblem(
        f"matched without reference data, because the enriched publication is rejected: {problem.what}",
        received=problem.received,
        accepted=problem.accepted,
    )


def _sort_tables(tables: Iterable[Lookup]) -> list[Lookup]:
    return sorted(tables, key=lambda table: table.reference.name)


def add_to_events(atoms: Atoms, added: Mapping[int, list[Added]]) -> Atoms:
    """Add the atoms of rows to those of events; paths that no subscription uses are left out."""
    where = np.array(sorted(added), np.int64)
    additions = Atoms.of((enrich_event({}, added[place]) for place in where.tolist()), atoms.paths)
    counts = np.zeros(atoms.count, np.int64)
    counts[where] = np.diff(additions.starts)
    positions = np.repeat(atoms.starts[where + 1], np.diff(additions.starts))
    payload = additions.payload + np.where(additions.kind == AtomKind.STRING, len(atoms.text), 0)
    return Atoms(
        atoms.paths,
        atoms.starts + np.concatenate([np.zeros(1, np.int64), np.cumsum(counts)]),
        np.insert(atoms.path, positions, additions.path),
        np.insert(atoms.kind, positions, additions.kind),
        np.insert(atoms.payload, positions, payload),
        np.insert(atoms.length, positions, additions.length),
        np.concatenate([atoms.text, additions.text]),
    )


def replace_documents(
    atoms: Atoms, where: npt.NDArray[np.int64], others: Atoms, which: npt.NDArray[np.int64]
) -> Atoms:
    """Replace the atoms of the documents `where` by those of the documents `which` of `others`."""
    paths, numbers = _join_paths(atoms.paths, others.paths)
    begins, counts = atoms.starts[:-1].copy(), np.diff(atoms.starts)
    begins[where] = others.starts[which] + len(atoms.path)
    counts[where] = np.diff(others.starts)[which]
    starts = np.concatenate([np.zeros(1, np.int64), np.cumsum(counts)])
    order = np.repeat(begins - starts[:-1], counts) + np.arange(starts[-1])
    return Atoms(
        paths,
        starts,
        np.concatenate([atoms.path, numbers[others.path]])[order],
        np.concatenate([atoms.kind, others.kind])[order],
        np.concatenate([atoms.payload, others.payload + len(atoms.text)])[order],
        np.concatenate([atoms.length, others.length])[order],
        np.concatenate([atoms.text, others.text]),
        np.concatenate([atoms.parent, others.parent])[order],
    )


def _join_paths(
    paths: tuple[str, ...], others: tuple[str, ...]
) -> tuple[tuple[str, ...], npt.NDArray[np.int32]]:
    """Return the union of paths, and the index in it of each of the others. Usually `others` extends `paths`."""
    if others[: len(paths)] == paths:
        return others, np.arange(len(others), dtype=np.int32)
    ids = {path: number for number, path in enumerate(paths)}
    numbers = np.array([ids.setdefault(path, len(ids)) for path in others], np.int32)
    return tuple(ids), numbers
