"""Checks of a predicate tree against the event schema, which also resolve operators and literals.

`contains` becomes equality where values are not free text; quoted dates become instants where instants are
compared; `<` on a hierarchy becomes the hierarchy's order; a list of several kinds becomes one list per kind.
After these steps a predicate no longer depends on the schema.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from tidings.core.source_text import Span
from tidings.core.suggest import EVENT_TYPE, did_you_mean, shorten_list
from tidings.errors import CheckProblem
from tidings.events.operators import BETWEEN, CONTAINS, EQ, IN, IS_A, OPERATORS, Takes
from tidings.events.predicate_parser import as_instant
from tidings.events.predicate_tree import Comparison, Spans, Tree, either, rewrite
from tidings.events.schema.domains import LISTED, Domain, DomainKind
from tidings.matching.compiler.language import Context
from tidings.values import BETWEEN_MICROSECONDS, WHOLE_MICROSECONDS, Instant, Kind, Literal, kind_of, show

_KIND_OF_DOMAIN = {
    DomainKind.NUMERIC: Kind.NUMBER,
    DomainKind.STRING: Kind.STRING,
    DomainKind.BOOLEAN: Kind.BOOLEAN,
    DomainKind.INSTANT: Kind.INSTANT,
    DomainKind.ENUMERATED: Kind.STRING,
    DomainKind.HIERARCHICAL: Kind.STRING,
}
_EXAMPLE = {
    Kind.NUMBER: "a number such as 200",
    Kind.STRING: "a string such as 'oak'",
    Kind.BOOLEAN: "true or false",
    Kind.INSTANT: "a date or date-time such as 2004-05-31 or 2004-05-31T12:30:00Z",
}
_NAMED = {
    Kind.NUMBER: "a number",
    Kind.STRING: "a string",
    Kind.BOOLEAN: "a boolean",
    Kind.INSTANT: "an instant",
}


GIVE_A_SCHEMA = "declare one in a schema: tidings schema extend FILE, or tidings match --schema FILE"


def check(tree: Tree, context: Context) -> Tree:
    """Check and resolve every predicate of the tree."""
    return rewrite(tree, lambda comparison: _resolve(comparison, context))


def _resolve(comparison: Comparison, context: Context) -> Tree:
    domain = _find_domain(comparison, context)
    resolved: Tree = comparison
    for step in STEPS:
        assert isinstance(resolved, Comparison), "only the last step may split a predicate"
        resolved = step(resolved, domain, context)
    return resolved


def _find_domain(comparison: Comparison, context: Context) -> Domain | None:
    schema, path = context.schema, comparison.path
    if schema is None or schema.is_empty:
        return None
    domain = schema.domain_of(path)
    if domain is None and not schema.open:
        raise context.problem(
            f"no event type has an attribute '{path}'",
            comparison.spans.path,
            hint=did_you_mean(path, [EVENT_TYPE, *schema.attributes]),
        )
    return domain


def resolve_contains(comparison: Comparison, domain: Domain | None, _: Context) -> Comparison:
    """Resolve `contains` to membership in the set of values, unless the values are free text (paper 004)."""
    if comparison.operator is not CONTAINS:
        return comparison
    free = domain is None or domain.kind is DomainKind.STRING
    if free and isinstance(comparison.operand, str) and comparison.path != EVENT_TYPE:
        return comparison
    return replace(comparison, operator=EQ)


def read_literals(comparison: Comparison, domain: Domain | None, context: Context) -> Comparison:
    """Read quoted dates as instants where instants are compared, unless the schema declares strings."""
    if comparison.operator.on_text or comparison.operator is IS_A:
        return comparison
    if domain is not None and _KIND_OF_DOMAIN[domain.kind] is not Kind.INSTANT:
        return comparison
    read = tuple(_read(literal, span, context) for literal, span in _literals_with_spans(comparison))
    return _with_literals(comparison, read)


def _read(literal: Literal, span: Span, context: Context) -> Literal:
    instant = as_instant(literal) if isinstance(literal, str) else None
    if instant is not None and instant.between:
        raise context.problem(BETWEEN_MICROSECONDS, span, accepted=WHOLE_MICROSECONDS)
    return literal if instant is None else instant


def _with_literals(comparison: Comparison, literals: tuple[Literal, ...]) -> Comparison:
    if comparison.operator.takes in (Takes.PAIR, Takes.SEVERAL):
        return replace(comparison, operand=literals)
    return replace(comparison, operand=literals[0]) if literals else comparison


def check_kinds(comparison: Comparison, domain: Domain | None, context: Context) -> Comparison:
    """Check that each literal is of a kind that the domain has and the operator takes."""
    operator = comparison.operator
    if operator.on_text and domain is not None and domain.kind in (DomainKind.NUMERIC, DomainKind.BOOLEAN):
        message = f"'{operator.spelling}' is for strings, but {comparison.path} is {domain.kind}"
        raise context.problem(message, comparison.spans.operator)
    for literal, span in _literals_with_spans(comparison):
        kind = kind_of(literal)
        if kind not in operator.kinds:
            raise context.problem(_not_taken(operator.spelling, kind), span)
        if domain is not None and not operator.on_text:
            _check_kind(comparison.path, literal, span, domain, context)
    return comparison


def _not_taken(spelling: str, kind: Kind) -> str:
    if kind is Kind.BOOLEAN and spelling not in ("starts with", "ends with"):
        return f"booleans have no order: '{spelling}' cannot compare them"
    return f"'{spelling}' takes a string, not {_NAMED[kind]}"


def _check_kind(path: str, literal: Literal, span: Span, domain: Domain, context: Context) -> None:
    kind = _KIND_OF_DOMAIN[domain.kind]
    if kind_of(literal) is not kind:
        message = f"{path} is {domain.kind}, but {show(literal)} is {_NAMED[kind_of(literal)]}"
        hint = f"write '{show(literal)}'" if kind is Kind.STRING and not isinstance(literal, str) else None
        raise context.problem(message, span, accepted=_EXAMPLE[kind], hint=hint)


def _literals_with_spans(comparison: Comparison) -> list[tuple[Literal, Span]]:
    return list(zip(comparison.literals, comparison.spans.literals, strict=True))


def check_values(comparison: Comparison, domain: Domain | None, context: Context) -> Comparison:
    """Check that literals compared for equality, and those of listed domains, are values of the domain."""
    operator = comparison.operator
    if domain is None or operator.on_text or (domain.kind not in LISTED and operator not in (EQ, IN)):
        return comparison
    for literal, span in _literals_with_spans(comparison):
        is_valid = isinstance(literal, Instant) or domain.accepts(literal)
        if not is_valid:
            raise _unknown_value(comparison.path, literal, span, domain, context)
    return comparison


def _unknown_value(path: str, literal: Literal, span: Span, domain: Domain, context: Context) -> CheckProblem:
    if domain.kind not in LISTED:
        return context.problem(f"{path} cannot be {show(literal)}", span, accepted=bounds(domain))
    named = domain.name if domain.name == path else f"{domain.name}, the domain of {path}"
    message = f"{show(literal)} is not a value of {named}"
    hint = did_you_mean(str(literal), domain.values)
    return context.problem(message, span, accepted=shorten_list(domain.values), hint=hint)


def bounds(domain: Domain) -> str | None:
    """Format the bounds of a numeric domain; None if it has none."""
    low, high = domain.minimum, domain.maximum
    limits = [f">= {low}" if low is not None else "", f"<= {high}" if high is not None else ""]
    return " and ".join(filter(None, limits)) or None


def resolve_order(comparison: Comparison, domain: Domain | None, context: Context) -> Comparison:
    """Use the domain's own order on a listed domain; refuse order comparisons if it has none."""
    operator, path = comparison.operator, comparison.path
    if operator is IS_A and (domain is None or domain.kind is not DomainKind.HIERARCHICAL):
        reason = "no schema declares one" if domain is None else f"{path} is {domain.kind}"
        message = f"'is a' needs an attribute with a hierarchical domain, but {reason}"
        accepted = None if domain is None else _operators(domain)
        hint = GIVE_A_SCHEMA if domain is None else None
        raise context.problem(message, comparison.spans.operator, accepted=accepted, hint=hint)
    if domain is None or domain.kind not in LISTED or not (operator.ordered or operator is BETWEEN):
        return comparison
    if not domain.is_ordered:
        message = f"the values of {domain.name} have no order: '{operator.spelling}' cannot compare them"
        raise context.problem(message, comparison.spans.operator, accepted=_operators(domain))
    if operator is BETWEEN:
        return _between_values(comparison, domain, context)
    return replace(comparison, order=domain)


def _operators(domain: Domain) -> str:
    """List the operators for attributes of a domain that is not a hierarchy."""
    ordered = domain.is_ordered if domain.kind in LISTED else domain.kind is not DomainKind.BOOLEAN
    fitting = [
        operator.spelling
        for operator in OPERATORS
        if operator is not IS_A
        and (ordered or not (operator.ordered or operator is BETWEEN))
        and (domain.kind is DomainKind.STRING or operator is CONTAINS or not operator.on_text)
    ]
    return ", ".join(fitting)


def _between_values(comparison: Comparison, domain: Domain, context: Context) -> Comparison:
    """List the values between two others in a domain's own order, since one value must be both above and below."""
    low, high = (str(literal) for literal in comparison.literals)
    within = [value for value in domain.values if domain.at_most(low, value) and domain.at_most(value, high)]
    if not within:
        raise _nothing_between(comparison, domain.at_most(high, low), context)
    spans = Spans(comparison.spans.path, comparison.spans.operator)
    return replace(comparison, operator=IN, operand=tuple(within), spans=spans)


def check_bounds(comparison: Comparison, _: Domain | None, context: Context) -> Comparison:
    """Check that the literals of `between` are of one kind, the lower one first."""
    if comparison.operator is not BETWEEN:
        return comparison
    low, high = comparison.literals
    if kind_of(low) is not kind_of(high):
        kinds = f"{show(low)} is {_NAMED[kind_of(low)]}, {show(high)} is {_NAMED[kind_of(high)]}"
        message = f"'between' takes two values of one kind: {kinds}"
        raise context.problem(message, comparison.spans.literals[1])
    if low > high:  # type: ignore[operator]
        raise _nothing_between(comparison, True, context)
    return comparison


def _nothing_between(comparison: Comparison, swapped: bool, context: Context) -> CheckProblem:
    low, high = comparison.literals
    lower, upper = comparison.spans.literals
    hint = f"write between {show(high)} and {show(low)}" if swapped else None
    message = f"no value is between {show(low)} and {show(high)}"
    return context.problem(message, Span(lower.start, upper.end), hint=hint)


def split_kinds(comparison: Comparison, _: Domain | None, __: Context) -> Tree:
    """Split a list into one list per kind of literal; a list of one literal is an equality."""
    if comparison.operator is not IN:
        return comparison
    if not comparison.spans.literals:
        return comparison
    located = _literals_with_spans(comparison)
    kinds = sorted({kind_of(literal) for literal, _ in located})
    return either(tuple(_of_kind(comparison, kind, located) for kind in kinds))


def _of_kind(comparison: Comparison, kind: Kind, located: list[tuple[Literal, Span]]) -> Comparison:
    chosen = [(literal, span) for literal, span in located if kind_of(literal) is kind]
    spans = replace(comparison.spans, literals=tuple(span for _, span in chosen))
    literals = tuple(literal for literal, _ in chosen)
    if len(literals) == 1:
        return replace(comparison, operator=EQ, operand=literals[0], spans=spans)
    return replace(comparison, operand=literals, spans=spans)


STEPS: tuple[Callable[[Comparison, Domain | None, Context], Tree], ...] = (
    resolve_contains,
    read_literals,
    check_kinds,
    check_values,
    resolve_order,
    check_bounds,
    split_kinds,
)
"""The steps for each predicate, in this order."""
