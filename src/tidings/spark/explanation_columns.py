"""Explanations and bindings as columns, the same in results of `match` and in the data source."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import pyarrow as pa

from tidings.model import Reason
from tidings.notification_text import binding_rows
from tidings.values import show

EXPLANATION = pa.list_(pa.struct([("predicate", pa.string()), ("value", pa.string()), ("path", pa.string())]))
EXPLANATION_TYPE = "array<struct<predicate: string, value: string, path: string>>"
BINDINGS = pa.list_(pa.map_(pa.string(), pa.string()))
BINDINGS_TYPE = "array<map<string, string>>"


def encode_reasons(because: Iterable[Reason]) -> list[tuple[str, str | None, str | None]]:
    """Return the rows of an explanation."""
    return [
        (reason.predicate, None if reason.value is None else show(reason.value), reason.at)
        for reason in because
    ]


def encode_bindings(bindings: dict[str, Any] | None) -> list[list[tuple[str, str]]] | None:
    """Return the rows of bindings as maps; None if there are none."""
    return [list(row.items()) for row in binding_rows(bindings)] if bindings else None
