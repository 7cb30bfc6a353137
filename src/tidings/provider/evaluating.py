"""Where new rules are evaluated over what is stored: by the store, or by others if that would take it long."""

from __future__ import annotations

from collections.abc import Iterable

from tidings.languages.rules_tree import Compares
from tidings.metadata.atomic import Triggering

MANY = 50_000_000
"""So many comparisons take a store most of a minute (SQLite makes about a million in a second of CPU time). In that
time Spark is started, and has read some hundred thousand resources and asked an index about them.
"""


def comparisons(rules: Iterable[Triggering], resources: int) -> int:
    """About how often a store has to compare. What is equal, and all of a class, it finds by its indexes."""
    scans = sum(rule.compares not in (None, Compares.EQUAL) for rule in rules)
    return scans * resources
