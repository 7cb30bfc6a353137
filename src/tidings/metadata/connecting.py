"""How the variables of a normal rule hang together: each must be reached from the registered one, in one way.

A join rule gives resources of one side and forgets those of the other. So a variable is asked once, with all that hangs
on it, and then it is gone. All that compares it with the one that it is reached from is asked in one join:

    search A a, B b register a where a.x = b and a.y = b

Two joins would be true of a resource whose x and y are two different Bs. In a circle of three or more, what closes it
would be asked of another resource in the same way, and no join has more than two. So circles are opened before, along
references (`folding`); one that cannot be opened is refused.

    search A a, B b, C c register a where a.x = b.x and b.y = c.y and c.z = a.z
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

from tidings.errors import Place
from tidings.languages.rules_tree import Both, Comparison, Path, Rule
from tidings.languages.tree import Span
from tidings.metadata import rule_problems as problems
from tidings.metadata.atomic import Predicate


def predicates(normal: Rule) -> tuple[Comparison, ...]:
    """The predicates of a normal rule, which are joined by `and` only."""
    if normal.where is None:
        return ()
    parts = normal.where.parts if isinstance(normal.where, Both) else (normal.where,)
    return tuple(part for part in parts if isinstance(part, Comparison))


def joins(normal: Rule) -> Iterator[tuple[str, Predicate, str, Comparison]]:
    """Those that compare two variables, or one with itself."""
    for each in predicates(normal):
        if isinstance(each.left, Path) and isinstance(each.right, Path):
            asked = Predicate(_property(each.left), each.compares, _property(each.right))
            yield each.left.variable, asked, each.right.variable, each


def _property(path: Path) -> str | None:
    """A property; a path, where a circle was opened; or None, for the resource itself."""
    return ".".join(step.property for step in path.steps) if path.steps else None


def neighbours(normal: Rule) -> dict[str, dict[str, list[Predicate]]]:
    """The variables that each one is compared with, and how, seen from it; itself may be among them."""
    found: dict[str, dict[str, list[Predicate]]] = {each.variable: {} for each in normal.searched}
    for left, asked, right, _ in joins(normal):
        found[left].setdefault(right, []).append(asked)
        if left != right:
            found[right].setdefault(left, []).append(asked.back())
    return found


def closing(normal: Rule) -> Comparison | None:
    """The comparison that closes a circle of three variables or more, if there is one."""
    return _grown(normal)[1]


def _grown(normal: Rule) -> tuple[dict[str, set[str]], Comparison | None]:
    """The variables that each one is connected with, up to the first comparison that closes a circle."""
    part = {each.variable: {each.variable} for each in normal.searched}
    linked: set[frozenset[str]] = set()
    for left, _, right, comparison in joins(normal):
        pair = frozenset((left, right))
        if left == right or pair in linked:
            continue
        if right in part[left]:
            return part, comparison
        linked.add(pair)
        together = part[left] | part[right]
        part |= dict.fromkeys(together, together)
    return part, None


def check_connected(normal: Rule, rule: Rule, several: bool, place: Callable[[Span], Place]) -> None:
    """Refuse what a normal rule cannot be taken apart for. `several` says that it is one of several alternatives."""
    part, circle = _grown(normal)
    if circle is not None:
        raise problems.in_a_circle(place(circle.span))
    for each in rule.searched:
        if each.variable not in part[rule.register]:
            raise problems.not_connected(each.variable, rule.register, several, place(each.span))
