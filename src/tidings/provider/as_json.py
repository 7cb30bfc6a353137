"""What a registration came to, as JSON: the same over HTTP, at a leader and through a follower."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from tidings.metadata.schema import Schema
from tidings.store.metadata import Registered


def schema_as_json(schema: Schema, position: int) -> dict[str, Any]:
    """A schema that was loaded."""
    return {
        "position": position,
        "classes": sorted(schema.classes),
        "properties": sorted(schema.properties),
    }


def registered_as_json(uri: str, done: Registered) -> dict[str, Any]:
    """A document that was registered or removed: its place in the log, what changed in it, and what moved."""
    change, outcome = done.changes[uri], done.outcome
    counts = {name: len(getattr(change, name)) for name in ("new", "changed", "deleted", "unchanged")}
    moves = [
        *_moves("entered", outcome.entered),
        *_moves("changed", outcome.changed),
        *_moves("left", outcome.left),
    ]
    return {"uri": uri, "position": done.position, "changes": counts, "moves": moves}


def _moves(kind: str, pairs: Iterable[tuple[str, str]]) -> list[dict[str, str]]:
    return [{"rule": rule, "uri": uri, "kind": kind} for rule, uri in sorted(pairs)]
