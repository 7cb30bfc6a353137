"""Which texts of a shape must be compiled individually, because their literals could change the result.

A shape is compiled once, as if all its literals were distinct and valid. That is right for a text unless two
of its predicates are equal, a range is empty, or the schema rejects a literal. A false alarm only costs time,
so these checks err on that side.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import combinations

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from tidings.events.operators import BETWEEN, EQ, GE, GT, IN, IS_A, LE, LT
from tidings.events.predicate_tree import Comparison, Not, Slots, Tree, comparisons
from tidings.events.rewrites import clauses_of, comparison_of, is_single
from tidings.events.schema.domains import LISTED, Domain
from tidings.events.schema.event_schema import EventSchema
from tidings.events.skeletons import Mask, equal, is_before
from tidings.matching.compiler.plan import Literals

Columns = Mapping[int, Literals]


def find_guarded_texts(
    tree: Tree, clauses: Tree, columns: Columns, schema: EventSchema | None, rows: int
) -> Mask:
    """Return which rows of a shape must be compiled individually; `clauses` is the tree in clauses."""
    suspect = np.zeros(rows, np.bool_)
    leaves = [leaf for leaf in comparisons(tree) if isinstance(leaf.operand, Slots)]
    for left, right in combinations(leaves, 2):
        if _are_alike(left, right):
            suspect |= _are_equal(left, right, columns)
    for leaf in leaves:
        if leaf.operator is BETWEEN:
            low, high = _columns(leaf, columns)
            suspect |= ~(is_before(low, high) | equal(low, high))
    if schema is not None and not schema.is_empty:
        suspect |= _against_schema(leaves, clauses, columns, schema, suspect)
    return suspect


def _columns(leaf: Comparison, columns: Columns) -> list[Literals]:
    assert isinstance(leaf.operand, Slots)
    return [columns[ordinal] for ordinal in leaf.operand.ordinals]


def _are_alike(left: Comparison, right: Comparison) -> bool:
    """Return whether the two would be the same predicate if their literals were equal."""
    assert isinstance(left.operand, Slots) and isinstance(right.operand, Slots)
    same_operand = left.kind is right.kind and len(left.operand.ordinals) == len(right.operand.ordinals)
    return left.path == right.path and left.operator is right.operator and same_operand


def _are_equal(left: Comparison, right: Comparison, columns: Columns) -> Mask:
    pairs = zip(_columns(left, columns), _columns(right, columns), strict=True)
    return np.asarray(np.logical_and.reduce([equal(*pair) for pair in pairs]), np.bool_)


def _against_schema(
    leaves: Sequence[Comparison], clauses: Tree, columns: Columns, schema: EventSchema, none: Mask
) -> Mask:
    suspect = none.copy()
    for leaf in leaves:
        domain = schema.domain_of(leaf.path)
        if domain is not None and not leaf.operator.on_text:
            suspect |= _unknown_values(leaf, domain, columns, none)
    for clause in clauses_of(clauses):
        suspect |= _maybe_impossible(clause, columns, schema, none)
    return suspect


def _unknown_values(leaf: Comparison, domain: Domain, columns: Columns, none: Mask) -> Mask:
    if domain.kind in LISTED:
        values = pa.array([value.encode() for value in domain.values], pa.binary())
        masks = [pc.is_in(column, value_set=values) for column in _columns(leaf, columns)]
        return np.asarray(~np.logical_and.reduce([np.asarray(mask) for mask in masks]), np.bool_)
    bounded = domain.minimum is not None or domain.maximum is not None
    return ~none if bounded and leaf.operator in (EQ, IN) else none


def _maybe_impossible(clause: Sequence[Tree], columns: Columns, schema: EventSchema, none: Mask) -> Mask:
    """Return rows where one value may not satisfy all predicates of a clause on a single-valued attribute."""
    suspect = none.copy()
    paths = {comparison_of(part).path for part in clause}
    for path in paths:
        about = [part for part in clause if comparison_of(part).path == path]
        domain = schema.domain_of(path)
        if domain is not None and is_single(path, schema) and not _always_possible(about, domain):
            suspect |= ~_rising_pair(about, domain, columns, none)
    return suspect


def _always_possible(about: Sequence[Tree], domain: Domain) -> bool:
    """Return whether no test must hold, or only one that its literal or a neighbouring value satisfies."""
    required = [part for part in about if isinstance(part, Comparison)]
    if not required or len(about) > 1:
        return not required
    if domain.kind in LISTED:
        return required[0].operator in (EQ, IN, LE, GE, IS_A)
    return domain.minimum is None and domain.maximum is None


def _rising_pair(about: Sequence[Tree], domain: Domain, columns: Columns, none: Mask) -> Mask:
    """Return rows whose only requirement is one value above a lower and below a higher bound."""
    if domain.kind in LISTED or domain.minimum is not None or domain.maximum is not None:
        return none
    lower = [part for part in about if not isinstance(part, Not) and comparison_of(part).operator in (GT, GE)]
    upper = [part for part in about if not isinstance(part, Not) and comparison_of(part).operator in (LT, LE)]
    if len(about) != 2 or len(lower) != 1 or len(upper) != 1:
        return none
    return is_before(*_columns(comparison_of(lower[0]), columns), *_columns(comparison_of(upper[0]), columns))
