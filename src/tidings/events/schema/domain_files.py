"""Domains in schema files.

period:   {values: [XVI, XVII, XVIII], ordered: true}             values in ascending order
repair:   {values: [new, mended, worn, broken],                   ascending chains of a partial order
           order: [[broken, worn, new], [broken, mended, new]]}
category:                                                         inner concepts are kinds of the outer one;
  concepts:                                                       a concept may occur in several places
    dining room: {table: [dining table], chair: [folding chair]}
    outdoor: [bench, folding chair]
amount:   {kind: numeric, minimum: 0}
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import pairwise
from typing import Any

from yaml.nodes import MappingNode, Node, SequenceNode

from tidings.core.suggest import printable
from tidings.core.yaml_nodes import Document, is_nothing
from tidings.errors import SchemaError
from tidings.events.schema.domains import Domain, DomainKind
from tidings.values import to_number

SETTINGS = {
    DomainKind.NUMERIC: ("minimum", "maximum"),
    DomainKind.STRING: (),
    DomainKind.BOOLEAN: (),
    DomainKind.INSTANT: (),
    DomainKind.ENUMERATED: ("values", "ordered", "order"),
    DomainKind.HIERARCHICAL: ("concepts",),
}
"""The settings of each kind of domain, in addition to `kind`."""

NESTED = 6
"""Maximum nesting of concepts when written; deeper ones continue at the left margin."""

Below = dict[str, tuple[str, ...]]
_NUMBER = re.compile(r"-?\d+(?:\.\d+)?(?:[eE][+-]?\d+)?", re.ASCII)


def read_domain(document: Document, name: str, node: Node) -> Domain:
    """Read the domain of that name; `name: numeric` is short for `name: {kind: numeric}`."""
    if not isinstance(node, MappingNode):
        return _checked(document, node, name, _kind(document, node), {}, None, None)
    known = ("kind", *(setting for settings in SETTINGS.values() for setting in settings))
    given = {key: value for key, _, value in document.items(node, f"domain {name}", known)}
    kind = _kind_of(document, name, node, given)
    below = _read_concepts(document, given) if "concepts" in given else _read_values(document, given)
    low, high = _number(document, given.get("minimum")), _number(document, given.get("maximum"))
    return _checked(document, node, name, kind, below, low, high)


def _checked(
    document: Document,
    node: Node,
    name: str,
    kind: DomainKind,
    below: Below,
    low: int | float | None,
    high: int | float | None,
) -> Domain:
    """Make the domain; errors get a place."""
    try:
        return Domain(name, kind, below, low, high)
    except SchemaError as error:
        raise document.problem(node, error.what, error.accepted, error.hint) from None


def _kind(document: Document, node: Node) -> DomainKind:
    return DomainKind(document.choice(node, "the kind of a domain", [kind.value for kind in DomainKind]))


def _kind_of(document: Document, name: str, node: Node, given: dict[str, Node]) -> DomainKind:
    """Return the declared kind, or the one with the given settings; refuse settings of another kind."""
    fitting = [kind for kind in DomainKind if "kind" not in given and set(given) & set(SETTINGS[kind])]
    if "kind" not in given and not fitting:
        raise document.problem(node, f"domain {name} has no kind", ", ".join(DomainKind))
    kind = _kind(document, given["kind"]) if "kind" in given else fitting[0]
    for setting, value in given.items():
        if setting != "kind" and setting not in SETTINGS[kind]:
            accepted = ", ".join(("kind", *SETTINGS[kind]))
            raise document.problem(value, f"domain {name} is {kind} and has no {setting}", accepted)
    return kind


def _number(document: Document, node: Node | None) -> int | float | None:
    if node is None:
        return None
    text = document.text_of(node, "a bound")
    number = to_number(text) if _NUMBER.fullmatch(text) else None
    if number is None:
        raise document.problem(node, f"'{printable(text)}' is not a number", "a number such as 0 or 99.5")
    return number


def _read_values(document: Document, given: dict[str, Node]) -> Below:
    if "values" not in given:
        return {}
    below: Below = {}
    for node in document.elements(given["values"], "values"):
        value = document.name(node, "a value")
        if value in below:
            raise document.problem(node, f"the value '{value}' is listed twice")
        below[value] = ()
    for low, high in _order(document, given, list(below)):
        below[low] = (*below[low], high)
    return below


def _order(document: Document, given: dict[str, Node], values: list[str]) -> Iterator[tuple[str, str]]:
    """Yield the pairs (lower, higher) of `order`, or those of `ordered: true`."""
    ordered = "ordered" in given and document.choice(given["ordered"], "ordered", ("true", "false")) == "true"
    if ordered and "order" in given:
        raise document.problem(given["ordered"], "ordered and order cannot be combined", "one of them")
    if ordered:
        yield from pairwise(values)
    for chain in document.elements(given["order"], "order") if "order" in given else []:
        nodes = document.elements(chain, "a chain of the order")
        yield from pairwise([document.choice(node, "a value of the order", values) for node in nodes])


def _read_concepts(document: Document, given: dict[str, Node]) -> Below:
    below: Below = {}
    for concept, parent in _walk(document, given["concepts"], None):
        below[concept] = (*below.get(concept, ()), *([parent] if parent else ()))
    return below


def _walk(document: Document, node: Node, parent: str | None) -> Iterator[tuple[str, str | None]]:
    """Yield every concept and its parent, once for each place where it occurs."""
    if isinstance(node, SequenceNode):
        for element in node.value:
            yield from _walk(document, element, parent)
    elif isinstance(node, MappingNode):
        for concept, _, inner in document.items(node, "concepts"):
            yield concept, parent
            yield from () if is_nothing(inner) else _walk(document, inner, concept)
    else:
        yield document.name(node, "a concept"), parent


def write_domain(domain: Domain) -> Any:
    """Write the domain in the form that `read_domain` reads."""
    if domain.kind is DomainKind.HIERARCHICAL:
        return {"concepts": _written_concepts(domain)}
    if domain.kind is DomainKind.ENUMERATED:
        return {"values": list(domain.values)} | _written_order(domain)
    bounds = {"minimum": domain.minimum, "maximum": domain.maximum}
    given = {name: bound for name, bound in bounds.items() if bound is not None}
    return {"kind": domain.kind.value} | given if given else domain.kind.value


def _written_order(domain: Domain) -> dict[str, Any]:
    pairs = [[low, high] for low, above in domain.below.items() for high in above]
    if pairs and pairs == [list(pair) for pair in pairwise(domain.values)]:
        return {"ordered": True}
    return {"order": pairs} if pairs else {}


def _written_concepts(domain: Domain) -> dict[str, Any]:
    inside: dict[str, list[str]] = {concept: [] for concept in domain.below}
    for concept, above in domain.below.items():
        for parent in above:
            inside[parent].append(concept)
    written: set[str] = set()

    def tree(concept: str, room: int) -> Any:
        if not inside[concept] or concept in written or room == 0:
            return None
        written.add(concept)
        trees = {inner: tree(inner, room - 1) for inner in inside[concept]}
        return trees if any(trees.values()) else list(trees)

    roots = {concept: tree(concept, NESTED) for concept, above in domain.below.items() if not above}
    rest = {concept: tree(concept, NESTED) for concept in domain.below if concept not in roots}
    return roots | {concept: inner for concept, inner in rest.items() if inner}
