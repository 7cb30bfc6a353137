"""Reasons and bindings of notifications, as people read them.

`price < 200` that held because of 180 reads as `price 180 < 200`.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Any

from tidings.model import Reason
from tidings.values import show

_SPELLED_PATH = re.compile(r'("[^"]*"|[^\s"]+) ')


def because(reasons: Iterable[Reason]) -> str:
    """All reasons on one line."""
    return "; ".join(map(show_reason, reasons))


def show_reason(reason: Reason) -> str:
    """One reason; what has no value reads as it was written."""
    if reason.predicate.startswith("?"):  # what is asked of a graph's variable
        name, _, asked = reason.predicate.partition(" ")
        return f"{name} {show(reason.value) if reason.value is not None else ''} {asked}"
    path = _SPELLED_PATH.match(reason.predicate)
    is_edge = reason.predicate.startswith("(")  # of a graph's pattern: what it is bound to is in the bindings
    if reason.value is None or path is None or is_edge:
        return reason.predicate
    if path[1] == "exists":
        return f"{reason.predicate} ({show(reason.value)})"
    return f"{path[1]} {show(reason.value)} {reason.predicate[path.end() :]}"


def bound_rows(bindings: dict[str, Any] | None) -> list[dict[str, str]]:
    """The rows of bindings, which are written as SPARQL's results in JSON: the value of each variable."""
    rows = bindings["results"]["bindings"] if bindings else []
    return [{name: value["value"] for name, value in row.items()} for row in rows]


def bound(bindings: dict[str, Any] | None) -> str:
    """The first binding of a graph's variables, and how many more there are."""
    rows = bound_rows(bindings)
    if not rows:
        return ""
    first = ", ".join(f"?{name} = {value}" for name, value in rows[0].items())
    more = f" and {len(rows) - 1:,} more" if len(rows) > 1 else ""
    return f"{first}{more}"
