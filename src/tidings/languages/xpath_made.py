"""Nodes of XPath trees, made without their constructors.

The constructor of a frozen dataclass sets each field through `object.__setattr__`, which looks its name up; setting the
slots themselves takes half the time, and making nodes is half of parsing. The nodes are the same.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tidings.documents import Axis, NodeKind
from tidings.languages.tree import Span
from tidings.languages.xpath_tree import Expression, Found, Path, Step, ValueOperator

_new = object.__new__


def _setters(kind: type[Span | Step | Path | Found]) -> list[Callable[[Any, Any], None]]:
    """What sets each field, in the order of the fields."""
    return [kind.__dict__[name].__set__ for name in kind.__slots__]


_span_start, _span_end = _setters(Span)
_step_axis, _step_kind, _step_name, _step_predicates, _step_span = _setters(Step)
_path_absolute, _path_steps, _path_span = _setters(Path)
_found_path, _found_operator, _found_literal, _found_span = _setters(Found)


def span_of(start: int, end: int) -> Span:
    made = _new(Span)
    _span_start(made, start)
    _span_end(made, end)
    return made


def step_of(axis: Axis, kind: NodeKind, name: str, predicates: tuple[Expression, ...], span: Span) -> Step:
    made = _new(Step)
    _step_axis(made, axis)
    _step_kind(made, kind)
    _step_name(made, name)
    _step_predicates(made, predicates)
    _step_span(made, span)
    return made


def path_of(absolute: bool, steps: tuple[Step, ...], span: Span) -> Path:
    made = _new(Path)
    _path_absolute(made, absolute)
    _path_steps(made, steps)
    _path_span(made, span)
    return made


def found_of(path: Path, operator: ValueOperator | None, literal: str | float | None, span: Span) -> Found:
    made = _new(Found)
    _found_path(made, path)
    _found_operator(made, operator)
    _found_literal(made, literal)
    _found_span(made, span)
    return made
