"""Comparison of the batch decoder of JSON with the specification, document by document."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from tests.support.atoms import events_of
from tidings.errors import DecodeProblem
from tidings.events.json_batch_decoder import DecodedLines, decode_many
from tidings.events.json_decoder import decode, publication_id
from tidings.events.kernel_tables import PathTable

BETWEEN = b'9",}]'
"""Separates documents: a decoder that reads beyond the end of a document finds valid input to continue with."""


def decode_bodies(bodies: Sequence[bytes], paths: Iterable[str], id_field: str | None = "id") -> DecodedLines:
    buffer = np.frombuffer(BETWEEN + b"".join(body + BETWEEN for body in bodies), np.uint8)
    sizes = np.array([len(body) for body in bodies], np.int64)
    ends = np.cumsum(sizes + len(BETWEEN))
    return decode_many(buffer, ends - sizes, ends, PathTable(paths), id_field)


def by_definition(body: bytes, id_field: str = "id") -> tuple[dict[str, Any] | None, str | None]:
    """Return the event and the id, or None for a rejected body."""
    try:
        return dict(decode(body)), publication_id(body, id_field)
    except DecodeProblem:
        return None, None


def with_types(event: Any) -> dict[str, list[tuple[type, str]]]:
    """Represent values with their types, so that 1, 1.0 and true differ, and 0.0 and -0.0."""
    return {path: [(type(value), repr(value)) for value in values] for path, values in event.items()}


def same_as_definition(
    bodies: Sequence[bytes], unwanted: Sequence[str] = (), id_field: str = "id"
) -> DecodedLines:
    expected = [by_definition(body, id_field) for body in bodies]
    all_paths = sorted({path for event, _ in expected for path in event or ()} | {"", "a.b.c", "other", "é"})
    paths = [path for path in all_paths if path not in unwanted]
    got = decode_bodies(bodies, paths, id_field)
    for body, event, (wanted, name), ok, id in zip(
        bodies, events_of(got.atoms), expected, got.ok, got.ids.to_pylist(), strict=True
    ):
        assert (wanted is not None) == ok, body
        requested = {path: values for path, values in (wanted or {}).items() if path in paths}
        assert with_types(event) == with_types(requested), body
        assert id == name, body
    assert [i for i, _ in got.rejects] == np.flatnonzero(~got.ok).tolist()
    return got
