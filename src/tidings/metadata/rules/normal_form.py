"""Normal form of rules (section 3.3 of paper 001): without `or`, and with paths of at most one step.

    search CycleProvider c register c where c.serverInformation.memory > 64

    search CycleProvider c, ServerInformation s register c where c.serverInformation = s and s.memory > 64

A normal rule is a rule, too. Rules are validated before; only their size is checked here. The graph of the variables of
a normal rule must be a tree whose root is the registered variable: a join rule returns the resources of one side and
drops those of the other. So each variable is joined once, together with its subtree, and all its comparisons with its
parent are in that one join:

    search A a, B b register a where a.x = b and a.y = b

Two joins would also hold for a resource whose x and y are two different Bs. In a cycle of three or more variables, the
comparison that closes it would have the same problem, and a join has only two sides. So `break_cycles` removes cycles
along references, by longer paths; a cycle without them is rejected:

    search A a, B b, C c register a where a.x = b.x and b.y = c.y and c.z = a.z
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import islice, product
from math import prod

from tidings.core.source_text import Span
from tidings.errors import Place
from tidings.metadata.rules import rule_errors as problems
from tidings.metadata.rules.rule_parser import RULE_LIMITS
from tidings.metadata.rules.syntax import (
    And,
    Comparison,
    Condition,
    Constant,
    Operator,
    Path,
    Rule,
    Step,
    Variable,
)
from tidings.metadata.schema.model import Schema, format_instant
from tidings.values import Kind, parse_instant

FLIPPED_OPERATORS = {
    Operator.LESS: Operator.GREATER,
    Operator.AT_MOST: Operator.AT_LEAST,
    Operator.GREATER: Operator.LESS,
    Operator.AT_LEAST: Operator.AT_MOST,
    Operator.EQUAL: Operator.EQUAL,
    Operator.UNEQUAL: Operator.UNEQUAL,
}


@dataclass(frozen=True, slots=True)
class JoinPredicate:
    """A comparison of two resources by a property or a path of each; None is the resource itself.

    `contains` has no mirrored operator. With `swapped`, the right value contains the left one.
    """

    left: str | None
    operator: Operator
    right: str | None
    swapped: bool = False

    def flip(self) -> JoinPredicate:
        """Return the same predicate with the sides exchanged."""
        if self.operator in FLIPPED_OPERATORS:
            return JoinPredicate(self.right, FLIPPED_OPERATORS[self.operator], self.left)
        return JoinPredicate(self.right, self.operator, self.left, not self.swapped)


def is_path(property: str | None) -> bool:
    """Whether a compared property is a path through references."""
    return property is not None and "." in property


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
            adjacency[right].setdefault(left, []).append(predicate.flip())
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
    """Check that the variables form a tree. `several` means that the rule is one of several alternatives."""
    part, closing = _connect(normal)
    if closing is not None:
        raise problems.cyclic_variables(place=place(closing.span))
    for searched in rule.searched:
        if searched.variable not in part[rule.register]:
            raise problems.disconnected_variable(
                searched.variable, rule.register, several, place(searched.span)
            )


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
"""Maximum number of choices of determining references that are tried."""

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
    for index, original in enumerate(list_predicates(normal)):
        attempt = [*comparisons[:index], original, *comparisons[index + 1 :]]
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
    current = variable
    for _ in references:
        if current not in references:
            return True
        current = _reference(references[current])[0]
    return current not in references


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


Conjunction = tuple[Comparison, ...]


def normalize_rule(
    rule: Rule, schema: Schema, types: Mapping[str, str], limit: int = RULE_LIMITS.alternatives
) -> tuple[Rule, ...]:
    """Return the normal rules whose union is a rule. `types` are the classes of named rules."""
    count = 1 if rule.where is None else _count_alternatives(rule.where)
    if count > limit:
        raise problems.too_many_alternatives(count, limit)
    alternatives = ((),) if rule.where is None else _alternatives(rule.where)
    normal = (_Normalization(rule, schema, types).normalize(each) for each in alternatives)
    return tuple(dict.fromkeys(normal))


def _count_alternatives(condition: Condition) -> int:
    """Count alternatives without building them."""
    if isinstance(condition, Comparison):
        return 1
    counts = [_count_alternatives(part) for part in condition.parts]
    return prod(counts) if isinstance(condition, And) else sum(counts)


def _alternatives(condition: Condition) -> tuple[Conjunction, ...]:
    if isinstance(condition, Comparison):
        return ((condition,),)
    parts = [_alternatives(part) for part in condition.parts]
    if not isinstance(condition, And):
        return tuple(each for part in parts for each in part)
    product: tuple[Conjunction, ...] = ((),)
    for part in parts:
        product = tuple((*before, *each) for before in product for each in part)
    return product


def class_of(extension: str, schema: Schema, types: Mapping[str, str]) -> str:
    """Return the class of the resources that a variable ranges over."""
    return extension if extension in schema.classes else types[extension]


class _Normalization:
    """The normalization of one alternative of a rule."""

    def __init__(self, rule: Rule, schema: Schema, types: Mapping[str, str]) -> None:
        self.schema = schema
        self.register = rule.register
        self.searched = list(rule.searched)
        self.classes = {each.variable: class_of(each.extension, schema, types) for each in rule.searched}
        self.reached: dict[tuple[str, str], str] = {}
        self.predicates: list[Comparison] = []

    def normalize(self, comparisons: Conjunction) -> Rule:
        for comparison in comparisons:
            assert isinstance(comparison.left, Path), "the parser puts constants to the right"
            left = self.shorten(comparison.left)
            right = (
                self.shorten(comparison.right)
                if isinstance(comparison.right, Path)
                else self.convert_constant(comparison.right, left)
            )
            self.predicates.append(Comparison(left, comparison.operator, right, comparison.span))
        unique = tuple(dict.fromkeys(self.predicates))
        where = And(unique) if len(unique) > 1 else unique[0] if unique else None
        return break_cycles(Rule(tuple(self.searched), self.register, where), self.schema, self.classes)

    def shorten(self, path: Path) -> Path:
        """Return a path of at most one step. Equal prefixes of paths use the same variable."""
        variable = path.variable
        for step in path.steps[:-1]:
            variable = self.variable_at(variable, step, path.span)
        return Path(variable, path.steps[-1:], path.span)

    def variable_at(self, variable: str, step: Step, span: Span) -> str:
        """Return the variable at the end of a reference.

        `c.hosts?.memory > 64 and c.hosts?.cpu > 500` may hold for two different hosts: `?` creates a new variable.
        """
        existing = self.reached.get((variable, step.property))
        if existing is not None and not step.any:
            return existing
        property = self.schema.property_of(self.classes[variable], step.property)
        assert property is not None and property.leads_to is not None, "rules are validated before"
        new = self.new_variable(property.leads_to)
        self.searched.append(Variable(property.leads_to, new, span))
        self.classes[new] = property.leads_to
        self.reached[variable, step.property] = new
        self.predicates.append(
            Comparison(Path(variable, (step,), span), Operator.EQUAL, Path(new, (), span), span)
        )
        return new

    def new_variable(self, cls: str) -> str:
        name = variable_initial(cls)
        return next(
            candidate
            for candidate in (name, *(f"{name}{n}" for n in range(2, len(self.classes) + 3)))
            if candidate not in self.classes
        )

    def convert_constant(self, constant: Constant, path: Path) -> Constant:
        """Convert a constant to the kind of the property: quoted URIs to resources, dates to canonical instants."""
        cls = self.classes[path.variable]
        property = self.schema.property_of(cls, path.steps[0].property) if path.steps else None
        if property is None or property.leads_to is not None:
            return Constant(constant.value, True, constant.span)
        if property.kind is Kind.INSTANT and isinstance(constant.value, str):
            instant = parse_instant(constant.value)
            text = format_instant(instant) if instant else None
            assert text is not None, "rules are validated before"
            return Constant(text, span=constant.span)
        return constant


def variable_initial(cls: str) -> str:
    """Return the name of a variable for a class: `s` for ServerInformation, as in the paper."""
    first = cls.rpartition(":")[2][:1].lower()
    return first if first.isalpha() else "x"
