"""The way back: the text of a rule, a query or a condition, in the one form that equal trees are shown in."""

from __future__ import annotations

import re

from tidings.languages.rules_tokens import WORD
from tidings.languages.rules_tree import (
    Both,
    Comparison,
    Condition,
    Constant,
    Either,
    Path,
    Query,
    Rule,
    Searched,
    Step,
)
from tidings.values import show as show_value

_OF_RULES = ("search", "register", "where", "and", "or", "not", "contains", "true", "false")
_OF_QUERIES = ("select", "order", "by", "asc", "desc", "limit")
KEYWORDS = frozenset((*_OF_RULES, *_OF_QUERIES))
_BARE = re.compile(rf"{WORD}(?::{WORD})?")
_URI = re.compile(r"[^<>\s=][^<>\s]*")


def show(tree: Rule | Query) -> str:
    """The text of a rule or a query; `parse`, or `parse_query`, reads the same tree from it."""
    if isinstance(tree, Rule):
        return show_head(tree.searched, tree.register) + _show_where(tree.where)
    shown = show_head(tree.searched, tree.of) + _show_where(tree.where)
    if tree.select:
        shown += " select " + ", ".join(map(show_path, tree.select))
    if tree.order:
        ordered = (show_path(path) + (" desc" if falls else "") for path, falls in tree.order)
        shown += " order by " + ", ".join(ordered)
    return shown if tree.limit is None else f"{shown} limit {tree.limit}"


def show_head(searched: tuple[Searched, ...], register: str) -> str:
    listed = ", ".join(f"{show_name(each.extension)} {each.variable}" for each in searched)
    return f"search {listed} register {register}"


def _show_where(where: Condition | None) -> str:
    return "" if where is None else f" where {show_condition(where)}"


def show_condition(condition: Condition) -> str:
    if isinstance(condition, Comparison):
        return show_comparison(condition)
    word = " and " if isinstance(condition, Both) else " or "
    return word.join(_show_part(part) for part in condition.parts)


def _show_part(part: Condition) -> str:
    shown = show_condition(part)
    return f"({shown})" if isinstance(part, Both | Either) else shown


def show_comparison(comparison: Comparison) -> str:
    left, right = _show_operand(comparison.left), _show_operand(comparison.right)
    return f"{left} {comparison.compares.value} {right}"


def _show_operand(operand: Path | Constant) -> str:
    return show_path(operand) if isinstance(operand, Path) else show_constant(operand)


def show_path(path: Path) -> str:
    return path.variable + "".join(_show_step(step) for step in path.steps)


def _show_step(step: Step) -> str:
    name = step.property if _BARE.fullmatch(step.property) else f'"{step.property}"'
    return f".{name}?" if step.any else f".{name}"


def show_constant(constant: Constant) -> str:
    """A constant as it is written; a URI that no brackets can hold is quoted, which the checker takes for the same."""
    if constant.is_resource and _URI.fullmatch(str(constant.value)):
        return f"<{constant.value}>"
    return show_value(constant.value)


def show_name(name: str) -> str:
    """The name of a class or of a rule: bare where that reads back, else in double quotes."""
    bare = _BARE.fullmatch(name) and name.lower() not in KEYWORDS
    return name if bare else f'"{name}"'
