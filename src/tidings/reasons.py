"""Reasons and bindings of notifications, as people read them.

`price < 200` that held because of 180 reads as `price 180 < 200`. A notification of a changed object has no variables
that are bound: its bindings say what changed.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from typing import Any

from tidings.model import Notification, Reason
from tidings.values import show

_SPELLED_PATH = re.compile(r'("[^"]*"|[^\s"]+) ')


def because(reasons: Iterable[Reason]) -> str:
    """All reasons on one line."""
    return "; ".join(map(show_reason, reasons))


SAID = 3
"""Reasons of a match that are said where there are many matches."""


def in_words(reasons: Sequence[Reason], bindings: dict[str, Any] | None) -> list[str]:
    """The first reasons of a match, and the first binding of its variables, one by one."""
    bound = [f"?{name} = {value}" for row in bound_rows(bindings)[:1] for name, value in row.items()]
    return [*map(show_reason, reasons[:SAID]), *bound]


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
    rows = bindings["results"]["bindings"] if bindings and not _is_change(bindings) else []
    return [{name: value["value"] for name, value in row.items()} for row in rows]


def bound(bindings: dict[str, Any] | None) -> str:
    """The first binding of a graph's variables, and how many more there are."""
    rows = bound_rows(bindings)
    if not rows:
        return ""
    first = ", ".join(f"?{name} = {value}" for name, value in rows[0].items())
    more = f" and {len(rows) - 1:,} more" if len(rows) > 1 else ""
    return f"{first}{more}"


def change_of(told: Notification) -> dict[str, Any] | None:
    """What changed, if it is an object that did."""
    return told.bindings if told.bindings and _is_change(told.bindings) else None


def _is_change(bindings: dict[str, Any]) -> bool:
    return "object" in bindings


def show_change(told: Notification) -> str:
    """`Script2 updated (title)`, `DataStructures linked (usedIn Script3) by Ada`; nothing if no object changed."""
    changed = change_of(told)
    if changed is None:
        return ""
    linked = f"{changed['association']} {changed['other_label']}" if changed.get("association") else ""
    about = linked or ", ".join(changed.get("attributes") or ())
    by = f" by {changed['author_label']}" if changed.get("author") else ""
    return one_line(f"{changed['label']} {told.kind}{f' ({about})' if about else ''}{by}")


def show_limits(told: Notification) -> str:
    """`(followed for 3 steps only: 5 more lead on)`, where a limit was reached: others may be concerned, too."""
    limits = (change_of(told) or {}).get("limits")
    return f"({'; '.join(limits)})" if limits else ""


def one_line(text: str) -> str:
    """Names of objects are whatever a database has: what would end a line, or steer a terminal, is written out."""
    return text if text.isprintable() else text.encode("unicode_escape").decode("ascii")
