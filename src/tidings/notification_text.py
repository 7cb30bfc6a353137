"""Text of notifications for people: reasons, bindings and changes of objects.

`price < 200` that held because of 180 reads `price 180 < 200`. A notification of a changed object has no bound
variables: its bindings describe the change.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from typing import Any

from tidings.model import Notification, Reason
from tidings.values import show

_SPELLED_PATH = re.compile(r'("[^"]*"|[^\s"]+) ')


def format_reasons(reasons: Iterable[Reason]) -> str:
    """Format all reasons on one line."""
    return "; ".join(map(format_reason, reasons))


MOST_REASONS = 3
"""Reasons per match in lists of many matches."""


def list_reasons(reasons: Sequence[Reason], bindings: dict[str, Any] | None) -> list[str]:
    """Format the first reasons of a match and its first bindings, one string each."""
    variables = [f"?{name} = {value}" for row in binding_rows(bindings)[:1] for name, value in row.items()]
    return [*map(format_reason, reasons[:MOST_REASONS]), *variables]


def format_reason(reason: Reason) -> str:
    """Format a reason; a predicate without a value stays as written."""
    if reason.predicate.startswith("?"):  # a constraint of a graph variable
        name, _, constraint = reason.predicate.partition(" ")
        return f"{name} {show(reason.value) if reason.value is not None else ''} {constraint}"
    path = _SPELLED_PATH.match(reason.predicate)
    is_edge = reason.predicate.startswith("(")  # of a graph pattern: its terms are in the bindings
    if reason.value is None or path is None or is_edge:
        return reason.predicate
    if path[1] == "exists":
        return f"{reason.predicate} ({show(reason.value)})"
    return f"{path[1]} {show(reason.value)} {reason.predicate[path.end() :]}"


def binding_rows(bindings: dict[str, Any] | None) -> list[dict[str, str]]:
    """Return the rows of bindings (SPARQL results in JSON): the value of each variable."""
    rows = bindings["results"]["bindings"] if bindings and not _is_change(bindings) else []
    return [{name: value["value"] for name, value in row.items()} for row in rows]


def format_bindings(bindings: dict[str, Any] | None) -> str:
    """Format the first row of bindings, and the number of further rows."""
    rows = binding_rows(bindings)
    if not rows:
        return ""
    first = ", ".join(f"?{name} = {value}" for name, value in rows[0].items())
    others = f" and {len(rows) - 1:,} more" if len(rows) > 1 else ""
    return f"{first}{others}"


def find_change(notification: Notification) -> dict[str, Any] | None:
    """Return the change of an object, if the notification is about one."""
    bindings = notification.bindings
    return bindings if bindings and _is_change(bindings) else None


def _is_change(bindings: dict[str, Any]) -> bool:
    return "object" in bindings


def format_change(notification: Notification) -> str:
    """Format a change: `Script2 updated (title)`, `Notes linked (usedIn Script3) by Ada`; empty for no change."""
    changed = find_change(notification)
    if changed is None:
        return ""
    linked = f"{changed['association']} {changed['other_label']}" if changed.get("association") else ""
    about = linked or ", ".join(changed.get("attributes") or ())
    by = f" by {changed['author_label']}" if changed.get("author") else ""
    return escape_line(f"{changed['label']} {notification.kind}{f' ({about})' if about else ''}{by}")


def format_limits(notification: Notification) -> str:
    """Format the limits that were reached: `(followed for 3 steps only: 5 more lead on)`; others may be affected."""
    limits = (find_change(notification) or {}).get("limits")
    return f"({'; '.join(limits)})" if limits else ""


def escape_line(text: str) -> str:
    """Escape a text with line ends or terminal control characters: names of objects may contain anything."""
    return text if text.isprintable() else text.encode("unicode_escape").decode("ascii")
