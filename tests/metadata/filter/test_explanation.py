"""Explanations of changes: in a resource and in what it strongly refers to, nearest first."""

from __future__ import annotations

from tidings.metadata.filter.changes import (
    MAX_VISITED,
    DocumentChanges,
    TouchedResources,
    compare_versions,
    explain_change,
)
from tidings.metadata.filter.explanation import MAX_REASONS
from tidings.metadata.resources import Resource
from tidings.notification_text import format_reasons


def chain_of(length: int) -> dict[str, list[tuple[str, str]]]:
    return {f"#{i}": [("next", f"#{i + 1}")] for i in range(length)}


def touched(uri: str) -> TouchedResources:
    before, after = (Resource(uri, "Node", {"size": (size,)}) for size in (1, 2))
    return TouchedResources.of([compare_versions([before], [after])])


def test_explain_change_shows_path_to_changed_property() -> None:
    assert format_reasons(explain_change("#0", touched("#3"), chain_of(5))) == "next.next.next.size 2 was 1"


def test_explain_change_terminates_on_cycle() -> None:
    circle = chain_of(2) | {"#2": [("next", "#0")]}
    assert format_reasons(explain_change("#1", touched("#1"), circle)) == "size 2 was 1"


def test_explain_change_limits_visited_resources() -> None:
    far = f"#{MAX_VISITED + 10}"
    text = format_reasons(explain_change("#0", touched(far), chain_of(MAX_VISITED + 20)))
    assert text == "the resource, or one that it refers to, has changed"


def test_explain_change_limits_reasons() -> None:
    new = tuple(Resource(f"#new{i}", "Node", {}) for i in range(2 * MAX_REASONS))
    strong = {"#0": [("near", each.uri) for each in new]}
    assert len(explain_change("#0", TouchedResources.of([DocumentChanges(new=new)]), strong)) == MAX_REASONS
