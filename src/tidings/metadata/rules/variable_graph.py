"""Graph of the variables of a normal rule, which must be a tree whose root is the registered variable.

A join rule returns the resources of one side and drops those of the other. So each variable is joined once, together
with its subtree, and all its comparisons with its parent are in that one join:

    search A a, B b register a where a.x = b and a.y = b

Two joins would also hold for a resource whose x and y are two different Bs. In a cycle of three or more variables, the
comparison that closes it would have the same problem, and a join has only two sides. So `break_cycles` removes cycles
along references; a cycle without them is rejected:

    search A a, B b, C c register a where a.x = b.x and b.y = c.y and c.z = a.z
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import islice, product

from tidings.core.source_text import Span
from tidings.errors import Place
from tidings.metadata.rules import semantic_errors as problems
from tidings.metadata.rules.atomic import JoinPredicate
from tidings.metadata.rules.tree import And, Comparison, Operator, Path, Rule, Step
from tidings.metadata.schema.model import Schema


def list_predicates(normal: Rule) -> tuple[Comparison, ...]:
    """List the comparisons of a normal rule, whose condition is a conjunction."""
    if normal.where is None:
        return ()
    parts = normal.where.parts if isinstance(normal.where, And) else (normal.where,)
    return tuple(part for part in parts if isinstance(part, Comparison))


def list_joins(normal: Rule) -> Iterator[tuple[str, JoinPredicate, str, Comparison]]:
    """Yield comparisons of two variables, or of a variable with itself."""
    for comparison in list_predicates(normal):
        left, right = comparison.left, comparison.right
        if isinstance(left, Path) and isinstance(right, Path):
            predicate = JoinPredicate(_property(left), comparison.operator, _property(right))
            yield left.variable, predicate, right.variable, comparison


def _property(path: Path) -> str | None:
    """Return a property, a path with dots where a cycle was broken, or None for the resource itself."""
    return ".".join(step.property for step in path.steps) if path.steps else None


def build_adjacency(normal: Rule) -> dict[str, dict[str, list[JoinPredicate]]]:
    """Map each variable to its neighbours, which may include itself, with the predicates seen from it."""
    adjacency: dict[str, dict[str, list[JoinPredicate]]] = {each.variable: {} for each in normal.searched}
    for left, predicate, right, _ in list_joins(normal):
        adjacency[left].setdefault(right, []).append(predicate)
        if left != right:
            adjacency[right].setdefault(left, []).append(predicate.flipped())
    return adjacency


def find_cycle_closing(normal: Rule) -> Comparison | None:
    """Return the comparison that closes a cycle of three or more variables, if there is one."""
    return _connect(normal)[1]


def _connect(normal: Rule) -> tuple[dict[str, set[str]], Comparison | None]:
    """Return the connected component of each variable, up to the first comparison that closes a cycle."""
    part = {each.variable: {each.variable} for each in normal.searched}
    linked: set[frozenset[str]] = set()
    for left, _, right, comparison in list_joins(normal):
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
    """Check that the variables form a tree. `several` says that the rule is one of several alternatives."""
    part, closing = _connect(normal)
    if closing is not None:
        raise problems.cyclic_variables(place(closing.span))
    for each in rule.searched:
        if each.variable not in part[rule.register]:
            raise problems.disconnected_variable(each.variable, rule.register, several, place(each.span))


# Cycles are broken along single-valued references.
#
#     search CycleProvider c, DataProvider d register c
#     where c.serverInformation = s and s.memory > d.synthValue and c.serverPort = d.serverPort
#
# Here c, s and d form a cycle. But c determines s, so a comparison of s with d can be rewritten as one of c with d,
# which goes into the one join of c and d:
#
#     where c.serverInformation = s and c.serverInformation.memory > d.synthValue and c.serverPort = d.serverPort
#
# The comparison with the reference itself stays, with all other comparisons of s. So paths need no check of classes on
# the way: the reference is checked next to them. A cycle without such references is not changed, and is rejected.


MAX_ATTEMPTS = 64
"""How many choices of determining references are tried."""

ReferenceComparisons = Mapping[str, Comparison]
"""For variables determined by a reference: the comparison with it, such as `c.serverInformation = s`."""


def break_cycles(normal: Rule, schema: Schema, classes: Mapping[str, str]) -> Rule:
    """Return an equivalent rule without cycles if possible, otherwise the rule. Most rules have none."""
    if find_cycle_closing(normal) is None:
        return normal
    for references in islice(_choose_references(list_predicates(normal), schema, classes), MAX_ATTEMPTS):
        lifted = [_lift(each, references) for each in list_predicates(normal)]
        if find_cycle_closing(_with_comparisons(normal, lifted)) is None:
            return _with_comparisons(normal, _restore_originals(normal, lifted))
    return normal


def _restore_originals(normal: Rule, lifted: list[Comparison]) -> list[Comparison]:
    """Undo as many rewrites as possible: properties are indexed, but paths are followed for each pair."""
    comparisons = lifted
    for at, original in enumerate(list_predicates(normal)):
        attempt = [*comparisons[:at], original, *comparisons[at + 1 :]]
        if find_cycle_closing(_with_comparisons(normal, attempt)) is None:
            comparisons = attempt
    return comparisons


def _with_comparisons(normal: Rule, comparisons: Sequence[Comparison]) -> Rule:
    return replace(normal, where=And(tuple(dict.fromkeys(comparisons))))


def _choose_references(
    comparisons: Sequence[Comparison], schema: Schema, classes: Mapping[str, str]
) -> Iterator[ReferenceComparisons]:
    """Yield acyclic choices of a determining reference, or none, for each variable."""
    candidates: dict[str, list[Comparison | None]] = {}
    for comparison in comparisons:
        variable = _determined_variable(comparison, schema, classes)
        if variable is not None:
            candidates.setdefault(variable, []).append(comparison)
    for chosen in product(*([*options, None] for options in candidates.values())):
        references = {
            variable: each for variable, each in zip(candidates, chosen, strict=True) if each is not None
        }
        if all(_is_acyclic(variable, references) for variable in references):
            yield references


def _determined_variable(comparison: Comparison, schema: Schema, classes: Mapping[str, str]) -> str | None:
    """Return the variable that a comparison equates with a single-valued reference."""
    left, right = comparison.left, comparison.right
    if comparison.operator is not Operator.EQUAL or not isinstance(left, Path) or not isinstance(right, Path):
        return None
    reference, target = (left, right) if left.steps else (right, left)
    if target.steps or len(reference.steps) != 1 or reference.variable == target.variable:
        return None
    property = schema.property_of(classes[reference.variable], reference.steps[0].property)
    return None if property is None or property.several else target.variable


def _reference(comparison: Comparison) -> tuple[str, Step]:
    path = comparison.left
    if not isinstance(path, Path) or not path.steps:
        assert isinstance(comparison.right, Path)
        path = comparison.right
    return path.variable, path.steps[0]


def _is_acyclic(variable: str, references: ReferenceComparisons) -> bool:
    """Whether following references upwards from a variable ends."""
    at = variable
    for _ in references:
        if at not in references:
            return True
        at = _reference(references[at])[0]
    return at not in references


def _lift(comparison: Comparison, references: ReferenceComparisons) -> Comparison:
    """Rewrite a comparison to the variables that determine its own. Those with the references stay."""
    left, right = comparison.left, comparison.right
    if not isinstance(left, Path) or not isinstance(right, Path) or comparison in references.values():
        return comparison
    return replace(comparison, left=_lift_path(left, references), right=_lift_path(right, references))


def _lift_path(path: Path, references: ReferenceComparisons) -> Path:
    while path.variable in references:
        variable, step = _reference(references[path.variable])
        path = Path(variable, (step, *path.steps), path.span)
    return path
