"""What is said about rules that parse, but contradict the schema, other rules or themselves."""

from __future__ import annotations

from collections.abc import Iterable

from tidings.errors import CheckProblem, Place, TooLarge
from tidings.metadata.rules.syntax_errors import suggest_name
from tidings.metadata.rules.tree import Operator, Step
from tidings.metadata.schema.model import Schema
from tidings.values import Kind

ValueKind = Kind | None
"""What is compared: values of a kind, or resources, which are None."""

_ORDER = "numbers and dates have an order"
_SAID = {
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
    what = f"'{step.property}' is {_SAID[kind]} and has no properties"
    return CheckProblem(what, place=place, hint=f"leave .{following.property} out")


def incompatible_kinds(left: ValueKind, right: ValueKind, is_written: bool, place: Place) -> CheckProblem:
    """`is_written` says that the right one is a constant, whose quotes may be wrong."""
    what = f"{_SAID[left]} is compared with {_SAID[right]}: it can never hold"
    hint = _QUOTES.get((left, right)) if is_written else None
    return CheckProblem(what, place=place, hint=hint)


_QUOTES: dict[tuple[ValueKind, ValueKind], str] = {
    (Kind.NUMBER, Kind.STRING): "numbers stand without quotes",
    (Kind.STRING, Kind.NUMBER): "strings stand in single quotes",
}


def unsupported_operator(
    compares: Operator, sort: ValueKind, accepted: Iterable[Operator], place: Place
) -> CheckProblem:
    what = f"'{compares.value}' is not for {_SAID[sort].removeprefix('a ')}s"
    hint = "strings have it" if compares is Operator.CONTAINS else _ORDER
    return CheckProblem(what, place=place, accepted=" ".join(each.value for each in accepted), hint=hint)


def constant_not_instant(place: Place) -> CheckProblem:
    accepted = "such as 2004-05-31 or 2004-05-31T12:30:00Z"
    return CheckProblem("not a date or date-time", place=place, accepted=accepted)


def contains_empty_string(place: Place) -> CheckProblem:
    accepted = "a string with something in it"
    return CheckProblem("every string contains the empty one", place=place, accepted=accepted)


def disjoint_classes(left: str, right: str, place: Place) -> CheckProblem:
    return CheckProblem(f"no {left} is a {right}: they can never be compared", place=place)


def disconnected_variable(variable: str, register: str, several: bool, place: Place) -> CheckProblem:
    which = " in every alternative of 'or'" if several else ""
    hint = f"compare {variable} or its properties with {register} or its properties{which}"
    what = f"nothing connects '{variable}' with '{register}', which is registered"
    return CheckProblem(what, place=place, hint=hint)


def cyclic_variables(place: Place) -> CheckProblem:
    what = "these variables are connected already, through others: a circle cannot be asked for"
    hint = "a circle needs a reference with one value that leads on from one of them to the next, without '?'"
    return CheckProblem(what, place=place, hint=hint)


def cyclic_rules(names: Iterable[str]) -> CheckProblem:
    what = f"rules search each other in a circle: {', '.join(names)}"
    return CheckProblem(what, accepted="rules that search classes, or rules that do not search them")


def name_of_class(name: str) -> CheckProblem:
    return CheckProblem(f"there is a class '{name}'", accepted="a name for the rule that no class has")


def too_many_alternatives(alternatives: int, limit: int) -> TooLarge:
    received, accepted = f"{alternatives:,} rules without 'or'", f"at most {limit:,}"
    return TooLarge("the rule would be split up into too many", received=received, accepted=accepted)


def too_many_joins(levels: int, atomics: int) -> TooLarge:
    accepted = f"at most {levels:,} joins one above the other, and {atomics:,} atomic rules"
    return TooLarge("the rule has too many joins", accepted=accepted, hint="search fewer rules in rules")


def multivalued_order(step: Step, place: Place) -> CheckProblem:
    what = f"'{step.property}' may have several values: which one decides the order?"
    return CheckProblem(what, place=place, accepted="paths with one value")


def order_not_selected(variable: str, shown: Iterable[str], place: Place) -> CheckProblem:
    """With several `d` for a result, which of them would decide?"""
    what = f"'{variable}' is not shown: nothing can be ordered by it"
    hint = f"select {variable}, or something of it, too"
    return CheckProblem(what, place=place, accepted=f"paths from {' and '.join(shown)}", hint=hint)
