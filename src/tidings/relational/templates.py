"""Texts that differ only in their literals are understood once: millions of subscriptions have some thousand shapes.

    /a/b = "v1" and /a/c > 5       /a/b = "v7" and /a/c > 9       one template: /a/b = (0) and /a/c > (1)

A template is made from a text of the same shape with marks for literals. Whatever could come out otherwise is left to
the compiler: texts with declarations (their literals are names), empty strings, numbers beyond all bounds, and shapes
that the compiler does not take with marks in them.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from math import isinf
from typing import NamedTuple

from tidings.documents.xpath import xpath_parser
from tidings.documents.xpath_compiler import twigs_of
from tidings.errors import SubscriptionError
from tidings.matching.compiler.language import Context
from tidings.relational.branches import Alternative, Predicate, PredicateSet, alternative_of

LANGUAGE = "xpath"

_LITERAL = re.compile(r"""("[^"]*"|'[^']*'|(?<![\w.\-])(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+))""")
"""A number is none if a name goes on with it."""

_MARKS_FROM = 987_654_321_000.5
"""Numbers that stand for literals."""

MOST = 100_000
"""Shapes that are kept."""


class Slot(NamedTuple):
    """A predicate whose literal comes from a place of the text, with its sign; or stays as it is (place -1)."""

    predicate: Predicate
    place: int
    sign: float


Template = tuple[tuple[tuple[Slot, ...], bool], ...]
"""Of each alternative its slots, and whether it is exact."""


def alternatives_of(text: str) -> list[Alternative]:
    """What an XPath asks for."""
    return [alternative_of(twig) for twig in twigs_of(xpath_parser.parse(text), Context(text))]


def asked_by(text: str) -> list[PredicateSet]:
    """The same as predicates."""
    return [_asked(each) for each in alternatives_of(text)]


def _asked(alternative: Alternative) -> PredicateSet:
    return PredicateSet([Predicate.of(branch) for branch in alternative.branches], alternative.exact)


@dataclass(slots=True)
class Templates:
    """Understands texts, each shape once."""

    known: dict[tuple[str, ...], Template | None] = field(default_factory=dict)

    def asked_by(self, text: str) -> list[PredicateSet]:
        """What a text asks for, as predicates by alternative."""
        parts = _LITERAL.split(text)
        literals = parts[1::2]
        parts[1::2] = ["s" if literal[0] in "\"'" else "n" for literal in literals]
        template = self._template(tuple(parts))
        values = None if template is None or len(text) > xpath_parser.DEFAULT.length else _values(literals)
        return asked_by(text) if template is None or values is None else _filled(template, values)

    def _template(self, shape: tuple[str, ...]) -> Template | None:
        if shape not in self.known:
            if len(self.known) >= MOST:
                self.known.clear()
            self.known[shape] = _made(shape)
        return self.known[shape]


def _values(literals: Sequence[str]) -> list[str | float] | None:
    """The literals, or None if some need the compiler's judgement."""
    values = [literal[1:-1] if literal[0] in "\"'" else float(literal) for literal in literals]
    return (
        None
        if any(value == "" or (isinstance(value, float) and isinf(value)) for value in values)
        else values
    )


def _made(shape: tuple[str, ...]) -> Template | None:
    """The template of a shape, or None if it has none."""
    marks = [f"\ue000{n}\ue001" if kind == "s" else _MARKS_FROM + n for n, kind in enumerate(shape[1::2])]
    written = [f'"{mark}"' if isinstance(mark, str) else repr(mark) for mark in marks]
    text = "".join(part for pair in zip(shape[::2], [*written, ""], strict=True) for part in pair)
    if "declare" in text or any(mark.strip('"') in part for mark in written for part in shape[::2]):
        return None
    try:
        template = tuple(_slots(each, marks) for each in alternatives_of(text))
    except SubscriptionError:  # perhaps because of the marks: each text speaks for itself
        return None
    placed = {slot.place for slots, _ in template for slot in slots}
    return template if placed >= set(range(len(marks))) else None


def _slots(alternative: Alternative, marks: Sequence[str | float]) -> tuple[tuple[Slot, ...], bool]:
    slots = (_slot(predicate, marks) for predicate in _asked(alternative).predicates)
    return tuple(slots), alternative.exact


def _slot(predicate: Predicate, marks: Sequence[str | float]) -> Slot:
    if predicate.number is not None and abs(predicate.number) in marks:
        sign = 1.0 if predicate.number > 0 else -1.0
        return Slot(predicate, marks.index(abs(predicate.number)), sign)
    return Slot(predicate, marks.index(predicate.value) if predicate.value in marks else -1, 1.0)


def _filled(template: Template, values: Sequence[str | float]) -> list[PredicateSet]:
    return [PredicateSet(list(_predicates(slots, values)), exact) for slots, exact in template]


def _predicates(slots: Iterable[Slot], values: Sequence[str | float]) -> Iterable[Predicate]:
    for predicate, place, sign in slots:
        if place < 0:
            yield predicate
            continue
        value = values[place]
        linear, op, _, _, path, info = predicate
        if isinstance(value, str):
            yield Predicate(linear, op, value, None, path, info)
        else:
            number = sign * value + 0.0
            yield Predicate(linear, op, repr(number), number, path, info)
