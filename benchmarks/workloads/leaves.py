"""Leaves: values of documents, and the paths by which a subscription can refer to each."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import product
from typing import NamedTuple


class Leaf(NamedTuple):
    """A value: the number of its child of the document element (0: none), its steps, whether it is only text."""

    branch: int
    steps: tuple[str, ...]
    value: str
    plain: bool = False


class Variant(NamedTuple):
    """Steps with or without wildcards, after a path (`//last`) and at the start of one (`.//last`)."""

    after: str
    first: str
    number: int


NO_STEPS = Variant("", "", 0)


class Choice(NamedTuple):
    """A leaf for subscriptions: the step to its branch, if it is in one, and the following steps.

    The index of a variant is its code: two bits for each step, one for `*` and one for `//`. `alike` has the literals
    of all leaves at the same steps.
    """

    branch: int
    tag: str
    to_branch: Sequence[Variant]
    inner: Sequence[Variant]
    inner_text: Sequence[Variant]
    literal: str
    number: int | None
    alike: Sequence[str]


class Choices:
    """Factory of choices, which share their common parts."""

    def __init__(self) -> None:
        self._variants: dict[tuple[str, ...], tuple[Variant, ...]] = {}
        self._numbers = {"": 0}
        self._literals: dict[tuple[str, ...], list[str]] = {}
        self.root: Sequence[Variant] = ()

    def of(self, leaves: Sequence[Leaf]) -> list[Choice]:
        return [self._choice(leaf) for leaf in leaves]

    def _choice(self, leaf: Leaf) -> Choice:
        root, *below = leaf.steps
        self.root = self._ways((root,))
        tag, inner = (below[0], tuple(below[1:])) if len(below) > 1 else ("", tuple(below))
        literal, alike = quoted(leaf.value), self._literals.setdefault(leaf.steps, [])
        alike.append(literal)
        return Choice(
            leaf.branch,
            tag,
            self._ways((tag,)) if tag else (),
            self._ways(inner),
            self._ways((*inner, "text()")) if leaf.plain else (),
            literal,
            int(leaf.value) if leaf.value.isascii() and leaf.value.isdigit() else None,
            alike,
        )

    def _ways(self, steps: tuple[str, ...]) -> tuple[Variant, ...]:
        if steps not in self._variants:
            ways = product(*([_step(step, code) for code in range(4)] for step in steps))
            self._variants[steps] = tuple(self._variant("".join(way)) for way in ways)
        return self._variants[steps]

    def _variant(self, after: str) -> Variant:
        first = f".{after}" if after.startswith("//") else after[1:]
        return Variant(after, first, self._numbers.setdefault(after, len(self._numbers)))


def _step(name: str, code: int) -> str:
    if code & 1 and name != "text()":
        name = "@*" if name.startswith("@") else "*"
    return ("//" if code & 2 else "/") + name


def quoted(value: str) -> str:
    """Return a literal of XPath, which cannot contain both kinds of quotes."""
    return f"'{value}'" if '"' in value else f'"{value}"'
