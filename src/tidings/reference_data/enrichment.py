"""Publications enriched with the rows of reference tables that belong to them.

`enriched_document` and `enriched_event` are the definition. Documents of a batch are enriched as bytes and decoded once
more (`enriched_body`), only those that have a row; to events atoms are added.
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
from tidings.parsers.xml_bytes import as_utf8
from tidings.reference_data.declarations import REF, Reference, leads_to, linear_path
from tidings.values import Scalar

MOST_ADDED = 10_000
"""How many rows may be added to one publication; one that would get more is matched as it was published."""

Added = Mapping[str, Sequence[Scalar]]
"""What one row adds: values by field."""

Key = bytes | int | float | tuple[bool]
"""A value as it is looked up: strings by their bytes, and no boolean is a number."""


@dataclass(frozen=True, slots=True)
class Snapshot:
    """A declared table, and the file with its rows."""

    reference: Reference
    path: str


def enriched_document(document: Node, rows: Iterable[Added]) -> Node:
    """The document with an element `ref` for each row as last children of its document element."""
    for row in rows:
        ref = _child(document, NodeKind.ELEMENT, REF)
        for name, values in row.items():
            for value in values:
                element = _child(ref, NodeKind.ELEMENT, name, str(value))
                if value:
                    _child(element, NodeKind.TEXT, "", str(value))
                ref.value += str(value)
        document.value += ref.value
    return document


def _child(parent: Node, kind: NodeKind, name: str, value: str = "") -> Node:
    parent.children.append(Node(kind, name, value, parent))
    return parent.children[-1]


def enriched_event(event: Event, rows: Iterable[Added]) -> Event:
    """The event with an attribute `ref.name` for each field of the rows, beside values that it has there itself."""
    made = {path: list(values) for path, values in event.items()}
    for row in rows:
        for name, values in row.items():
            made.setdefault(f"{REF}.{name}", []).extend(values)
    return made


def enriched_body(body: bytes, rows: Iterable[Added]) -> bytes:
    """The same as `enriched_document` in bytes, for a document that is well-formed. They are UTF-8."""
    text = as_utf8(body)
    if text is not body:
        text = _ENCODING.sub(rb"\1", text, count=1)
    start, end = _last_tag(text)
    before, behind = text[:start], text[start:]
    if text.endswith(b"/>", start, end):
        name = re.split(rb"[\s/]", text[start + 1 : end], maxsplit=1)[0]
        before, behind = text[: end - 2] + b">", b"</" + name + b">" + text[end:]
    tag = b'<ref xmlns="">' if b"xmlns" in text else b"<ref>"
    return before + b"".join(tag + _content(row) + b"</ref>" for row in rows) + behind


_ENCODING = re.compile(rb"""\A(<\?xml\s[^<>]*?)\sencoding\s*=\s*["'][A-Za-z0-9._-]+["']""")
_MARKUP = re.compile(
    rb"""<!--.*?-->|<!\[CDATA\[.*?\]\]>|<\?.*?\?>|<(?:[^"'<>]++|"[^"]*+"|'[^']*+')*+>""", re.DOTALL
)


def _last_tag(text: bytes) -> tuple[int, int]:
    """Where the last tag of a document stands: the end of its document element, or an empty one as a whole.

    Behind it there may be comments and processing instructions, which end with --> and ?>, and may have tags in them.
    """
    shown = text.rstrip(b" \t\r\n")
    if not shown.endswith((b"-->", b"?>")):
        return shown.rfind(b"<"), len(shown)
    tags = (found.span() for found in _MARKUP.finditer(text) if found[0][1:2] not in b"!?")
    *_, last = tags
    return last


def _content(row: Added) -> bytes:
    return "".join(
        f"<{name}>{_escaped(str(value))}</{name}>" for name, values in row.items() for value in values
    ).encode()


def _escaped(text: str) -> str:
    """A parser makes \\n of \\r, and ]]> is no text."""
    return text if text.isalnum() else text.translate(_WRITTEN)


_WRITTEN = str.maketrans({"&": "&amp;", "<": "&lt;", ">": "&gt;", "\r": "&#13;"})


class Lookup:
    """A table in memory: rows by key. `row` says what the row with a number adds."""

    def __init__(self, reference: Reference, table: Any) -> None:
        self.reference = reference
        self._steps = linear_path(reference.on) if reference.is_of_documents else ()
        self.row = lru_cache(maxsize=MOST_ADDED)(partial(_row, table["added"].combine_chunks()))
        self._rows: dict[Key, list[int]] = {}
        for number, keys in enumerate(table["keys"].to_pylist()):
            for key in keys:
                self._rows.setdefault(_key(json.loads(key)), []).append(number)

    def among(self, atoms: Atoms) -> dict[int, set[int]]:
        """Which rows belong to each publication that has some; if they are too many, not all of them."""
        found: dict[int, set[int]] = {}
        places = np.flatnonzero(self._is_here(atoms.paths)[atoms.path]) if len(atoms.path) else _NOWHERE
        publications = np.searchsorted(atoms.starts, places, side="right") - 1
        for publication, key in zip(publications.tolist(), _keys(atoms, places), strict=True):
            if key in self._rows and len(mine := found.setdefault(publication, set())) <= MOST_ADDED:
                mine.update(self._rows[key][: MOST_ADDED + 1])
        return found

    def _is_here(self, paths: tuple[str, ...]) -> npt.NDArray[np.bool_]:
        """Which of the paths are where the key is looked for."""
        if self._steps:
            return np.array([_leads_to(self._steps, path) for path in paths], np.bool_)
        return np.array([path == self.reference.on for path in paths], np.bool_)


def _row(added: Any, number: int) -> Added:
    made: Added = json.loads(added[number].as_py())
    return made


_NOWHERE = np.empty(0, np.int64)
_leads_to = lru_cache(maxsize=1 << 17)(leads_to)


def _key(value: Scalar) -> Key:
    if isinstance(value, bool):
        return (value,)
    return value.encode() if isinstance(value, str) else value


def _keys(atoms: Atoms, places: npt.NDArray[np.int64]) -> Iterator[Key]:
    text: Any = memoryview(np.ascontiguousarray(atoms.text))  # type: ignore[arg-type]
    columns = (atoms.kind[places], atoms.payload[places], atoms.length[places])
    for kind, payload, length in zip(*(column.tolist() for column in columns), strict=True):
        if kind == AtomKind.STRING:
            yield bytes(text[payload : payload + length])
        elif kind == AtomKind.BOOLEAN:
            yield (bool(payload),)
        else:
            yield payload if kind == AtomKind.INTEGER else float(np.int64(payload).view(np.float64))


_OPEN: WeakValueDictionary[Snapshot, Lookup] = WeakValueDictionary()


def opened(snapshot: Snapshot) -> Lookup:
    """The table of a snapshot. It is read once, and stays in memory as long as somebody looks things up in it."""
    table = _OPEN.get(snapshot)
    if table is None:
        table = _OPEN[snapshot] = Lookup(snapshot.reference, pq.read_table(snapshot.path))
    return table


class Enrichment:
    """The tables that publications are joined with, in the order of their names."""

    def __init__(self, snapshots: Iterable[Snapshot]) -> None:
        self._tables = _in_order(opened(each) for each in snapshots)

    @classmethod
    def of(cls, tables: Iterable[Lookup]) -> Enrichment:
        """Tables that are in memory already."""
        made = cls(())
        made._tables = _in_order(tables)
        return made

    @property
    def is_empty(self) -> bool:
        return not self._tables

    @property
    def attributes(self) -> tuple[str, ...]:
        """What has to be decoded of events."""
        references = (table.reference for table in self._tables)
        return tuple(reference.on for reference in references if not reference.is_of_documents)

    def found(self, atoms: Atoms, are_documents: bool) -> dict[int, list[Added]]:
        """What is added to publications, by their place; tables by name, rows in the order of the table."""
        added: dict[int, list[Added]] = {}
        for table in self._tables:
            if table.reference.is_of_documents == are_documents:
                for publication, numbers in table.among(atoms).items():
                    added.setdefault(publication, []).extend(map(table.row, sorted(numbers)))
        return added


def find_added(
    enrichment: Enrichment, atoms: Atoms, are_documents: bool
) -> tuple[dict[int, list[Added]], list[tuple[int, PublicationError]]]:
    """Find the rows to add to publications, by place; and the publications that would get too many of them."""
    found = enrichment.found(atoms, are_documents)
    excessive = [place for place, rows in found.items() if len(rows) > MOST_ADDED]
    return found, [(place, _too_many_rows(found.pop(place))) for place in excessive]


def _too_many_rows(rows: list[Added]) -> DecodeProblem:
    return matched_without(
        DecodeProblem(
            "the publication has too many rows",
            received=f"{len(rows):,} rows or more",
            accepted=f"at most {MOST_ADDED:,} rows of reference tables",
        )
    )


def matched_without(problem: PublicationError) -> DecodeProblem:
    """Return the problem of a publication that is matched as published. Its place would be one in the enriched bytes,
    which only exist in memory, so it is left out.
    """
    return DecodeProblem(
        f"matched without reference data, because with it {problem.what}",
        received=problem.received,
        accepted=problem.accepted,
    )


def _in_order(tables: Iterable[Lookup]) -> list[Lookup]:
    return sorted(tables, key=lambda table: table.reference.name)


def with_events(atoms: Atoms, added: Mapping[int, list[Added]]) -> Atoms:
    """The atoms of events, and of what is added to them, as far as somebody asks about it."""
    where = np.array(sorted(added), np.int64)
    more = Atoms.of((enriched_event({}, added[place]) for place in where.tolist()), atoms.paths)
    counts = np.zeros(atoms.count, np.int64)
    counts[where] = np.diff(more.starts)
    at = np.repeat(atoms.starts[where + 1], np.diff(more.starts))
    payload = more.payload + np.where(more.kind == AtomKind.STRING, len(atoms.text), 0)
    return Atoms(
        atoms.paths,
        atoms.starts + np.concatenate([np.zeros(1, np.int64), np.cumsum(counts)]),
        np.insert(atoms.path, at, more.path),
        np.insert(atoms.kind, at, more.kind),
        np.insert(atoms.payload, at, payload),
        np.insert(atoms.length, at, more.length),
        np.concatenate([atoms.text, more.text]),
    )


def with_documents(
    atoms: Atoms, where: npt.NDArray[np.int64], others: Atoms, which: npt.NDArray[np.int64]
) -> Atoms:
    """The atoms of documents, those `where` replaced by the documents `which` of others."""
    paths, numbers = _joined(atoms.paths, others.paths)
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


def _joined(paths: tuple[str, ...], others: tuple[str, ...]) -> tuple[tuple[str, ...], npt.NDArray[np.int32]]:
    """Paths of both, and the number of each of the others. Mostly these are the same, or grown."""
    if others[: len(paths)] == paths:
        return others, np.arange(len(others), dtype=np.int32)
    ids = {path: number for number, path in enumerate(paths)}
    numbers = np.array([ids.setdefault(path, len(ids)) for path in others], np.int32)
    return tuple(ids), numbers
