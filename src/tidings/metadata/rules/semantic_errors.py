"""Errors of rules that parse but contradict the schema, other rules or themselves."""

from __future__ import annotations

from collections.abc import Iterable

from tidings.errors import CheckProblem, Place, TooLarge
from tidings.metadata.rules.syntax_errors import suggest_name
from tidings.metadata.rules.tree import Operator, Step
from tidings.metadata.schema.model import Schema
from tidings.values import Kind

ValueKind = Kind | None
"""The kind of a compared value; None for resources."""

_ORDER = "only numbers and dates are ordered"
_KIND_NAMES = {
    None: "a resource",
    Kind.NUMBER: "a number",
    Kind.STRING: "a string",
    Kind.BOOLEAN: "a boolean",
    Kind.INSTANT: "a date",
}


def unknown_extension(name: str, schema: Schema, rules: Iterable[str], place: Place) -> CheckProblem:
    hint = suggest_name(name, [*schema.classes, *rules])
    accepted = "a class of the schema, or the name of a rule"
    return CheckProblem(f"there is no class or rule '{name}'", place=place, accepted=accepted, hint=hint)


def unknown_property(step: Step, cls: str, schema: Schema, place: Place) -> CheckProblem:
    own = [name for name in schema.properties if schema.property_of(cls, name)]
    hint = suggest_name(step.property, own)
    if hint is None and step.property in schema.properties:
        others = " and ".join(sorted(each.of for each in schema.properties[step.property]))
        hint = f"'{step.property}' is a property of {others}"
    what = f"{cls} has no property '{step.property}'"
    return CheckProblem(what, place=place, accepted=", ".join(sorted(own)) or None, hint=hint)


def missing_any(step: Step, place: Place) -> CheckProblem:
    hint = f"write {step.property}? for any of them"
    return CheckProblem(f"'{step.property}' may have several values", place=place, hint=hint)


def superfluous_any(step: Step, place: Place) -> CheckProblem:
    what = f"'{step.property}' has one value at most"
    return CheckProblem(what, place=place, hint=f"write {step.property} without '?'")


def path_through_literal(step: Step, kind: Kind, following: Step, place: Place) -> CheckProblem:
    what = f"'{step.property}' is {_KIND_NAMES[kind]} and has no properties"
    return CheckProblem(what, place=place, hint=f"leave .{following.property} out")


def incompatible_kinds(left: ValueKind, right: ValueKind, is_written: bool, place: Place) -> CheckProblem:
    """With `is_written`, the right side is a constant, whose quotes may be wrong."""
    what = f"{_KIND_NAMES[left]} is compared with {_KIND_NAMES[right]}: it can never hold"
    hint = _QUOTES.get((left, right)) if is_written else None
    return CheckProblem(what, place=place, hint=hint)


_QUOTES: dict[tuple[ValueKind, ValueKind], str] = {
    (Kind.NUMBER, Kind.STRING): "write numbers without quotes",
    (Kind.STRING, Kind.NUMBER): "put strings in single quotes",
}


def unsupported_operator(
    operator: Operator, sort: ValueKind, accepted: Iterable[Operator], place: Place
) -> CheckProblem:
    what = f"'{operator.value}' does not apply to {_KIND_NAMES[sort].removeprefix('a ')}s"
    hint = "it compares strings only" if operator is Operator.CONTAINS else _ORDER
    return CheckProblem(what, place=place, accepted=" ".join(each.value for each in accepted), hint=hint)


def constant_not_instant(place: Place) -> CheckProblem:
    accepted = "such as 2004-05-31 or 2004-05-31T12:30:00Z"
    return CheckProblem("not a date or date-time", place=place, accepted=accepted)


def contains_empty_string(place: Place) -> CheckProblem:
    accepted = "a non-empty string"
    return CheckProblem("every string contains the empty one", place=place, accepted=accepted)


def disjoint_classes(left: str, right: str, place: Place) -> CheckProblem:
    return CheckProblem(f"no {left} is a {right}: the comparison can never hold", place=place)


def disconnected_variable(variable: str, register: str, several: bool, place: Place) -> CheckProblem:
    which = " in every alternative of 'or'" if several else ""
    hint = f"compare {variable} or its properties with {register} or its properties{which}"
    what = f"nothing connects '{variable}' with '{register}', which is registered"
    return CheckProblem(what, place=place, hint=hint)


def cyclic_variables(place: Place) -> CheckProblem:
    what = "these variables are already connected through others: a cycle of joins is not supported"
    hint = "cycles work only along single-valued references (without '?') from one variable to the next"
    return CheckProblem(what, place=place, hint=hint)


def cyclic_rules(names: Iterable[str]) -> CheckProblem:
    what = f"rules search each other in a cycle: {', '.join(names)}"
    return CheckProblem(what, accepted="rules that search classes, or other rules without a cycle")


def name_of_class(name: str) -> CheckProblem:
    return CheckProblem(f"'{name}' is the name of a class", accepted="a name that no class has")


def too_many_alternatives(alternatives: int, limit: int) -> TooLarge:
    received, accepted = f"{alternatives:,} rules without 'or'", f"at most {limit:,}"
    return TooLarge("the rule has too many alternatives", received=received, accepted=accepted)


def too_many_joins(levels: int, atomics: int) -> TooLarge:
    accepted = f"at most {levels:,} nested joins and {atomics:,} atomic rules"
    return TooLarge("the rule has too many joins", accepted=accepted, hint="nest fewer rules")


def multivalued_order(step: Step, place: Place) -> CheckProblem:
    what = f"'{step.property}' may have several values: it cannot decide the order"
    return CheckProblem(what, place=place, accepted="single-valued paths")


def order_not_selected(variable: str, shown: Iterable[str], place: Place) -> CheckProblem:
    """Reject an order by a variable that is not selected: it may have several bindings for one result."""
    what = f"'{variable}' is not selected, so results cannot be ordered by it"
    hint = f"select {variable}, or one of its properties, too"
    return CheckProblem(what, place=place, accepted=f"paths from {' and '.join(shown)}", hint=hint)
