"""Errors of rules and queries: texts that do not parse, and rules that contradict the schema or each other."""

from __future__ import annotations

from collections.abc import Iterable
from functools import partial

from tidings.core import suggest
from tidings.core.source_text import Tokens
from tidings.errors import CheckProblem, NotSupported, Place, SyntaxProblem, TooLarge
from tidings.metadata.rules.syntax import Operator, Step
from tidings.metadata.schema.model import Schema
from tidings.values import Kind

SUPPORTED = "paths and constants compared by = != < <= > >= contains, and, or"
_EXAMPLE = "search CycleProvider c register c where c.memory > 64"
_WRITTEN = {"==": "=", "<>": "!=", "=<": "<=", "=>": ">=", "&&": "and", "||": "or", "&": "and", "|": "or"}
_ARITHMETIC = frozenset("+-*/%")
_STRINGS = "contains looks for plain characters within a string, without wildcards"
_OPPOSITE = "write the opposite operator: != instead of not =, <= instead of not >"
_OPERATORS = {
    "like": _STRINGS,
    "matches": _STRINGS,
    "starts": _STRINGS,
    "ends": _STRINGS,
    "in": "join comparisons with or: c.port = 80 or c.port = 443",
    "between": "join two comparisons with and: c.memory >= 64 and c.memory <= 128",
    "is": "for a class, write search CycleProvider c; for one resource, write c = <uri>",
    "not": _OPPOSITE,
}


def not_supported(construct: str, place: Place, hint: str | None = None) -> NotSupported:
    """Build the error; `what` includes its verb: 'functions are', 'the operator like is'."""
    return NotSupported(f"{construct} not supported in rules", place=place, accepted=SUPPORTED, hint=hint)


def suggest_name(name: str, names: Iterable[str]) -> str | None:
    """Suggest the known name that is most similar, ignoring case."""
    by_lower = {known_name.lower(): known_name for known_name in names}
    similar = suggest.closest(name.lower(), by_lower)
    return f"did you mean '{by_lower[similar]}'?" if similar else None


multiple_registered = partial(
    not_supported, "registering several variables is", hint="write a rule for each of them"
)
unsupported_negation = partial(not_supported, "'not' is", hint=_OPPOSITE)
any_of_variable = partial(
    not_supported,
    "'?' after a variable is",
    hint="'?' follows a property that has several values: c.tags? = 'x'",
)
two_constants = partial(
    not_supported, "comparing two constants is", hint="compare a path with a constant: c.memory > 64"
)
constant_contains = partial(
    not_supported, "a constant before contains is", hint="put the path first: c.host contains 'uni-passau.de'"
)
chained_comparison = partial(
    not_supported, "a chained comparison is", hint="join two comparisons: 1 < c.a and c.a < 5"
)
arithmetic = partial(not_supported, "arithmetic is", hint="compare a path with a number: c.memory > 64")

number_too_large = partial(
    SyntaxProblem, "the number is too large", accepted="numbers a 64-bit double can hold"
)
_NO_DATE, _DATES = "not a date or date-time", "such as 2004-05-31 or 2004-05-31T12:30:00Z"
invalid_instant = partial(SyntaxProblem, _NO_DATE, accepted=_DATES)
constant_not_instant = partial(CheckProblem, _NO_DATE, accepted=_DATES)
unclosed_parenthesis = partial(SyntaxProblem, "this '(' is never closed", accepted="a ')' after it")
contains_empty_string = partial(
    CheckProblem, "every string contains the empty one", accepted="a non-empty string"
)
cyclic_variables = partial(
    CheckProblem,
    "these variables are already connected through others: a cycle of joins is not supported",
    hint="cycles work only along single-valued references (without '?') from one variable to the next",
)


def empty_text(text: str) -> SyntaxProblem:
    return SyntaxProblem("the text is empty", place=Place.at(text, 0), accepted=f"a rule such as {_EXAMPLE}")


def too_many(plural: str, limit: int, place: Place) -> SyntaxProblem:
    return SyntaxProblem(f"too many {plural}", place=place, accepted=f"at most {limit} in a rule")


def too_deeply_nested(limit: int, place: Place) -> SyntaxProblem:
    accepted = f"at most {limit} levels of (...)"
    return SyntaxProblem("the text is nested too deeply", place=place, accepted=accepted)


def unexpected_token(accepted: str, tokens: Tokens, index: int, hint: str | None = None) -> SyntaxProblem:
    """Report a token where something else was expected."""
    word, previous = tokens.words[index], tokens.words[index - 1] if index else ""
    if word in _WRITTEN:
        return SyntaxProblem(f"write '{_WRITTEN[word]}' instead of '{word}'", place=tokens.place(index))
    context = f" after {previous if previous[:1] == chr(39) else repr(previous)}" if previous else ""
    return SyntaxProblem(f"expected {accepted}{context}", place=tokens.place(index), hint=hint)


def missing_search(tokens: Tokens) -> SyntaxProblem:
    hint = suggest_name(tokens.words[0], ("search",)) or f"a rule is {_EXAMPLE}"
    return unexpected_token("'search'", tokens, 0, hint)


def missing_operator(tokens: Tokens, index: int) -> SyntaxProblem:
    """Report the token after an operand that is not an operator."""
    word, place = tokens.words[index], tokens.place(index)
    if word.lower() in _OPERATORS:
        return not_supported(f"the operator '{word.lower()}' is", place, _OPERATORS[word.lower()])
    if word in _ARITHMETIC:
        return arithmetic(place)
    if word.startswith("<"):
        return unexpected_token("an operator", tokens, index, "put a space after < if it is an operator")
    accepted = "an operator (= != < <= > >= contains)"
    return unexpected_token(accepted, tokens, index, suggest_name(word, ("contains",)) if word else None)


def trailing_text(tokens: Tokens, index: int, accepted: str) -> SyntaxProblem:
    """Report the token after a complete condition."""
    word, place = tokens.words[index], tokens.place(index)
    if word in _ARITHMETIC:
        return arithmetic(place)
    if word in ("=", "!=", "<", "<=", ">", ">=") or word.lower() == "contains":
        return chained_comparison(place)
    if word == ")":
        return SyntaxProblem("unmatched ')'", place=place, hint="remove it, or add the missing '('")
    hint = suggest_name(word, ("and", "or")) if word else None
    return unexpected_token(f"'and', 'or' or {accepted}", tokens, index, hint)


def only_in_queries(word: str, place: Place) -> NotSupported:
    return not_supported(
        f"'{word.lower()}' is", place, "only queries have it; a rule registers whole resources"
    )


def unsupported_function(name: str, place: Place) -> NotSupported:
    hint = "write c.host contains 'x'" if name.lower() == "contains" else None
    return not_supported(f"the function {name}() is", place, hint or "compare the property itself")


def quoted_operand(written: str, place: Place) -> SyntaxProblem:
    hint = f"put strings in single quotes: '{written[1:-1]}'"
    return SyntaxProblem("double quotes are for names of classes and properties", place=place, hint=hint)


def invalid_limit(tokens: Tokens, index: int) -> SyntaxProblem:
    return unexpected_token("a number of results, 1 or more,", tokens, index)


def declared_twice(variable: str, place: Place) -> CheckProblem:
    hint = "give each variable a name of its own"
    return CheckProblem(f"the variable '{variable}' is declared twice", place=place, hint=hint)


def unknown_variable(variable: str, variables: Iterable[str], alone: bool, place: Place) -> CheckProblem:
    """Report an unknown variable; a single word may have been meant as a string."""
    variables = list(variables)
    hint = suggest_name(variable, variables) or (
        f"put strings in single quotes: '{variable}'" if alone else None
    )
    accepted = "the variables of 'search': " + ", ".join(variables)
    return CheckProblem(f"unknown variable '{variable}'", place=place, accepted=accepted, hint=hint)


def unknown_registered(variable: str, variables: Iterable[str], place: Place | None) -> CheckProblem:
    variables = list(variables)
    hint = suggest_name(variable, variables) or f"write register {variables[0]}"
    return CheckProblem(f"'{variable}' is registered, but not searched", place=place, hint=hint)


def not_registered(variables: Iterable[str], place: Place) -> SyntaxProblem:
    hint = f"write register {next(iter(variables))} after the search clause"
    return SyntaxProblem("several variables, but no 'register'", place=place, accepted="register", hint=hint)


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
    message = f"{cls} has no property '{step.property}'"
    return CheckProblem(message, place=place, accepted=", ".join(sorted(own)) or None, hint=hint)


def missing_any(step: Step, place: Place) -> CheckProblem:
    hint = f"write {step.property}? for any of them"
    return CheckProblem(f"'{step.property}' may have several values", place=place, hint=hint)


def superfluous_any(step: Step, place: Place) -> CheckProblem:
    message = f"'{step.property}' has one value at most"
    return CheckProblem(message, place=place, hint=f"write {step.property} without '?'")


def path_through_literal(step: Step, kind: Kind, following: Step, place: Place) -> CheckProblem:
    message = f"'{step.property}' is {_KIND_NAMES[kind]} and has no properties"
    return CheckProblem(message, place=place, hint=f"leave .{following.property} out")


def incompatible_kinds(left: ValueKind, right: ValueKind, is_written: bool, place: Place) -> CheckProblem:
    """With `is_written`, the right side is a constant, whose quotes may be wrong."""
    message = f"{_KIND_NAMES[left]} is compared with {_KIND_NAMES[right]}: it can never hold"
    hint = _QUOTES.get((left, right)) if is_written else None
    return CheckProblem(message, place=place, hint=hint)


_QUOTES: dict[tuple[ValueKind, ValueKind], str] = {
    (Kind.NUMBER, Kind.STRING): "write numbers without quotes",
    (Kind.STRING, Kind.NUMBER): "put strings in single quotes",
}


def unsupported_operator(
    operator: Operator, sort: ValueKind, accepted: Iterable[Operator], place: Place
) -> CheckProblem:
    message = f"'{operator.value}' does not apply to {_KIND_NAMES[sort].removeprefix('a ')}s"
    hint = "it compares strings only" if operator is Operator.CONTAINS else _ORDER
    return CheckProblem(message, place=place, accepted=" ".join(each.value for each in accepted), hint=hint)


def disjoint_classes(left: str, right: str, place: Place) -> CheckProblem:
    return CheckProblem(f"no {left} is a {right}: the comparison can never hold", place=place)


def disconnected_variable(variable: str, register: str, several: bool, place: Place) -> CheckProblem:
    which = " in every alternative of 'or'" if several else ""
    hint = f"compare {variable} or its properties with {register} or its properties{which}"
    message = f"nothing connects '{variable}' with '{register}', which is registered"
    return CheckProblem(message, place=place, hint=hint)


def cyclic_rules(names: Iterable[str]) -> CheckProblem:
    message = f"rules search each other in a cycle: {', '.join(names)}"
    return CheckProblem(message, accepted="rules that search classes, or other rules without a cycle")


def name_of_class(name: str) -> CheckProblem:
    return CheckProblem(f"'{name}' is the name of a class", accepted="a name that no class has")


def too_many_alternatives(alternatives: int, limit: int) -> TooLarge:
    received, accepted = f"{alternatives:,} rules without 'or'", f"at most {limit:,}"
    return TooLarge("the rule has too many alternatives", received=received, accepted=accepted)


def too_many_joins(levels: int, atomics: int) -> TooLarge:
    accepted = f"at most {levels:,} nested joins and {atomics:,} atomic rules"
    return TooLarge("the rule has too many joins", accepted=accepted, hint="nest fewer rules")


def multivalued_order(step: Step, place: Place) -> CheckProblem:
    message = f"'{step.property}' may have several values: it cannot decide the order"
    return CheckProblem(message, place=place, accepted="single-valued paths")


def order_not_selected(variable: str, shown: Iterable[str], place: Place) -> CheckProblem:
    """Reject an order by a variable that is not selected: it may have several bindings for one result."""
    message = f"'{variable}' is not selected, so results cannot be ordered by it"
    hint = f"select {variable}, or one of its properties, too"
    return CheckProblem(message, place=place, accepted=f"paths from {' and '.join(shown)}", hint=hint)
