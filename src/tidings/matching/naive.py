"""What a match is. Ten lines that define the truth; everything faster is tested against them."""

from __future__ import annotations

from tidings.atoms import Event
from tidings.languages.tree import And, Not, Or, Tree


def matches(tree: Tree, event: Event) -> bool:
    """Whether an event satisfies a subscription: its tree as `compiler.pipeline.understand` gives it."""
    if isinstance(tree, And):
        return all(matches(part, event) for part in tree.parts)
    if isinstance(tree, Or):
        return any(matches(part, event) for part in tree.parts)
    if isinstance(tree, Not):
        return not matches(tree.part, event)
    return any(tree.holds(value) for value in event.get(tree.path, ()))
